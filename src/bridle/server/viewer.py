"""One who watches a session: from disk after a number, then live, as bytes of server-sent events.

Reads by itself what was written before, a little at a time and only as fast as it is taken, and
joins the others when it has come near. One who is too slow for them is told where to go on, and
that is the end of it. Who is at the other end, and how the bytes get there, is not known here.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from bridle.errors import AgentError, UnknownSession
from bridle.protocols.store import Record
from bridle.server.feed import BLOCK, Feed, Item, Place
from bridle.server.frames import to_frame, told
from bridle.server.thread import in_thread
from bridle.stores.reader import LogReader, SessionFolder

log = logging.getLogger(__name__)
_PIECE = 1 << 16  # bytes that are handed over at a time, however large a record is


class Viewer:
    """A stream of one client. Nothing is let go of without `leave`."""

    def __init__(self, feed: Feed, folder: SessionFolder, after: int) -> None:
        self.feed = feed
        self._folder = folder
        self._last = self._mark = after  # the newest that was given, and the newest position
        self._place: Place | None = None
        self._reader: LogReader | None = None
        self._stage: Callable[[], Awaitable[bytes]] | None = self._begin

    async def more(self) -> bytes:
        """The next bytes, as soon as there are some; none: that was all."""
        try:
            while (stage := self._stage) is not None:
                if chunk := await stage():
                    return chunk
        except AgentError as error:  # deleted, or not readable: whoever asks again is told why
            log.debug("a stream of session %s ends: %s", self.feed.session_id, error)
        return b""

    def leave(self) -> None:
        """Let go of everything."""
        self._stage = None
        self._close_reader()
        if self._place is not None:
            self.feed.leave(self._place)

    async def _begin(self) -> bytes:
        """Is there anything to be read first?"""
        feed, folder, after = self.feed, self._folder, self._last
        await feed.ready.wait()
        if after == feed.last or self.feed.over:
            self._stage = self._live
            return b""
        try:
            self._reader = await in_thread(
                lambda: folder.reader(feed.session_id, after, BLOCK), LogReader.close
            )
        except UnknownSession:
            if not feed.is_unwritten:
                raise
        self._stage = self._past
        return b""

    async def _past(self) -> bytes:
        """What is on disk; at its end we join the others, and read what came in between."""
        if self._reader is not None and not self.feed.over:
            if found := await in_thread(self._reader.read_new_lines):
                return self._read(found)
            if self._place is None:
                self._join()
                return b""
        end = self._reader.last if self._reader is not None else 0
        self._close_reader()
        self._stage = self._live
        if self._last <= max(end, self.feed.newest) or self.feed.over:
            return b""
        self._last, self._mark = end, min(end, self.feed.mark)  # there is no such record
        return told("resync", {"after": end}, self._mark)

    async def _live(self) -> bytes:
        """What everybody is told, until the end or until it was too much."""
        place = self._join()
        while batch := await place.watcher.batch():
            if chunk := self._taken(place, batch):
                return chunk
        self._stage = None
        if place.watcher.lagging:
            return told("resync", {"after": self._mark}, self._mark)
        return self.feed.farewell

    def _join(self) -> Place:
        if self._place is None:
            self._place = self.feed.join()
        return self._place

    def _read(self, found: Iterable[bytes | Record]) -> bytes:
        chunks, settled = [], self.feed.mark
        for frame in map(to_frame, found):
            chunks.append(frame.encoded(settled))
            self._last = frame.seq
        self.feed.told += len(chunks)
        self._mark = max(self._mark, min(self._last, settled))
        return b"".join(chunks)

    def _taken(self, place: Place, batch: Sequence[Item]) -> bytes:
        """What of a batch is new to this one."""
        chunks = []
        for seq, mark, data in batch:
            place.taken += len(data)
            if seq > self._last:
                self._last = seq
            elif seq or (mark and not self._mark < mark <= self._last):
                continue
            self._mark = mark or self._mark
            chunks.append(data)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def pieces(chunk: bytes) -> Iterable[bytes]:
    """The chunk, in pieces that are not large."""
    if len(chunk) <= _PIECE:
        return (chunk,)
    return (chunk[start : start + _PIECE] for start in range(0, len(chunk), _PIECE))
