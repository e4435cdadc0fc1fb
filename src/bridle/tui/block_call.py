"""Draws a call: one line of what it is and how it came out; unfolded, its output or its diff.

While it runs, the last lines of what it says stand below.
"""

from typing import Protocol

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from bridle.presentation.blocks import Call
from bridle.presentation.calls import count_changed_lines
from bridle.tui.render.safe_text import clean, clean_line, spaced
from bridle.workspace.text import quantity

Line = list[Segment]
MARKS = {
    "writing": ("·", "dim"),
    "ready": ("·", "dim"),
    "asked": ("?", "warn"),
    "running": ("●", "accent"),
    "done": ("✓", "good"),
    "failed": ("✗", "bad"),
    "refused": ("✗", "warn"),
    "unknown": ("?", "bad"),
}
_QUESTIONS = ("ask_user", "exit_plan_mode")  # the call itself is the question
_TAIL = 4  # lines of a running tool
_FAILED = 8  # ... and of a command that failed
_MOST = 2_000  # lines of a diff that is unfolded


class Styles(Protocol):
    """What the pen has."""

    text: Style
    bold: Style
    dim: Style
    accent: Style
    added: Style
    removed: Style
    tones: dict[str, Style]


class CallLines:
    """Draws calls for one width."""

    def __init__(self, pen: Styles, console: Console, width: int) -> None:
        self._pen = pen
        self._console = console
        self._width = width

    def draw(self, call: Call, *, unfolded: bool) -> list[Line]:
        """The lines of a call."""
        lines = [self._head(call)]
        if unfolded:
            lines += self._body(call)
        elif call.state == "running" and call.output:
            lines += self._tail(call.output, _TAIL)
        elif call.state == "failed" and call.name == "shell" and not _is_silent(call):
            lines += self._tail(call.result, _FAILED)
        return lines

    def _head(self, call: Call) -> Line:
        pen = self._pen
        mark, tone = MARKS[call.state]
        name = clean_line(call.name, 40)
        colour = pen.accent if tone == "accent" else pen.tones[tone]
        room = self._width - 2 - cell_len(name) - 1 - 1
        subject, shown = _shared(clean_line(call.subject, 400), self._outcome(call), room)
        line = [Segment(f"{mark} ", colour), Segment(name, pen.bold)]
        if subject:
            line.append(Segment(f" {subject}", pen.text))
        if shown and room > 8:
            style = colour if call.state in ("failed", "refused", "unknown", "asked") else pen.dim
            line += [Segment(" · ", pen.dim), Segment(shown, style)]
        return line

    def _outcome(self, call: Call) -> str:
        if call.state == "writing":
            return "…"
        if call.state == "asked":
            return "needs an answer" if call.name in _QUESTIONS else "needs approval"
        if call.state == "running" or call.state == "ready":
            return ""
        if call.diff:
            added, taken = count_changed_lines(call.diff)
            return f"+{added} −{taken}"
        if call.state == "refused" and call.note:
            return clean_line(call.note, 300)
        return clean_line(call.summary, 300)

    def _tail(self, output: str, most: int) -> list[Line]:
        lines = [one for one in clean(output[-4000:]).split("\n") if one.strip()][-most:]
        return [self._row(spaced(one), self._pen.dim) for one in lines]

    def _body(self, call: Call) -> list[Line]:
        lines: list[Line] = []
        if call.command:
            lines += self._text(call.command, self._pen.text)
        if call.note:
            lines += self._text(call.note, self._pen.tones["warn"])
        if call.diff:
            return lines + self._diff(call.diff)
        text = (call.output if call.is_open else call.result).strip("\n")
        return lines + (self._text(text, self._pen.dim) if text else [])

    def _text(self, text: str, style: Style) -> list[Line]:
        room = max(4, self._width - 6)
        lines: list[Line] = []
        for row in spaced(clean(text)).split("\n"):
            parts = [row] if cell_len(row) <= room else self._wrapped(row, room)
            lines += [self._row(part, style) for part in parts]
        return lines

    def _wrapped(self, row: str, room: int) -> list[str]:
        return [part.plain for part in Text(row).wrap(self._console, room, no_wrap=False)]

    def _diff(self, diff: str) -> list[Line]:
        lines: list[Line] = []
        whole = spaced(clean(diff)).split("\n")
        rows = [row for row in whole if row and not row.startswith(("---", "+++"))]
        for row in rows[:_MOST]:
            lines.append(self._row(row, self._diff_style(row), fill=row[0] in "+-"))
        if len(rows) > _MOST:
            lines.append(self._row(f"… {quantity(len(rows) - _MOST, 'more line')}", self._pen.dim))
        return lines

    def _diff_style(self, row: str) -> Style:
        if row.startswith("+"):
            return self._pen.added
        if row.startswith("-"):
            return self._pen.removed
        return self._pen.accent if row.startswith("@@") else self._pen.dim

    def _row(self, text: str, style: Style, *, fill: bool = False) -> Line:
        """One line beside a thin bar."""
        room = max(1, self._width - 6)
        shown = cut(text, room)
        if fill:
            shown = set_cell_size(shown, room)
        return [Segment("  │ ", self._pen.dim), Segment(shown, style)]


def _is_silent(call: Call) -> bool:
    """Did a command end without a word, as its first line says already?"""
    return call.summary.endswith("no output")


def _shared(subject: str, outcome: str, room: int) -> tuple[str, str]:
    """Both as far as there is room; where there is not, the outcome has a third or what is left."""
    left = room - 3 - cell_len(subject)
    shown = cut(outcome, max(left, room // 3, 0))
    taken = cell_len(shown) + 3 if shown else 0
    return cut(subject, max(0, room - taken)), shown


def cut(text: str, room: int) -> str:
    """At most so many cells of it."""
    if cell_len(text) <= room:
        return text
    return set_cell_size(text, room - 1).rstrip() + "…" if room > 1 else "…"[:room]
