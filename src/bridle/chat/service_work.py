"""One worker at one turn: keeps its lease, runs it within its time, and keeps the reply once.

Whatever the runner does, a sentence for the person comes out of it. If somebody else took the
turn in the meantime, what this worker has is thrown away: the other's reply is the one.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from bridle.chat.data import Database, OwnedSession
from bridle.chat.leases import worker_name
from bridle.chat.ordering import Room
from bridle.chat.refusals import TROUBLE, Unavailable
from bridle.chat.service_steps import Desk, Work, finish, release, renew
from bridle.chat.service_values import Reply, Runner, ServiceLimits
from bridle.chat.values import AgentResult

_log = logging.getLogger(__name__)
_GRACE = 5.0  # seconds that a runner may need to end by itself after its time
_TRIES = (0.05, 0.2)  # seconds to wait before the reply is kept anew
T = TypeVar("T")
TOO_LONG = "That took too long, so I stopped. Please try again."


class Worker:
    """What this process does with the turns that it holds."""

    def __init__(self, database: Database, runner: Runner, limits: ServiceLimits) -> None:
        self.name = worker_name()
        self._database = database
        self._runner = runner
        self._limits = limits
        self._held: set[str] = set()
        self._room = Room(limits.at_once)

    async def step(
        self, user_id: str, what: Callable[[OwnedSession, Desk], T], *, reads: bool = False
    ) -> T:
        """One step in the database, at this worker's desk."""

        def whole(session: OwnedSession) -> T:
            now = self._database.now(session)
            return what(session, Desk(self.name, self._limits, now, frozenset(self._held)))

        return await self._database.work(user_id, whole, reads=reads)

    async def carry(self, work: Work) -> Reply | None:
        """Run it and keep its reply; nothing, if it is somebody else's by now."""
        self._held.add(work.turn_id)
        try:
            result = await self._run(work)
            return None if result is None else await self._keep(work, result)
        except asyncio.CancelledError:
            await self._release(work)
            raise
        finally:
            self._held.discard(work.turn_id)

    async def _run(self, work: Work) -> AgentResult | None:
        """What the runner says, as long as the lease is ours."""
        if work.attempts > self._limits.attempts:
            _log.error("a turn was given up: %d workers died over it", work.attempts - 1)
            return AgentResult(False, TROUBLE, (), TROUBLE)
        run = asyncio.create_task(self._answer(work))
        beat = asyncio.create_task(self._beat(work))
        try:
            await asyncio.wait({run, beat}, return_when=asyncio.FIRST_COMPLETED)
            return run.result() if run.done() else None
        finally:
            for one in (run, beat):
                one.cancel()
            await asyncio.gather(run, beat, return_exceptions=True)

    async def _answer(self, work: Work) -> AgentResult:
        async with self._room.place(work.context.user_id):
            try:
                async with asyncio.timeout(self._limits.seconds + _GRACE):
                    return await self._runner.run(work.context, work.message)
            except TimeoutError as error:
                said = getattr(error, "result", None)
                return said or AgentResult(False, TOO_LONG, (), TOO_LONG)
            except Exception as error:  # the edge: a person reads a sentence, the log has the rest
                _log.error("a turn of the chat failed: %s", type(error).__name__)
                _log.debug("a turn of the chat failed", exc_info=error)
                return AgentResult(False, TROUBLE, (), TROUBLE)

    async def _beat(self, work: Work) -> None:
        """Say again and again that we live; return when the turn is not ours any more."""
        while True:
            await asyncio.sleep(self._limits.lease / 3)
            try:
                if not await self.step(work.context.user_id, lambda s, d: renew(s, work, d)):
                    return
            except Unavailable:
                _log.warning("a lease could not be renewed: the database is away")

    async def _keep(self, work: Work, result: AgentResult) -> Reply | None:
        """A database that is away for a moment is waited for; the fence keeps it right."""
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

    async def _release(self, work: Work) -> None:
        try:
            await self.step(work.context.user_id, lambda s, d: release(s, work))
        except Unavailable:
            _log.warning("a turn could not be released: its lease will run out")
