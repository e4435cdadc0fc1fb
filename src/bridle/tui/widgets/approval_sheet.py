"""The lines of a request: they scroll, none is cut, and it is known whether the end was seen.

Only what is on the screen is drawn, however long the request is.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from bridle.presentation.approvals import Line, Sheet

LinesFor = Callable[[Sheet], Sequence[Line]]
_KINDS = ("note", "label", "head", "plain", "command", "bar", "chosen", "heading", "code")
_CHANGES = ("plus", "minus", "hunk")


def columns(char: str) -> int:
    """Return how many columns the screen gives a character, at most."""
    return 2 if char == "\ufe0f" else get_character_cell_size(char)


class ApprovalSheet(ScrollView, can_focus=False):
    """Lines that are made anew for each width. `seen`: their end was on the screen."""

    DEFAULT_CSS = """
    ApprovalSheet {
        height: 1;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        & > .sheet--note { color: $text-muted; }
        & > .sheet--label { color: $text-muted; }
        & > .sheet--bar { color: $primary; }
        & > .sheet--command { text-style: bold; }
        & > .sheet--head { text-style: bold; color: $text-warning; }
        & > .sheet--heading { text-style: bold; }
        & > .sheet--code { color: $text-secondary; }
        & > .sheet--plus { color: $text-success; }
        & > .sheet--minus { color: $text-error; }
        & > .sheet--hunk { color: $text-accent; }
        & > .sheet--chosen { text-style: bold reverse; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"sheet--{kind}" for kind in (*_KINDS, *_CHANGES)}

    class Resized(Message):
        """It has another size now."""

    def __init__(self) -> None:
        super().__init__()
        self._lines_for: LinesFor = lambda _sheet: ()
        self._lines: list[Line] = []
        self._width = 0
        self.seen = False

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    @property
    def below(self) -> int:
        """How many lines lie below what is on the screen."""
        return max(0, self.count - round(self.scroll_offset.y) - self.size.height)

    def write(self, lines_for: LinesFor, *, seen: bool = False) -> None:
        """Show other lines, from the first one."""
        self._lines_for = lines_for
        self.seen = seen
        self._rewrite()
        self.scroll_to(y=0, animate=False, force=True)

    def rewrite(self) -> None:
        """Make the lines anew."""
        self._rewrite()

    def look(self) -> None:
        """Note that what is on the screen now has been seen."""
        if self.size.height and not self.below:
            self.seen = True

    def move(self, key: str) -> None:
        """Scroll by what a key says."""
        page = max(1, self.size.height - 1)
        now = round(self.scroll_offset.y)
        to = {"up": now - 1, "down": now + 1, "pageup": now - page, "pagedown": now + page}
        to |= {"home": 0, "end": self.count}
        self.scroll_to(y=to[key], animate=False, force=True)

    def reveal(self, line: int) -> None:
        """Scroll so that a line is on the screen."""
        top, high = round(self.scroll_offset.y), self.size.height
        if not top <= line < top + high:
            self.scroll_to(y=max(0, line - high + 1), animate=False, force=True)

    def on_resize(self, event: Resize) -> None:
        """Make the lines for the new width, and say so: another number of them lies below."""
        if self.scrollable_content_region.width != self._width:
            self._rewrite()
        self.post_message(self.Resized())

    def _rewrite(self) -> None:
        # one column is kept free for the bar, so that it does not change what is folded
        self._width = self.scrollable_content_region.width
        width = max(1, self.size.width - 1)
        self._lines = list(self._lines_for(Sheet(width, columns, least=4)))
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        at = round(self.scroll_offset.y) + y
        background = self.rich_style
        width = self.size.width
        if not 0 <= at < len(self._lines):
            return Strip.blank(width, background)
        line = self._lines[at]
        pieces = [Segment("  ", background)]
        if line.mark:
            pieces.append(Segment(f"{line.mark} ", self._style("bar")))
        pieces.append(Segment(line.text, self._style(line.kind)))
        return Strip(pieces).adjust_cell_length(width, background)

    def _style(self, kind: str) -> Style:
        return self.get_component_rich_style(f"sheet--{kind}")
