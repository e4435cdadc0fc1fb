"""An approval as a person reads it: what, why, and the exact command or change. Pure.

Every byte that would take effect is shown: nothing is cut, and control characters are visible.
Long lines are folded here, each with its mark: text that wraps by itself could pretend to be the
question's own.
"""

import re
from collections.abc import Callable, Iterator

from bridle.cli.render import counted, one_line, to_json
from bridle.cli.style import Paint, cells
from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.promises.session import Answer
from bridle.workspace.change import marked, told
from bridle.workspace.text import neutral

_YES = re.compile(r"(?:y|yes)\s*,(.+)", re.IGNORECASE | re.DOTALL)
_WORDS = 'or words: a no that says what to do instead; "y, …" is a yes with words'
_COVERED = {"builds": "tests and builds"}


def question(
    asked: ApprovalAsked, paint: Paint, width: int = 200, before: str | None = None
) -> str:
    """The whole question. `before` is what the file holds now, where the call changes one."""
    head = f"{paint.yellow('?')} {paint.bold(one_line(asked.call.name))}: may this run?"
    lines = [head, *why(asked, paint, width), *body(asked, paint, width, before)]
    for part in (history, covered, _rule):
        lines += part(asked, paint, width)
    return "\n".join(lines)


def why(asked: ApprovalAsked, paint: Paint, width: int) -> Iterator[str]:
    """Why it asks, by which rule, and where it would run."""
    rule = f" ({asked.rule})" if asked.rule else ""
    yield from _noted("why: ", (asked.reason or "it always asks") + rule, paint, width)
    if asked.cwd:
        yield from _noted("in:  ", asked.cwd, paint, width)
    if asked.sandbox == "none":
        yield from _noted("", "it would run without a sandbox", paint, width)


def body(asked: ApprovalAsked, paint: Paint, width: int, before: str | None) -> Iterator[str]:
    """The call itself, then what it was understood to do."""
    call = asked.call
    for line in _call(call, before):
        colour = paint.bold if call.name == "shell" else _colour(line, paint)
        yield from barred(line, colour, paint, width)
    if asked.commands and asked.commands != (call.arguments.get("command"),):
        one = len(asked.commands) == 1
        label = "understood as:" if one else f"that is {len(asked.commands)} commands:"
        yield f"  {paint.dim(label)}"
        for command in asked.commands:
            yield from barred(command, str, paint, width)
    if asked.paths and asked.paths != (call.arguments.get("path"),):
        label = "file:" if len(asked.paths) == 1 else f"{len(asked.paths)} files:"
        yield from _noted(f"{label} ", ", ".join(asked.paths), paint, width)


def history(asked: ApprovalAsked, paint: Paint, width: int) -> Iterator[str]:
    """How often the like was allowed."""
    if asked.times:
        times = "once" if asked.times == 1 else counted(asked.times, "time")
        yield from _noted("", f"asked before in this session, and allowed {times}", paint, width)


def covered(asked: ApprovalAsked, paint: Paint, width: int) -> Iterator[str]:
    """What a yes covers besides this call."""
    if asked.covers and not asked.lasting:
        what = _COVERED.get(asked.covers, asked.covers)
        said = f"one yes covers {what} in this folder, for this session"
        yield from _noted("", said, paint, width)


def _rule(asked: ApprovalAsked, paint: Paint, width: int) -> Iterator[str]:
    if has_rule(asked):
        yield from _noted("rule: ", f"{asked.proposal}, in this folder", paint, width)


def has_rule(asked: ApprovalAsked) -> bool:
    """Can a rule be made of a yes?"""
    return bool(asked.proposal) and not asked.lasting


def choices(asked: ApprovalAsked, width: int = 200) -> str:
    """What can be said, and where it is said."""
    found = {"y": "yes, this once" if asked.lasting else "yes"}
    if not asked.lasting and not asked.covers:  # what covers more is for the session anyway
        found["a"] = "yes, for this session"
    if has_rule(asked):
        found["r"] = "yes, by that rule"
    return offered({**found, "n": "no"}, _WORDS, width)


def offered(found: dict[str, str], words: str, width: int) -> str:
    """Keys and what they mean, a sentence about everything else, and the prompt."""
    keys = "  ".join(f"[{key}] {meaning}" for key, meaning in found.items())
    prompt = "/".join("N" if key == "n" else key for key in found)
    lines = [*_wrapped(keys, width - 2, "  "), *_wrapped(words, width - 2, " ")]
    return "\n".join(f"  {line}" for line in [*lines, f"[{prompt}] "])


def _wrapped(text: str, width: int, between: str) -> list[str]:
    lines = [""]
    for piece in text.split(between):
        longer = f"{lines[-1]}{between}{piece}" if lines[-1] else piece
        if cells(longer) > width and lines[-1]:
            lines.append(piece)
        else:
            lines[-1] = longer
    return lines


def to_answer(line: str | None) -> Answer:
    """What was typed. Silence is no; words that are not an answer are a no that is passed on."""
    said = (line or "").strip()
    match said.lower():
        case "y" | "yes":
            return Answer(True)
        case "a" | "always":
            return Answer(True, "session")
        case "r" | "rule":
            return Answer(True, "rule")
        case "" | "n" | "no":
            return Answer(False)
    if (yes := _YES.fullmatch(said)) is not None and (word := yes[1].strip()):
        return Answer(True, word=word)
    return Answer(False, word=said.removeprefix("n ").removeprefix("no, ").strip())


def _call(call: ToolCall, before: str | None) -> Iterator[str]:
    arguments = dict(call.arguments)
    if isinstance(command := arguments.get("command"), str) and call.name == "shell":
        del arguments["command"]
        yield from marked(command, "$ ")
    elif (change := told(arguments, before)) is not None:
        lines, arguments = change
        yield from lines
    if arguments:
        yield to_json(arguments)


def barred(line: str, colour: Callable[[str], str], paint: Paint, width: int) -> Iterator[str]:
    """Text from elsewhere, behind a bar; where it is folded, the bar says so."""
    first, *rest = folded(neutral(line, keep="\t").expandtabs(4), max(20, width - 6))
    yield f"  {paint.dim('│')} {colour(first)}"
    for more in rest:
        yield f"  {paint.dim('│ ↪')} {colour(more)}"


def _noted(label: str, text: str, paint: Paint, width: int) -> Iterator[str]:
    """A line beside the call; where it is folded, it says so."""
    first, *rest = folded(label + one_line(text), max(20, width - 4))
    yield f"  {paint.dim(first)}"
    for more in rest:
        yield f"  {paint.dim(f'↪ {more}')}"


def folded(line: str, width: int) -> list[str]:
    """The line in pieces that fit."""
    if cells(line) <= width:
        return [line]
    pieces, room = [""], width
    for char in line:
        room -= cells(char)
        if room < 0:
            pieces.append("")
            room = width - cells(char)
        pieces[-1] += char
    return pieces


def _colour(line: str, paint: Paint) -> Callable[[str], str]:
    marks = {"+": paint.green, "-": paint.red, "@": paint.cyan}
    return marks.get(line[:1], str)
