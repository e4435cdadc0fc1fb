"""The sessions that are open here: taken up when somebody needs them, let go when they rest.

Two who need one session share it. What is done with it is not known here, nor how it is shown.
"""

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
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
from bridle.protocols.session_errors import ForbiddenChoice, ServerStopping
from bridle.runtime.recorded_mode import record_mode
from bridle.service.choices import AllowedChoices
from bridle.service.engine_pool import EnginePool, EngineSpec, PreviousRun, previous_run
from bridle.service.session_info import summarize_log
from bridle.service.session_limits import kept_limits
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.inbox_files import read_messages
from bridle.stores.log_format import SESSION_ID
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import last_run, log_entries

log = logging.getLogger(__name__)

_FORGETTING = 40
_MOMENT, _MOMENTS = 0.005, 100  # seconds, and how many of them
OnChange = Callable[[str, str], None]


class OpenSessions:
    """Takes sessions up, lends them out, lets them go."""

    def __init__(
        self,
        ground: WorkspaceScope,
        engines: EnginePool,
        tell: OnChange,
        rest: float,
        offer: AllowedChoices,
    ) -> None:
        self._ground = ground
        self._engines = engines
        self._tell = tell
        self.offer = offer
        self.face = offer.face  # what is said to have carried the sessions of a server
        self._rest = rest  # seconds without anything, after which a session is let go
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._mine: dict[str, Session] = {}  # taken up or begun here; tasks belong to their turns
        self._users: Counter[str] = Counter()
        self._since: dict[str, float] = {}  # when something last happened, in the loop's time
        self._wanted: dict[str, EngineSpec] = {}  # what people have asked for, by session
        self._ears: set[asyncio.Task[None]] = set()
        self._marks = OpenMarkers(ground.folder)
        self.reasons: dict[str, str] = {}  # how turns had ended before sessions were taken up
        self.stopping = False
        engines.on_made = self._listen

    def get_open(self, session_id: str) -> Session | None:
        """That session, if it is open here."""
        for engine in self._engines.open():
            if (found := engine.get_open(session_id)) is not None:
                return found
        return None

    def has(self, session_id: str) -> bool:
        """Was it taken up here, and so found to be ours, and is it still open?"""
        session = self._mine.get(session_id)
        return session is not None and not session.is_closed

    def open(self) -> tuple[Session, ...]:
        """All of them, tasks too."""
        return tuple(one for engine in self._engines.open() for one in engine.sessions())

    def check_taking(self) -> None:
        """Raise `ServerStopping` where nothing new is taken."""
        if self.stopping:
            raise ServerStopping("the server is being stopped, and takes nothing new")

    @asynccontextmanager
    async def use(
        self, session_id: str, wanted: EngineSpec | None = None
    ) -> AsyncIterator[Session]:
        """Have it open for a while. With `wanted` it is taken up anew where it is another's.

        Raise `SessionLocked` where another process holds it, `UnknownSession`, `SessionBusy`.
        """
        self.check_taking()
        async with self._lock(session_id):
            session = self.get_open(session_id)
            if (
                session is not None
                and wanted is not None
                and wanted != self._wanted.get(session_id)
            ):
                await self._engines.engine(wanted)  # where there is none, it stays open
                await self._part(session)
                session = None
            if session is None:
                session = await self._take(session_id, wanted)
            self._users[session_id] += 1
        try:
            await _over(session)
            yield session
        except SessionClosed:
            self.check_taking()
            raise
        finally:
            self._users[session_id] -= 1
            self._touch(session_id)

    async def begin(self, wanted: EngineSpec) -> Session:
        """A new session, of which nothing is recorded yet."""
        self.check_taking()
        engine = await self._engines.engine(wanted)
        self.check_taking()
        session = await engine.session()
        self._keep(session, wanted)
        return session

    async def let_go(self, session_id: str) -> None:
        """Close it, if it is open here. Raise `SessionBusy` where something runs in it."""
        async with self._lock(session_id):
            if (session := self.get_open(session_id)) is not None:
                await self._part(session)

    async def sweep(self) -> None:
        """Let go of those that rest, and have questions expire whose time is over."""
        now = asyncio.get_running_loop().time()
        for session_id, session in list(self._mine.items()):
            if session.is_closed:
                self._forget(session_id)
            elif _is_late(session):
                with suppress(AgentError):
                    await session.expire()
            elif now - self._since.get(session_id, now) >= self._patience(session):
                await self._let_rest(session_id)
        await self._engines.sweep()

    async def close(self, seconds: float) -> None:
        """Close everything: what waits for a person is parked, the rest is interrupted."""
        self.stopping = True
        leaving = [asyncio.ensure_future(one.close()) for one in self._mine.values()]
        leaving.append(asyncio.ensure_future(self._engines.close()))
        _, late = await asyncio.wait(leaving, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.wait(leaving)
        await self._end_ears()
        for task in leaving:
            if not task.cancelled() and (error := task.exception()) is not None:
                log.warning("a session could not be closed: %s", error)
        if late:
            log.warning("what ran did not end within %g seconds, and was left", seconds)

    async def _end_ears(self) -> None:
        """They end with their engines, once they have told everything."""
        if ears := list(self._ears):
            _, deaf = await asyncio.wait(ears, timeout=1.0)
            for ear in deaf:
                ear.cancel()
            await asyncio.wait(ears)

    def _patience(self, session: Session) -> float:
        """Seconds; where letting go would forget in which folder its shell stands, many more."""
        return self._rest * (_FORGETTING if session.cwd else 1)

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())

    async def _take(self, session_id: str, wanted: EngineSpec | None) -> Session:
        wanted, why = wanted or self._wanted.get(session_id), ""
        if wanted is None:
            before = await asyncio.to_thread(previous_run, self._ground, session_id)
            wanted, why = await self.as_before(before)
        engine = await self._engines.engine(wanted)
        self.check_taking()
        last = await asyncio.to_thread(last_run, self._ground.folder.path(session_id))
        session = await engine.session(session_id, keep_turns=last.interface == self.face)
        self._keep(session, wanted)
        if why:
            session.emit_with_first_prompt(
                TraceEvent("model_replaced", {"model": session.model, "message": why})
            )
        folder, usual = self._ground.folder, session.limits
        session.set_limits(await asyncio.to_thread(kept_limits, folder, session_id, usual))
        if last.interface == self.face and not session.history.parent:
            await resume_session(
                session
            )  # what a server has accepted is done, whatever it is taken up for
        return session

    async def usual_mode(self, workspace: str) -> str:
        """The mode of sessions there that have none of their own; empty where nobody knows."""
        wanted = EngineSpec(workspace)
        if workspace not in (self._ground.workspaces or ()) and not self._engines.has(wanted):
            return ""  # for a look at a session of any folder, nothing is started
        try:
            return (await self._engines.engine(wanted)).parts.mode
        except AgentError:
            return ""

    async def as_before(self, before: PreviousRun) -> tuple[EngineSpec, str]:
        """What fits how a session was carried last; why not, where that cannot be had."""
        usual = EngineSpec(before.workspace)
        wanted = before.wanted(await self._engines.engine(usual))
        self.offer.check_resumed(wanted.agent)  # whoever began it, over HTTP no other is started
        try:
            self.offer.check_model(wanted.provider, wanted.model, wanted.agent)
            await self._engines.engine(wanted)
        except (ConfigError, ForbiddenChoice) as error:
            why = f"{before.who}, which carried the session, cannot be had: {error.message}"
            log.warning("%s", why)
            return usual, why
        return wanted, ""

    def _keep(self, session: Session, wanted: EngineSpec) -> None:
        self._mine[session.id] = session
        self._wanted[session.id] = wanted
        record_mode(session)
        self._touch(session.id)

    def _touch(self, session_id: str) -> None:
        self._since[session_id] = asyncio.get_running_loop().time()

    def _forget(self, session_id: str) -> None:
        for table in (self._mine, self._since, self._users, self.reasons):
            table.pop(session_id, None)

    async def _let_rest(self, session_id: str) -> None:
        async with self._lock(session_id):
            session = self._mine.get(session_id)
            if session is not None and session.is_inactive and not self._users[session_id]:
                with suppress(AgentError):
                    await session.close()
                self._forget(session_id)

    async def _part(self, session: Session) -> None:
        await _over(session)
        if not session.is_inactive or self._users[session.id]:
            session.check_idle()
            raise SessionBusy(f"session {session.id} is in use, or something of it still runs")
        await session.close()
        self._forget(session.id)

    def _mark(self, session_id: str, name: str) -> None:
        """Note which are open, for who comes after us should we be killed."""
        if name == "opened":
            self._marks.put(session_id)
        elif name == "closed" and self.get_open(session_id) is None:
            self._marks.remove(session_id)
            self.reasons.pop(session_id, None)
            if session_id not in self._mine:
                self._since.pop(session_id, None)

    def _listen(self, engine: Engine) -> None:
        ear = asyncio.ensure_future(self._hear(engine))
        self._ears.add(ear)
        ear.add_done_callback(self._ears.discard)

    async def _hear(self, engine: Engine) -> None:
        """OnChange on what happens in an engine's sessions; one who was too slow begins anew."""
        over = False
        while not over:
            over = True
            async with aclosing(engine.subscribe("sessions")) as told:
                async for one in told:
                    if one.name == "resync":
                        over = False
                        continue
                    self._touch(one.session_id)
                    self._mark(one.session_id, one.name)
                    self._tell(one.session_id, one.name)


async def _over(session: Session) -> None:
    """One whose turn has just ended, and has said so, is idle in a moment."""
    for _ in range(_MOMENTS):
        if session.turn or not session.is_busy:
            return
        await asyncio.sleep(_MOMENT)


async def resume_session(session: Session) -> None:
    """Carry on what was left behind: a parked turn with its answers, prompts that wait."""
    waits = session.is_parked and session.history.pending
    left = session.is_parked or session.history.waiting
    if left and not waits and not session.is_busy:
        await session.resume()


def _is_late(session: Session) -> bool:
    """Is it parked with a question that nobody has answered in time?"""
    if not session.is_parked:
        return False
    ends = (parse_timestamp(one.expires) for one in session.history.pending.values())
    return any(end is not None and end < time.time() for end in ends)


log = logging.getLogger(__name__)

_MAKING = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class OpenMarkers:
    """The marks in one state folder. They are a help: where they cannot be made, it goes on."""

    def __init__(self, folder: SessionFolder) -> None:
        self._path = folder.folder / "serving"
        self._told = False

    def put(self, session_id: str) -> None:
        """That session is open."""
        try:
            os.close(os.open(self._path / session_id, _MAKING, 0o600))
        except FileNotFoundError:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._again(session_id)
        except OSError as error:
            self._warn(error)

    def remove(self, session_id: str) -> None:
        """It is no longer."""
        with suppress(OSError):
            (self._path / session_id).unlink()

    def left(self) -> list[str]:
        """Those that are there."""
        try:
            return sorted(name for name in os.listdir(self._path) if SESSION_ID.fullmatch(name))  # noqa: PTH208 - names are wanted
        except OSError:
            return []

    def _again(self, session_id: str) -> None:
        try:
            os.close(os.open(self._path / session_id, _MAKING, 0o600))
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._told:
            log.warning("it cannot be noted which sessions are open: %s", error.strerror or error)
        self._told = True


log = logging.getLogger(__name__)

_NEWEST = 200  # logs that are looked into whether they are marked or not


class CrashRecovery:
    """Takes up what was cut off."""

    def __init__(self, ground: WorkspaceScope, holding: OpenSessions) -> None:
        self._ground = ground
        self._holding = holding
        self._marks = OpenMarkers(ground.folder)

    async def recover(self) -> int:
        """All of it, one after the other; how many there were."""
        count = 0
        for session_id in await asyncio.to_thread(lambda: list(self._left())):
            if self._holding.stopping:
                break
            count += await self._take_up(session_id)
        return count

    async def _take_up(self, session_id: str) -> bool:
        try:
            async with self._holding.use(session_id) as session:  # it goes on by itself
                if session.history.parent and session.is_parked:
                    await session.interrupt(by="server")  # the turn that began the task is over
        except SessionLocked:
            return False  # somebody else has taken it up
        except AgentError as error:
            log.warning("session %s was cut off, and stays so: %s", session_id, error.message)
            return False
        return True

    def _left(self) -> Iterator[str]:
        """In a thread: the sessions in which something was under way, the oldest first."""
        marked = self._marks.left()
        newest = [one.id for one in log_entries(self._ground.folder.folder)[:_NEWEST]]
        for session_id in sorted({*marked, *newest}):
            if self._is_left(session_id):
                yield session_id
            elif session_id in marked and self._is_done_with(session_id):
                self._marks.remove(session_id)

    def _is_done_with(self, session_id: str) -> bool:
        """Is its mark of no use? Another server's is its own to look at."""
        if self._holding.get_open(session_id) is not None:
            return False
        face = last_run(self._ground.folder.path(session_id)).interface
        return face in ("", self._holding.face)

    def _is_left(self, session_id: str) -> bool:
        try:
            self._ground.known(session_id)
            path = self._ground.folder.path(session_id)
            if last_run(path).interface != self._holding.face:
                return False
            history = summarize_log(self._ground.folder, session_id).history
            return history.running > 0 or bool(history.waiting or read_messages(path.parent))
        except UnknownSession:
            return False
        except AgentError as error:  # whoever asks for it is told
            log.warning("session %s cannot be looked into: %s", session_id, error.message)
            return False
