"""Puts the questions of a session elsewhere to the person here. The first answer wins.

One that somebody else answers, or that its turn leaves behind, is taken back; the screen says who
it was. What an answer leads to is the server's business.
"""

import asyncio
from contextlib import suppress

from bridle.cli.approver import TerminalApprover
from bridle.cli.screen import Screen
from bridle.cli.user_input import user_name
from bridle.errors import AgentError
from bridle.events import ApprovalAsked, TurnEnded, TurnParked
from bridle.protocols.session import Conversation
from bridle.protocols.store import Record
from bridle.workspace.text import flat


class Questions:
    """The questions of one session, as long as it is watched here."""

    def __init__(self, session: Conversation, approver: TerminalApprover, screen: Screen) -> None:
        self._session = session
        self._approver = approver
        self._screen = screen
        self._asking: dict[str, asyncio.Task[None]] = {}  # by what is shown
        self._one = asyncio.Lock()
        self.unheard = asyncio.Event()  # a question came, and nobody is here who could answer

    def begin(self) -> None:
        """Ask what stands there from before."""
        standing = list(self._session.history.pending.values())
        self._approver.skip_wait(standing)
        for asked in standing:
            self._ask(asked)

    def take(self, record: Record) -> None:
        """One record more: there may be a new question, and others may be over."""
        pending = self._session.history.pending
        for shown in [shown for shown in self._asking if shown not in pending]:
            self._asking[shown].cancel()
        if isinstance(record.event, ApprovalAsked) and record.event.shown in pending:
            self._ask(record.event)
        elif isinstance(record.event, TurnEnded):
            self._screen.drop_approval()
        elif isinstance(record.event, TurnParked):
            self._again()

    def _again(self) -> None:
        """The server was started anew, or somebody let the session go: the questions stand."""
        for shown, asked in list(self._session.history.pending.items()):
            if (task := self._asking.pop(shown, None)) is not None:
                task.cancel()
            self._ask(asked)

    async def close(self) -> None:
        """Ask nothing any more. What nobody answered stays asked."""
        for task in list(self._asking.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _ask(self, asked: ApprovalAsked) -> None:
        if asked.shown in self._asking:
            return
        task = self._asking[asked.shown] = asyncio.create_task(self._put(asked))
        task.add_done_callback(lambda done: self._over(asked, done))

    def _over(self, asked: ApprovalAsked, done: "asyncio.Task[None]") -> None:
        if self._asking.get(asked.shown) is done:
            del self._asking[asked.shown]

    async def _put(self, asked: ApprovalAsked) -> None:
        async with self._one:
            while self._stands(asked):
                unheard = self._approver.unanswered
                answer = await self._approver(asked)
                if self._approver.unanswered > unheard:
                    self._leave_open()
                    return
                if not self._stands(asked):
                    return  # others were faster
                try:
                    await self._session.answer(
                        asked.call.id, answer, shown=asked.shown, by=user_name()
                    )
                    return
                except AgentError as error:
                    self._complain(error)
                    if not error.retryable:
                        return

    def _leave_open(self) -> None:
        """Silence is no answer where others can give one."""
        said = "left open; it waits for somebody's answer"
        self._screen.line(self._screen.paint.dim(f"  {said}"))
        if not self._approver.lines.is_terminal:
            self.unheard.set()

    def _stands(self, asked: ApprovalAsked) -> bool:
        return asked.shown in self._session.history.pending

    def _complain(self, error: AgentError) -> None:
        paint = self._screen.paint
        self._screen.line(paint.yellow(f"  {flat(error.message)}"))
        if error.hint:
            self._screen.line(paint.dim(f"  {flat(error.hint)}"))
