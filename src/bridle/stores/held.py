"""One session's log, held for writing: it numbers, chains, hands on, and says when it is durable.

Lives in the event loop; only `write` and `sync` of a batch run in the writer's thread.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Protocol

from bridle.errors import StoreFailed, UnknownSession
from bridle.events import Checkpoint, Event, Repaired
from bridle.promises.codec import encode_data, encode_line, scrubbed
from bridle.promises.store import Durability, Letter, Record
from bridle.stores import holder, inbox, labels
from bridle.stores.clock import stamp
from bridle.stores.disk import Disk
from bridle.stores.failure import typed
from bridle.stores.file import Ground, LogFile
from bridle.stores.lines import LONGEST
from bridle.stores.loading import Loading
from bridle.stores.reading import log_handles

_UNSAFE = 4 << 20  # bytes that are kept until they are durable, before somebody wants them to be
_CLOSED = "the log is closed"
_NO_WRITING = (errno.EROFS, errno.EACCES, errno.EPERM)


class Keeper(Protocol):
    """What a log needs of its store."""

    durability: Durability
    disk: Disk
    ground: Ground
    patient: "dict[JsonlLog, None]"

    def path(self, session_id: str) -> Path: ...
    def want(self, log: "JsonlLog", *, now: bool) -> None: ...
    async def after_all(self, job: Callable[[], None]) -> None: ...


class JsonlLog:
    """One session's file, held for writing."""

    def __init__(self, store: Keeper, session_id: str) -> None:
        self.session_id = session_id
        self.seq = 0
        self.durable = 0
        self.head = ""
        self.size = self.weight = 0
        self.found: Repaired | None = None  # what was mended when it was taken up
        self._store = store
        self._file = LogFile(store.ground, syncs=store.durability == "disk")
        self._lines: list[bytes] = []
        self._cuts: list[int] = []  # where in them a checkpoint begins
        self._untold: list[Record] = []
        self._tell: Callable[[Sequence[Record]], None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._flying = 0  # batches on their way through the writer
        self._underway = 0  # up to this number they will be durable, if all goes well
        self._stuck: OSError | None = None
        self._back: list[_Lines] = []  # batches that failed, in order
        self._closed = False

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self._store.path(self.session_id)

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
        if len(data) > LONGEST - 1000:
            raise StoreFailed(f"a record of {len(data) >> 20} MB is too large to be kept")
        seq, when = self.seq + 1, stamp()
        line, digest = encode_line(seq, when, data, self.head)
        record = Record(seq, when, event, digest)
        self.seq, self.head = seq, digest
        if type(event) is Checkpoint:
            self.size, self.weight = 0, len(line)
            self._cuts.append(sum(map(len, self._lines)))
        else:
            self.size += len(line)
        self._lines.append(line)
        self._untold.append(record)
        if self._tell is not None or self not in self._store.patient:
            self._store.want(self, now=self._tell is not None)
        return record

    async def settled(self) -> None:
        """Return when every line so far is on disk (or, with `process`, in the kernel's hands)."""
        if self.durable >= self.seq:
            return
        if self._closed:
            raise typed(self.session_id, OSError(errno.EBADF, _CLOSED))
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((self.seq, waiter))
        self._store.want(self, now=True)
        await waiter

    def on_written(self, tell: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `tell` with records once they are written; None: nobody listens any more."""
        self._tell = tell

    async def label(self, title: str, tags: Sequence[str]) -> None:
        """Keep a copy for lists, which look at no more than a log's beginning."""
        await self._store.after_all(lambda: labels.write(self.path.parent, title, tags))

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
            await self.release()

    async def release(self) -> None:
        """Let it go as it is; the writer is not in the middle of it then."""
        self._closed = True
        if self._flying:
            await self._store.after_all(self._file.close)
        else:
            self._file.close()
        self._refuse(OSError(errno.EBADF, _CLOSED))

    def batch(self) -> "_Lines | None":
        """What has to be written now, for the writer's thread."""
        wanted = self._waiting[-1][0] if self._waiting else 0
        durable = wanted > self._underway or self._file.unsafe > _UNSAFE
        if self._closed or (not self._lines and not durable):
            return None
        if durable:
            self._underway = self.seq
        lines, self._lines = b"".join(self._lines), []
        records, self._untold = self._untold, []
        self._flying += 1
        batch = _Lines(self, lines, records, self.seq, durable)
        batch.cuts, self._cuts = self._cuts, []
        return batch

    def write(self, lines: bytes, cuts: Sequence[int]) -> None:
        """In the writer's thread: make the file if it is new, then write."""
        if self._stuck is not None:  # a line before these is missing: they would be out of order
            raise self._stuck
        try:
            if self._file.handle < 0:
                if self._closed:
                    raise OSError(errno.EBADF, _CLOSED)
                self._file.make(self.session_id)
            self._file.write(lines, cuts)
        except OSError as error:
            self._stuck = error
            raise

    def written(self, batch: "_Lines", error: OSError | None) -> None:
        """Back in the event loop: tell the watchers, wake those who wait."""
        self._flying -= 1
        if error is not None:
            self._failed(batch, error)
            return
        if batch.durable:
            self._file.fresh = False
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
        """Keep the lines for another try, and say so to who waits for them.

        Who waits for later lines is not refused for these: the next try is theirs.
        """
        self._underway = self.durable
        if not batch.landed:
            self._back.append(batch)
        elif batch.records and self._tell is not None:  # written; only not durable
            self._tell(batch.records)
        if not self._flying:
            back, self._back, self._stuck = self._back, [], None
            self._cuts = _moved(back, self._cuts)
            self._lines[:0] = [one.data for one in back]
            self._untold[:0] = [record for one in back for record in one.records]
        self._refuse(error, batch.upto)
        if self._waiting and not self._flying:
            self._store.want(self, now=True)

    def _refuse(self, error: OSError, upto: int | None = None) -> None:
        """Say to those who wait, for lines up to that number or for any, that it did not work."""
        waiting, self._waiting = self._waiting, []
        for line, waiter in waiting:
            if upto is not None and line > upto:
                self._waiting.append((line, waiter))
            elif not waiter.done():
                waiter.set_exception(typed(self.session_id, error))

    def take(self) -> Generator[list[Record], None, None]:
        """In a thread: lock the file and read it, in batches; the end of the last is the end."""
        try:
            folder, handle = log_handles(f"{self._store.ground.path}/{self.session_id}", os.O_RDWR)
        except FileNotFoundError:
            raise UnknownSession(f"there is no session {self.session_id}") from None
        except OSError as error:
            what = "written" if error.errno in _NO_WRITING else "read"
            raise typed(self.session_id, error, what) from error
        try:
            holder.lock(self._store.disk, handle, self.session_id)
            loading = Loading(self._store.disk, handle)
            yield from loading.records()
            end, missing = loading.end, loading.missing
            self._file.adopt(self.session_id, handle, end, folder, missing)
        except OSError as error:
            os.close(handle)
            raise typed(self.session_id, error, "read") from error
        except BaseException:
            os.close(handle)
            raise
        finally:
            os.close(folder)
        self.seq = self.durable = loading.chain.top
        self.head, self.found = loading.chain.head, loading.repair
        self.size = loading.end - loading.checkpoint


class _Lines:
    """A batch of one log."""

    __slots__ = ("cuts", "data", "durable", "landed", "log", "parent", "records", "upto")

    def __init__(
        self, log: JsonlLog, data: bytes, records: list[Record], upto: int, durable: bool
    ) -> None:
        self.log, self.data, self.records, self.upto = log, data, records, upto
        self.durable = durable
        self.cuts: list[int] = []
        self.parent = ""
        self.landed = False

    def write(self) -> None:
        self.log.write(self.data, self.cuts)
        self.landed = True

    def sync(self) -> None:
        file = self.log._file
        file.sync()
        if file.fresh:
            self.parent = file.ground.path

    def done(self, error: OSError | None) -> None:
        self.log.written(self, error)


def _moved(back: Sequence[_Lines], cuts: Sequence[int]) -> list[int]:
    """Where the checkpoints begin once these batches stand before the lines again."""
    moved, start = [], 0
    for one in back:
        moved += [start + cut for cut in one.cuts]
        start += len(one.data)
    return moved + [start + cut for cut in cuts]
