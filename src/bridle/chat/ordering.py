"""The line before a conversation, as one process sees it: whose number is lowest goes on.
And the room in which turns run, of which no user takes all the places.

The order itself is in the database, where every process finds it. This only spares the database:
of those who wait here for the same conversation, one looks, and the others sleep until it is done.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lines:
    """The lines of this process, one a conversation."""

    def __init__(self) -> None:
        self._lines: dict[str, list[tuple[int, int, asyncio.Event]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def place(self, conversation: str, number: int) -> AsyncIterator[None]:
        """Stand in line with that number until nobody here has a lower one, and leave it after."""
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


class Room:
    """So many places in all, and a share of them for each user: one never holds up the others."""

    def __init__(self, places: int) -> None:
        self._all = asyncio.Semaphore(places)
        self._share = share_of(places)
        self._users: dict[str, tuple[asyncio.Semaphore, list[None]]] = {}

    @asynccontextmanager
    async def place(self, user_id: str) -> AsyncIterator[None]:
        """Wait for a place, and leave it after."""
        share, here = self._users.setdefault(user_id, (asyncio.Semaphore(self._share), []))
        here.append(None)
        try:
            async with share, self._all:
                yield
        finally:
            here.pop()
            if not here:
                self._users.pop(user_id, None)


def share_of(places: int) -> int:
    """How many of them one user may have."""
    return max(1, places // 4)
