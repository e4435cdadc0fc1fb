"""The live list: a user's tasks, told again whenever they have changed, by whatever process.

What this process does is told at once; what others do is seen by a small question to the database
every second, as long as somebody watches. Bytes out, no HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from bridle.chat.data import Database
from bridle.chat.refusals import Unavailable
from bridle.protocols.session_errors import ServerStopping
from bridle.server.admission import Admission
from bridle.server.chatting.listing import Stamp, stamp, tasks
from bridle.server.frames import KEEP_ALIVE, RETRY, told

SHOWN = 200  # tasks of one event
_EVERY = 1.0  # seconds between two looks
_QUIET = 15.0  # seconds after which a silent stream says that it is there
_MOST, _EACH = 1_000, 10  # streams in all, and of one user


class Watching:
    """Who watches whose tasks, in this process."""

    def __init__(self, database: Database, every: float = _EVERY) -> None:
        self._database = database
        self._every = every
        self._admission = Admission(_MOST, _EACH)
        self._bells: dict[str, set[asyncio.Event]] = {}
        self._stopping = False

    def __len__(self) -> int:
        return len(self._admission)

    def touched(self, user: str) -> None:
        """Something of that user's may have changed."""
        for bell in self._bells.get(user, ()):
            bell.set()

    def stop(self) -> None:
        """Every stream ends."""
        self._stopping = True
        for user in list(self._bells):
            self.touched(user)

    async def stream(self, user: str) -> AsyncGenerator[bytes, None]:
        """The list, and again after every change. Raise `TooManyStreams`, `ServerStopping`."""
        with self._admission.one_more(user):
            if not self._lasts():
                raise ServerStopping("the server is being stopped")
            bell = asyncio.Event()
            self._bells.setdefault(user, set()).add(bell)
            try:
                seen = await self._stamp(user)
                yield RETRY + await self._told(user)
                quiet = 0.0
                while self._lasts():
                    now = await self._next(user, bell)
                    if now is not None and now != seen:
                        seen, quiet = now, 0.0
                        yield await self._told(user)
                    elif (quiet := quiet + self._every) >= _QUIET:
                        quiet = 0.0
                        yield KEEP_ALIVE
                yield told("stopping", {})
            finally:
                self._bells[user].discard(bell)
                if not self._bells[user]:
                    del self._bells[user]

    def _lasts(self) -> bool:
        return not self._stopping

    async def _next(self, user: str, bell: asyncio.Event) -> Stamp | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._every):
                await bell.wait()
        bell.clear()
        try:
            return await self._stamp(user)
        except Unavailable:  # it is asked again
            return None

    async def _stamp(self, user: str) -> Stamp:
        return await self._database.work(user, stamp, reads=True)

    async def _told(self, user: str) -> bytes:
        found = await self._database.work(
            user, lambda session: tasks(session, "all", "", SHOWN), reads=True
        )
        return told("tasks", found)
