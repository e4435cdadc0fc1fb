"""Status bar, side panel, and the lines above the composer."""

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
from bridle.tui.timers import call_later
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.presentation.fold import ConversationState
    from bridle.tui.model.side_panel import Row

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MOST = 3  # waiting prompts that are shown
_TALL = 20  # rows from which on there is an empty line above the activity


class StatusBar(Widget):
    """One line: mode, model, agent, workspace, branch, sandbox; and short messages."""

    DEFAULT_CSS = """
    StatusBar { height: 1; background: $surface; padding: 0 1; }
    """

    def __init__(self, palette: Palette = DARK) -> None:
        super().__init__(id="bar")
        self.palette = palette
        self.facts = Facts(opening=True)
        self.message = ""
        self._timer: TimerHandle | None = None

    def show(self, facts: Facts) -> None:
        """Show these facts from now on."""
        if facts != self.facts:
            self.facts = facts
            self.refresh()

    def show_message(self, message: str, seconds: float = 3.0) -> None:
        """Show a message at the right end for a while."""
        self.message = message
        if self._timer is not None:
            self._timer.cancel()
        self._timer = call_later(seconds, self, self._clear_message)
        self.refresh()

    def _clear_message(self) -> None:
        self.message = ""
        self.refresh()

    def render(self) -> Text:
        width = self.size.width
        message = clean_line(self.message, max(0, width - 12)) if self.message else ""
        room = width - (len(message) + 3 if message else 0)
        line = Text(no_wrap=True, end="")
        for number, cell in enumerate(cells(self.facts, room)):
            if number:
                line.append(" · ", ink(self.palette.dim))
            line.append(cell.text, self._style(cell.tone))
        if message:
            line.append(" " * max(1, width - line.cell_len - len(message)))
            line.append(message, ink(self.palette.accent))
        line.truncate(width, overflow="ellipsis")
        return line

    def _style(self, tone: str) -> Style:
        return ink(getattr(self.palette, tone), bold=tone in ("bad", "accent", "warn"))


class SidePanel(Widget):
    """Context and cost, the todo list, what runs, and which files changed."""

    DEFAULT_CSS = """
    SidePanel { width: 34; height: 1fr; padding: 1 2; background: $surface; }
    """

    def __init__(self, palette: Palette = DARK) -> None:
        super().__init__(id="side")
        self.palette = palette
        self._rows: list[Row] = []

    def show(self, state: "ConversationState", window: int) -> None:
        """Show this state; `window` is the size of the model's context in tokens."""
        from bridle.tui.model.side_panel import rows

        new = rows(state, window, max(8, self.size.width or 30))
        if new != self._rows:
            self._rows = new
            self.refresh()

    def render(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        for number, row in enumerate(self._rows[: max(0, self.size.height)]):
            if number:
                text.append("\n")
            if row.mark:
                text.append(f"{row.mark} ", self._style(row.mark_tone))
            text.append(row.text, self._style(row.tone))
        return text

    def _style(self, tone: str) -> Style:
        return ink(getattr(self.palette, tone))


class ActivityLine(Widget):
    """What is going on, for how long, and the prompts that wait. Hidden if there is nothing."""

    DEFAULT_CSS = """
    ActivityLine {
        height: auto; max-height: 6; padding: 0 1; background: $background; display: none;
    }
    """

    def __init__(self, palette: Palette = DARK) -> None:
        super().__init__(id="working")
        self.palette = palette
        self._activity = ""
        self._since = 0.0
        self._frame = 0
        self._steering: tuple[str, ...] = ()
        self._queued: tuple[str, ...] = ()
        self._held: tuple[str, ...] = ()
        self._clock: Timer | None = None

    def on_mount(self) -> None:
        self._clock = self.set_interval(0.25, self._tick, pause=True)

    def show(
        self,
        activity: str,
        *,
        steering: tuple[str, ...] = (),
        queued: tuple[str, ...] = (),
        held: tuple[str, ...] = (),
    ) -> None:
        """Show the activity, or none if it is empty, and the prompts that wait.

        `steering` prompts are sent to the running turn at its next step, `queued` ones after it;
        `held` ones were queued when it was stopped.
        """
        if bool(activity) != bool(self._activity):
            self._since = monotonic()
            if self._clock is not None:
                (self._clock.resume if activity else self._clock.pause)()
        new = (activity, steering, queued, held)
        if new == (self._activity, self._steering, self._queued, self._held):
            return
        before = len(self.lines)
        self._activity, self._steering, self._queued, self._held = new
        self.display = bool(self.lines)
        self.refresh(layout=len(self.lines) != before)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The lines, each with its tone."""
        lines: list[tuple[str, str]] = []
        if self._activity:
            from bridle.presentation.amounts import duration

            passed = duration(int(monotonic() - self._since)).replace(".0", "")
            spinner = _SPINNER[self._frame]
            lines.append((f"{spinner} {self._activity} · {passed} · Esc to stop", "accent"))
        lines += _prompt_lines("sent at the next step", self._steering)
        lines += _prompt_lines("queued", self._queued, "Alt+Up to edit")
        lines += _prompt_lines("on hold", self._held, "Alt+Up to edit, Alt+Down to send")
        is_tall = self.app.size.height >= _TALL
        return [("", "dim"), *lines] if lines and is_tall else lines

    def render(self) -> Text:
        room = max(4, self.size.width)
        text = Text(no_wrap=True, end="")
        for number, (line, tone) in enumerate(self.lines):
            text.append("\n" if number else "")
            indent = line[: len(line) - len(line.lstrip())]
            text.append(
                indent + clean_line(line, room - len(indent)), ink(getattr(self.palette, tone))
            )
        return text

    def _tick(self) -> None:
        self._frame = (self._frame + 1) % len(_SPINNER)
        self.refresh()


def _prompt_lines(label: str, prompts: tuple[str, ...], hint: str = "") -> list[tuple[str, str]]:
    lines = [(f"  {label}: {clean_line(prompt, 160)}", "dim") for prompt in prompts[:_MOST]]
    if len(prompts) > _MOST:
        lines.append((f"  … {quantity(len(prompts) - _MOST, 'more prompt')}", "dim"))
    elif lines and hint:
        lines[-1] = (f"{lines[-1][0]}  ({hint})", "dim")
    return lines
