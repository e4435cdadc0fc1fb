"""The session that a REPL talks to, which may become another one. It reads no lines.

A session of our own engine asks for approval through the engine's approver. One elsewhere, on a
server or in another process, is watched for its requests; others may talk to it too, so that
prompts have names there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from bridle.cli.approval_prompt import TerminalApprover
from bridle.cli.printer import Printer
from bridle.cli.render import inbox_prompt_line
from bridle.cli.turn import Watch, print_turn_end
from bridle.cli.user_input import user_name
from bridle.errors import AgentError, SessionError
from bridle.events import ApprovalAsked, PromptReceived, TurnEnded, TurnParked
from bridle.protocols.session import Conversation, TurnResult
from bridle.protocols.store import Record
from bridle.tui.session_backend import SessionBackend
from bridle.workspace.text import flat, quantity

_OUTPUT_TIMEOUT = 1.0  # seconds until what was done is shown
T = TypeVar("T")


class RemoteApprovals:
    """Asks the person here for the approvals that a session elsewhere waits for.

    The first answer wins. A request that somebody else answers, or that its turn leaves behind, is
    taken back; the screen says who answered.
    """

    def __init__(self, session: Conversation, approver: TerminalApprover, printer: Printer) -> None:
        self._session = session
        self._approver = approver
        self._printer = printer
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by the `shown` of the request
        self._lock = asyncio.Lock()
        self.unheard = asyncio.Event()  # a request came, and nobody is here who could answer

    def begin(self) -> None:
        """Ask what is open from before."""
        requests = list(self._session.history.pending.values())
        self._approver.skip_wait(requests)
        for asked in requests:
            self._start(asked)

    def take(self, record: Record) -> None:
        """Take in the next record: a request may be new, and others may be over."""
        pending = self._session.history.pending
        for shown in [shown for shown in self._tasks if shown not in pending]:
            self._tasks[shown].cancel()
        if isinstance(record.event, ApprovalAsked) and record.event.shown in pending:
            self._start(record.event)
        elif isinstance(record.event, TurnEnded):
            self._printer.drop_approval()
        elif isinstance(record.event, TurnParked):  # by a new owner: ask again
            for shown, asked in list(pending.items()):
                if (task := self._tasks.pop(shown, None)) is not None:
                    task.cancel()
                self._start(asked)

    async def close(self) -> None:
        """Ask nothing any more. What nobody answered stays open."""
        for task in list(self._tasks.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _start(self, asked: ApprovalAsked) -> None:
        if asked.shown in self._tasks:
            return
        task = self._tasks[asked.shown] = asyncio.create_task(self._ask(asked))
        task.add_done_callback(lambda done: self._end(asked, done))

    def _end(self, asked: ApprovalAsked, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(asked.shown) is task:
            del self._tasks[asked.shown]

    async def _ask(self, asked: ApprovalAsked) -> None:
        printer = self._printer
        async with self._lock:
            while asked.shown in self._session.history.pending:
                unanswered = self._approver.unanswered
                answer = await self._approver(asked)
                if self._approver.unanswered > unanswered:  # silence: others can answer
                    printer.line(printer.paint.dim("  left open; it still needs approval"))
                    if not self._approver.lines.is_terminal:
                        self.unheard.set()
                    return
                if asked.shown not in self._session.history.pending:
                    return  # others were faster
                try:
                    await self._session.answer(
                        asked.call.id, answer, shown=asked.shown, by=user_name()
                    )
                    return
                except AgentError as error:
                    printer.line(printer.paint.yellow(f"  {flat(error.message)}"))
                    if error.hint:
                        printer.line(printer.paint.dim(f"  {flat(error.hint)}"))
                    if not error.retryable:
                        return


class ReplSession:
    """The session that is talked to, with the watch that shows it."""

    _watch: Watch

    def __init__(
        self, backend: SessionBackend, printer: Printer, approver: TerminalApprover
    ) -> None:
        self.backend = backend
        self.printer = printer
        self.approver = approver
        self.on_end: Callable[[], None] | None = None  # called when any turn is over
        self._watched: Conversation | None = None
        self._approvals: RemoteApprovals | None = None  # of a session elsewhere
        self._waiting = 0  # approvals of other sessions that the person was told of
        self._is_left = asyncio.Event()
        self._sent: list[str] = []  # our own prompts, which stand on the screen already
        printer.me = backend.me
        approver.content_of = backend.current
        approver.preview = self._preview_rule

    @property
    def session(self) -> Conversation:
        """The one that is talked to now."""
        return self.backend.session

    @property
    def summary(self) -> str:
        """Model, mode and folder."""
        backend, place = self.backend, self.backend.place
        where = f"{place.workspace} · {place.server}" if place.server else place.workspace
        return flat(f"{backend.model} · mode {backend.mode} · {where}")

    async def enter(self, seen: int | None = None) -> None:
        """Open the session that was asked for, and show what comes after record `seen`."""
        await self.backend.enter()
        for line in self.backend.remarks():
            self.printer.line(self.printer.paint.dim(flat(line)))
        await self._start_watch(self.backend.seen if seen is None else seen)

    async def close(self) -> None:
        """Close everything."""
        await self._end_watch()
        await self.backend.leave()

    async def switch(self, verb: Awaitable[T]) -> T:
        """Await a verb that may lead to another session, and watch that one then."""
        try:
            return await verb
        finally:
            if self._watched is not self.session:
                await self._end_watch()
                await self._start_watch(self.backend.seen)

    async def send(self, text: str) -> None:
        """Send a prompt and show its turn; the approvals of a parked turn come first."""
        if self._approvals is None:
            await self.resume()
            await self._send(text)
            return
        self._sent.append(" ".join(text.split()))
        if self.session.is_parked:
            await self.resume()
        await self._run_while_heard(self._send(text))

    async def resume(self) -> None:
        """Resume what was left behind in this session, and ask for its approvals."""
        session = self.session
        if not (session.is_parked or session.is_busy):
            return
        if self._approvals is not None:
            await self._run_while_heard(self._resume())
            return
        said = "a turn goes on that waits for answers" if session.is_parked else "a turn goes on"
        self.printer.line(self.printer.paint.dim(said))
        self.approver.skip_wait(session.history.pending.values())
        await self._resume()

    async def wait_for_output(self) -> None:
        """Wait a little until what was done is recorded and shown."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_OUTPUT_TIMEOUT):
                await self._watch.wait_for_record(self.session.seq)

    async def show_waiting(self) -> None:
        """Say that other sessions need approval, whenever there are more of these than before."""
        with suppress(AgentError):
            waiting = [
                asked
                for asked in await self.backend.pending()
                if asked.session_id != self.session.id
            ]
            if len(waiting) > self._waiting:
                count = quantity(len(waiting), "approval")
                said = f"{count} needed in other sessions: /approvals"
                self.printer.line(self.printer.paint.yellow(said))
            self._waiting = len(waiting)

    @property
    def is_elsewhere(self) -> bool:
        """Return whether another process runs the turns, which go on when we leave."""
        return self._approvals is not None

    def leave_turn(self) -> None:
        """Wait no longer for a turn that runs elsewhere; it goes on."""
        self._is_left.set()

    async def _send(self, text: str) -> None:
        self._tell_end(await self._watch.send(text))

    async def _resume(self) -> None:
        self._tell_end(await self._watch.resume())

    async def _run_while_heard(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it as long as somebody is here who can answer what is asked meanwhile."""
        assert self._approvals is not None
        working = asyncio.ensure_future(work)
        unheard = asyncio.ensure_future(self._approvals.unheard.wait())
        leaving = asyncio.ensure_future(self._is_left.wait())
        try:
            await asyncio.wait([working, unheard, leaving], return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                return
            if not working.done():
                raise SessionError(
                    "the turn needs approval, and no one here can give it; the session is kept",
                    hint=f"Answer at a terminal: bridle attach {self.session.id}",
                )
            working.result()
        finally:
            for task in (unheard, leaving, working):
                task.cancel()
            await asyncio.wait([working, unheard, leaving])

    def _tell_end(self, result: TurnResult) -> None:
        print_turn_end(
            result,
            self.printer,
            mode=self.backend.mode,
            hint=self._watch.hint,
            steps=self._watch.steps.count,
            again="Send a prompt to continue.",
        )

    async def _preview_rule(self, asked: ApprovalAsked) -> str:
        lines = await self.backend.preview_rule(self.session.id, asked)
        return "\n".join(f"  {flat(line)}" for line in lines)

    async def _start_watch(self, seen: int) -> None:
        session = self.session
        self._watched = self.approver.session = session
        if not self.backend.is_own:
            self._approvals = RemoteApprovals(session, self.approver, self.printer)
        watch = Watch(session, self._show, seen, elsewhere=self.is_elsewhere)
        self._watch = await watch.__aenter__()
        self._watch.on_end = self.on_end
        if self._approvals is not None:
            self._approvals.begin()

    async def _end_watch(self) -> None:
        if self._approvals is not None:
            approvals, self._approvals = self._approvals, None
            await approvals.close()
        await self._watch.__aexit__(None, None, None)

    def _show(self, record: Record) -> None:
        if self._approvals is None:
            self.printer.feed(record)
            return
        if isinstance(record.event, PromptReceived):
            text = " ".join(record.event.content.split())
            if text in self._sent:
                self._sent.remove(text)
                return
        was_prompting = self.printer.is_prompting
        show_record(self.printer, record)
        self._approvals.take(record)
        is_taken_back = was_prompting and not self.printer.is_prompting
        if is_taken_back and not self.session.is_busy and self.on_end is not None:
            self.on_end()  # somebody else's line has taken the prompt away


def show_record(printer: Printer, record: Record) -> None:
    """Show a record of a session that several people may talk to: prompts have names."""
    if isinstance(record.event, PromptReceived):
        printer.line(inbox_prompt_line(record.event, printer.paint, printer.width, printer.me))
    else:
        printer.feed(record)
