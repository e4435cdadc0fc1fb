"""Run the turns that this process has claimed: keep the lease, limit the time, store the reply.

Whatever the runner does, the result is a sentence for the person. If another worker has taken the
turn in the meantime, this worker's result is thrown away. Turns share a fixed number of slots, and
no user can take all of them.
"""

import asyncio
import heapq
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from bridle.chat.db import Database, OwnedSession
from bridle.chat.errors import TROUBLE, Unavailable
from bridle.chat.leases import worker_name
from bridle.chat.turn_queue import ClaimedTurn, WorkerContext, finish, release, renew
from bridle.chat.values import AgentResult, Reply, Runner, ServiceLimits

_log = logging.getLogger(__name__)
_GRACE = 5.0  # seconds that a runner may need to end by itself after its time
_TRIES = (0.05, 0.2)  # seconds to wait before the reply is kept anew
T = TypeVar("T")
OnText = Callable[[str], None]
TOO_LONG = "That took too long, so I stopped. Please try again."


class ConversationQueue:
    """Order the messages of each conversation that wait in this process.

    The order itself is in the database, where every process finds it. This only spares the
    database: of those who wait here for the same conversation, one polls and the others sleep.
    """

    def __init__(self) -> None:
        self._lines: dict[str, list[tuple[int, int, asyncio.Event]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def wait_turn(self, conversation: str, number: int) -> AsyncIterator[None]:
        """Wait until no lower number waits in this process; leave the queue afterwards."""
        line = self._lines.setdefault(conversation, [])
        self._count += 1
        mine = (number, self._count, asyncio.Event())
        heapq.heappush(line, mine)
        try:
            while line[0] is not mine:
                mine[2].clear()
                await mine[2].wait()
            yield
        finally:
            line.remove(mine)
            heapq.heapify(line)
            if line:
                line[0][2].set()
            else:
                self._lines.pop(conversation, None)


class FairSemaphore:
    """A semaphore of which each user can take only a share, so that none blocks the others."""

    def __init__(self, slots: int) -> None:
        self._all = asyncio.Semaphore(slots)
        self._share = user_share(slots)
        self._users: dict[str, tuple[asyncio.Semaphore, list[None]]] = {}

    @asynccontextmanager
    async def take(self, user_id: str) -> AsyncIterator[None]:
        """Wait for a free slot, and free it afterwards."""
        share, here = self._users.setdefault(user_id, (asyncio.Semaphore(self._share), []))
        here.append(None)
        try:
            async with share, self._all:
                yield
        finally:
            here.pop()
            if not here:
                self._users.pop(user_id, None)


def user_share(slots: int) -> int:
    """Return how many of the slots one user may have."""
    return max(1, slots // 4)


class Worker:
    """Runs the turns that this process has claimed."""

    def __init__(self, database: Database, runner: Runner, limits: ServiceLimits) -> None:
        self.name = worker_name()
        self._database = database
        self._runner = runner
        self._limits = limits
        self._held: set[str] = set()
        self._slots = FairSemaphore(limits.at_once)

    async def step(
        self, user_id: str, what: Callable[[OwnedSession, WorkerContext], T], *, reads: bool = False
    ) -> T:
        """Do one step of the queue in the database, as this worker."""

        def whole(session: OwnedSession) -> T:
            now = self._database.now(session)
            return what(session, WorkerContext(self.name, self._limits, now, frozenset(self._held)))

        return await self._database.run(user_id, whole, reads=reads)

    async def run_turn(self, work: ClaimedTurn, on_text: OnText | None = None) -> Reply | None:
        """Run a turn and store its reply. Return None if another worker has taken it."""
        self._held.add(work.turn_id)
        try:
            result = await self._run(work, on_text)
            return None if result is None else await self._keep(work, result)
        except asyncio.CancelledError:
            await self._release(work)
            raise
        finally:
            self._held.discard(work.turn_id)

    async def _run(self, work: ClaimedTurn, on_text: OnText | None) -> AgentResult | None:
        """Return the runner's result; None if we lose the lease."""
        if work.attempts > self._limits.attempts:
            _log.error("a turn was given up: %d workers died over it", work.attempts - 1)
            return AgentResult(False, TROUBLE, (), TROUBLE)
        run = asyncio.create_task(self._answer(work, on_text))
        beat = asyncio.create_task(self._beat(work))
        try:
            await asyncio.wait({run, beat}, return_when=asyncio.FIRST_COMPLETED)
            return run.result() if run.done() else None
        finally:
            for one in (run, beat):
                one.cancel()
            await asyncio.gather(run, beat, return_exceptions=True)

    async def _answer(self, work: ClaimedTurn, on_text: OnText | None) -> AgentResult:
        shown: list[str] = []

        def show(text: str) -> None:
            shown.append(text)
            if on_text is not None:
                on_text(text)

        result = await self._ask_runner(work, None if on_text is None else show)
        start = "".join(shown)
        if not result.response.startswith(start):  # what was shown stays the reply's beginning
            result = replace(result, response=f"{start} {result.response}")
        return result

    async def _ask_runner(self, work: ClaimedTurn, on_text: OnText | None) -> AgentResult:
        watched = {} if on_text is None else {"on_text": on_text}
        async with self._slots.take(work.context.user_id):
            try:
                async with asyncio.timeout(self._limits.seconds + _GRACE):
                    return await self._runner.run(work.context, work.message, **watched)
            except TimeoutError as error:
                result = getattr(error, "result", None)
                return result or AgentResult(False, TOO_LONG, (), TOO_LONG)
            except Exception as error:  # the edge: a person reads a sentence, the log has the rest
                _log.error("a turn of the chat failed: %s", type(error).__name__)
                _log.debug("a turn of the chat failed", exc_info=error)
                return AgentResult(False, TROUBLE, (), TROUBLE)

    async def _beat(self, work: ClaimedTurn) -> None:
        """Renew the lease until the turn is no longer ours."""
        while True:
            await asyncio.sleep(self._limits.lease / 3)
            try:
                if not await self.step(work.context.user_id, lambda s, d: renew(s, work, d)):
                    return
            except Unavailable:
                _log.warning("a lease could not be renewed: the database is away")

    async def _keep(self, work: ClaimedTurn, result: AgentResult) -> Reply | None:
        """Store the reply, and try again if the database is away for a moment."""
        for pause in (*_TRIES, None):
            try:
                return await self.step(
                    work.context.user_id, lambda s, d: finish(s, work, result, d)
                )
            except Unavailable:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        return None

    async def _release(self, work: ClaimedTurn) -> None:
        try:
            await self.step(work.context.user_id, lambda s, d: release(s, work))
        except Unavailable:
            _log.warning("a turn could not be released: its lease will run out")
