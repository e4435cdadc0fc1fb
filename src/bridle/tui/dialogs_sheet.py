"""Lines to look at, wrapped to the width there is and drawn only where they are seen.

Whatever it is given is made neutral here. Knows whether its end was ever on the screen.
"""

import re
from collections.abc import Iterable

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from bridle.tui.clean import clean

_COLUMN = re.compile(r" *(?:\S+ ){1,4}? +(?=\S)")  # where the second column of a table begins
_BAR = "│ "
_SIGNS = {"+": "sheet--added", "-": "sheet--removed", "@": "sheet--place"}
_KINDS = ("sheet--head", "sheet--muted", "sheet--warning", *_SIGNS.values())


class Sheet(ScrollView, can_focus=True):
    """A long text. A line is its text, and what kind of line it is (`head`, `added` …)."""

    COMPONENT_CLASSES = set(_KINDS)
    DEFAULT_CSS = """
    Sheet {
        height: auto; max-height: 100%; background: transparent; scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & .sheet--head { text-style: bold; }
        & .sheet--muted { color: $secondary; }
        & .sheet--warning { color: $text-warning; }
        & .sheet--added { color: $text-success; }
        & .sheet--removed { color: $text-error; }
        & .sheet--place { color: $text-accent; }
    }
    """

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        self._take(lines)

    def _take(self, lines: Iterable[tuple[str, str]]) -> None:
        self._given = [(line, kind) for text, kind in lines for line in clean(text).split("\n")]
        self._wrapped: list[tuple[str, str]] = []
        self._width = 0
        self.was_read = False  # the end has been on the screen

    def show(self, lines: Iterable[tuple[str, str]], *, at_end: bool = False) -> None:
        """Another text, from its beginning or at its end."""
        self._take(lines)
        self._wrap(self.scrollable_content_region.width)
        if at_end:
            self.scroll_end(animate=False)
        else:
            self.scroll_home(animate=False)
        self.refresh(layout=True)
        self.call_after_refresh(self._see)

    @property
    def has_lines(self) -> bool:
        """Is there anything to look at?"""
        return bool(self._given)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as there is room."""
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as it takes at this width."""
        self._wrap(width - 1)  # the scrollbar may come
        return len(self._wrapped)

    def on_resize(self) -> None:
        """Another width: other lines."""
        width = self.scrollable_content_region.width
        if not self._width or width < self._width:
            self._wrap(width)
        self.call_after_refresh(self._see)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Somebody goes on reading."""
        super().watch_scroll_y(old_value, new_value)
        self._see()

    def _see(self) -> None:
        """Is the last line on the screen now? Not where the box cuts this off below."""
        if not self._wrapped or not self.size.height or not isinstance(self.parent, Widget):
            return
        whole = self.region.bottom <= self.parent.content_region.bottom
        if whole and self.scroll_offset.y >= self.max_scroll_y:
            self.was_read = True

    def _wrap(self, width: int) -> None:
        if width <= 0 or width == self._width:
            return
        self._width = width
        self._wrapped = [piece for line in self._given for piece in _pieces(*line, width)]
        self.virtual_size = Size(width, len(self._wrapped))

    def render_line(self, y: int) -> Strip:
        """One line of what is seen."""
        at = y + self.scroll_offset.y
        style = self.rich_style
        if at >= len(self._wrapped):
            return Strip.blank(self.size.width, style)
        text, kind = self._wrapped[at]
        style += self._style(kind)
        return Strip([Segment(text, style)], cell_len(text)).adjust_cell_length(
            self.size.width, self.rich_style
        )

    def _style(self, kind: str) -> Style:
        name = f"sheet--{kind}"
        return self.get_component_rich_style(name, partial=True) if kind else Style()


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """The lines of a diff with what each of them is."""
    found = []
    for line in diff.rstrip("\n").split("\n"):
        about = line.startswith(("+++ ", "--- "))
        kind = "muted" if about else _SIGNS.get(line[:1], "").removeprefix("sheet--")
        found.append((line, kind))
    return found


def _pieces(text: str, kind: str, width: int) -> Iterable[tuple[str, str]]:
    """A line in as many as it takes, at the ends of words; what follows stands below its column."""
    if len(text) <= width and text.isascii():
        return ((text, kind),)
    column = _COLUMN.match(text)
    indent = " " * (column.end() if column and column.end() <= width // 2 else 0)
    if text.startswith(_BAR) and width > 8:  # what is somebody else's cannot pretend to be ours
        indent = _BAR
    found: list[tuple[str, str]] = []
    at, room = 0, width
    while len(text) - at > room or cell_len(text[at:]) > room:
        first = chop_cells(text[at : at + room], room)[:1]
        piece = "".join(first) or text[at]  # which is too wide for the room
        space = piece.rfind(" ", len(piece) * 2 // 3)
        piece = piece[: space + 1] if space > 0 else piece
        found.append((indent * bool(found) + piece, kind))
        at, room = at + len(piece), width - len(indent)
    return [*found, (indent * bool(found) + text[at:], kind)]
