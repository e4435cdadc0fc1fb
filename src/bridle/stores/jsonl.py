"""Sessions as append-only files: one folder a session, one JSON object a line.

`sessions/ID/log.jsonl`, private to the user. The process that holds the file's lock alone writes;
anybody may read. What the records mean is not known here.
"""

import asyncio
import errno
import fcntl
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bridle.errors import SessionLocked, StoreFailed, UnknownSession
from bridle.events import Checkpoint, Event
from bridle.promises.codec import encode_data, encode_line, scrubbed
from bridle.promises.store import Durability, Letter, Record
from bridle.stores import inbox
from bridle.stores.clock import stamp
from bridle.stores.reading import SessionFolder, readable
from bridle.stores.writer import Batch, Writer, sync_file, write_at

log = logging.getLogger(__name__)

_TICK = 0.2  # seconds between two looks at the bell, while somebody listens
_PAUSE = 0.25  # how long lines wait for company when nobody watches and nobody waits


class JsonlStore(SessionFolder):
    """A folder of sessions."""

    def __init__(self, folder: str | os.PathLike[str], durability: Durability = "disk") -> None:
        super().__init__(folder)
        self.durability: Durability = durability
        self._writer = Writer()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._urgent: dict[JsonlLog, None] = {}  # somebody waits, or watches
        self._patient: dict[JsonlLog, None] = {}
        self._ring: Callable[[], None] | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._bell = inbox.Bell(self.folder)
        self._heard = 0

    def create(self, session_id: str) -> "JsonlLog":
        """A new log. Its file is made with its first line, by the writer."""
        return JsonlLog(self, session_id, self.path(session_id))

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> "JsonlLog":
        """Take a log up again: lock it, read it, cut a torn last line, go on after it."""
        log = JsonlLog(self, session_id, self.path(session_id))
        for record in await asyncio.to_thread(log.take):
            apply(record)
        return log

    def post(self, session_id: str, letter: Letter) -> None:
        """Put a verb into a session's inbox, and ring for whoever holds it."""
        path = self.path(session_id)
        if not path.exists():
            raise UnknownSession(f"there is no session {session_id}")
        inbox.post(path.parent, letter)
        self._bell.ring()

    def listen(self, ring: Callable[[], None] | None) -> None:
        """Call `ring` whenever somebody may have put a letter anywhere; None: no longer."""
        self._ring = ring
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        if ring is not None:
            self._heard = self._bell.size()
            self._tick = asyncio.get_running_loop().call_later(_TICK, self._look)

    def _look(self) -> None:
        self._tick = asyncio.get_running_loop().call_later(_TICK, self._look)
        if (size := self._bell.size()) != self._heard and self._ring is not None:
            self._heard = size
            self._ring()

    def close(self) -> None:
        """End the writer's thread, and the clock."""
        self.listen(None)
        self._writer.close()

    def want(self, log: "JsonlLog", *, now: bool) -> None:
        """Have the log's lines written: in this round of the event loop, or within a moment."""
        if not now and log in self._patient:
            return
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._urgent, self._patient = loop, {}, {}
        if now:
            if not self._urgent:
                loop.call_soon(self._flush_urgent)
            self._urgent[log] = None
        else:
            if not self._patient:
                loop.call_later(_PAUSE, self._flush_patient)
            self._patient[log] = None

    def _flush_urgent(self) -> None:
        logs, self._urgent = self._urgent, {}
        self._hand_over(logs)

    def _flush_patient(self) -> None:
        logs, self._patient = self._patient, {}
        self._hand_over(logs)

    def _hand_over(self, logs: Iterable["JsonlLog"]) -> None:
        batches: list[Batch] = [batch for log in logs if (batch := log.batch()) is not None]
        if batches:
            self._writer.put(asyncio.get_running_loop(), batches)

    async def after_all(self, job: Callable[[], None]) -> None:
        """Have the writer do this once everything before it was written."""
        done = asyncio.get_running_loop().create_future()
        self._writer.run(asyncio.get_running_loop(), job, done)
        await done


class JsonlLog:
    """One session's file, held for writing."""

    def __init__(self, store: JsonlStore, session_id: str, path: Path) -> None:
        self.session_id = session_id
        self.path = path
        self.seq = 0
        self.size = 0
        self._store = store
        self.head = ""
        self._lines: list[bytes] = []
        self._untold: list[Record] = []
        self._tell: Callable[[Sequence[Record]], None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.durable = 0
        self._end = 0
        self._handle = -1
        self._flying = 0  # batches on their way through the writer
        self._stuck: OSError | None = None
        self._back: list[_Lines] = []  # batches that failed, in order
        self._unsynced = self._closed = False
        self._new: tuple[str, ...] = ()  # folders whose entries for this log may not be durable

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Number the event, chain its hash, and hand the line on.

        What cannot be written at all raises here, and takes no number.
        """
        if data is None:
            try:
                data = encode_data(event)
            except UnicodeEncodeError:
                event = scrubbed(event)
                data = encode_data(event)
        seq, when = self.seq + 1, stamp()
        line, self.head = encode_line(seq, when, data, self.head)
        record = Record(seq, when, event, self.head)
        self.seq = seq
        self.size = 0 if type(event) is Checkpoint else self.size + len(line)
        self._lines.append(line)
        self._untold.append(record)
        self._store.want(self, now=self._tell is not None)
        return record

    async def settled(self) -> None:
        """Return when every line so far is on disk (or, with `process`, in the kernel's hands)."""
        if self.durable >= self.seq:
            return
        if self._closed:
            raise _typed(self.session_id, OSError(errno.EBADF, "the log is closed"))
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((self.seq, waiter))
        self._store.want(self, now=True)
        await waiter

    def on_written(self, tell: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `tell` with records once they are written; None: nobody listens any more."""
        self._tell = tell

    def letters(self) -> list[Letter]:
        """What others have put into the session's inbox, in order."""
        return inbox.letters(self.path.parent)

    def discard(self, letter: Letter) -> None:
        """That letter is done."""
        inbox.discard(self.path.parent, letter)

    async def close(self) -> None:
        """Settle, and let the lock go."""
        try:
            await self.settled()
        finally:
            self._closed = True
            if self._flying:
                await self._store.after_all(self._release)
            else:
                self._release()
            self._refuse(OSError(errno.EBADF, "the log is closed"))

    def _release(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def batch(self) -> "_Lines | None":
        """What has to be written now, for the writer's thread."""
        sync = bool(self._waiting)
        if self._closed or (not self._lines and not sync):
            return None
        lines, self._lines = b"".join(self._lines), []
        records, self._untold = self._untold, []
        self._flying += 1
        return _Lines(self, lines, records, self.seq, sync)

    def write(self, lines: bytes, sync: bool) -> None:
        """In the writer's thread: make the file if it is new, then write."""
        if self._stuck is not None:  # a line before these is missing: they would be out of order
            raise self._stuck
        try:
            self._write(lines, sync)
        except OSError as error:
            self._stuck = error
            raise

    def _write(self, lines: bytes, sync: bool) -> None:
        if self._handle < 0 and self._closed:
            raise OSError(errno.EBADF, "the log is closed")
        if self._handle < 0:
            self._handle, self._new = _make(self.path)
        durable = sync and self._store.durability == "disk"
        at_once = durable and not self._unsynced  # one call syncs its own bytes, not older ones
        write_at(self._handle, lines, self._end, sync=at_once)
        if durable and not at_once:
            sync_file(self._handle)
        self._unsynced = not durable and (self._unsynced or bool(lines))
        self._end += len(lines)

    def written(self, batch: "_Lines", error: OSError | None) -> None:
        """Back in the event loop: tell the watchers, wake those who wait."""
        self._flying -= 1
        if error is not None:
            self._failed(batch, error)
            return
        if batch.parents:
            self._new = ()
        if batch.sync:
            self.durable = max(self.durable, batch.upto)
            self._wake()
        if batch.records and self._tell is not None:
            self._tell(batch.records)

    def _wake(self) -> None:
        """Those whose lines are on disk; for the others, another round."""
        waiting, self._waiting = self._waiting, []
        for upto, waiter in waiting:
            if upto > self.durable:
                self._waiting.append((upto, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        if self._waiting:
            self._store.want(self, now=True)

    def _failed(self, batch: "_Lines", error: OSError) -> None:
        """Keep the lines for another try, and say so to everybody who waits."""
        if not batch.landed:
            self._back.append(batch)
        elif batch.records and self._tell is not None:  # written; only its folder is not durable
            self._tell(batch.records)
        if not self._flying:
            back, self._back, self._stuck = self._back, [], None
            self._lines[:0] = [one.data for one in back]
            self._untold[:0] = [record for one in back for record in one.records]
        self._refuse(error)

    def _refuse(self, error: OSError) -> None:
        """Say to everybody who waits that it did not work."""
        waiting, self._waiting = self._waiting, []
        for _, waiter in waiting:
            if not waiter.done():
                waiter.set_exception(_typed(self.session_id, error))

    def take(self) -> list[Record]:
        """Lock the file and read it; what is left of a torn last line is cut off."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise UnknownSession(f"there is no session {self.session_id}") from None
        except OSError as error:
            raise _typed(self.session_id, error, "read") from error
        try:
            _lock(handle, self.session_id)
            records = self._load(handle)
        except OSError as error:
            os.close(handle)
            raise _typed(self.session_id, error, "read") from error
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return records

    def _load(self, handle: int) -> list[Record]:
        records: list[Record] = []
        with os.fdopen(os.dup(handle), "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._end += len(line)
                last = records[-1].seq if records else 0
                if (record := readable(line, last)) is not None:
                    records.append(record)
                else:
                    log.warning("session %s: a broken line was skipped", self.session_id)
        if os.fstat(handle).st_size > self._end:
            if not self._end:  # not one whole line: that is not ours to cut
                raise OSError(errno.EINVAL, "it holds no log")
            log.warning("session %s: a torn last line was cut off", self.session_id)
            os.ftruncate(handle, self._end)
        if records:
            self.seq = self.durable = records[-1].seq
            self.head = records[-1].hash
            self.size = self._end
            self._unsynced = True  # whoever wrote it may have died before it was on disk
        return records


class _Lines:
    """A batch of one log."""

    __slots__ = ("data", "landed", "log", "parents", "records", "sync", "upto")

    def __init__(
        self, log: JsonlLog, data: bytes, records: list[Record], upto: int, sync: bool
    ) -> None:
        self.log, self.data, self.records, self.upto, self.sync = log, data, records, upto, sync
        self.parents: Sequence[str] = ()
        self.landed = False

    def write(self) -> None:
        self.log.write(self.data, self.sync)
        self.landed = True
        if self.sync and self.log._store.durability == "disk":
            self.parents = self.log._new

    def done(self, error: OSError | None) -> None:
        self.log.written(self, error)


def _make(path: Path) -> tuple[int, tuple[str, ...]]:
    """A new file, private and locked, in a folder of its own; and the folders with new entries."""
    changed = [path.parent, path.parent.parent]
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        missing = [folder for folder in path.parent.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
            changed.append(folder.parent)
        path.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle, tuple(dict.fromkeys(map(str, changed)))


def _lock(handle: int, session_id: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = _holder(os.fstat(handle).st_ino)
        raise SessionLocked(
            f"session {session_id} is in use by {who}",
            hint="Wait until it is done there, or start a session of its own.",
        ) from None


def _holder(inode: int) -> str:
    """Who holds the lock, as far as the system tells."""
    try:
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
                return f"process {fields[4]}"
    except OSError:
        pass
    return "another process"


def _typed(session_id: str, error: OSError, what: str = "written") -> StoreFailed:
    return StoreFailed(
        f"the log of session {session_id} cannot be {what}: {error.strerror or error}",
        error,
        hint="Nothing was acknowledged that is not stored. Check the disk and the folder's rights.",
    )
