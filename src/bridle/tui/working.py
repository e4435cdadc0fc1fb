"""The lines above the composer: that a turn runs and for how long, and the prompts that wait."""

from time import monotonic

from rich.text import Text
from textual.timer import Timer
from textual.widget import Widget

from bridle.tui.block_palette import DARK, Palette
from bridle.tui.block_pen import ink
from bridle.tui.clean import clean_line
from bridle.workspace.text import quantity

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
