"""The questions of the session on the screen, and the line on those of other sessions.

One widget between conversation and composer. Told of records, it shows what stands open in the
session, takes away what others answered, gives answers to the house, and calls the person who looks
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
from bridle.tui.house import Asked, House
from bridle.tui.questions import QuestionPanel
from bridle.tui.screens.approvals import Tray, TrayPage, deliver
from bridle.tui.terminal import Title, calling
from bridle.workspace import change
from bridle.workspace.text import one_line

_EXPIRED = "nobody answered in time, which counts as a no"
_OVER = "not asked any more: the turn has ended"


def _how_to_call() -> str:
    from bridle.config.loader import load_settings

    try:
        return load_settings().settings.notify
    except ConfigError:
        return "auto"


class QuestionsFlow(Vertical):
    """Tray and panel. `is_writing`: somebody writes; `write` takes letters that strayed."""

    DEFAULT_CSS = "QuestionsFlow { height: auto; }"

    def __init__(
        self, is_writing: Callable[[], bool], write: Callable[[str], None], how: str = ""
    ) -> None:
        super().__init__()
        self.house: House | None = None
        self._how = how  # the person is called; empty: as the settings say
        self._write = write
        self._gone: dict[str, str] = {}  # why, by what was shown
        self._diffs: dict[str, str] = {}  # of files that lie elsewhere, by what was shown
        self.then: Mode | None = None  # the plan was agreed to with it; it holds soon
        self._title = Title()
        self.panel = QuestionPanel(self._preview, self._held, is_writing=is_writing)
        self.tray = Tray()

    def compose(self) -> ComposeResult:
        """The line, then the panel."""
        yield self.tray
        yield self.panel

    def begin(self, house: House) -> None:
        """Another session is on the screen: its questions stand here."""
        self.house = house
        self.panel.forget()
        self._gone.clear()
        self.then = None
        self.update()
        self.watch_others()

    def heard(self, event: Event) -> None:
        """A record came."""
        match event:
            case ApprovalAsked():
                self._come_up(event)
                self.call(f"{one_line(event.call.name, 40)}: an answer is needed")
            case ApprovalAnswered():
                said = answer_text(event, self.house.me if self.house else "me")
                self._gone[event.shown] = _EXPIRED if event.by == "expiry" else said
                self.update()
            case ModeChanged(by="plan"):
                if self.then is not None:
                    self._go_over(self.then)
            case TurnEnded():
                self.then = None
                self.update()
                self.call(f"the turn ended: {event.reason}")
            case TurnParked():
                self.update()

    def _come_up(self, asked: ApprovalAsked) -> None:
        """A new question; where the file lies elsewhere, the change is asked for first."""
        elsewhere = self.house is not None and bool(self.house.place.server)
        if elsewhere and change.change_lines(dict(asked.call.arguments), None) is not None:
            self._ask_change()
        else:
            self.update()

    @work
    async def _ask_change(self) -> None:
        house = self.house
        with suppress(AgentError):
            found = await house.pending() if house is not None else ()
            self._diffs = {one.asked.shown: one.diff for one in found}
        if house is self.house:
            self.update()

    def update(self) -> None:
        """Show what stands open now."""
        house = self.house
        if house is None or not self.is_mounted:
            return
        session = house.session
        pending = session.history.pending.values()
        open_now = [self._asked(session.id, session.title, one) for one in pending]
        gone = {one.asked.shown: _OVER for one in self.panel.waiting} | self._gone
        self.panel.show(open_now, gone, here=session.id)

    def _asked(self, session_id: str, title: str, asked: ApprovalAsked) -> Asked:
        diff = self._diffs.get(asked.shown, "")
        return Asked(session_id=session_id, title=title, asked=asked, diff=diff)

    @work(exclusive=True, group="others")
    async def watch_others(self) -> None:
        """What waits in other sessions, as long as this one is on the screen."""
        house = self.house
        if house is None:
            return
        self._how = self._how or await asyncio.to_thread(_how_to_call)
        await self._others(house)
        try:
            async for _ in house.news():
                await self._others(house)
        except AgentError:
            return  # the house says so elsewhere; F3 looks again

    async def _others(self, house: House) -> None:
        try:
            found = await house.pending()
        except AgentError:
            return
        if house is not self.house or not self.is_attached:
            return
        others = [one for one in found if one.session_id != house.session.id]
        known = {one.asked.shown for one in self.tray.others}
        new = [one for one in others if one.asked.shown not in known]
        self.tray.tell(others)
        if new:
            self.call(f"{new[0].title or 'another session'}: an answer is needed")

    def open_tray(self) -> None:
        """All questions of all sessions."""
        if self.house is not None:
            self.app.push_screen(TrayPage(self.house), lambda _: self.update())

    def switch(self, home: Callable[[], object]) -> None:
        """Between the question and the composer."""
        if self.panel.has_focus or self.panel.words.has_focus or not self.panel.is_open:
            home()
        else:
            self.panel.focus()

    def call(self, words: str) -> None:
        """Call the person, if they look elsewhere."""
        if not self.app.app_focus:
            self._tell_terminal(calling(self._how or "auto", words, os.environ))

    def tell_title(self, state: str, title: str) -> None:
        """The state of the session, in the title of the window."""
        self._tell_terminal(self._title.change(state, title))

    def restore_title(self) -> None:
        """As it was before."""
        self._tell_terminal(self._title.restore())

    def _tell_terminal(self, data: str) -> None:
        if data and (driver := self.app._driver) is not None:
            driver.write(data)

    async def _preview(self, one: Asked) -> tuple[str, ...]:
        return await self.house.preview_rule(one.session_id, one.asked) if self.house else ()

    def _held(self, one: Asked) -> str | None:
        return self.house.current(one.asked) if self.house else None

    def on_question_panel_answered(self, event: QuestionPanel.Answered) -> None:
        """Give it to the session."""
        event.stop()
        self.then = event.mode or self.then
        self._answer(event)

    @work
    async def _answer(self, event: QuestionPanel.Answered) -> None:
        if self.house is not None and await deliver(self.house, self.panel, event):
            return
        if event.mode is not None:
            self.then = None  # nothing was agreed to
        self.update()

    @work
    async def _go_over(self, mode: Mode) -> None:
        """The plan was agreed, and with it that edits run."""
        if self.house is None:
            return
        try:
            await self.house.change_mode(mode)
        except AgentError as error:
            self.app.notify(one_line(error.message, 300), markup=False, severity="warning")
        finally:
            self.then = None

    def on_question_panel_strayed(self, event: QuestionPanel.Strayed) -> None:
        """They were meant for the composer."""
        event.stop()
        self._write(event.text)
