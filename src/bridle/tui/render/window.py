"""The drawn part of a conversation of any length: which blocks are drawn, and where.

Only what is near the visible part is drawn and kept; older blocks are drawn when somebody scrolls
up to them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from bridle.presentation.blocks import (
    Block,
    Call,
    GrowingText,
    Removed,
    Reply,
    Thought,
    is_foldable,
)
from bridle.presentation.fold import Fold
from bridle.tui.render.blocks import Painter, gap_before
from bridle.tui.render.palette import Palette
from bridle.tui.render.welcome import EDGE, STEP

_FRAME = re.compile(r"   │ |.{0,3}", re.S)  # the bar beside an output, or the columns of the mark
MOST = 400  # blocks that are kept drawn while nobody looks back


class Window:
    """The drawn end of a list of blocks. `first` is the oldest block that is drawn."""

    def __init__(self, blocks: Sequence[Block], painter: Painter, fold: Fold | None = None) -> None:
        self.blocks = blocks
        self.fold = fold or Fold()
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
        """Start again at the end: more came at once than anybody could have seen."""
        self._forget(len(self._strips))
        self.first = len(self.blocks)
        self._strips, self._tops, self.height = [], [], 0
        self._growing.clear()
        self.fill(lines)
        self._pack()

    @property
    def behind(self) -> int:
        """How many new blocks are not drawn yet."""
        return len(self.blocks) - self.first - len(self._strips)

    def grow(self, count: int) -> int:
        """Draw so many older blocks; return how many lines they have."""
        before = self.height
        start = max(0, self.first - count)
        older = [self._draw(place) for place in range(start, self.first)]
        self._strips[:0] = older
        self.first = start
        self._measure()
        return self.height - before

    def shrink(self) -> int:
        """Forget the oldest blocks if there are too many; return how many lines they had."""
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
        """Pack blocks that came since the session was opened and are now above what is drawn."""
        for place in range(self._packed, self.first):
            if isinstance(block := self.blocks[place], GrowingText):
                block.pack()
        self._packed = max(self._packed, self.first)

    def update(self, places: Iterable[int]) -> int:
        """Draw these blocks again; return the first line that changed, or else the height."""
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

    def redraw(self, palette: Palette, width: int) -> None:
        """Draw everything again in another width or other colors."""
        self.painter = Painter(palette, width)
        self._growing.clear()
        self._strips = [self._draw(place) for place in range(self.first, len(self.blocks))]
        self._measure()

    def is_foldable(self, place: int) -> bool:
        """Can that block be unfolded?"""
        return is_foldable(self.blocks[place])

    def is_failed_call(self, place: int) -> bool:
        """Is that block a call that failed?"""
        block = self.blocks[place]
        return isinstance(block, Call) and block.state == "failed"

    def next_foldable(self, step: int) -> int:
        """Return the next block above or below the chosen one that can be unfolded.

        Return -1 above the first block, and the number of blocks below the last one.
        """
        last = len(self.blocks)
        place = (self.chosen if self.chosen is not None else last) + step
        while 0 <= place < last and not is_foldable(self.blocks[place]):
            place += step
        return min(place, last)

    def newest_call(self) -> int | None:
        """Return the newest call that can be unfolded, if there is one."""
        for place in range(len(self.blocks) - 1, -1, -1):
            if isinstance(self.blocks[place], Call) and is_foldable(self.blocks[place]):
                return place
        return None

    def thoughts(self) -> set[int]:
        """Return the places of all thoughts."""
        return {at for at, block in enumerate(self.blocks) if isinstance(block, Thought)}

    def line(self, y: int) -> Strip | None:
        """Return that line; None below the end."""
        at = self._at(y)
        return None if at is None else self._strips[at][y - self._tops[at]]

    def place_at(self, y: int) -> int | None:
        """Return the block that has that line."""
        at = self._at(y)
        return None if at is None else self.first + at

    def span(self, place: int) -> tuple[int, int]:
        """Return the first line of a drawn block, without its gap, and the line after it."""
        at = place - self.first
        top = self._tops[at]
        gap = self._gap(place)
        return top + gap, top + len(self._strips[at])

    def copied_text(self, span: Callable[[int], tuple[int, int] | None]) -> str:
        """Return the selected text as it was written.

        `span` returns the selected columns of a line. Left out is what the view adds: the margin,
        and the breaks of lines that are wider than the window.
        """
        parts: list[str] = []
        for at, strips in enumerate(self._strips):
            first = self._tops[at]
            marked = [span(line) for line in range(first, first + len(strips))]
            if not any(marked):
                continue
            drawn = [strip.text.rstrip() for strip in strips]
            written = self.painter.written(self.blocks[self.first + at])
            for text, line, columns in zip(
                drawn, line_origins(drawn, written), marked, strict=True
            ):
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
        """Return a block's strips; those of a growing answer that stay the same are reused."""
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
        """Return the line from edge to edge with its background, ready to be shown."""
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


def open_window(fold: Fold | None, palette: Palette, width: int) -> Window:
    """Return a window onto a fold, at its end; without a fold, onto an empty one."""
    fold = fold or Fold()
    return Window(fold.blocks, Painter(palette, width), fold)


def _same(before: list[Strip], after: list[Strip]) -> int:
    """Return how many lines at the beginning are the same."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count


def _marked(strip: Strip, painter: Painter) -> Strip:
    """Return the first line of the chosen block."""
    ground = painter.pen.chosen
    return Strip([Segment(one.text, (one.style or Style()) + ground) for one in strip])


class LineOrigin(NamedTuple):
    """Where a drawn line comes from in the text."""

    margin: int  # columns that are not part of the text
    before: str  # what stands in the text between the line before and this one


def line_origins(drawn: Sequence[str], written: Sequence[str]) -> list[LineOrigin]:
    """Find each drawn line in the text that it was drawn from, line by line of that text.

    A drawn line that continues where the one before ended is a soft break. A line that is not found
    in the text, as in a table, stands for itself.
    """
    found: list[LineOrigin] = []
    rest, at = "", 0
    for line in drawn:
        frame = len(_FRAME.match(line)[0])  # type: ignore[index]  # it matches everything
        body = line[frame:]
        ink = "".join(body.split())
        indent = len(body) - len(body.lstrip())
        if ink and "".join(rest.split()).startswith(ink):
            gap = rest[: len(rest) - len(rest.lstrip())]
            found.append(LineOrigin(frame + indent, gap))
            rest = _after(rest, len(ink))
            continue
        place = next((n for n in range(at, len(written)) if ink and _begins(written[n], ink)), None)
        rest = ""
        if place is not None:
            whole = written[place]
            frame += max(0, indent - (len(whole) - len(whole.lstrip())))
            rest, at = _after(whole, len(ink)), place + 1
        found.append(LineOrigin(frame, "\n"))
    return found


def _begins(text: str, ink: str) -> bool:
    return "".join(text.split()).startswith(ink)


def _after(text: str, count: int) -> str:
    """Return what follows so many characters that are not spaces."""
    for at, character in enumerate(text):
        if count == 0:
            return text[at:]
        count -= not character.isspace()
    return ""
