"""Tells every watcher what was written. A slow one loses its place, never another's events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from bridle.promises.store import Record

_ROOM = 10_000


class Watcher:
    """One who listens: a bounded queue."""

    def __init__(self, room: int = _ROOM) -> None:
        self._queue: deque[Record] = deque()
        self._room = room
        self._wake = asyncio.Event()
        self.lagging = False
        self.over = False

    def put(self, records: Sequence[Record]) -> None:
        """Hand over; when there is no room the watcher is told to come back by number."""
        if self.lagging:
            return
        if len(self._queue) + len(records) > self._room:
            self.lagging = True
            self._queue.clear()
        else:
            self._queue.extend(records)
        self._wake.set()

    def end(self) -> None:
        """There will be no more."""
        self.over = True
        self._wake.set()

    async def records(self) -> AsyncGenerator[Record, None]:
        """What was handed over, until the end or until it was too much."""
        while True:
            while self._queue:
                yield self._queue.popleft()
            if self.lagging or self.over:
                return
            self._wake.clear()
            await self._wake.wait()


class Broadcast:
    """All watchers of one session."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self._over = False

    def __len__(self) -> int:
        return len(self._watchers)

    def join(self, room: int = _ROOM) -> Watcher:
        """A new watcher, who hears everything from here on."""
        watcher = Watcher(room)
        self._watchers.add(watcher)
        if self._over:
            watcher.end()
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """That watcher has gone."""
        self._watchers.discard(watcher)

    def tell(self, records: Sequence[Record]) -> None:
        """Say it to all of them."""
        for watcher in self._watchers:
            watcher.put(records)

    def end(self) -> None:
        """Say to all of them, and to those who come later, that there will be no more."""
        self._over = True
        for watcher in self._watchers:
            watcher.end()
