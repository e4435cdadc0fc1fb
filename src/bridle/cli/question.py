"""An approval as a person reads it: what, why, and the exact command or change. Pure.

Every byte that would take effect is shown: nothing is cut, and control characters are visible.
"""

import difflib
from collections.abc import Callable, Iterator

from bridle.cli.render import one_line, to_json
from bridle.cli.style import Paint, cells
from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.promises.session import Answer
from bridle.workspace.text import neutral

CHOICES = "[y] yes  [a] yes, for this session  [n] no  or say what to do instead"


def question(
    asked: ApprovalAsked, paint: Paint, width: int = 200, before: str | None = None
) -> str:
    """The whole question. `before` is what the file holds now, where the call changes one.

    Long lines are folded here, each with its mark: text that wraps by itself could pretend to be
    the question's own.
    """
    call = asked.call
    head = f"{paint.yellow('?')} {paint.bold(one_line(call.name))}: may this run?"
    why = f"  {paint.dim('why: ' + one_line(asked.reason or 'it always asks'))}"
    if asked.rule:
        why += paint.dim(f" ({one_line(asked.rule)})")
    where = [f"  {paint.dim('in:  ' + one_line(asked.cwd))}"] if asked.cwd else []
    body = []
    for line in _body(call, before):
        colour = _colour(line, paint) if call.name != "shell" else paint.bold
        first, *rest = _folded(neutral(line, keep="\t").expandtabs(4), max(20, width - 6))
        body.append(f"  {paint.dim('│')} {colour(first)}")
        body += [f"  {paint.dim('│ ↪')} {colour(more)}" for more in rest]
    return "\n".join([head, why, *where, *body])


def to_answer(line: str | None) -> Answer:
    """What was typed. Silence is no; words that are not an answer are a no that is passed on."""
    said = (line or "").strip()
    match said.lower():
        case "y" | "yes":
            return Answer(True)
        case "a" | "always":
            return Answer(True, "session")
        case "" | "n" | "no":
            return Answer(False)
        case _:
            return Answer(False, word=said.removeprefix("n ").removeprefix("no, ").strip())


def _body(call: ToolCall, before: str | None) -> Iterator[str]:
    arguments = dict(call.arguments)
    if isinstance(command := arguments.get("command"), str) and call.name == "shell":
        del arguments["command"]
        yield from _lines(command, "$ ")
    elif (change := _change(arguments, before)) is not None:
        yield str(arguments.pop("path", ""))
        yield from change
        for name in ("content", "old", "new"):
            arguments.pop(name, None)
    if arguments:
        yield to_json(arguments)


def _folded(line: str, width: int) -> list[str]:
    """The line in pieces that fit."""
    pieces, room = [""], width
    for char in line:
        room -= cells(char)
        if room < 0:
            pieces.append("")
            room = width - cells(char)
        pieces[-1] += char
    return pieces


def _change(arguments: dict[str, object], before: str | None) -> list[str] | None:
    """The lines that go and the lines that come."""
    old, new = arguments.get("old"), arguments.get("new")
    if isinstance(old, str) and isinstance(new, str):
        if old.endswith("\n") and new.endswith("\n"):  # else the difference has to be seen
            old, new = old[:-1], new[:-1]
        return [*_lines(old, "- "), *_lines(new, "+ ")]
    if not isinstance(content := arguments.get("content"), str):
        return None
    if before is None:
        whole = content.endswith("\n")
        end = [] if whole or not content else ["(the last line has no end)"]
        return [*_lines(content[:-1] if whole else content, "+ "), *end]
    unified = difflib.unified_diff(before.split("\n"), content.split("\n"), lineterm="")
    return list(unified)[2:] or ["(the same as it is now)"]


def _lines(text: str, mark: str) -> list[str]:
    return [mark + line for line in text.split("\n")] if text else []


def _colour(line: str, paint: Paint) -> Callable[[str], str]:
    return {"+": paint.green, "-": paint.red}.get(line[:1], str)
