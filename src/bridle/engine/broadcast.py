"""Tells every watcher what was written. A slow one loses its place, never another's events.

What is told is kept once, as a chain of batches; a watcher is a place in that chain, and what all
have passed is let go of because nobody points at it any more. One who falls too far behind is
dropped and told so. Nobody who tells ever waits. What the things are that are told is not known
here, except that a `Broadcast` has them from a log, and only while somebody listens.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Generic, TypeVar

from bridle.promises.store import Log, Record

ROOM = 10_000  # how many a watcher may be behind
T = TypeVar("T")


class _Link(Generic[T]):
    """One batch, and the way to the next."""

    __slots__ = ("items", "next")

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items
        self.next: _Link[T] | None = None


class Watcher(Generic[T]):
    """One who listens: a place in the chain."""

    __slots__ = ("_at", "_room", "_taken", "_waiter", "lagging", "over")

    def __init__(self, newest: _Link[T], told: int, room: int) -> None:
        self._at = newest
        self._taken = told
        self._room = room
        self._waiter: asyncio.Future[None] | None = None
        self.lagging = False
        self.over = False

    def is_behind(self, told: int) -> bool:
        """Is there no room for more?"""
        return told - self._taken >= self._room

    def wake(self) -> None:
        """There is something to take, or nothing more to come."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def drop(self) -> None:
        """It was too much: let go of what was not taken."""
        self.lagging = True
        self._at = _Link(())
        self.wake()

    def end(self) -> None:
        """There will be no more."""
        self.over = True
        self.wake()

    async def batch(self) -> Sequence[T]:
        """The next that was told, as soon as there is some; nothing at the end, or when dropped."""
        while (link := self._at.next) is None:
            if self.lagging or self.over:
                return ()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._at = link
        self._taken += len(link.items)
        return link.items

    async def records(self) -> AsyncGenerator[T, None]:
        """One by one what was told, until the end or until it was too much."""
        while batch := await self.batch():
            for one in batch:
                yield one


class Channel(Generic[T]):
    """Something that is told to any number of watchers. `changed` is called as they come and go."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._watchers: dict[Watcher[T], None] = {}
        self._newest: _Link[T] = _Link(())
        self._told = 0
        self._over = False
        self._changed = changed

    def __len__(self) -> int:
        return len(self._watchers)

    def join(self, room: int = ROOM) -> Watcher[T]:
        """A new watcher, who hears everything from here on."""
        watcher = Watcher(self._newest, self._told, room)
        if self._over:
            watcher.end()
        self._watchers[watcher] = None
        self._changed()
        return watcher

    def leave(self, watcher: Watcher[T]) -> None:
        """That watcher has gone."""
        if watcher not in self._watchers:
            return
        del self._watchers[watcher]
        if not self._watchers:
            self._newest = _Link(())
        self._changed()

    def tell(self, items: Sequence[T]) -> None:
        """Say it to all of them, once for all of `items`."""
        if not items or not self._watchers:
            return
        told = self._told
        slow = [watcher for watcher in self._watchers if watcher.is_behind(told)]
        for watcher in slow:
            watcher.drop()
            self.leave(watcher)
        link = _Link(items)
        self._newest.next = link
        self._newest = link
        self._told = told + len(items)
        for watcher in self._watchers:
            watcher.wake()

    def end(self) -> None:
        """Say to all of them, and to those who come later, that there will be no more."""
        self._over = True
        for watcher in self._watchers:
            watcher.end()


class Broadcast(Channel[Record]):
    """All watchers of one session, and an ear for those who listen to all sessions.

    The log is asked to tell only while there is somebody to tell it to.
    """

    def __init__(self, log: Log | None = None) -> None:
        super().__init__(self._attend)
        self._log = log
        self._ear: Callable[[Sequence[Record]], None] | None = None
        self._attending = False

    def overhear(self, ear: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `ear` with everything that is told; None: no longer."""
        self._ear = ear
        self._attend()

    def tell(self, items: Sequence[Record]) -> None:
        """Say it to all of them."""
        super().tell(items)
        if self._ear is not None:
            self._ear(items)

    def _attend(self) -> None:
        wanted = self._ear is not None or len(self) > 0
        if wanted != self._attending and self._log is not None:
            self._log.on_written(self.tell if wanted else None)
        self._attending = wanted
