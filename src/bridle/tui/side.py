"""The side panel: context and cost, the todo list, what runs, which files changed."""

from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from bridle.tui.block_palette import DARK, Palette
from bridle.tui.block_pen import ink

if TYPE_CHECKING:
    from bridle.tui.blocks_state import State
    from bridle.tui.side_words import Row

_PADDING = 4


class Side(Widget):
    """Shows the rows of `side_words`."""

    DEFAULT_CSS = """
    Side {
        width: 34;
        height: 1fr;
        padding: 1 2;
        background: $surface;
    }
    """

    def __init__(self, palette: Palette = DARK) -> None:
        super().__init__(id="side")
        self.palette = palette
        self._rows: list[Row] = []

    def tell(self, state: "State", window: int) -> None:
        """This is how things stand."""
        from bridle.tui.side_words import rows

        width = max(8, (self.size.width or 30))
        found = rows(state, window, width)
        if found != self._rows:
            self._rows = found
            self.refresh()

    def render(self) -> Text:
        """The lines that fit."""
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        shown = self._rows[: max(0, self.size.height)]
        for number, row in enumerate(shown):
            if number:
                text.append("\n")
            if row.mark:
                text.append(f"{row.mark} ", self._style(row.mark_tone))
            text.append(row.text, self._style(row.tone))
        return text

    def _style(self, tone: str) -> Style:
        return ink(getattr(self.palette, tone))
