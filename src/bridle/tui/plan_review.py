"""A plan that the model brings before the person: shown whole, agreed to, or sent back. Pure.

Its Markdown stands there as it was written, every byte, with headings and code made out by colour:
what a finished page would hide (an address behind a link, a comment) is read as well. A yes leaves
plan mode; what comes then is asked about, or, if the person says so, edits run.
"""

import re
from collections.abc import Iterator, Sequence

from bridle.presentation.approvals import Line, Sheet
from bridle.presentation.calls import as_json
from bridle.protocols.session import Answer
from bridle.tui.house import Asked
from bridle.tui.question_views import Given, Offer, Outcome, Write
from bridle.workspace.text import neutral

PLAN = "exit_plan_mode"
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_HANG = re.compile(r"\s*(?:(?:[-*+•]|\d{1,3}[.)])\s+)?")


class PlanView:
    """The plan. `here`: it is this session's, whose mode can be changed along with the yes."""

    head = "Go ahead with this plan?"

    def __init__(self, asked: Asked, *, here: bool = True) -> None:
        self.covers = (asked,)
        self._here = here

    @property
    def offers(self) -> Sequence[Offer]:
        """Go, go with edits, go with changes; not yet, not yet with a word."""
        edits = (Offer("e", "yes, and allow edits", True, "edits"),) if self._here else ()
        return (
            Offer("y", "yes, and ask before each change", True, "yes"),
            *edits,
            Offer("c", "yes, with changes", True, "changes"),
            Offer("n", "keep planning", short="no"),
            Offer("w", "keep planning and say why", short="say why"),
        )

    def lines(self, sheet: Sheet) -> list[Line]:
        """All of the plan, and whatever came with it."""
        arguments = dict(self.covers[0].asked.call.arguments)
        plan = arguments.pop("plan", "")
        found = list(markdown_lines(plan if isinstance(plan, str) else as_json(plan), sheet))
        return [*found, *sheet.barred(as_json(arguments))] if arguments else found

    def press(self, key: str) -> Outcome | None:
        """What that key means here."""
        match key:
            case "y":
                return self._given(Answer(True))
            case "e" if self._here:
                return Given(((self.covers[0], Answer(True)),), mode="edits")
            case "c":
                return Write("what to change", lambda said: self._given(_yes(said)))
            case "n":
                return self._given(Answer(False))
            case "w":
                return Write("what is wrong with it", lambda said: self._given(_no(said)))
        return None

    def _given(self, answer: Answer) -> Given:
        return Given(((self.covers[0], answer),))


def _yes(said: str) -> Answer:
    return Answer(True, word=said)


def _no(said: str) -> Answer:
    return Answer(False, word=said)


def markdown_lines(text: str, sheet: Sheet) -> Iterator[Line]:
    """Markdown as it was written, each line behind a bar; prose is broken between words."""
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
