"""The status bar: one line at the bottom, and a word to the person for a while."""

from asyncio import TimerHandle

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from bridle.tui.bar_words import Facts, cells
from bridle.tui.block_palette import DARK, Palette
from bridle.tui.block_pen import ink
from bridle.tui.clean import clean_line
from bridle.tui.once import after


class Bar(Widget):
    """Model, agent, mode, workspace, sandbox, branch."""

    DEFAULT_CSS = """
    Bar { height: 1; background: $surface; padding: 0 1; }
    """

    def __init__(self, palette: Palette = DARK) -> None:
        super().__init__(id="bar")
        self.palette = palette
        self.facts = Facts(opening=True)
        self._word = ""
        self._timer: TimerHandle | None = None

    def tell(self, facts: Facts) -> None:
        """These hold now."""
        if facts != self.facts:
            self.facts = facts
            self.refresh()

    def say(self, word: str, seconds: float = 3.0) -> None:
        """A word to the person at the right end, for a while."""
        self._word = word
        if self._timer is not None:
            self._timer.cancel()
        self._timer = after(seconds, self, self._unsay)
        self.refresh()

    @property
    def word(self) -> str:
        """What is said to the person now."""
        return self._word

    def _unsay(self) -> None:
        self._word = ""
        self.refresh()

    def render(self) -> Text:
        """The line."""
        width = self.size.width
        word = clean_line(self._word, max(0, width - 12)) if self._word else ""
        room = width - (len(word) + 3 if word else 0)
        line = Text(no_wrap=True, end="")
        for number, cell in enumerate(cells(self.facts, room)):
            if number:
                line.append(" · ", ink(self.palette.dim))
            line.append(cell.text, self._style(cell.tone))
        if word:
            line.append(" " * max(1, width - line.cell_len - len(word)))
            line.append(word, ink(self.palette.accent))
        line.truncate(width, overflow="ellipsis")
        return line

    def _style(self, tone: str) -> Style:
        return ink(getattr(self.palette, tone), bold=tone in ("bad", "accent", "warn"))
