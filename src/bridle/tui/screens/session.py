"""The session on the main screen: open and follow it, send prompts, obey commands, show its state.

What is shown comes from records: nothing is shown as done before its record came.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from textual.worker import Worker

from bridle.errors import AgentError, MissingModel
from bridle.events import Event, PromptReceived, TurnEnded
from bridle.policy import Mode
from bridle.presentation.blocks import Notice, Reply
from bridle.presentation.commands import Command, command_line, command_of, is_loose, split
from bridle.presentation.fold import Fold
from bridle.protocols.session import Conversation
from bridle.tui.clipboard import copy_answer
from bridle.tui.dialogs import ChoiceDialog, Dialog
from bridle.tui.model.prompt_queue import PromptQueue
from bridle.tui.model.status_bar import Facts
from bridle.tui.slash.interaction import Item
from bridle.tui.slash.screen import ScreenInteraction, run_screen_command
from bridle.tui.theme import theme_name
from bridle.tui.timers import call_later
from bridle.tui.widgets.approval_area import ApprovalArea
from bridle.tui.widgets.composer import SendMode
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.tui.model.onboarding import StartupChecks
    from bridle.tui.screens.main import MainScreen
    from bridle.tui.session_backend import SessionBackend

_LATER = 0.2  # seconds
_NEXT: dict[str, Mode] = {"ask": "edits", "edits": "plan", "plan": "ask", "auto": "ask"}


class SessionController:
    """The session that the main screen shows, and what its keys and commands do to it."""

    def __init__(
        self,
        screen: "MainScreen",
        opening: "Callable[[], SessionBackend]",
        checks: "Callable[[], StartupChecks] | None",
    ) -> None:
        self.backend: SessionBackend | None = None
        self.prompt_queue: PromptQueue | None = None
        self.follower: SessionFollower | None = None
        self.commands: tuple[Command, ...] = ()  # the user's own
        self.approvals = ApprovalArea(lambda: bool(screen.composer.text), screen.write)
        self.interaction = ScreenInteraction(screen)  # the screen, as commands know it
        self.is_stopping = False  # it was asked for, and is not over
        self._screen = screen
        self._opening = opening
        self._checks = checks
        self._is_open = asyncio.Event()
        self._order = asyncio.Lock()
        self._remarks: list[str] = []
        self._early: list[Notice] = []  # told before the session was on the screen
        self._watch: Worker[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Is the session open, and is on the screen what it already held?"""
        return self._is_open.is_set() and self.follower is not None and self.follower.is_live

    @property
    def is_busy(self) -> bool:
        """Does a turn run?"""
        return self.prompt_queue is not None and self.prompt_queue.session.is_busy

    # Opening and following.

    async def open(self) -> None:
        """Ask what has to be known first, and open the session; what is typed meanwhile stays."""
        screen = self._screen
        try:
            if self._checks is not None and not await self._introduce(self._checks()):
                screen.app.exit(0)
                return
            backend = await asyncio.to_thread(self._opening)
            await backend.enter()
        except AgentError as error:
            screen.app.fail(error)  # type: ignore[attr-defined]
            return
        self.backend = backend
        await self.rejoin()
        self._is_open.set()
        with suppress(Exception):  # it only saves time later
            await asyncio.to_thread(screen.conversation.warm)
        if self.follower is not None:
            await self.follower.came.wait()
        for remark in (*self._remarks, *backend.remarks()):
            if remark:
                self.tell(remark)
        self._remarks.clear()
        await self.read_commands()

    async def _introduce(self, checks: "StartupChecks") -> bool:
        """Ask which session to open, whether to trust the folder, and which model to use.

        Return False if the person leaves instead. Raise `MissingModel` if no model is chosen.
        """
        if (earlier := await asyncio.to_thread(checks.earlier_sessions)) is not None:
            from bridle.tui.screens.sessions import SessionPicker

            picker = SessionPicker(earlier, workspace=earlier.workspace, escape="quit bridle")
            chosen = await self._ask(picker)
            await earlier.close()
            if chosen is None:
                return False
            checks.resume(chosen)
        try:
            if (theme := await asyncio.to_thread(checks.theme)) != "auto":
                self._screen.app.theme = theme_name(theme, os.environ)
            if (folder := await asyncio.to_thread(checks.untrusted_folder)) is not None:
                from bridle.tui.screens.onboarding import ask_trust

                self._remarks.append(await ask_trust(checks, folder, self._ask))
        except AgentError as error:  # it does not count, and the rest goes on
            self._remarks.append(_error_text(error))
        try:
            if (lacking := await asyncio.to_thread(checks.missing_model)) is not None:
                from bridle.tui.screens.onboarding import ask_model

                self._remarks.append(await ask_model(checks, lacking, self._ask))
        except MissingModel:
            raise
        except AgentError as error:
            self._remarks.append(_error_text(error))
        return True

    async def _ask(self, dialog: Dialog[Any]) -> Any:
        return await self._screen.app.push_screen_wait(dialog)

    async def rejoin(self) -> None:
        """Follow the session that the backend is in now: it was opened, or changed."""
        backend, composer = self.backend, self._screen.composer
        if backend is None:
            return
        if self._watch is not None:
            self._watch.cancel()
        self.restore_held()
        self.prompt_queue = PromptQueue(backend.session)
        is_typed = bool(composer.full_text) and not self._is_open.is_set()
        composer.enter_session(backend.session.id, keep_text=is_typed)
        self.follower = SessionFollower(
            backend.session,
            after=backend.began,
            on_loaded=self._show,
            on_change=self._screen.draw_soon,
            on_event=self._on_event,
        )
        self.follower.fold.state.me = backend.me
        self._watch = self._screen.run_worker(self._follow(self.follower), group="watch")
        self.approvals.begin(backend)
        if backend.session.is_parked:
            self._run(backend.session.resume())  # its pending approvals come up
        self._screen.draw_soon()

    async def _follow(self, follower: "SessionFollower") -> None:
        try:
            await follower.run()
        except AgentError as error:
            self.complain(error)

    def _show(self, fold: Fold) -> None:
        """Show what the session already held."""
        for notice in self._early:
            fold.add_notice(notice)
        self._early.clear()
        self._screen.conversation.show(fold)
        self._screen.draw_soon()

    def _on_event(self, event: Event) -> None:
        self.approvals.apply(event)
        if isinstance(event, TurnEnded | PromptReceived):
            self.check_files()

    def check_files(self) -> None:
        """Take files out of the side panel in which nothing is changed any more."""
        backend, state = self.backend, self._screen.conversation.fold.state
        if backend is not None and not backend.place.server and state.files:
            self._screen.run_worker(self._check_files(backend.place.workspace), group="files")

    async def _check_files(self, workspace: str) -> None:
        await asyncio.to_thread(self._screen.conversation.fold.state.forget_files, workspace)
        self._screen.draw_soon()

    # Prompts and commands.

    async def submit(self, text: str, when: SendMode) -> None:
        """Send a prompt or obey a command, in the order in which they were typed.

        What follows `/new` or `/mode` is for what holds once that was done.
        """
        line = command_line(text, self.commands)
        if line and is_loose(line):
            await self._is_open.wait()
            await self._obey(line)
            return
        async with self._order:  # taken first, so that whoever has waited longer comes first
            await self._is_open.wait()
            line = command_line(text, self.commands)  # the user's own are known from now on
            if line:
                await self._obey(line)
            else:
                await self.send(text, when)

    async def send(self, text: str, when: SendMode) -> None:
        """Send a prompt; one that cannot be sent goes back into the composer."""
        if self.prompt_queue is None:
            return
        try:
            await self.prompt_queue.send(text, when)
        except AgentError as error:
            self._screen.composer.give_back(text)
            self.complain(error)
        self._screen.draw_soon()

    async def _obey(self, line: str) -> None:
        if _may_be_own(line):
            await self.read_commands()
        await run_screen_command(self.interaction, line)
        self._screen.draw_soon()

    async def read_commands(self) -> None:
        """Read the user's own commands: they may have changed."""
        if self.backend is not None:
            self.commands = tuple(await asyncio.to_thread(self.backend.commands))

    def stop(self) -> None:
        """Stop the running turn."""
        queue = self.prompt_queue
        if queue is None or self.is_stopping:
            return
        if queue.session.is_busy or queue.session.is_parked:
            self.is_stopping = True
            self._run(self._stop(queue))
            self._screen.draw_soon()

    async def _stop(self, queue: PromptQueue) -> None:
        try:
            await queue.stop()
        finally:
            self.is_stopping = False

    def next_mode(self) -> None:
        """Change to the next mode.

        The person presses the key, so that no approval is needed to leave plan mode.
        """
        if self.backend is not None:
            self._run(self.backend.change_mode(_NEXT.get(self.backend.mode, "ask")))

    def take_back_prompt(self) -> None:
        """Put the newest waiting prompt back into the composer."""
        if self.prompt_queue is not None:
            self._run(self._take_back(self.prompt_queue))

    async def _take_back(self, queue: PromptQueue) -> None:
        if text := await queue.take_back():
            self._screen.composer.give_back(text)

    def release_prompt(self) -> None:
        """Send the oldest prompt that is on hold."""
        if self.prompt_queue is not None:
            self._run(self.prompt_queue.release())

    def restore_held(self) -> None:
        """Put the prompts on hold into the composer, and so into this session's draft."""
        if self.prompt_queue is not None and self.prompt_queue.held:
            self._screen.composer.give_back("\n".join(self.prompt_queue.held))
            self.prompt_queue.held.clear()

    async def edit_prompt(self) -> None:
        """Write what is typed in the person's editor."""
        try:
            await self.interaction.edit("")
        except AgentError as error:
            self.complain(error)

    async def search_prompts(self) -> None:
        """Let the person choose one of the earlier prompts."""
        composer = self._screen.composer
        texts = composer.prompts.newest_first
        items = [Item(str(at), _first_line(text), _more(text)) for at, text in enumerate(texts)]
        chosen = await self._ask(ChoiceDialog("Earlier prompts", items, "No prompt was sent yet."))
        if chosen is not None:
            composer.load(texts[int(chosen)])

    async def copy_answer(self) -> None:
        """Copy the last answer, or one of its code blocks."""
        blocks = self._screen.conversation.fold.blocks
        replies = [one.text for one in blocks if isinstance(one, Reply) and not one.discarded]
        if message := await copy_answer(self._screen.app, replies[-1] if replies else ""):
            self._screen.bar.show_message(message)

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run it beside the screen; show its error if it fails."""
        self._screen.run_worker(self._guarded(work), group="verbs")

    async def _guarded(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except AgentError as error:
            self.complain(error)
        self._screen.draw_soon()

    # Messages and status.

    def tell(self, text: str, tone: str = "dim", mark: str = "·") -> None:
        """Show a line in the conversation."""
        notice = Notice(text, mark, tone)  # type: ignore[arg-type]
        if self.follower is None or not self.follower.is_live:
            self._early.append(notice)
        self._screen.conversation.fold.add_notice(notice)
        self._screen.draw_soon()

    def complain(self, error: AgentError) -> None:
        """Show an error and what can be done about it."""
        hint = f" → {error.hint}" if error.hint else ""
        self.tell(f"{error.message}{hint}", "bad", "!")

    def show_status(self) -> None:
        """Update status bar, side panel, window title and the lines above the composer."""
        backend, queue, screen = self.backend, self.prompt_queue, self._screen
        if backend is None or queue is None:
            return
        state = screen.conversation.fold.state
        busy = backend.session.is_busy
        if busy and not state.busy:
            call_later(
                _LATER, screen, screen.draw_soon
            )  # the record of its end came before it was over
        screen.composer.is_busy = busy
        waiting = state.waiting.values()
        activity = self._activity(busy=busy, stopping=queue.stopping)
        screen.activity.show(
            activity,
            steering=tuple(one.content for one in waiting if one.when == "next_step"),
            queued=tuple(one.content for one in waiting if one.when != "next_step"),
            held=tuple(queue.held),
        )
        self.approvals.set_title(activity, backend.session.title)
        if screen.side.display:
            screen.side.show(state, backend.window)
        place = backend.place
        screen.bar.show(
            Facts(
                mode=backend.mode,
                then=self.approvals.next_mode or "",
                model=backend.model,
                agent=backend.agent,
                workspace=place.workspace,
                branch=place.branch,
                sandbox=place.sandbox,
                server=place.server,
            )
        )

    def _activity(self, *, busy: bool, stopping: bool) -> str:
        if stopping:
            return "stopping"
        if self._screen.conversation.fold.state.asked:
            return "waiting for your answer"
        return "working" if busy else ""


class SessionFollower:
    """Fold the records of one session, from a record on, until it is closed or left.

    What the session already held is folded first, and shown once.
    """

    def __init__(
        self,
        session: Conversation,
        *,
        after: int,
        on_loaded: Callable[[Fold], None],
        on_change: Callable[[], None],
        on_event: Callable[[Event], None],
    ) -> None:
        self.fold = Fold()
        self.is_live = False
        self.came = asyncio.Event()  # what the session held is on the screen
        self._session = session
        self._after = after
        self._target = session.seq  # older records were there before we came
        self._on_loaded = on_loaded
        self._on_change = on_change
        self._on_event = on_event

    async def run(self) -> None:
        """Follow the session until it ends."""
        if self._target <= self._after:
            self._loaded()
        fold = self.fold
        async with aclosing(self._session.subscribe(max(self._after, fold.seq))) as records:
            async for record in records:
                fold.apply(record)
                if self.is_live:
                    self._on_change()
                    self._on_event(record.event)
                elif record.seq >= self._target:
                    self._loaded()
        if not self.is_live:
            self._loaded()

    def _loaded(self) -> None:
        self.is_live = True
        self._on_loaded(self.fold)
        self.came.set()


def _may_be_own(line: str) -> bool:
    """May the line be a user's own command, or ask which there are?"""
    command = command_of(split(line)[0])
    return command is None or command.name == "help"


def _error_text(error: AgentError) -> str:
    return f"{error.message}. {error.hint}".rstrip(" .")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _more(text: str) -> str:
    lines = text.strip().count("\n")
    return f"+{quantity(lines, 'line')}" if lines else ""
