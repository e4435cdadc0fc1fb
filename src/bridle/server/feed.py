"""One watched session: its records are made ready once, and told to all who watch it.

Where the session is open here, its own broadcast says what was written. Where another process holds
it, or nobody, its file is followed. Which of the two it is may change at any time; the number of
the newest record that was told bridges it: no gap, no repeat. Who watches is not known here, except
that one who takes too little is dropped, so that nobody makes the server hold more than a bit.
"""

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bridle.engine.stream import Channel, Watcher
from bridle.errors import AgentError, UnknownSession
from bridle.protocols.store import Record
from bridle.server.frames import KEEP_ALIVE, position, to_frame
from bridle.server.thread import in_thread
from bridle.stores.reader import LogReader, SessionFolder
from bridle.workspace.fs import READ

if TYPE_CHECKING:
    from bridle.engine.session import Session

QUIET = 5.0  # seconds without an event, after which a comment shows that the line works
ROOM = 4 << 20  # bytes that one who watches may be behind
_EVERY = 0.05  # seconds between two looks at a file that grows
_SELDOM = 0.2  # ... and at one that has not grown for a while
_RESTING = 100  # looks, after which that is so
_MARK = 0.1  # seconds until we look whether what was told would survive by now
_MARK_MOST = 1.0  # ... each time twice as many, up to these
_SYNC = 0.5  # seconds between two times that somebody else's file is made to survive
BLOCK = 1 << 16  # bytes that are read from a log at a time
log = logging.getLogger(__name__)


class Known(Protocol):
    """As much of the server's sessions as a feed looks at."""

    folder: SessionFolder

    def get_open(self, session_id: str) -> "Session | None": ...


class Item(NamedTuple):
    """Some bytes for everybody: a record (`seq`), or a position (`mark`), or neither."""

    seq: int
    mark: int
    data: bytes


class Place:
    """One who watches: a place among those who are told, and how many bytes were taken."""

    __slots__ = ("taken", "watcher")

    def __init__(self, watcher: Watcher[Item], taken: int) -> None:
        self.watcher = watcher
        self.taken = taken


class Feed:
    """What is told of one session, while somebody watches it."""

    def __init__(self, sessions: Known, session_id: str) -> None:
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
        self._places: dict[Place, None] = {}
        self._bytes = 0  # told so far
        self._given = 0  # the newest position that was told
        self._spoke = loop.time()
        self._waiter: asyncio.Future[None] | None = None
        self._marking: asyncio.TimerHandle | None = None
        self._quiet = loop.call_later(QUIET, self._keep_alive)
        self._task = asyncio.create_task(self._run())

    def join(self) -> Place:
        """One more, who is told everything after `last`."""
        place = Place(self._channel.join(), self._bytes)
        self._places[place] = None
        return place

    def leave(self, place: Place) -> None:
        """That one has gone."""
        self._places.pop(place, None)
        self._channel.leave(place.watcher)

    def changed(self) -> None:
        """The session was opened here, or let go, or deleted: look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

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
        if (reader := await self._log()) is None:
            self.ready.set()  # the first record is not written yet
            return
        try:
            await self._read(reader)
        finally:
            reader.close()

    async def _log(self) -> LogReader | None:
        """The log, to be read from where we are; at first that is its end."""
        after = self.last if self.ready.is_set() else None
        folder, session_id = self._sessions.folder, self.session_id
        session = self._sessions.get_open(session_id)

        def opened() -> tuple[LogReader, int]:
            reader = folder.reader(session_id, after, BLOCK)
            new = after is None and session is None
            return reader, reader.last if new and _synced(folder.path(session_id)) else 0

        try:
            reader, settled = await in_thread(opened, lambda found: found[0].close())
        except UnknownSession:
            if not self.is_unwritten:
                raise
            return None
        if after is None:
            self.last = reader.last
            self.mark = settled if session is None else session.durable
            self._given = min(self.mark, self.last)
            self.ready.set()
        return reader

    async def _read(self, reader: LogReader) -> None:
        """Tell all that is there."""
        while found := await in_thread(reader.read_new_lines):
            self._tell_records(found)

    async def _follow(self) -> None:
        """Somebody else holds the session, or nobody: its file says what happens."""
        if (reader := await self._log()) is None:
            return
        path = self._sessions.folder.path(self.session_id)
        size, looks, synced = -2, 0, 0.0
        try:
            while self._sessions.get_open(self.session_id) is None:
                if (now := _size(path)) != size:
                    size, looks = now, 0
                    await self._read(reader)
                if self.mark < self.last and (at := _now()) >= synced + _SYNC:
                    synced = at
                    await self._settle(path)
                await self._pause(_EVERY if looks < _RESTING else _SELDOM)
                looks += 1
        finally:
            reader.close()

    async def _settle(self, path: Path) -> None:
        """Have what was read from somebody else's file survive, before it gets a position."""
        upto = self.last
        if await in_thread(lambda: _synced(path)):
            self._reach(upto)

    async def _pause(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        clock = loop.call_later(seconds, self.changed)
        try:
            await self._waiter
        finally:
            clock.cancel()
            self._waiter = None

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
            self._tell([Item(0, given, position(given))])

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


def _size(path: Path) -> int:
    """How large the file is; -1: it is not there."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - looked at twenty times a second
    except OSError:
        return -1


def _synced(path: Path) -> bool:
    """In a thread: is everything that stands in the file on disk now?"""
    try:
        handle = os.open(path, READ)
    except OSError:
        return False
    try:
        os.fdatasync(handle)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
