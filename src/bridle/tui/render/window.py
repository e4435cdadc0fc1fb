"""Which blocks are drawn, and where: a window onto a conversation of any length.

Only what is near to what is looked at is drawn and kept; older blocks come when somebody scrolls up
to them. Knows strips and the painter; the widget is `conversation.py`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from bridle.presentation.blocks import Block, GrowingText, Removed, Reply
from bridle.tui.render.blocks import Painter, gap_before
from bridle.tui.render.welcome import EDGE, STEP

_FRAME = re.compile(r"   │ |.{0,3}", re.S)  # the bar beside an output, or the columns of the mark
MOST = 400  # blocks that are kept drawn while nobody looks back


class Window:
    """The drawn end of a list of blocks. `first` is the oldest that is drawn."""

    def __init__(self, blocks: Sequence[Block], painter: Painter) -> None:
        self.blocks = blocks
        self.painter = painter
        self.first = self._packed = len(blocks)
        self.unfolded: set[int] = set()
        self.chosen: int | None = None
        self._strips: list[list[Strip]] = []
        self._tops: list[int] = []
        self._growing: dict[int, tuple[list[list[Segment]], list[Strip]]] = {}
        self.height = 0

    def fill(self, lines: int) -> None:
        """Draw older blocks until there are so many lines, or no more blocks."""
        self.update(range(self.first, len(self.blocks)))
        while self.first > 0 and self.height < lines:
            self.grow(STEP)

    def restart(self, lines: int) -> None:
        """From the end again: more came at once than anybody could have seen."""
        self._forget(len(self._strips))
        self.first = len(self.blocks)
        self._strips, self._tops, self.height = [], [], 0
        self._growing.clear()
        self.fill(lines)
        self._pack()

    @property
    def behind(self) -> int:
        """How many blocks came and are not drawn yet."""
        return len(self.blocks) - self.first - len(self._strips)

    def grow(self, count: int) -> int:
        """So many older blocks; how many lines they have."""
        before = self.height
        start = max(0, self.first - count)
        older = [self._draw(place) for place in range(start, self.first)]
        self._strips[:0] = older
        self.first = start
        self._measure()
        return self.height - before

    def shrink(self) -> int:
        """Let go of the oldest where there are too many; how many lines went."""
        surplus = len(self._strips) - MOST
        if surplus < STEP:
            return 0
        before = self.height
        self._forget(surplus)
        del self._strips[:surplus]
        self.first += surplus
        self._pack()
        self._measure()
        return before - self.height

    def _forget(self, count: int) -> None:
        for place in range(self.first, self.first + count):
            self.painter.forget(place)

    def _pack(self) -> None:
        """What came since it was opened, and is above what is drawn, is kept small."""
        for place in range(self._packed, self.first):
            if isinstance(block := self.blocks[place], GrowingText):
                block.pack()
        self._packed = max(self._packed, self.first)

    def update(self, places: Iterable[int]) -> int:
        """Draw these anew; the first line that is different, or the height where none is."""
        lowest = self.height
        for place in sorted(places):
            at = place - self.first
            if at < 0 or place >= len(self.blocks):
                continue
            drawn = self._draw(place)
            if at < len(self._strips):
                same = _same(self._strips[at], drawn)
                self._strips[at] = drawn
                lowest = min(lowest, self._tops[at] + same)
            else:
                self._strips.append(drawn)
        self._measure()
        return lowest

    def redraw(self, painter: Painter) -> None:
        """Everything, in another width or other colours."""
        self.painter = painter
        self._growing.clear()
        self._strips = [self._draw(place) for place in range(self.first, len(self.blocks))]
        self._measure()

    def line(self, y: int) -> Strip | None:
        """That line; None below the end."""
        at = self._at(y)
        return None if at is None else self._strips[at][y - self._tops[at]]

    def place_at(self, y: int) -> int | None:
        """The block that has that line."""
        at = self._at(y)
        return None if at is None else self.first + at

    def span(self, place: int) -> tuple[int, int]:
        """The first line of a block that is drawn, without the gap, and the one after its last."""
        at = place - self.first
        top = self._tops[at]
        gap = self._gap(place)
        return top + gap, top + len(self._strips[at])

    def copied(self, span: Callable[[int], tuple[int, int] | None]) -> str:
        """The marked text as it was written. `span` gives what is marked of a line, as columns.

        What the view adds is left out: the columns on the left, and the breaks of lines that are
        wider than the window.
        """
        parts: list[str] = []
        for at, strips in enumerate(self._strips):
            first = self._tops[at]
            marked = [span(line) for line in range(first, first + len(strips))]
            if not any(marked):
                continue
            drawn = [strip.text.rstrip() for strip in strips]
            written = self.painter.written(self.blocks[self.first + at])
            for text, line, columns in zip(drawn, origins(drawn, written), marked, strict=True):
                if columns is None:
                    continue
                start, end = columns
                shown = text[max(start, line.margin) : None if end == -1 else max(end, 0)]
                parts.append(line.before if parts else "")
                parts.append(shown)
        return "".join(parts)

    def _gap(self, place: int) -> int:
        above = place - 1
        while above >= 0 and isinstance(self.blocks[above], Removed):
            above -= 1
        return gap_before(self.blocks[above] if above >= 0 else None, self.blocks[place])

    def _draw(self, place: int) -> list[Strip]:
        block = self.blocks[place]
        lines = self.painter.lines(place, block, unfolded=place in self.unfolded)
        strips = self._strips_of(place, block, lines)
        if place == self.chosen and strips:
            strips[0] = _marked(strips[0], self.painter)
        return [self._finished([]) for _ in range(self._gap(place))] + strips

    def _strips_of(self, place: int, block: Block, lines: list[list[Segment]]) -> list[Strip]:
        """What is settled of an answer that grows is not made again."""
        if not isinstance(block, Reply):
            return [self._finished(line) for line in lines]
        known, made = self._growing.pop(place, ([], []))
        same = 0
        for old, new in zip(known, lines, strict=False):
            if old is not new:
                break
            same += 1
        strips = made[:same] + [self._finished(line) for line in lines[same:]]
        if not block.over:
            self._growing[place] = list(lines), list(strips)
        return strips

    def _finished(self, line: list[Segment]) -> Strip:
        """From edge to edge, on our ground: nothing is left to do when it is shown."""
        width = self.painter.width + 2 * EDGE
        base = self.painter.pen.base
        return Strip([Segment(" " * EDGE), *line]).apply_style(base).crop_extend(0, width, base)

    def _measure(self) -> None:
        tops, height = [], 0
        for strips in self._strips:
            tops.append(height)
            height += len(strips)
        self._tops, self.height = tops, height

    def _at(self, y: int) -> int | None:
        from bisect import bisect_right

        if not 0 <= y < self.height:
            return None
        return bisect_right(self._tops, y) - 1


def _same(before: list[Strip], after: list[Strip]) -> int:
    """How many lines at the beginning are the same."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count


def _marked(strip: Strip, painter: Painter) -> Strip:
    """The line of the block that the keys are at."""
    ground = painter.pen.chosen
    return Strip([Segment(one.text, (one.style or Style()) + ground) for one in strip])


class Origin(NamedTuple):
    """Where a line of the view comes from."""

    margin: int  # columns that are not part of the text
    before: str  # what stands in the text between the line before and this one


def origins(drawn: Sequence[str], written: Sequence[str]) -> list[Origin]:
    """Find each drawn line in the text that it was drawn from, line by line of that text.

    A drawn line that goes on where the one before it ended is a soft break. A line that is not
    found in the text, as one of a table, stands for itself.
    """
    found: list[Origin] = []
    rest, at = "", 0
    for line in drawn:
        frame = len(_FRAME.match(line)[0])  # type: ignore[index]  # it matches everything
        body = line[frame:]
        ink = "".join(body.split())
        indent = len(body) - len(body.lstrip())
        if ink and "".join(rest.split()).startswith(ink):
            gap = rest[: len(rest) - len(rest.lstrip())]
            found.append(Origin(frame + indent, gap))
            rest = _after(rest, len(ink))
            continue
        place = next((n for n in range(at, len(written)) if ink and _begins(written[n], ink)), None)
        rest = ""
        if place is not None:
            whole = written[place]
            frame += max(0, indent - (len(whole) - len(whole.lstrip())))
            rest, at = _after(whole, len(ink)), place + 1
        found.append(Origin(frame, "\n"))
    return found


def _begins(text: str, ink: str) -> bool:
    return "".join(text.split()).startswith(ink)


def _after(text: str, count: int) -> str:
    """What follows so many characters that are not spaces."""
    for at, character in enumerate(text):
        if count == 0:
            return text[at:]
        count -= not character.isspace()
    return ""
