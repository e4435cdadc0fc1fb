"""All live streams of a server: of one session, and of all of them. Bytes, and no HTTP.

A session that is watched has one feed, however many watch it; it ends with the last of them. What
cannot be streamed is refused before the first byte. Whoever takes the bytes has to close what it
took them from, and everything that belongs to that stream is let go of.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bridle.engine.stream import Channel, Watcher
from bridle.errors import AgentError, UnknownSession
from bridle.protocols.session_catalog import LogReader, SessionCatalog
from bridle.protocols.session_errors import Refusal, ServerStopping
from bridle.protocols.store import Record
from bridle.server.server_events import ListedSessions, ServerEvents, SessionSource
from bridle.server.sse import KEEP_ALIVE, QUIET, RETRY, event_bytes, position_bytes, to_frame
from bridle.service.log_follower import BLOCK, LogFollower
from bridle.service.threads import in_thread

if TYPE_CHECKING:
    from bridle.engine.session import Session

STOPPING = event_bytes("stopping", {})
MOST = 2_000  # streams
EACH = 1_000  # ... of one name


class TooManyStreams(Refusal):
    """There is no room for another stream."""

    status_code = 429
    code = "too_many_streams"
    hint = "Close one, or watch all sessions through the one stream of /api/events."


class Admission:
    """Counts who is in."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._names: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._names.total()

    @contextmanager
    def one_more(self, name: str) -> Iterator[None]:
        """Room for one as long as this lasts. Raise `TooManyStreams`."""
        if len(self) >= self._most:
            raise TooManyStreams(f"{self._most} streams are open, and there may be no more")
        if self._names[name] >= self._each:
            who = f"{name} has" if name else "one name has"
            raise TooManyStreams(f"{who} {self._each} streams open, and there may be no more")
        self._names[name] += 1
        try:
            yield
        finally:
            self._names[name] -= 1
            if not self._names[name]:
                del self._names[name]


ROOM = 4 << 20  # bytes that one who watches may be behind
_MARK = 0.1  # seconds until we look whether what was told would survive by now
_MARK_MOST = 1.0  # ... each time twice as many, up to these
_SYNC = 0.5  # seconds between two times that somebody else's file is made to survive
log = logging.getLogger(__name__)


class Item(NamedTuple):
    """Some bytes for everybody: a record (`seq`), or a position (`mark`), or neither."""

    seq: int
    mark: int
    data: bytes


class Subscriber:
    """One who watches: a place among those who are told, and how many bytes were taken."""

    __slots__ = ("taken", "watcher")

    def __init__(self, watcher: Watcher[Item], taken: int) -> None:
        self.watcher = watcher
        self.taken = taken


class SessionBroadcast:
    """What is told of one session, while somebody watches it."""

    def __init__(self, sessions: SessionSource, session_id: str) -> None:
        loop = asyncio.get_running_loop()
        self.session_id = session_id
        self.last = 0  # the newest that was told, or that was on disk before we began
        self.mark = 0  # everything up to here would survive
        self.told = 0  # records, live or from disk
        self.ready = asyncio.Event()  # is `last` known?
        self.viewers = 0  # who watches, also those who still read what was before
        self.over = False
        self.farewell = b""  # what everybody is told at the end
        self._sessions = sessions
        self._channel: Channel[Item] = Channel()
        self._places: dict[Subscriber, None] = {}
        self._bytes = 0  # told so far
        self._given = 0  # the newest position that was told
        self._spoke = loop.time()
        self._follower: LogFollower | None = None  # while no session is open here
        self._marking: asyncio.TimerHandle | None = None
        self._quiet = loop.call_later(QUIET, self._keep_alive)
        self._task = asyncio.create_task(self._run())

    def join(self) -> Subscriber:
        """One more, who is told everything after `last`."""
        place = Subscriber(self._channel.join(), self._bytes)
        self._places[place] = None
        return place

    def leave(self, place: Subscriber) -> None:
        """That one has gone."""
        self._places.pop(place, None)
        self._channel.leave(place.watcher)

    def changed(self) -> None:
        """The session was opened here, or let go, or deleted: look again."""
        if self._follower is not None:
            self._follower.wake()

    def end(self, farewell: bytes = b"") -> None:
        """No more for anybody, after what was told."""
        self.over = True
        self.farewell = self.farewell or farewell
        self._channel.end()
        self.ready.set()

    async def close(self) -> None:
        """Let go of the session, its file and all clocks."""
        self.end()
        self._quiet.cancel()
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def newest(self) -> int:
        """The number of the newest record that is known here, told or not."""
        session = self._sessions.get_open(self.session_id)
        return max(self.last, session.seq if session is not None else 0)

    @property
    def is_unwritten(self) -> bool:
        """Can it be that there is no file, because the session is new here?"""
        return self._sessions.get_open(self.session_id) is not None

    async def _run(self) -> None:
        try:
            while not self.over:
                session = self._sessions.get_open(self.session_id)
                await (self._follow() if session is None else self._hear(session))
        except AgentError as error:  # deleted, or not readable: whoever asks again is told why
            log.debug("session %s is no longer watched: %s", self.session_id, error)
        finally:
            self._stop_marking()
            self.end()

    async def _hear(self, session: "Session") -> None:
        """The session is open here: what its broadcast says, until it is closed."""
        watcher = session.broadcast.join()
        try:
            await self._catch_up()
            self._reach(session.durable)
            while batch := await watcher.batch():
                self.mark = max(self.mark, session.durable)
                self._tell_records(batch)
                self._reach(session.durable)
                self._await_mark(session)
            self._reach(session.durable)
        finally:
            self._stop_marking()
            session.broadcast.leave(watcher)

    async def _catch_up(self) -> None:
        """What was written before anybody here was told of it."""
        if (follower := await self._open_log()) is None:
            self.ready.set()  # the first record is not written yet
            return
        try:
            await self._read(follower)
        finally:
            follower.close()

    async def _open_log(self) -> LogFollower | None:
        """The log, to be read from where we are; at first that is its end."""
        after = self.last if self.ready.is_set() else None
        catalog, session_id = self._sessions.catalog, self.session_id
        session = self._sessions.get_open(session_id)
        try:
            follower = await LogFollower.open(catalog, session_id, after)
        except UnknownSession:
            if not self.is_unwritten:
                raise
            return None
        if after is not None:
            return follower
        try:
            is_flushed = session is None and await in_thread(lambda: catalog.flush(session_id))
        except BaseException:
            follower.close()
            raise
        self.last = follower.last
        self.mark = session.durable if session is not None else follower.last * is_flushed
        self._given = min(self.mark, self.last)
        self.ready.set()
        return follower

    async def _read(self, follower: LogFollower) -> None:
        """Tell all that is there."""
        while lines := await follower.read():
            self._tell_records(lines)

    async def _follow(self) -> None:
        """Another process owns the session, or none does: its log says what happens."""
        if (follower := await self._open_log()) is None:
            return
        self._follower = follower
        flushed = 0.0
        try:
            while self._sessions.get_open(self.session_id) is None:
                await self._read(follower)
                if self.mark < self.last and (now := _now()) >= flushed + _SYNC:
                    flushed = now
                    await self._flush()
                await follower.wait()
        finally:
            self._follower = None
            follower.close()

    async def _flush(self) -> None:
        """Make durable what another process has written, before it gets a position."""
        upto = self.last
        if await in_thread(lambda: self._sessions.catalog.flush(self.session_id)):
            self._reach(upto)

    def _tell_records(self, found: "Iterable[Record | bytes]") -> None:
        items: list[Item] = []
        for one in found:
            frame = to_frame(one)
            if frame.seq <= self.last:
                continue
            self.last = frame.seq
            mark = frame.seq if frame.seq <= self.mark else 0
            self._given = mark or self._given
            items.append(Item(frame.seq, mark, frame.encoded(self.mark)))
        self.told += len(items)
        self._tell(items)

    def _tell(self, items: list[Item]) -> None:
        if not items:
            return
        for place in [one for one in self._places if self._bytes - one.taken > ROOM]:
            place.watcher.drop()
            self.leave(place)
        self._channel.publish(items)
        self._bytes += sum(len(item.data) for item in items)
        self._spoke = _now()

    def _reach(self, settled: int) -> None:
        """Everything up to there would survive: say so to those who were given it before."""
        self.mark = max(self.mark, settled)
        if (given := min(self.mark, self.last)) > self._given:
            self._given = given
            self._tell([Item(0, given, position_bytes(given))])

    def _await_mark(self, session: "Session", seconds: float = _MARK) -> None:
        """What was told may not survive yet: look again in a while."""
        if self._marking is None and self.mark < self.last:
            loop, look = asyncio.get_running_loop(), self._look_at_mark
            self._marking = loop.call_later(seconds, look, session, seconds)

    def _look_at_mark(self, session: "Session", seconds: float) -> None:
        self._marking = None
        self._reach(session.durable)
        self._await_mark(session, min(seconds * 2, _MARK_MOST))

    def _stop_marking(self) -> None:
        if self._marking is not None:
            self._marking.cancel()
            self._marking = None

    def _keep_alive(self) -> None:
        if _now() - self._spoke >= QUIET - 0.01:
            self._tell([Item(0, 0, KEEP_ALIVE)])
        loop = asyncio.get_running_loop()
        self._quiet = loop.call_at(self._spoke + QUIET, self._keep_alive)


def _now() -> float:
    return asyncio.get_running_loop().time()


_PIECE = 1 << 16  # bytes that are handed over at a time, however large a record is


class SessionViewer:
    """A stream of one client. Nothing is let go of without `leave`."""

    def __init__(self, feed: SessionBroadcast, catalog: SessionCatalog, after: int) -> None:
        self.feed = feed
        self._catalog = catalog
        self._last = self._mark = after  # the newest that was given, and the newest position
        self._place: Subscriber | None = None
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
        feed, catalog, after = self.feed, self._catalog, self._last
        await feed.ready.wait()
        if after == feed.last or self.feed.over:
            self._stage = self._live
            return b""
        try:
            self._reader = await in_thread(
                lambda: catalog.reader(feed.session_id, after, BLOCK), lambda opened: opened.close()
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
        return event_bytes("resync", {"after": end}, self._mark)

    async def _live(self) -> bytes:
        """What everybody is told, until the end or until it was too much."""
        place = self._join()
        while batch := await place.watcher.batch():
            if chunk := self._taken(place, batch):
                return chunk
        self._stage = None
        if place.watcher.lagging:
            return event_bytes("resync", {"after": self._mark}, self._mark)
        return self.feed.farewell

    def _join(self) -> Subscriber:
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

    def _taken(self, place: Subscriber, batch: Sequence[Item]) -> bytes:
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


class StreamedSessions(ListedSessions, Protocol):
    """As much of the server's sessions as its streams look at."""

    def on_changed(
        self, tell: Callable[[str, str], None], *, others: bool = True
    ) -> Callable[[], None]: ...


class Streams:
    """Who watches what."""

    def __init__(self, sessions: StreamedSessions, *, most: int = MOST, each: int = EACH) -> None:
        self._sessions = sessions
        self._admission = Admission(most, each)
        self._feeds: dict[str, SessionBroadcast] = {}
        self._notices: ServerEvents | None = None  # while somebody listens
        self._told = 0  # records, by feeds that have ended
        self._stopping = False
        self._deaf = sessions.on_changed(self._changed, others=False)
        self._unheard: Callable[[], None] = _nothing  # ends that others' doings are told

    def __len__(self) -> int:
        return len(self._admission)

    @property
    def told(self) -> int:
        """Records that were made ready for whoever watches, since the server started."""
        return self._told + sum(feed.told for feed in self._feeds.values())

    async def session(
        self, session_id: str, after: int = 0, by: str = ""
    ) -> AsyncGenerator[bytes, None]:
        """Everything after that number, then live. Raise before the first byte, or never.

        Raise `UnknownSession`, `TooManyStreams`, `ServerStopping`.
        """
        with self._admission.one_more(by):
            self._check()
            if self._sessions.get_open(session_id) is None:
                await self._sessions.info(session_id)
                self._check()
            viewer = self._watch(session_id, after)
            try:
                yield RETRY
                while chunk := await viewer.more():
                    for piece in pieces(chunk):
                        yield piece
            finally:
                await self._leave(viewer)

    async def events(self, by: str = "") -> AsyncGenerator[bytes, None]:
        """The list of all sessions, then each line as it changes, and every question.

        Raise `TooManyStreams`, `ServerStopping`.
        """
        with self._admission.one_more(by):
            self._check()
            notices = self._notices
            if notices is None or notices.over:
                notices = self._notices = ServerEvents(self._sessions)
                self._unheard = self._sessions.on_changed(notices.changed)
            watcher = notices.join()
            try:
                yield RETRY + await notices.snapshot()
                while batch := await watcher.batch():
                    yield b"".join(batch)
                if watcher.lagging:
                    yield event_bytes("resync", {})
                elif self._stopping:
                    yield STOPPING
            finally:
                await self._unhear(notices, watcher)

    async def stop(self) -> None:
        """Tell everybody that the server stops; their streams end."""
        if not self._stopping:
            self._stopping = True
            self._deaf()
        feeds = list(self._feeds.values())
        for feed in feeds:
            feed.end(STOPPING)
        await asyncio.gather(*(feed.close() for feed in feeds))
        self._unheard()
        if self._notices is not None:
            await self._notices.close()

    def _check(self) -> None:
        if self._stopping:
            raise ServerStopping("the server is being stopped")

    def _changed(self, session_id: str, how: str) -> None:
        if session_id in self._feeds:
            self._feeds[session_id].changed()

    def _watch(self, session_id: str, after: int) -> SessionViewer:
        feed = self._feeds.get(session_id)
        if feed is None or feed.over:  # one that is over is closed by the last who watched it
            feed = self._feeds[session_id] = SessionBroadcast(self._sessions, session_id)
        feed.viewers += 1
        return SessionViewer(feed, self._sessions.catalog, after)

    async def _leave(self, viewer: SessionViewer) -> None:
        viewer.leave()
        feed = viewer.feed
        feed.viewers -= 1
        if feed.viewers:
            return
        if self._feeds.get(feed.session_id) is feed:
            del self._feeds[feed.session_id]
        self._told += feed.told
        await feed.close()

    async def _unhear(self, notices: ServerEvents, watcher: Watcher[bytes]) -> None:
        notices.leave(watcher)
        if not len(notices):
            if self._notices is notices:
                self._notices = None
                self._unheard()
            await notices.close()


def _nothing() -> None:
    """Nobody was told."""
