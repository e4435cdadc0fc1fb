"""Following one session: what was written, read from the store; then live; no gap, no repeat.

A watcher is there from the moment in which it asks, so that nothing is missed; where much is to be
read first it joins the others only when it has come near, so that reading a long log does not make
it a slow one. Nothing is ever held whole: the log comes in batches that a thread reads.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeVar

from bridle.engine.broadcast import ROOM, Broadcast, Watcher
from bridle.errors import UnknownSession
from bridle.events import TraceEvent
from bridle.promises.store import Log, Record, Store

_NEAR = ROOM // 2  # so few records are read while new ones wait in the watcher's own room
_BATCH = 128
_UNSEEN = Record(0, "", TraceEvent("begun"))  # nobody sees it: see `begun`
T = TypeVar("T")


def follow(
    store: Store, log: Log, broadcast: Broadcast, after: int = 0
) -> AsyncGenerator[Record, None]:
    """Every record after that number, without an end until the session's.

    One who is too slow loses the place among those who are told, reads from the store what came
    meanwhile, and joins the others again.
    """
    return begun(_follow(_Place(store, log, broadcast, after)))


def begun(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The generator, run up to its first `yield`, whose value nobody sees.

    A generator runs when it is first asked for something; one who listens has to be there before.
    And one that has begun runs its `finally` in any case.
    """
    with suppress(StopIteration):
        items.asend(None).__await__().__next__()
    return items


async def _follow(place: "_Place") -> AsyncGenerator[Record, None]:
    try:
        place.take()
        yield _UNSEEN
        batch: Sequence[Record]
        while True:
            while batch := await place.read():
                for record in batch:
                    yield record
            told, last = place.watcher.batch, place.last
            while batch := await told():
                for record in batch:
                    if record.seq > last:
                        last = record.seq
                        yield record
            if not place.watcher.lagging:
                return
            place.take_again(last)
    finally:
        place.leave()


class _Place:
    """Where a watcher is: at first in the store, then among those who are told."""

    def __init__(self, store: Store, log: Log, broadcast: Broadcast, after: int) -> None:
        self.last = after
        self._store = store
        self._log = log
        self._broadcast = broadcast
        self._watcher: Watcher[Record] | None = None
        self._reading: _Reading | None = None

    @property
    def watcher(self) -> Watcher[Record]:
        """The place among those who are told, once there is one."""
        assert self._watcher is not None
        return self._watcher

    def take(self) -> None:
        """Be here from now on; what was told before, or never will be, is to be read first."""
        near = self._log.seq - self.last <= _NEAR
        if near or self._reading is not None:  # then it has read all that there was
            self._watcher = self._broadcast.join()
        known = self._log.seq <= self.last
        self._reading = None if known else _Reading(self._store, self._log.session_id, self.last)

    def take_again(self, after: int) -> None:
        """Be here again, after a place that was lost."""
        self.last, self._watcher = after, None
        self.take()

    async def read(self) -> list[Record]:
        """The next records from the store; none when everything to come will be told."""
        while (reading := self._reading) is not None:
            batch = await reading.batch()
            if batch:
                self.last = batch[-1].seq
            if reading.is_over:
                self._turn()
            if batch:
                return batch
        return []

    def leave(self) -> None:
        """Let go of everything."""
        if self._reading is not None:
            self._reading.close()
        if self._watcher is not None:
            self._broadcast.leave(self._watcher)

    def _turn(self) -> None:
        """All is read. One who has not joined yet does, and reads what came in between."""
        if self._watcher is None:
            self.take()
        else:
            self._reading = None


class _Reading:
    """What was written after a number, in batches; the event loop never waits for the disk."""

    def __init__(self, store: Store, session_id: str, after: int) -> None:
        self._store = store
        self._session_id = session_id
        self._after = after
        self._records: Iterator[Record] | None = None
        self.is_over = False

    async def batch(self) -> list[Record]:
        """The next of them; none where nothing is written yet."""
        job = asyncio.get_running_loop().run_in_executor(None, self._take)
        try:
            await asyncio.wait([job])
        finally:
            if not job.done():  # we are to stop, and the thread is still at it
                await asyncio.wait([job])
        return job.result()

    def close(self) -> None:
        """Let go of the file."""
        if (close := getattr(self._records, "close", None)) is not None:
            close()

    def _take(self) -> list[Record]:
        """In a thread: a batch, of which a short one is the last."""
        try:
            if self._records is None:
                self._records = self._store.read(self._session_id, self._after)
            batch = list(islice(self._records, _BATCH))
        except UnknownSession:
            batch = []
        self.is_over = len(batch) < _BATCH
        return batch
