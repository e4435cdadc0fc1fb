"""Follow the log of a session that another process may be writing: the only place that polls."""

import asyncio
from collections.abc import Hashable
from typing import Self

from bridle.protocols.session_catalog import LogReader, SessionCatalog
from bridle.protocols.store import Record
from bridle.service.threads import in_thread

_EVERY = 0.05  # seconds between two looks at a log that grows
_SELDOM = 0.2  # ... and at one that has not grown for a while
_QUIET = 100  # looks without anything new, after which that is so
BLOCK = 1 << 16  # bytes that are read from a log at a time


class LogFollower:
    """Reads what is added to one log. Close it when it is no longer needed."""

    def __init__(self, catalog: SessionCatalog, session_id: str, reader: LogReader) -> None:
        self._catalog = catalog
        self._session_id = session_id
        self._reader = reader
        self._version: Hashable = _NEVER
        self._quiet = 0
        self._waiter: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls, catalog: SessionCatalog, session_id: str, after: int | None, block: int = BLOCK
    ) -> Self:
        """Follow from the record after `after` on; None: from the end of the log."""
        reader = await in_thread(
            lambda: catalog.reader(session_id, after, block), lambda opened: opened.close()
        )
        return cls(catalog, session_id, reader)

    def close(self) -> None:
        """Close the log."""
        self._reader.close()

    @property
    def last(self) -> int:
        """The number of the newest record that was read or skipped."""
        return self._reader.last

    async def read(self) -> list[bytes | Record]:
        """Return the next records, undecoded if possible; none if there are none at the moment.

        Raise `UnknownSession` if the session was deleted.
        """
        version = self._catalog.version(self._session_id)
        if version == self._version:
            self._quiet += 1
            return []
        lines = await in_thread(self._reader.read_new_lines)
        if lines:
            self._quiet = 0
        else:  # everything up to this version has been read
            self._version = version
        return lines

    async def wait(self) -> None:
        """Wait until it is worth while to look again, or until `wake`."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(_SELDOM if self._quiet > _QUIET else _EVERY, self.wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def wake(self) -> None:
        """End `wait` at once."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


_NEVER = object()
