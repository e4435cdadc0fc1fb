"""The approvals of the session on the screen, and a line about those of other sessions.

The widget between conversation and composer. It is given the records, shows what is open in the
session, removes what others answered, gives answers to the backend, and notifies a person who looks
elsewhere. What is open is what the session says, never what was shown.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical

from bridle.errors import AgentError, ConfigError
from bridle.events import ApprovalAnswered, ApprovalAsked, Event, ModeChanged, TurnEnded, TurnParked
from bridle.policy import Mode
from bridle.presentation.approvals import answer_text
from bridle.tui.screens.approvals import ApprovalsScreen, PendingApprovals, send_answer
from bridle.tui.session_backend import Asked, SessionBackend
from bridle.tui.terminal import WindowTitle, notification
from bridle.tui.widgets.approval_panel import ApprovalPanel
from bridle.workspace import change
from bridle.workspace.text import one_line

_EXPIRED = "denied: nobody answered in time"
_OVER = "no longer needed: the turn has ended"


def _notify_setting() -> str:
    from bridle.config.loader import load_settings

    try:
        return load_settings().settings.notify
    except ConfigError:
        return "auto"


class ApprovalArea(Vertical):
    """Line and panel. `is_writing`: somebody writes; `write` takes letters for the composer."""

    DEFAULT_CSS = "ApprovalArea { height: auto; }"

    def __init__(
        self, is_writing: Callable[[], bool], write: Callable[[str], None], notify: str = ""
    ) -> None:
        super().__init__()
        self.backend: SessionBackend | None = None
        self._notify_how = notify  # how the person is notified; empty: as the settings say
        self._to_composer = write
        self._gone: dict[str, str] = {}  # why it is not open any more, by what was shown
        self._diffs: dict[str, str] = {}  # of files that lie elsewhere, by what was shown
        self.next_mode: Mode | None = None  # agreed to with a plan; soon in force
        self._title = WindowTitle()
        self.panel = ApprovalPanel(self._preview, self._content_of, is_writing=is_writing)
        self.pending = PendingApprovals()

    def compose(self) -> ComposeResult:
        """The line, then the panel."""
        yield self.pending
        yield self.panel

    def begin(self, backend: SessionBackend) -> None:
        """Show the approvals of another session."""
        self.backend = backend
        self.panel.forget()
        self._gone.clear()
        self.next_mode = None
        self.update()
        self.watch_others()

    def apply(self, event: Event) -> None:
        """Take in an event of the session."""
        match event:
            case ApprovalAsked():
                self._show_new(event)
                self.notify_person(one_line(f"{event.call.name} needs approval", 60))
            case ApprovalAnswered():
                said = answer_text(event, self.backend.me if self.backend else "me")
                self._gone[event.shown] = _EXPIRED if event.by == "expiry" else said
                self.update()
            case ModeChanged(by="plan"):
                if self.next_mode is not None:
                    self._change_mode(self.next_mode)
            case TurnEnded():
                self.next_mode = None
                self.update()
                self.notify_person(f"turn ended: {event.reason}")
            case TurnParked():
                self.update()

    def _show_new(self, asked: ApprovalAsked) -> None:
        """Show a new request; if the file is on a server, ask for the change first."""
        elsewhere = self.backend is not None and bool(self.backend.place.server)
        if elsewhere and change.change_lines(dict(asked.call.arguments), None) is not None:
            self._fetch_change()
        else:
            self.update()

    @work
    async def _fetch_change(self) -> None:
        backend = self.backend
        with suppress(AgentError):
            found = await backend.pending() if backend is not None else ()
            self._diffs = {one.asked.shown: one.diff for one in found}
        if backend is self.backend:
            self.update()

    def update(self) -> None:
        """Show what is open now."""
        backend = self.backend
        if backend is None or not self.is_mounted:
            return
        session = backend.session
        pending = session.history.pending.values()
        open_now = [self._asked(session.id, session.title, one) for one in pending]
        gone = {one.asked.shown: _OVER for one in self.panel.waiting} | self._gone
        self.panel.show(open_now, gone, here=session.id)

    def _asked(self, session_id: str, title: str, asked: ApprovalAsked) -> Asked:
        diff = self._diffs.get(asked.shown, "")
        return Asked(session_id=session_id, title=title, asked=asked, diff=diff)

    @work(exclusive=True, group="others")
    async def watch_others(self) -> None:
        """Follow what needs an answer in other sessions."""
        backend = self.backend
        if backend is None:
            return
        self._notify_how = self._notify_how or await asyncio.to_thread(_notify_setting)
        await self._others(backend)
        try:
            async for _ in backend.news():
                await self._others(backend)
        except AgentError:
            return  # another part of the screen says so; F3 looks again

    async def _others(self, backend: SessionBackend) -> None:
        try:
            found = await backend.pending()
        except AgentError:
            return
        if backend is not self.backend or not self.is_attached:
            return
        others = [one for one in found if one.session_id != backend.session.id]
        known = {one.asked.shown for one in self.pending.others}
        new = [one for one in others if one.asked.shown not in known]
        self.pending.tell(others)
        if new:
            self.notify_person(f"{new[0].title or 'another session'} needs approval")

    def open_approvals(self) -> None:
        """Open the page with the approvals of all sessions."""
        if self.backend is not None:
            self.app.push_screen(ApprovalsScreen(self.backend), lambda _: self.update())

    def switch(self, home: Callable[[], object]) -> None:
        """Move the focus between panel and composer."""
        if self.panel.has_focus or self.panel.note.has_focus or not self.panel.is_open:
            home()
        else:
            self.panel.focus()

    def notify_person(self, words: str) -> None:
        """Notify the person if another window has the focus."""
        if not self.app.app_focus:
            self._write_to_terminal(notification(self._notify_how or "auto", words, os.environ))

    def set_title(self, state: str, title: str) -> None:
        """Show the state of the session in the window title."""
        self._write_to_terminal(self._title.change(state, title))

    def restore_title(self) -> None:
        """Restore the window title."""
        self._write_to_terminal(self._title.restore())

    def _write_to_terminal(self, data: str) -> None:
        if data and (driver := self.app._driver) is not None:
            driver.write(data)

    async def _preview(self, one: Asked) -> tuple[str, ...]:
        return await self.backend.preview_rule(one.session_id, one.asked) if self.backend else ()

    def _content_of(self, one: Asked) -> str | None:
        return self.backend.current(one.asked) if self.backend else None

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        """Give the answer to the session."""
        event.stop()
        self.next_mode = event.mode or self.next_mode
        self._answer(event)

    @work
    async def _answer(self, event: ApprovalPanel.Answered) -> None:
        if self.backend is not None and await send_answer(self.backend, self.panel, event):
            return
        if event.mode is not None:
            self.next_mode = None  # nothing was agreed to
        self.update()

    @work
    async def _change_mode(self, mode: Mode) -> None:
        """Change the mode as agreed to with the plan."""
        if self.backend is None:
            return
        try:
            await self.backend.change_mode(mode)
        except AgentError as error:
            self.app.notify(one_line(error.message, 300), markup=False, severity="warning")
        finally:
            self.next_mode = None

    def on_approval_panel_strayed(self, event: ApprovalPanel.Strayed) -> None:
        """Hand the letters to the composer."""
        event.stop()
        self._to_composer(event.text)
