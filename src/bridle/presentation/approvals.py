"""An approval as a person reads it: what, why, the exact command or change, what it would do. Pure.

Every byte that would take effect is shown: nothing is cut, and control characters are visible.
Long lines are folded here, each with its mark: text that wraps by itself could pretend to be the
question's own. The screen and the plain terminal both paint these lines; neither is known here.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bridle.events import ApprovalAnswered, ApprovalAsked
from bridle.messages import ToolCall
from bridle.policy import CLASSES
from bridle.presentation.calls import as_json
from bridle.workspace.change import change_lines, prefix_lines
from bridle.workspace.text import flat, neutral, one_line

Columns = Callable[[str], int]  # how many columns a character takes
_DIFF = {"+": "plus", "-": "minus", "@": "hunk"}
_CHANGING = ("edit", "write")  # tools that change the file they name
_READING = ("list", "read")  # ... and that read it
_AUTOMATIC = ("nobody", "expiry")  # who answers a request that no person has answered
NETWORK_NOTE = "if you allow it, this command gets the network; its sandbox has none otherwise"
_PILED = 4  # characters a column: marks that pile up on one letter take no room


class Line(NamedTuple):
    """One line as it stands there.

    `kind` is note, label, head, plain, command, plus, minus, hunk, heading, code or chosen.
    `mark` stands before text from elsewhere (`│`), and before what was folded (`↪`).
    """

    kind: str
    text: str
    mark: str = ""

    @property
    def whole(self) -> str:
        """The line without its colours."""
        return f"  {self.mark} {self.text}" if self.mark else f"  {self.text}"


class Sheet(NamedTuple):
    """What lines are written for: how wide it is, how wide a character is on it at most.

    `least` is the room that a line has even where there is none.
    """

    width: int = 200
    columns: Columns = len
    least: int = 20

    def folded(self, line: str, margin: int) -> list[str]:
        """The line in pieces that fit."""
        width = max(self.least, self.width - margin)
        if line.isascii():
            return [line[at : at + width] for at in range(0, len(line), width)] or [""]
        pieces: list[list[str]] = [[]]
        room = width
        for char in line:
            room -= (taken := self.columns(char))
            if room < 0 or len(pieces[-1]) >= _PILED * width:
                pieces.append([])
                room = width - taken
            pieces[-1].append(char)
        return ["".join(piece) for piece in pieces]

    def _by_words(self, line: str, margin: int) -> Iterator[str]:
        """The line in pieces that fit, of whole words where those are not too long."""
        enough = _PILED * max(self.least, self.width) + 1
        while len(pieces := self.folded(line[:enough], margin)) > 1:
            first = pieces[0]
            end = first.rfind(" ") + 1
            if end <= len(first) // 2 or line[len(first)] == " ":
                end = len(first)
            yield line[:end]
            line = line[end:]
        yield line

    def barred(self, line: str, kind: str = "plain") -> Iterator[Line]:
        """Text from elsewhere, behind a bar; where it is folded, the bar says so."""
        first, *rest = self.folded(neutral(line, keep="\t").expandtabs(4), 6)
        yield Line(kind, first, "│")
        for more in rest:
            yield Line(kind, more, "│ ↪")

    def noted(self, label: str, text: str) -> Iterator[Line]:
        """A line beside the call; where it is folded, between words if it can be, it says so."""
        first, *rest = self._by_words(label + flat(text), 4)
        yield Line("note", first)
        for more in rest:
            yield Line("note", f"↪ {more}")


def approval_title(call: ToolCall) -> str:
    """What is asked, in one line: `Run this command?`, `Allow edit to basket.py?`.

    The path of a call that only reads stands there, too: `Allow read of .env?`.
    """
    if call.name == "shell":
        return "Run this command?"
    name, path = flat(call.name), call.arguments.get("path")
    link = "to" if call.name in _CHANGING else "of" if call.name in _READING else ""
    what = f" {link} {one_line(path, 60)}" if link and isinstance(path, str) else ""
    return f"Allow {one_line(name, 60)}{what}?"


def approval_lines(
    asked: ApprovalAsked, sheet: Sheet, before: str | None = None, diff: str = ""
) -> list[Line]:
    """The whole question without its head. `before` is what the file holds now, where known.

    `diff` is the change as a server worked it out: it is shown besides what was asked for.
    """
    lines = [*reason_part(asked, sheet), *change_part(asked, sheet, before, diff)]
    for part in (history_part, rule_part):
        lines += part(asked, sheet)
    return lines


def change_part(
    asked: ApprovalAsked, sheet: Sheet, before: str | None, diff: str
) -> Iterator[Line]:
    """What would happen; where only a server can work that out, its account of it stands first."""
    if diff and before is None:
        yield Line("label", "the change, as the server sees it:")
        for line in diff.removesuffix("\n").split("\n"):
            yield from sheet.barred(line, _DIFF.get(line[:1], "plain"))
        yield Line("label", "as it was asked for:")
    yield from call_part(asked, sheet, before)


def reason_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """Why it asks, by which rule, and where it would run."""
    by = f" ({asked.rule})" if asked.rule else ""
    yield from sheet.noted("why: ", (asked.reason or "it always asks") + by)
    if asked.cwd:
        yield from sheet.noted("in:  ", asked.cwd)
    if asked.sandbox == "none":
        yield from sheet.noted("", "it would run without a sandbox")
    if asked.network:
        yield from sheet.noted("", NETWORK_NOTE)


def call_part(asked: ApprovalAsked, sheet: Sheet, before: str | None) -> Iterator[Line]:
    """The call itself, then what it was understood to do."""
    call = asked.call
    for line in _call(call, before):
        kind = "command" if call.name == "shell" else _DIFF.get(line[:1], "plain")
        yield from sheet.barred(line, kind)
    yield from effect_part(asked, sheet)


def effect_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """What was found that it would do: commands, files, hosts."""
    arguments = asked.call.arguments
    said = arguments.get("command")  # as a whole it stands there already
    commands = tuple(one for one in asked.commands if one not in asked.hosts and one != said)
    if commands:
        one = len(commands) == 1
        yield Line("label", "understood as:" if one else f"that is {len(commands)} commands:")
        for command in commands:
            yield from sheet.barred(command)
    if asked.paths and asked.paths != (arguments.get("path"),):
        label = "file:" if len(asked.paths) == 1 else f"{len(asked.paths)} files:"
        yield from sheet.noted(f"{label} ", ", ".join(asked.paths))
    if asked.hosts:
        label = "host:" if len(asked.hosts) == 1 else f"{len(asked.hosts)} hosts:"
        yield from sheet.noted(f"{label} ", ", ".join(asked.hosts))


def history_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """How often the like was allowed."""
    if asked.times:
        times = "once" if asked.times == 1 else f"{asked.times} times"
        yield from sheet.noted("", f"asked before in this session, and allowed {times}")


def rule_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """The rule that could be made of a yes."""
    if has_rule(asked):
        yield from sheet.noted("rule: ", f"{asked.proposal}, in this folder")


def has_rule(asked: ApprovalAsked) -> bool:
    """Can a rule be made of a yes?"""
    return bool(asked.proposal) and not asked.once_only


def _call(call: ToolCall, before: str | None) -> Iterator[str]:
    arguments = dict(call.arguments)
    if isinstance(command := arguments.get("command"), str) and call.name == "shell":
        del arguments["command"]
        yield from prefix_lines(command, "$ ")
    elif (change := change_lines(arguments, before)) is not None:
        lines, arguments = change
        yield from lines
    if arguments:
        yield as_json(arguments)


def answer_text(answer: ApprovalAnswered, me: str = "me") -> str:
    """Return the answer, and who gave it, unless that is `me`, the reader."""
    if is_unanswered(answer):
        return flat(f"not run: {answer.word or 'nobody answered'}")
    verdict = "allowed" if answer.allowed else "refused"
    by = "" if answer.by in ("me", "approver", me) else f" by {answer.by}"
    until = {"session": ", for the session", "rule": f", by the rule {answer.rule}"}
    word = f": {answer.word}" if answer.word else ""
    return flat(f"{verdict}{by}{until.get(answer.scope, '')}{word}")


def session_grant_text(asked: ApprovalAsked) -> str:
    """Return what an approval for the session allows."""
    if not asked.covers:
        return "allow for this session"
    what = CLASSES.get(asked.covers, flat(asked.covers))
    return f"allow {what} in this folder for this session"


def is_unanswered(answer: ApprovalAnswered) -> bool:
    """Was it refused because no person answered, or not in time?"""
    return not answer.allowed and answer.by in _AUTOMATIC
