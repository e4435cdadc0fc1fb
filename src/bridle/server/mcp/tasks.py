"""Tasks that somebody else's agent has handed over: each is a turn, in an engine of its own.

Owns them from the first word to the last: whoever gave a task may cancel it, and closing leaves
none behind. A task is never allowed more than the server was; how an engine is made is handed in.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress

from msgspec import Struct

from bridle.engine.engine import Engine
from bridle.engine.engine_config import OnAsk
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionBusy, SessionClosed, SessionError
from bridle.events import ApprovalAsked, FileChange, FilesChanged, ModeChanged, When
from bridle.policy import MODES, Mode
from bridle.presentation.notices import progress_text
from bridle.protocols.session import TurnResult

_MOST = 8  # tasks at a time: each has connections, a model's attention, and may run commands


class TaskLimits(Struct, frozen=True):
    """What a task may use at most, where whoever gives it wants it to be less. None: as much."""

    max_steps: int | None = None
    max_seconds: float | None = None
    max_turn_tokens: int | None = None
    max_cost: float | None = None


class TaskRequest(Struct, frozen=True):
    """A task as it was given. Without a prompt, what the session has left behind goes on.

    `wait` is how many seconds a question waits for its answer before the turn is parked.
    """

    prompt: str
    by: str
    session: str = ""
    mode: Mode | None = None
    wait: float = 0.0
    caps: TaskLimits = TaskLimits()


class TaskOutcome(Struct, frozen=True):
    """What came of it, the files that changed on the way, and the questions that stand open."""

    result: TurnResult
    files: tuple[FileChange, ...]
    pending: tuple[ApprovalAsked, ...]


Opening = Callable[[Mode, OnAsk, TaskLimits], Engine]
Tell = Callable[[str], None]


def narrower_mode(one: Mode, other: Mode) -> Mode:
    """Of two modes, the one in which less runs without asking."""
    return MODES[min(MODES.index(one), MODES.index(other))]


class Tasks:
    """The tasks of one server. `widest` is the mode that none of them goes beyond."""

    def __init__(self, opening: Opening, widest: Mode) -> None:
        self.widest = widest
        self.closing = False  # what waits for a person is parked from now on, and not ended
        self._opening = opening
        self._jobs: set[_Job] = set()

    async def run(self, order: TaskRequest, tell: Tell) -> TaskOutcome:
        """Carry it to its end. Cancelling this interrupts the turn. Raise `AgentError`."""
        mode = self._mode(order)
        if self.closing:
            raise SessionClosed("the server is ending, and takes no more tasks")
        if len(self._jobs) >= _MOST:
            raise SessionBusy(
                f"{len(self._jobs)} tasks are running, and no more are taken at a time",
                hint="Wait for one of them, or interrupt it.",
            )
        engine = self._opening(mode, "wait" if order.wait > 0 else "park", order.caps)
        job = _Job(self, engine, order, mode, tell)
        self._jobs.add(job)
        job.work.add_done_callback(lambda done: self._jobs.discard(job))
        try:
            await asyncio.wait([job.work])
        except asyncio.CancelledError:
            job.work.cancel()  # it ends by itself; who closes the server waits for it
            raise
        return job.work.result()

    def session(self, session_id: str) -> Session | None:
        """That session, while a task runs in it here."""
        found = (one.session for one in self._jobs if one.session is not None)
        return next((one for one in found if one.id == session_id and not one.is_closed), None)

    async def interrupt(self, session_id: str, by: str) -> None:
        """End the turn of that session: one that runs here, or is parked and nobody's."""
        if (session := self.session(session_id)) is not None:
            await session.interrupt(by=by)
            return
        async with self._opening("plan", "park", TaskLimits()) as engine:
            session = await engine.session(session_id)
            if not (session.is_parked or session.is_busy):
                raise SessionError(
                    f"nothing runs in session {session_id}", hint="There is nothing to interrupt."
                )
            await session.interrupt(by=by)

    async def close(self) -> None:
        """Park what waits for a person, interrupt the rest, and come back when all is settled."""
        self.closing = True
        works = [job.work for job in self._jobs]
        for work in works:
            work.cancel()
        if works:
            await asyncio.wait(works)

    def _mode(self, order: TaskRequest) -> Mode:
        if order.mode is None:
            return narrower_mode("ask", self.widest)
        if narrower_mode(order.mode, self.widest) != order.mode:
            raise SessionError(
                f"the mode {order.mode} is wider than {self.widest}, with which the server runs",
                hint=f"Ask for {self.widest}, or leave the mode out.",
            )
        return order.mode


class _Job:
    """One task, from its engine to its outcome."""

    def __init__(
        self, tasks: Tasks, engine: Engine, order: TaskRequest, mode: Mode, tell: Tell
    ) -> None:
        self.session: Session | None = None
        self._tasks = tasks
        self._engine = engine
        self._order = order
        self._mode: Mode = mode
        self._tell = tell
        self._files: dict[str, FileChange] = {}
        self._parking: asyncio.Future[None] | None = None
        self._patience: list[asyncio.TimerHandle] = []
        self.work = asyncio.ensure_future(self._carry())
        self.work.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _carry(self) -> TaskOutcome:
        async with self._engine as engine:
            session = self.session = await engine.session(self._order.session or None)
            await self._adjust(session)
            following = asyncio.ensure_future(self._follow(session, session.seq))
            try:
                result = await session.wait(await self._begin(session))
            except asyncio.CancelledError:
                if not self._tasks.closing:
                    await session.interrupt(by=self._order.by)
                raise
            finally:
                await session.close()  # with it the records end
                await following
                for timer in self._patience:
                    timer.cancel()
                if self._parking is not None:
                    await asyncio.wait([self._parking])
            pending = tuple(session.history.pending.values())
            return TaskOutcome(result, tuple(self._files.values()), pending)

    async def _adjust(self, session: Session) -> None:
        """The mode that was asked for; an earlier session's own, but never beyond the widest."""
        mode = self._mode
        if self._order.session and self._order.mode is None:
            mode = narrower_mode(session.mode, self._tasks.widest)
        elif self._order.session and narrower_mode(mode, session.mode) != mode:
            self._check_widening(session)
        if mode != session.mode:
            await session.set_mode(mode, by=self._order.by)
        elif not self._order.session and mode != "ask":
            session.emit_with_first_prompt(
                ModeChanged(mode, self._order.by)
            )  # whoever continues it finds it so

    def _check_widening(self, session: Session) -> None:
        """A mode that a person chose for the session is theirs to widen. Raise `SessionError`."""
        chosen = ""
        for record in self._engine.store.read(session.id):
            if isinstance(record.event, ModeChanged):
                chosen = record.event.by
        if chosen and not chosen.startswith("mcp:"):
            raise SessionError(
                f"the session has the mode {session.mode}, which a person chose",
                hint="Leave the mode out, or have them widen it.",
            )

    async def _begin(self, session: Session) -> int:
        if not self._order.prompt:
            return await session.resume()
        when: When = (
            "queue" if session.is_busy else "idle"
        )  # an answer that lay there is acted on first
        return await session.send(self._order.prompt, when=when, by=self._order.by)

    async def _follow(self, session: Session, last: int) -> None:
        """Say what happens until the session is closed."""
        async with aclosing(session.subscribe(last)) as records:
            async for record in records:
                event = record.event
                if isinstance(event, FilesChanged):
                    self._files.update({one.path: one for one in event.files})
                elif isinstance(event, ApprovalAsked):
                    self._be_patient(session, event)
                if words := progress_text(event):
                    self._tell(words)

    def _be_patient(self, session: Session, asked: ApprovalAsked) -> None:
        """A question that nobody answers in time leaves the turn parked."""

        async def park() -> None:
            with suppress(AgentError):
                await session.close()

        def over() -> None:
            unheard = asked.shown in session.history.pending and not session.is_closed
            if unheard and self._parking is None:
                self._parking = asyncio.ensure_future(park())

        if self._order.wait > 0:
            timer = asyncio.get_running_loop().call_later(self._order.wait, over)
            self._patience.append(timer)
