"""The sessions that are open in this process: opened on demand, shared, closed when idle.

Also how sessions are found again that a killed process left open: each open session has a marker
file in the state folder, which a kill leaves behind.
"""

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import islice
from pathlib import Path
from weakref import WeakValueDictionary

from bridle.engine.engine import Engine
from bridle.engine.grants import parse_timestamp
from bridle.engine.session import Session
from bridle.errors import (
    AgentError,
    ConfigError,
    SessionBusy,
    SessionClosed,
    SessionLocked,
    UnknownSession,
)
from bridle.events import TraceEvent
from bridle.protocols.session_catalog import HeadQuery
from bridle.protocols.session_errors import ForbiddenChoice, ServerStopping
from bridle.runtime.recorded_mode import record_mode
from bridle.service.choices import AllowedChoices
from bridle.service.engine_pool import EnginePool, EngineSpec, PreviousRun, previous_run
from bridle.service.session_info import read_summary
from bridle.service.session_limits import recorded_limits
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.log_format import SESSION_ID

log = logging.getLogger(__name__)

_MORE_PATIENCE = 40  # times as long, if closing a session would lose its working directory
_TICK, _TICKS = 0.005, 100  # seconds between two looks at a turn that is about to end, and how many
_MARKER = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_NEWEST = 200  # logs that are looked at after a crash whether they are marked or not

OnChange = Callable[[str, str], None]  # a session's id and what happened to it


class OpenSessions:
    """Opens sessions, lends them out, closes them."""

    def __init__(
        self,
        scope: WorkspaceScope,
        engines: EnginePool,
        markers: "OpenMarkers",
        choices: AllowedChoices,
        *,
        idle: float,
        on_change: OnChange,
    ) -> None:
        self._scope = scope
        self._engines = engines
        self._markers = markers
        self._choices = choices
        self._idle = idle  # seconds without anything, after which a session is closed
        self._on_change = on_change
        self.interface = choices.face  # the name that is recorded for sessions of this service
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._mine: dict[str, Session] = {}  # opened or created here; tasks belong to their turns
        self._users: Counter[str] = Counter()
        self._touched: dict[str, float] = {}  # when something last happened, in the loop's time
        self._specs: dict[str, EngineSpec] = {}  # what callers have asked for, by session
        self._watching: dict[asyncio.Task[None], Engine] = {}
        self.reasons: dict[str, str] = {}  # how turns had ended before sessions were opened
        self.stopping = False
        engines.on_made = self._watch

    def get_open(self, session_id: str) -> Session | None:
        """Return that session, if it is open here."""
        for engine in self._engines.open():
            if (session := engine.get_open(session_id)) is not None:
                return session
        return None

    def open(self) -> tuple[Session, ...]:
        """Return all open sessions, including tasks."""
        return tuple(session for engine in self._engines.open() for session in engine.sessions())

    def check_running(self) -> None:
        """Raise `ServerStopping` if nothing new is accepted."""
        if self.stopping:
            raise ServerStopping("the server is being stopped and accepts nothing new")

    @asynccontextmanager
    async def use(self, session_id: str, spec: EngineSpec | None = None) -> AsyncIterator[Session]:
        """Have it open for a while. With `spec` it is reopened if it runs with something else.

        Raise `SessionLocked` if another process owns it, `UnknownSession`, `SessionBusy`.
        """
        self.check_running()
        async with self._lock(session_id):
            session = self.get_open(session_id)
            if session is not None and spec is not None and spec != self._specs.get(session_id):
                await self._engines.engine(spec)  # if there is none, the session stays open
                await self._close_idle(session)
                session = None
            if session is None:
                session = await self._open(session_id, spec)
            self._users[session_id] += 1
        try:
            await _turn_end(session)
            yield session
        except SessionClosed:
            self.check_running()
            raise
        finally:
            self._users[session_id] -= 1
            self._touch(session_id)

    async def create(self, spec: EngineSpec) -> Session:
        """Return a new session, of which nothing is recorded yet."""
        self.check_running()
        engine = await self._engines.engine(spec)
        self.check_running()
        session = await engine.session()
        self._keep(session, spec)
        return session

    async def close_one(self, session_id: str) -> None:
        """Close it, if it is open here. Raise `SessionBusy` if something is running in it."""
        async with self._lock(session_id):
            if (session := self.get_open(session_id)) is not None:
                await self._close_idle(session)

    async def sweep(self) -> None:
        """Close idle sessions, and let approval requests expire whose time is over."""
        now = asyncio.get_running_loop().time()
        for session_id, session in list(self._mine.items()):
            if session.is_closed:
                self._forget(session_id)
            elif _is_expired(session):
                with suppress(AgentError):
                    await session.expire()
            elif now - self._touched.get(session_id, now) >= self._patience(session):
                await self._sweep_one(session_id)
        await self._engines.sweep()

    async def close(self, seconds: float) -> None:
        """Close everything: what waits for a person is parked, the rest is interrupted."""
        self.stopping = True
        closing = [asyncio.ensure_future(session.close()) for session in self._mine.values()]
        closing.append(asyncio.ensure_future(self._engines.close()))
        _, late = await asyncio.wait(closing, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.wait(closing)
        await self._end_watching()
        for task in closing:
            if not task.cancelled() and (error := task.exception()) is not None:
                log.warning("a session could not be closed: %s", error)
        if late:
            log.warning("what was running did not end within %g seconds and was abandoned", seconds)

    async def usual_mode(self, workspace: str) -> str:
        """Return the mode of sessions there that have none of their own; "" if it is not known."""
        spec = EngineSpec(workspace)
        if workspace not in (self._scope.workspaces or ()) and not self._engines.has(spec):
            return ""  # nothing is started only because somebody looks at a session of any folder
        try:
            return (await self._engines.engine(spec)).parts.mode
        except AgentError:
            return ""

    async def spec_as_before(self, previous: PreviousRun) -> tuple[EngineSpec, str]:
        """Return what fits how a session last ran, and why not if that is not available."""
        usual = EngineSpec(previous.workspace)
        spec = previous.spec(await self._engines.engine(usual))
        self._choices.check_resumed(spec.agent)
        try:
            self._choices.check_model(spec.provider, spec.model, spec.agent)
            await self._engines.engine(spec)
        except (ConfigError, ForbiddenChoice) as error:
            name = previous.agent or previous.model
            why = f"{name}, which ran this session before, is not available: {error.message}"
            log.warning("%s", why)
            return usual, why
        return spec, ""

    async def _open(self, session_id: str, spec: EngineSpec | None) -> Session:
        spec, why = spec or self._specs.get(session_id), ""
        if spec is None:
            previous = await asyncio.to_thread(previous_run, self._scope, session_id)
            spec, why = await self.spec_as_before(previous)
        engine = await self._engines.engine(spec)
        self.check_running()
        catalog = self._scope.catalog
        last = await asyncio.to_thread(catalog.last_run, session_id)
        is_ours = last.interface == self.interface
        session = await engine.session(session_id, keep_turns=is_ours)
        self._keep(session, spec)
        if why:
            session.emit_with_first_prompt(
                TraceEvent("model_replaced", {"model": session.model, "message": why})
            )
        usual = session.limits
        session.set_limits(await asyncio.to_thread(recorded_limits, catalog, session_id, usual))
        if is_ours and not session.history.parent:
            # What a service has accepted is done, whatever the session is opened for.
            await resume_session(session)
        return session

    async def _close_idle(self, session: Session) -> None:
        await _turn_end(session)
        if not session.is_inactive or self._users[session.id]:
            session.check_idle()
            raise SessionBusy(
                f"session {session.id} is in use, or something in it is still running"
            )
        await session.close()
        self._forget(session.id)

    async def _sweep_one(self, session_id: str) -> None:
        async with self._lock(session_id):
            session = self._mine.get(session_id)
            if session is not None and session.is_inactive and not self._users[session_id]:
                with suppress(AgentError):
                    await session.close()
                self._forget(session_id)

    def _patience(self, session: Session) -> float:
        return self._idle * (_MORE_PATIENCE if session.cwd else 1)

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())

    def _keep(self, session: Session, spec: EngineSpec) -> None:
        self._mine[session.id] = session
        self._specs[session.id] = spec
        record_mode(session)
        self._touch(session.id)

    def _touch(self, session_id: str) -> None:
        self._touched[session_id] = asyncio.get_running_loop().time()

    def _forget(self, session_id: str) -> None:
        self._mine.pop(session_id, None)
        self._touched.pop(session_id, None)
        self._users.pop(session_id, None)
        self.reasons.pop(session_id, None)

    def _mark(self, session_id: str, name: str) -> None:
        """Keep the marker files as they should be found if we are killed."""
        if name == "opened":
            self._markers.add(session_id)
        elif name == "closed" and self.get_open(session_id) is None:
            self._markers.remove(session_id)
            self.reasons.pop(session_id, None)
            if session_id not in self._mine:
                self._touched.pop(session_id, None)

    def _watch(self, engine: Engine) -> None:
        task = asyncio.ensure_future(self._pass_on(engine))
        self._watching[task] = engine
        task.add_done_callback(lambda done: self._watching.pop(done, None))

    async def _pass_on(self, engine: Engine) -> None:
        """Report what happens in an engine's sessions; after falling behind, subscribe again."""
        over = False
        while not over:
            over = True
            async with aclosing(engine.subscribe("sessions")) as events:
                async for event in events:
                    if event.name == "resync":
                        over = False
                        continue
                    if not self._engines.is_adopted(engine):
                        self._touch(event.session_id)
                        self._mark(event.session_id, event.name)
                    self._on_change(event.session_id, event.name)

    async def _end_watching(self) -> None:
        """Wait until everything was reported, which ends with the engines that are closed here."""
        for task, engine in self._watching.items():
            if self._engines.is_adopted(engine):
                task.cancel()
        if watching := list(self._watching):
            _, stuck = await asyncio.wait(watching, timeout=1.0)
            for task in stuck:
                task.cancel()
            await asyncio.wait(watching)


async def _turn_end(session: Session) -> None:
    """Wait a moment for a turn that has recorded its end but is not quite over."""
    for _ in range(_TICKS):
        if session.turn or not session.is_busy:
            return
        await asyncio.sleep(_TICK)


async def resume_session(session: Session) -> None:
    """Continue what was left: a parked turn that has its answers, prompts that wait."""
    needs_answers = session.is_parked and session.history.pending
    is_left = session.is_parked or session.history.waiting
    if is_left and not needs_answers and not session.is_busy:
        await session.resume()


def _is_expired(session: Session) -> bool:
    """Whether it is parked with an approval request that nobody has answered in time."""
    if not session.is_parked:
        return False
    ends = (parse_timestamp(request.expires) for request in session.history.pending.values())
    return any(end is not None and end < time.time() for end in ends)


class OpenMarkers:
    """An empty file for each open session. If they cannot be written, nothing else fails.

    A marker says where to look after a crash. What became of the session is in its log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "serving"
        self._has_warned = False

    def add(self, session_id: str) -> None:
        """Mark a session as open."""
        try:
            self._create(session_id)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._create(session_id)
            except OSError as error:
                self._warn(error)
        except OSError as error:
            self._warn(error)

    def remove(self, session_id: str) -> None:
        """Remove the marker of a session."""
        with suppress(OSError):
            (self._folder / session_id).unlink()

    def session_ids(self) -> list[str]:
        """Return the sessions that are marked."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names are needed
        except OSError:
            return []
        return sorted(name for name in names if SESSION_ID.fullmatch(name))

    def _create(self, session_id: str) -> None:
        os.close(os.open(self._folder / session_id, _MARKER, 0o600))

    def _warn(self, error: OSError) -> None:
        if not self._has_warned:
            log.warning("it cannot be noted which sessions are open: %s", error.strerror or error)
        self._has_warned = True


class CrashRecovery:
    """Resumes the sessions that a service left open when it was killed.

    It looks at the marked sessions and, in case the power failed, at the newest logs. Only sessions
    that a service of the same name ran last are touched.
    """

    def __init__(self, scope: WorkspaceScope, sessions: OpenSessions, markers: OpenMarkers) -> None:
        self._scope = scope
        self._sessions = sessions
        self._markers = markers

    async def recover(self) -> int:
        """Resume them one after the other; return how many there were."""
        count = 0
        for session_id in await asyncio.to_thread(lambda: list(self._cut_off())):
            if self._sessions.stopping:
                break
            count += await self._resume(session_id)
        return count

    async def _resume(self, session_id: str) -> bool:
        try:
            async with self._sessions.use(session_id) as session:  # it continues by itself
                if session.history.parent and session.is_parked:
                    await session.interrupt(by="server")  # the turn that began the task is over
        except SessionLocked:
            return False  # another process has resumed it
        except AgentError as error:
            log.warning("session %s was cut off, and stays so: %s", session_id, error.message)
            return False
        return True

    def _cut_off(self) -> Iterator[str]:
        """In a thread: yield the sessions in which something was going on, the oldest first."""
        marked = self._markers.session_ids()
        newest = [head.id for head in islice(self._scope.catalog.heads(HeadQuery()), _NEWEST)]
        for session_id in sorted({*marked, *newest}):
            if self._is_cut_off(session_id):
                yield session_id
            elif session_id in marked and self._is_stale(session_id):
                self._markers.remove(session_id)

    def _is_stale(self, session_id: str) -> bool:
        """Whether its marker is of no use. Another service looks after its own."""
        if self._sessions.get_open(session_id) is not None:
            return False
        try:
            last = self._scope.catalog.last_run(session_id)
        except UnknownSession:
            return True
        return last.interface in ("", self._sessions.interface)

    def _is_cut_off(self, session_id: str) -> bool:
        catalog = self._scope.catalog
        try:
            self._scope.session(session_id)
            if catalog.last_run(session_id).interface != self._sessions.interface:
                return False
            history = read_summary(catalog, session_id).history
            return history.running > 0 or bool(history.waiting or catalog.inbox(session_id))
        except UnknownSession:
            return False
        except AgentError as error:  # whoever asks for the session gets the error
            log.warning("session %s cannot be read: %s", session_id, error.message)
            return False
