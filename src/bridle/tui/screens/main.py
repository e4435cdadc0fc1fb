"""The main screen: conversation, approvals, composer, side panel and status bar, and their keys.

The first frame shows only what needs nothing but Textual. What belongs to a session is imported
after it, in `screens/session.py`; keys that are pressed earlier wait in the application.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.widgets._toast import ToastRack

from bridle.config.paths import state_folder_str
from bridle.tui.keys import KEYS, help_lines
from bridle.tui.render.palette import Palette
from bridle.tui.render.safe_text import clean
from bridle.tui.terminal import has_shell, stop_job
from bridle.tui.timers import call_later
from bridle.tui.widgets.composer import Composer
from bridle.tui.widgets.conversation import Conversation
from bridle.tui.widgets.history import Drafts, PromptHistory
from bridle.tui.widgets.status import ActivityLine, SidePanel, StatusBar

if TYPE_CHECKING:
    from bridle.presentation.commands import Command
    from bridle.tui.model.onboarding import StartupChecks
    from bridle.tui.screens.session import SessionController
    from bridle.tui.session_backend import SessionBackend
    from bridle.tui.widgets.approval_area import ApprovalArea

AGAIN = 2.0  # seconds within which a second Ctrl+C quits
FRAME = 0.05  # seconds between two drawings
_SHARE = 4  # after a slow drawing, so many times its duration is left for the keys
_SIDE = 100  # columns from which on the side panel is shown
_SMALLEST = (24, 7)  # columns and rows that something can be shown in


class MainScreen(Screen[None]):
    """One conversation at a time."""

    DEFAULT_CSS = """
    MainScreen { layout: vertical; }
    MainScreen #middle { height: 1fr; }
    MainScreen #left { width: 1fr; height: 1fr; }
    MainScreen #small { display: none; width: 1fr; height: 1fr; padding: 0 1; }
    MainScreen SidePanel { display: none; }
    MainScreen.-wide SidePanel, MainScreen.-side SidePanel { display: block; }
    MainScreen.-no-side SidePanel { display: none; }
    MainScreen.-small #middle, MainScreen.-small StatusBar { display: none; }
    MainScreen.-small #small { display: block; }
    """
    AUTO_FOCUS = "PromptInput"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.key, key.action, key.meaning, show=False, priority=key.first) for key in KEYS
    ]

    def __init__(self, opening: "Callable[[], SessionBackend]", palette: Palette) -> None:
        super().__init__()
        self.checks: Callable[[], StartupChecks] | None = None  # asked before the session is opened
        self.session: SessionController | None = None  # there once the first frame is drawn
        self._opening = opening
        self._frames = FrameClock()
        self._drawing: asyncio.TimerHandle | None = None
        self._hurried = False
        self._leave_asked = float("-inf")
        self._thoughts_open = False
        state = state_folder_str(os.environ)
        self.conversation = Conversation(palette)
        self.activity = ActivityLine(palette)
        self.side = SidePanel(palette)
        self.bar = StatusBar(palette)
        self.composer = Composer(
            self._files,
            self._arguments,
            self.own,
            prompts=PromptHistory(state),
            drafts=Drafts(state),
        )

    def compose(self) -> ComposeResult:
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield self.conversation
                yield self.composer
            if self.app.size.width >= _SIDE:
                yield self.side
        yield self.bar

    def _extend_compose(self, widgets: list[Widget]) -> None:
        """Leave out what Textual puts on every screen until the first frame is drawn."""

    def on_mount(self) -> None:
        self.composer.focus()
        self.call_after_refresh(self._complete)

    async def _complete(self) -> None:
        """Add what the first frame did without, take the keys, and open the session."""
        from bridle.tui.screens.session import SessionController

        session = SessionController(self, self._opening, self.checks)
        left = self.query_one("#left")
        with self.app.batch_update():
            left.mount(self.activity, before=self.composer)
            await left.mount(session.approvals, before=self.composer)
            if not self.side.is_attached:
                self.query_one("#middle").mount(self.side)
            await self.mount(ToastRack(id="textual-toastrack"), before=0)
        self.session = session
        await self.app.release_keys()  # type: ignore[attr-defined]
        self.run_worker(session.open(), group="backend")

    @property
    def backend(self) -> "SessionBackend | None":
        """The backend of the sessions; None until it is open."""
        return self.session.backend if self.session is not None else None

    @property
    def approvals(self) -> "ApprovalArea":
        """The approvals of the session, and the line on those of other sessions."""
        assert self.session is not None
        return self.session.approvals

    @property
    def is_ready(self) -> bool:
        """Is a session open, and is on the screen what it already held?"""
        return self.session is not None and self.session.is_ready

    # Drawing.

    def draw_soon(self) -> None:
        """Draw with the next frame, because something has changed."""
        if self._drawing is None and self.is_attached:
            self._drawing = call_later(self._frames.wait(), self, self._draw)

    def _draw(self) -> None:
        began = perf_counter()
        self._drawing = None
        self.conversation.refresh_blocks()
        if self.session is not None:
            self.session.show_status()
        self._frames.count(began)

    def draw_key(self) -> None:
        """Draw what the next key changes at once, instead of with the next frame."""
        self._hurried = True

    async def _on_idle(self, event: events.Idle) -> None:
        if self._hurried and self.focused in self._dirty_widgets and self.is_current:
            self._hurried = False
            self._on_timer_update()

    def repaint(self, palette: Palette) -> None:
        """Draw everything in other colors."""
        for part in (self.activity, self.side, self.bar):
            part.palette = palette
            part.refresh()
        self.conversation.repaint(palette)

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.set_class(width >= _SIDE, "-wide")
        self.call_after_refresh(self.draw_soon)  # the side panel may have appeared
        was_small = self.has_class("-small")
        is_small = width < _SMALLEST[0] or height < _SMALLEST[1]
        self.set_class(is_small, "-small")
        if is_small and not self.query("#small"):
            self.mount(Static("The window is too small. Please enlarge it.", id="small"))
        if was_small and not is_small:
            self.call_after_refresh(self._restore_focus)

    def _restore_focus(self) -> None:
        if self.app.focused is None:
            self.composer.focus()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        if self.session is not None:
            self.approvals.panel.draw()  # keys pressed on another screen answer nothing here
        else:
            event.refresh_styles = False  # everything was styled a moment ago

    def on_unmount(self) -> None:
        if self.session is not None:
            self.approvals.restore_title()

    # Typing.

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        self.conversation.action_last()
        if self.session is not None:
            self.run_worker(self.session.submit(event.text, event.when), group="sending")
            self.call_after_refresh(self.approvals.panel.take_keys)

    def on_composer_editor_requested(self, event: Composer.EditorRequested) -> None:
        event.stop()
        if self.session is not None:
            self.run_worker(self.session.edit_prompt(), group="commands")

    def on_composer_search_requested(self, event: Composer.SearchRequested) -> None:
        event.stop()
        if self.session is not None:
            self.run_worker(self.session.search_prompts(), group="commands")

    def on_key(self, event: events.Key) -> None:
        """Write letters that no widget took into the composer."""
        if event.is_printable and event.character:
            event.stop()
            self.write(event.character)

    def write(self, letters: str) -> None:
        """Write these letters into the composer, and give it the focus."""
        self.composer.insert(letters)
        self.composer.focus()

    def on_approval_panel_emptied(self) -> None:
        self.composer.focus()

    async def _files(self, query: str) -> Sequence[str]:
        return () if self.backend is None else await self.backend.files(query)

    async def _arguments(self, command: str) -> Sequence[tuple[str, str]]:
        if self.backend is None:
            return ()
        named = await (self.backend.models() if command == "model" else self.backend.agents())
        return [(one.name, one.label) for one in named if not one.why_not]

    def own(self) -> "Sequence[Command]":
        """Return the user's own commands, as they were last read."""
        return self.session.commands if self.session is not None else ()

    # Leaving.

    def action_leave(self) -> None:
        """Copy the selection, else stop the turn, else clear the composer, else quit.

        A note that is being written to an approval is closed first. Quitting takes two presses, so
        that pressing the key by habit ends no work.
        """
        if self._copy_selection():
            return
        if self.session is not None:
            if self.approvals.panel.note.is_open:
                self.app.simulate_key("escape")
                return
            if self.session.is_busy and not self.session.is_stopping:
                self.session.stop()
                return
        if self.composer.text:
            self.composer.clear()
            self.bar.show_message("Ctrl+Y to restore")
            return
        if monotonic() - self._leave_asked <= AGAIN:
            self.leave()
            return
        self._leave_asked = monotonic()
        self.bar.show_message("Ctrl+C again to quit", AGAIN)

    def action_leave_empty(self) -> None:
        """Quit if nothing is typed, otherwise delete a character."""
        if not self.composer.text:
            self.leave()
        elif (lines := self.app.focused) is not None and hasattr(lines, "action_delete_right"):
            lines.action_delete_right()

    def leave(self) -> None:
        """Quit; what is typed is kept for the next time."""
        self.keep_typed()
        self.app.exit(0)

    def keep_typed(self) -> None:
        """Save what was written and not sent as this session's draft."""
        if self.session is not None:
            self.session.restore_held()
        self.composer.keep_draft()

    def _copy_selection(self) -> bool:
        text = self.get_selected_text() or getattr(self.app.focused, "selected_text", "")
        if not text:
            return False
        self.app.copy_to_clipboard(clean(text))
        self.clear_selection()
        self.bar.show_message("copied")
        return True

    # Keys of the session.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave some keys to an approval that has the focus."""
        has_focus = self.session is not None and self.approvals.panel.has_focus
        return not (action in ("page", "mode") and has_focus)

    def action_stop(self) -> None:
        if self.session is not None:
            self.session.stop()

    def action_mode(self) -> None:
        if self.session is not None:
            self.session.next_mode()

    def action_take_back(self) -> None:
        if self.session is not None:
            self.session.take_back_prompt()

    def action_release(self) -> None:
        if self.session is not None:
            self.session.release_prompt()

    def action_copy(self) -> None:
        if self.session is not None:
            self.run_worker(self.session.copy_answer(), group="copying", exclusive=True)

    def action_approvals(self) -> None:
        if self.session is not None:
            self.approvals.open_approvals()

    def action_answer(self) -> None:
        if self.session is not None:
            self.approvals.switch(self.composer.focus)

    # Keys of the view.

    def action_keys(self) -> None:
        from bridle.tui.dialogs import TextDialog

        lines = [(f"{key:<24}{meaning}".rstrip(), "") for key, meaning in help_lines()]
        self.app.push_screen(TextDialog("Keys", lines))

    def action_side(self) -> None:
        """Show or hide the side panel. What the width decides by itself is not remembered."""
        shown, wide = self.side.display, self.has_class("-wide")
        self.set_class(not shown and not wide, "-side")
        self.set_class(shown and wide, "-no-side")
        self.call_after_refresh(self.draw_soon)

    def action_repaint(self) -> None:
        """Draw everything again: another program may have written to the terminal."""
        if (driver := self.app._driver) is not None:
            driver.write("\x1b[2J")
        self.refresh(layout=True)

    def action_suspend(self) -> None:
        """Return to the shell until `fg`."""
        if self.app.is_headless or not has_shell():
            self.bar.show_message(
                "cannot suspend: bridle was not started by a shell with job control"
            )
            return
        with self.app.suspend():
            stop_job()

    def action_unfold(self) -> None:
        self.conversation.action_unfold()

    def action_choose(self, step: int) -> None:
        self.conversation.action_choose(step)

    def action_thoughts(self) -> None:
        self._thoughts_open = not self._thoughts_open
        self.conversation.unfold_thoughts(unfolded=self._thoughts_open)

    def action_page(self, step: int) -> None:
        height = max(1, self.conversation.size.height - 2)
        self.conversation.scroll_relative(y=step * height, animate=False, force=True)

    def action_first(self) -> None:
        self.run_worker(self._go_to_beginning(), group="beginning", exclusive=True)

    async def _go_to_beginning(self) -> None:
        await self.conversation.go_to_beginning(
            lambda left: self.bar.show_message(f"going to the beginning … {left:,}" if left else "")
        )

    def action_last(self) -> None:
        self.conversation.action_last()

    def on_app_focus(self) -> None:
        if self.session is not None:
            self.session.check_files()  # they may have been committed in another window


class FrameClock:
    """When to draw next: at once after a pause, otherwise about 20 times a second."""

    def __init__(self) -> None:
        self._due = 0.0

    def wait(self) -> float:
        """Return the seconds until the next drawing may be made."""
        return max(0.0, self._due - perf_counter())

    def count(self, began: float) -> None:
        """Note a drawing that began then and is done now."""
        now = perf_counter()
        self._due = now + max(FRAME - (now - began), _SHARE * (now - began))
