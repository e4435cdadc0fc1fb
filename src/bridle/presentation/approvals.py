"""An approval request as a person reads it: its title, its lines and its choices. Pure.

Every byte that would take effect is shown: nothing is cut, and control characters are visible.
Long lines are folded here, each with its mark: text that wraps by itself could pretend to be part
of the request. Full screen, plain terminal and editor show the same words.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bridle.events import ApprovalAnswered, ApprovalAsked
from bridle.messages import ToolCall
from bridle.policy import CLASSES
from bridle.presentation.calls import as_json
from bridle.workspace.change import change_lines, prefix_lines
from bridle.workspace.text import flat, neutral, one_line

Columns = Callable[[str], int]  # how many columns a character takes
_DIFF = {"+": "plus", "-": "minus", "@": "hunk"}
PLAN, ASK_USER = "exit_plan_mode", "ask_user"  # tools whose calls are requests of their own
LEAVE_UNANSWERED = "Leave unanswered"
SAVE_RULE = "Allow and save the rule"
_TITLES = {
    "shell": "Run this command?",
    PLAN: "Go ahead with this plan?",
    ASK_USER: "A question for you",
}
_CHANGING = ("edit", "write")  # tools that change the file they name
_READING = ("list", "read")  # ... and that read it
_AUTOMATIC = ("nobody", "expiry")  # who answers a request that no person has answered
NETWORK_NOTE = "if allowed, this command gets network access, which its sandbox does not have"
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_HANG = re.compile(r"\s*(?:(?:[-*+•]|\d{1,3}[.)])\s+)?")
_PILED = 4  # characters a column: marks that pile up on one letter take no room


class Choice(NamedTuple):
    """What can be answered: a key in a terminal, and its label.

    `needs_end`: it counts once the end of the request was on the screen. `short` is shown if there
    is little room.
    """

    key: str
    label: str
    needs_end: bool = False
    short: str = ""


class Line(NamedTuple):
    """A line of a request.

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
    """What lines are made for: its width, and how wide a character is on it at most.

    `least` is the room that a line has even if there is none.
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
    """Return what is asked, in one line: `Run this command?`, `Allow edit to basket.py?`."""
    name, path = flat(call.name), call.arguments.get("path")
    if name in _TITLES:
        return _TITLES[name]
    link = "to" if name in _CHANGING else "of" if name in _READING else ""
    what = f" {link} {one_line(path, 60)}" if link and isinstance(path, str) else ""
    return f"Allow {one_line(name, 60)}{what}?"


def approval_choices(asked: ApprovalAsked, group: int = 1) -> tuple[Choice, ...]:
    """Return what can be answered to a call; `group` counts the calls that belong together."""
    choices = [Choice("y", "Allow once", True, "Once")]
    if not asked.once_only:
        choices.append(_session_choice("Allow for this session", asked))
    if has_rule(asked):
        choices.append(Choice("r", "Always allow…", True, "Always…"))
    if group > 1:
        choices.append(Choice("a", f"Show all {group} together", short="All"))
    return (*choices, Choice("n", "Deny"), Choice("w", "Deny and say why…", short="Why…"))


def group_choices(group: Sequence[ApprovalAsked]) -> tuple[Choice, ...]:
    """Return what can be answered to several calls at once."""
    choices = [Choice("y", "Allow all once", True, "All once")]
    if not any(asked.once_only for asked in group):
        choices.append(_session_choice("Allow all for this session", group[0]))
    deny_why = Choice("w", "Deny all and say why…", short="Why…")
    return (*choices, Choice("n", "Deny all", short="Deny"), deny_why)


def plan_choices(*, edits: bool = False) -> tuple[Choice, ...]:
    """Return what can be answered to a plan; with `edits`, also that edits are allowed with it."""
    allow_edits = (Choice("e", "Yes, and allow edits", True, "Edits"),) if edits else ()
    return (
        Choice("y", "Yes, ask before each change", True, "Yes"),
        *allow_edits,
        Choice("c", "Yes, with changes…", True, "Changes…"),
        Choice("n", "Keep planning", short="No"),
        Choice("w", "Keep planning and say why…", short="Why…"),
    )


def _session_choice(label: str, asked: ApprovalAsked) -> Choice:
    """Return the choice that lasts for the session, with what it covers if that is a class."""
    if not asked.covers:
        return Choice("s", label, True, "Session")
    what = CLASSES.get(asked.covers, flat(asked.covers))
    return Choice("s", f"{label}: {what} in this folder", True, f"Session: {what}")


def approval_lines(
    asked: ApprovalAsked, sheet: Sheet, before: str | None = None, diff: str = ""
) -> list[Line]:
    """Return the whole request without its title. `before` is what the file holds now, where known.

    `diff` is the change as a server computed it: it is shown besides what was requested.
    """
    lines = [*reason_part(asked, sheet), *change_part(asked, sheet, before, diff)]
    for part in (history_part, rule_part):
        lines += part(asked, sheet)
    return lines


def change_part(
    asked: ApprovalAsked, sheet: Sheet, before: str | None, diff: str
) -> Iterator[Line]:
    """Return what would happen. If only a server knows the file, its diff comes first."""
    if diff and before is None:
        yield Line("label", "the change, as computed by the server:")
        for line in diff.removesuffix("\n").split("\n"):
            yield from sheet.barred(line, _DIFF.get(line[:1], "plain"))
        yield Line("label", "as requested:")
    yield from call_part(asked, sheet, before)


def reason_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """Return why approval is needed, by which rule, and where the call would run."""
    by = f" ({asked.rule})" if asked.rule else ""
    yield from sheet.noted("why: ", (asked.reason or "it always needs approval") + by)
    if asked.cwd:
        yield from sheet.noted("in:  ", asked.cwd)
    if asked.sandbox == "none":
        yield from sheet.noted("", "it would run without a sandbox")
    if asked.network:
        yield from sheet.noted("", NETWORK_NOTE)


def call_part(asked: ApprovalAsked, sheet: Sheet, before: str | None) -> Iterator[Line]:
    """Return the call itself, then what it was understood to do."""
    call = asked.call
    for line in _call(call, before):
        kind = "command" if call.name == "shell" else _DIFF.get(line[:1], "plain")
        yield from sheet.barred(line, kind)
    yield from effect_part(asked, sheet)


def effect_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """Return what the call would do as far as is known: commands, files, hosts."""
    arguments = asked.call.arguments
    said = arguments.get("command")  # as a whole it stands there already
    commands = tuple(one for one in asked.commands if one not in asked.hosts and one != said)
    if commands:
        one = len(commands) == 1
        yield Line("label", "understood as:" if one else f"{len(commands)} commands:")
        for command in commands:
            yield from sheet.barred(command)
    if asked.paths and asked.paths != (arguments.get("path"),):
        label = "file:" if len(asked.paths) == 1 else f"{len(asked.paths)} files:"
        yield from sheet.noted(f"{label} ", ", ".join(asked.paths))
    if asked.hosts:
        label = "host:" if len(asked.hosts) == 1 else f"{len(asked.hosts)} hosts:"
        yield from sheet.noted(f"{label} ", ", ".join(asked.hosts))


def history_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """Return how often similar calls were allowed."""
    if asked.times:
        times = "once" if asked.times == 1 else f"{asked.times} times"
        yield from sheet.noted("", f"similar calls were allowed {times} in this session")


def rule_part(asked: ApprovalAsked, sheet: Sheet) -> Iterator[Line]:
    """Return the rule that `Always allow…` would add."""
    if has_rule(asked):
        yield from sheet.noted("rule: ", f"{asked.proposal}, in this folder")


def has_rule(asked: ApprovalAsked) -> bool:
    """Whether a rule can allow it from now on."""
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
    verdict = "allowed" if answer.allowed else "denied"
    by = "" if answer.by in ("me", "approver", me) else f" by {answer.by}"
    until = {"session": " for this session", "rule": f" with the rule {answer.rule}"}
    word = f": {answer.word}" if answer.word else ""
    return flat(f"{verdict}{by}{until.get(answer.scope, '')}{word}")


def is_unanswered(answer: ApprovalAnswered) -> bool:
    """Whether it was denied because no person answered, or not in time."""
    return not answer.allowed and answer.by in _AUTOMATIC


# Plans and questions


def options_of(asked: ApprovalAsked) -> list[str]:
    """Return the options of a question; none if the model gave no list."""
    options = asked.call.arguments.get("options", ())
    return [str(option) for option in options] if isinstance(options, list | tuple) else []


def markdown_lines(text: str, sheet: Sheet) -> Iterator[Line]:
    """Return Markdown as it was written, each line behind a bar; prose is broken between words.

    Every byte is there: what a finished page would hide (an address behind a link, a comment) is
    read as well.
    """
    fenced = False
    for line in neutral(text.strip("\n")).expandtabs(4).split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        if fenced or fence:
            yield from sheet.barred(line, "code")
        else:
            yield from _prose(line, sheet, "heading" if _HEADING.match(line) else "plain")
        fenced ^= fence


def _prose(line: str, sheet: Sheet, kind: str) -> Iterator[Line]:
    width = max(sheet.least, sheet.width - 6)
    found = _HANG.match(line)
    hang = " " * min(found.end() if found else 0, width // 3)
    now, taken = "", 0
    for piece in re.findall(r"\s*\S+", line):
        wide = sum(map(sheet.columns, piece))
        if now.strip() and taken + wide > width:
            yield from sheet.barred(now, kind)
            now = hang + piece.lstrip()
            taken = sum(map(sheet.columns, now))
        else:
            now, taken = now + piece, taken + wide
    yield from sheet.barred(now, kind)
