"""The drawing of an answer that grows: what is settled is drawn once, the open end anew."""

from rich.console import Console
from rich.segment import Segment

from bridle.presentation.blocks import GrowingText
from bridle.tui.render.markdown import Piece, Pieces
from bridle.tui.render.palette import Palette
from bridle.tui.render.safe_text import clean

Line = list[Segment]
_MARGIN = Segment("  ")


class Growth:
    """One answer at one width, in one palette."""

    def __init__(self, console: Console, width: int, palette: Palette) -> None:
        self._console = console
        self._width = width
        self._palette = palette
        self._begin()

    def _begin(self) -> None:
        self._pieces = Pieces()
        self._fed = 0
        self._drawn = 0  # pieces whose lines stand in `_lines`
        self._lines: list[Line] = []
        self._over = False

    def lines(self, block: GrowingText) -> list[Line]:
        """All lines of it, as it is now; those that are settled are the same lists each time."""
        text = block.text
        if len(text) < self._fed or (block.over and not self._over and not _is_plain(text)):
            self._begin()  # what was cut between two pieces of the stream is whole now
        self._pieces.feed(clean(text[self._fed :]))
        self._fed = len(text)
        if block.over and not self._over:
            self._pieces.close()
            self._over = True
        for piece in self._pieces.done[self._drawn :]:
            self._append(self._lines, piece)
        self._drawn = len(self._pieces.done)
        if (rest := self._pieces.open()) is None:
            return self._lines
        lines = list(self._lines)
        self._append(lines, rest)
        return lines

    def _append(self, lines: list[Line], piece: Piece) -> None:
        from bridle.tui.render.markdown import draw_piece

        if lines and not piece.joined:
            lines.append([])
        drawn = draw_piece(piece, self._console, self._width, self._palette)
        lines.extend([_MARGIN, *line] for line in drawn)


def _is_plain(text: str) -> bool:
    return text.isascii() and "\r" not in text
