"""The sessions that are open here: taken up when somebody needs them, let go when they rest.

Two who need one session share it. What is done with it is not known here, nor how it is shown.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from weakref import WeakValueDictionary

from bridle.engine.engine import Engine
from bridle.engine.grants import parse_timestamp
from bridle.engine.session import Session
from bridle.errors import AgentError, ConfigError, SessionBusy, SessionClosed
from bridle.events import TraceEvent
from bridle.runtime.recorded_mode import record_mode
from bridle.server.bounds import kept_limits
from bridle.server.ground import Ground
from bridle.server.marking import Marks
from bridle.server.offering import Offer
from bridle.server.opening import Engines, Wanted
from bridle.server.refusals import ForbiddenChoice, ServerStopping
from bridle.server.wanting import Earlier, earlier
from bridle.stores.session_index import last_run

log = logging.getLogger(__name__)

_FORGETTING = 40
_MOMENT, _MOMENTS = 0.005, 100  # seconds, and how many of them
Tell = Callable[[str, str], None]


class Holding:
    """Takes sessions up, lends them out, lets them go."""

    def __init__(
        self, ground: Ground, engines: Engines, tell: Tell, rest: float, offer: Offer
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
        self._wanted: dict[str, Wanted] = {}  # what people have asked for, by session
        self._ears: set[asyncio.Task[None]] = set()
        self._marks = Marks(ground.folder)
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
    async def use(self, session_id: str, wanted: Wanted | None = None) -> AsyncIterator[Session]:
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

    async def begin(self, wanted: Wanted) -> Session:
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

    async def _take(self, session_id: str, wanted: Wanted | None) -> Session:
        wanted, why = wanted or self._wanted.get(session_id), ""
        if wanted is None:
            before = await asyncio.to_thread(earlier, self._ground, session_id)
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
        wanted = Wanted(workspace)
        if workspace not in (self._ground.workspaces or ()) and not self._engines.has(wanted):
            return ""  # for a look at a session of any folder, nothing is started
        try:
            return (await self._engines.engine(wanted)).parts.mode
        except AgentError:
            return ""

    async def as_before(self, before: Earlier) -> tuple[Wanted, str]:
        """What fits how a session was carried last; why not, where that cannot be had."""
        usual = Wanted(before.workspace)
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

    def _keep(self, session: Session, wanted: Wanted) -> None:
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
        """Tell on what happens in an engine's sessions; one who was too slow begins anew."""
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
