"""The status bar: one line at the bottom, and a word to the person for a while."""

from asyncio import TimerHandle
from time import monotonic
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text
from textual.timer import Timer
from textual.widget import Widget

from bridle.tui.model.status_bar import Facts, cells
from bridle.tui.render.palette import DARK, Palette
from bridle.tui.render.pen import ink
from bridle.tui.render.safe_text import clean_line
from bridle.tui.timers import after
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.presentation.fold import ConversationState
    from bridle.tui.model.side_panel import Row


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

    def tell(self, state: "ConversationState", window: int) -> None:
        """This is how things stand."""
        from bridle.tui.model.side_panel import rows

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


_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MOST = 3  # prompts that are shown
_ROOMY = 20  # rows from which on there is an empty line above


class Working(Widget):
    """Says what goes on. Nothing, where nothing does."""

    DEFAULT_CSS = """
    Working { height: auto; max-height: 6; padding: 0 1; background: $background; display: none; }
    """

    def __init__(self, palette: Palette = DARK) -> None:
        super().__init__(id="working")
        self.palette = palette
        self._word = ""  # what goes on; empty: nothing
        self._since = 0.0
        self._frame = 0
        self._steering: tuple[str, ...] = ()
        self._queued: tuple[str, ...] = ()
        self._held: tuple[str, ...] = ()
        self._ticking: Timer | None = None

    def on_mount(self) -> None:
        """A calm clock."""
        self._ticking = self.set_interval(0.25, self._tick, pause=True)

    def tell(
        self,
        word: str,
        *,
        steering: tuple[str, ...] = (),
        queued: tuple[str, ...] = (),
        held: tuple[str, ...] = (),
    ) -> None:
        """Show what goes on and which prompts wait.

        `steering` prompts are sent into the running turn at its next step, `queued` ones when it
        is over; `held` ones were queued when it was stopped.
        """
        if bool(word) != bool(self._word):
            self._since = monotonic()
            self._run(bool(word))
        told = (word, steering, queued, held)
        if told == (self._word, self._steering, self._queued, self._held):
            return
        before = len(self.lines)
        self._word, self._steering, self._queued, self._held = told
        self.display = bool(self.lines)
        self.refresh(layout=len(self.lines) != before)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What is said, each with its tone."""
        said: list[tuple[str, str]] = []
        if self._word:
            from bridle.presentation.amounts import duration

            passed = duration(int(monotonic() - self._since)).replace(".0", "")
            said.append((f"{_FRAMES[self._frame]} {self._word} · {passed} · Esc to stop", "accent"))
        said += _listed("sent at the next step", self._steering)
        said += _listed("queued", self._queued, "Alt+Up takes it back")
        said += _listed("on hold", self._held, "Alt+Up takes it back, Alt+Down sends it")
        roomy = self.app.size.height >= _ROOMY
        return [("", "dim"), *said] if said and roomy else said

    def render(self) -> Text:
        """The lines."""
        room = max(4, self.size.width)
        text = Text(no_wrap=True, end="")
        for number, (line, tone) in enumerate(self.lines):
            text.append("\n" if number else "")
            indent = line[: len(line) - len(line.lstrip())]
            shown = indent + clean_line(line, room - len(indent))
            text.append(shown, ink(getattr(self.palette, tone)))
        return text

    def _run(self, on: bool) -> None:
        if self._ticking is not None:
            (self._ticking.resume if on else self._ticking.pause)()

    def _tick(self) -> None:
        self._frame = (self._frame + 1) % len(_FRAMES)
        self.refresh()


def _listed(what: str, prompts: tuple[str, ...], how: str = "") -> list[tuple[str, str]]:
    said = [(f"  {what}: {clean_line(one, 160)}", "dim") for one in prompts[:_MOST]]
    if len(prompts) > _MOST:
        said.append((f"  … {quantity(len(prompts) - _MOST, 'more prompt')}", "dim"))
    elif said and how:
        said[-1] = (f"{said[-1][0]}  ({how})", "dim")
    return said
