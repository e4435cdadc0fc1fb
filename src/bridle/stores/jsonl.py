"""Sessions as append-only files: a folder for each session, a JSON object on each line.

`sessions/ID/log.jsonl` is private to the user. Only the process that holds the file's lock writes;
every process may read. The event loop numbers and chains lines; the writer's thread (`log_file`)
writes them and makes them durable.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from bridle.errors import StoreFailed, UnknownSession
from bridle.events import Checkpoint, Event, Repaired
from bridle.protocols.codec import encode_data, encode_line, escape_event
from bridle.protocols.store import Durability, InboxMessage, Record
from bridle.stores import inbox_files, locks
from bridle.stores.disk import Disk, to_store_failed
from bridle.stores.log_file import CLOSED, Batch, LogFile, SessionsDir, Writer, attempt
from bridle.stores.log_format import MAX_LINE, utc_timestamp
from bridle.stores.reader import LogLoader, SessionFolder, open_log
from bridle.stores.session_index import write_label
from bridle.stores.transfer import delete

log = logging.getLogger(__name__)
_T = TypeVar("_T")

_POLL = 0.2  # seconds between two looks at the notifier, while somebody listens
_PAUSE = 0.25  # seconds that lines wait for others if nobody watches and nobody waits
_MAX_PAUSE = 1.0  # ... if there are many such logs: a millisecond for each
_MAX_UNSAFE = 4 << 20  # bytes that are kept until they are durable, before anybody waits for them
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class JsonlStore(SessionFolder):
    """The sessions of a state folder, for writing. Tests pass another `disk`."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        durability: Durability = "disk",
        disk: Disk | None = None,
    ) -> None:
        super().__init__(folder)
        self.durability: Durability = durability
        self.disk = disk or Disk()
        self.sessions_dir = SessionsDir(self.disk, str(self.folder))
        self._writer = Writer(self.sessions_dir)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._urgent: dict[JsonlLog, None] = {}  # somebody waits for these logs, or watches them
        self.delayed: dict[JsonlLog, None] = {}  # nobody does: they can wait a moment
        self._pause = _PAUSE
        self._unfinished = 0  # groups of batches that the writer has
        self._notifier = inbox_files.Notifier(self.folder)
        self._on_message: Callable[[], None] | None = None
        self._poll_timer: asyncio.TimerHandle | None = None
        self._notifications = 0

    def create(self, session_id: str) -> "JsonlLog":
        """Return a new log. The writer creates its file with the first line."""
        self.check(session_id)
        return JsonlLog(self, session_id)

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> "JsonlLog":
        """Lock a log, read it, repair its end and continue it."""
        self.check(session_id)
        resumed = JsonlLog(self, session_id)
        batches = resumed.load()
        try:
            while (batch := await _in_thread(lambda: next(batches, None))) is not None:
                for record in batch:
                    apply(record)
            if (repair := resumed.repair) is not None:
                apply(resumed.append(repair))
                _log_repair(session_id, repair)
                await resumed.settled()
        except BaseException:
            batches.close()
            await resumed.release()
            raise
        return resumed

    def send_message(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into a session's inbox, and notify the process that owns the session."""
        path = self.path(session_id)
        if not path.exists():
            raise UnknownSession(f"there is no session {session_id}")
        inbox_files.send(path.parent, message)
        self._notifier.notify()

    def delete(self, session_id: str) -> None:
        """Delete a session that no process owns. What it used today still counts."""
        delete(self, session_id)

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Call `on_message` whenever any inbox may have a new message; None: stop that."""
        self._on_message = on_message
        if self._poll_timer is not None:
            self._poll_timer.cancel()
            self._poll_timer = None
        if on_message is not None:
            self._notifications = self._notifier.count()
            self._poll_timer = asyncio.get_running_loop().call_later(_POLL, self._poll)

    def _poll(self) -> None:
        self._poll_timer = asyncio.get_running_loop().call_later(_POLL, self._poll)
        count = self._notifier.count()
        if count != self._notifications and self._on_message is not None:
            self._notifications = count
            self._on_message()

    def close(self) -> None:
        """End the writer's thread, and stop listening."""
        self.listen(None)
        self._writer.close()

    def schedule(self, log: "JsonlLog", *, now: bool) -> None:
        """Have the lines of a log written: in this round of the event loop, or after a pause."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._urgent, self.delayed, self._unfinished = loop, {}, {}, 0
        if now:
            if not self._urgent and not self._unfinished:
                loop.call_soon(self._flush, self._urgent)
            self._urgent[log] = None  # while the writer is busy, more logs join them
        else:
            if not self.delayed:
                loop.call_later(self._pause, self._flush, self.delayed)
            self.delayed[log] = None

    def _flush(self, logs: "dict[JsonlLog, None]") -> None:
        """Hand the lines of these logs to the writer."""
        if logs is self.delayed:
            self._pause = min(max(_PAUSE, len(logs) / 1000), _MAX_PAUSE)
        batches = [batch for log in logs if (batch := log.batch()) is not None]
        logs.clear()
        if batches:
            self._unfinished += 1
            loop = asyncio.get_running_loop()
            self._writer.write(loop, batches, partial(self._on_group_done, loop))

    def _on_group_done(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand over what has gathered while the writer wrote a group."""
        if loop is self._loop:
            self._unfinished -= 1
            if self._urgent and not self._unfinished:
                self._flush(self._urgent)

    async def after_all(self, job: Callable[[], None]) -> None:
        """Run `job` in the writer's thread, once everything before it was written."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def run() -> None:
            attempt(job)
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(resolve)

        def resolve() -> None:
            if not done.done():
                done.set_result(None)

        self._writer.run(run)
        await done


class JsonlLog:
    """The log of one session, which this process owns.

    Lives in the event loop; only its `LogFile` is used in the writer's thread.
    """

    def __init__(self, store: JsonlStore, session_id: str) -> None:
        self.session_id = session_id
        self.seq = 0
        self.durable = 0
        self.head = ""
        self.size = self.weight = 0
        self.repair: Repaired | None = None  # what was repaired on resuming
        self._store = store
        self._file = LogFile(store.sessions_dir, session_id, syncs=store.durability == "disk")
        self._lines: list[bytes] = []  # to be handed to the writer
        self._cuts: list[int] = []  # where checkpoints begin in these lines
        self._records: list[Record] = []  # of these lines
        self._on_written: Callable[[Sequence[Record]], None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._unfinished = 0  # batches that the writer has
        self._durable_soon = 0  # the number that `durable` will have after these batches
        self._failed_batches: list[Batch] = []  # in order

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._store.path(self.session_id)

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Number the event, chain its hash, and have the line written.

        What cannot be written at all raises here, and takes no number.
        """
        if data is None:
            try:
                data = encode_data(event)
            except UnicodeEncodeError:
                event = escape_event(event)
                data = encode_data(event)
        if len(data) > MAX_LINE - 1000:
            raise StoreFailed(f"a record of {len(data) >> 20} MB is too large to be stored")
        seq, when = self.seq + 1, utc_timestamp()
        line, digest = encode_line(seq, when, data, self.head)
        record = Record(seq, when, event, digest)
        self.seq, self.head = seq, digest
        if type(event) is Checkpoint:
            self.size, self.weight = 0, len(line)
            self._cuts.append(sum(map(len, self._lines)))
        else:
            self.size += len(line)
        self._lines.append(line)
        self._records.append(record)
        if self._on_written is not None or self not in self._store.delayed:
            self._store.schedule(self, now=self._on_written is not None)
        return record

    async def settled(self) -> None:
        """Return when every line so far is on disk (with `process`: written to the kernel)."""
        if self.durable >= self.seq:
            return
        if self._file.is_closed:
            raise to_store_failed(self.session_id, OSError(errno.EBADF, CLOSED))
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((self.seq, waiter))
        self._store.schedule(self, now=True)
        await waiter

    def on_written(self, on_written: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `on_written` with records once they are written; None: stop that."""
        self._on_written = on_written

    async def label(self, title: str, tags: Sequence[str]) -> None:
        """Copy title and tags to where lists find them: they read only the beginning of a log."""
        await self._store.after_all(lambda: write_label(self.path.parent, title, tags))

    def inbox_messages(self) -> list[InboxMessage]:
        """The messages in the session's inbox, in order."""
        return inbox_files.read_messages(self.path.parent)

    def discard(self, message: InboxMessage) -> None:
        """Remove a message that has been handled."""
        inbox_files.discard(self.path.parent, message)

    async def close(self) -> None:
        """Wait until everything is durable, and release the lock."""
        try:
            await self.settled()
        finally:
            await self.release()

    async def release(self) -> None:
        """Close the file and release its lock, once the writer has finished with it."""
        self._file.is_closed = True
        if self._unfinished:
            await self._store.after_all(self._file.close)
        else:
            self._file.close()
        self._wake(self.seq, OSError(errno.EBADF, CLOSED))

    def batch(self) -> Batch | None:
        """What has to be written now, for the writer's thread."""
        wanted = self._waiting[-1][0] if self._waiting else 0
        durable = wanted > self._durable_soon or self._file.unsafe > _MAX_UNSAFE
        if self._file.is_closed or (not self._lines and not durable):
            return None
        if durable:
            self._durable_soon = self.seq
        batch = Batch(
            file=self._file,
            data=b"".join(self._lines),
            cuts=self._cuts,
            records=self._records,
            last=self.seq,
            durable=durable,
            on_done=self._on_batch_done,
        )
        self._lines, self._cuts, self._records = [], [], []
        self._unfinished += 1
        return batch

    def _on_batch_done(self, batch: Batch) -> None:
        """In the event loop: report written records, and wake waiters."""
        self._unfinished -= 1
        if batch.error is not None:
            self._handle_failure(batch, batch.error)
            return
        if batch.durable:
            self.durable = max(self.durable, batch.last)
            self._wake(self.durable)
            if self._waiting:  # for later lines
                self._store.schedule(self, now=True)
        if batch.records and self._on_written is not None:
            self._on_written(batch.records)

    def _wake(self, last: int, error: OSError | None = None) -> None:
        """Wake those who wait for lines up to `last`, with the error if there is one."""
        waiting, self._waiting = self._waiting, []
        for seq, waiter in waiting:
            if seq > last:
                self._waiting.append((seq, waiter))
            elif waiter.done():  # it was cancelled
                continue
            elif error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(to_store_failed(self.session_id, error))

    def _handle_failure(self, batch: Batch, error: OSError) -> None:
        """Keep the lines of a batch for another attempt, and fail those who wait for them.

        Those who wait for later lines are not failed: these are written again first. Those who wait
        for earlier lines are not failed if these are durable nevertheless.
        """
        if not batch.is_written:
            self._failed_batches.append(batch)
            if batch.is_rest_durable:
                self.durable = max(self.durable, self._failed_batches[0].previous)
                self._wake(self.durable)
        elif batch.records and self._on_written is not None:  # written, but not durable
            self._on_written(batch.records)
        self._durable_soon = self.durable
        if not self._unfinished:
            self._restore_lines()
        self._wake(batch.last, error)
        if self._waiting and not self._unfinished:
            self._store.schedule(self, now=True)

    def _restore_lines(self) -> None:
        """Put the lines of failed batches before those that came later."""
        cuts: list[int] = []
        lines: list[bytes] = []
        records: list[Record] = []
        start = 0
        for batch in self._failed_batches:
            cuts += [start + cut for cut in batch.cuts]
            lines.append(batch.data)
            records += batch.records
            start += len(batch.data)
        self._cuts = cuts + [start + cut for cut in self._cuts]
        self._lines[:0] = lines
        self._records[:0] = records
        self._failed_batches, self._file.failure = [], None

    def load(self) -> Generator[list[Record], None, None]:
        """In a thread: lock the file and read it, in batches. It is continued after the last."""
        try:
            folder, handle = open_log(
                f"{self._store.sessions_dir.path}/{self.session_id}", os.O_RDWR
            )
        except FileNotFoundError:
            raise UnknownSession(f"there is no session {self.session_id}") from None
        except OSError as error:
            action = "written" if error.errno in _NOT_WRITABLE else "read"
            raise to_store_failed(self.session_id, error, action) from error
        try:
            locks.lock(self._store.disk, handle, self.session_id)
            loader = LogLoader(self._store.disk, handle)
            yield from loader.records()
            self._file.adopt(handle, loader.end, folder, loader.missing_newline)
        except OSError as error:
            os.close(handle)
            raise to_store_failed(self.session_id, error, "read") from error
        except BaseException:
            os.close(handle)
            raise
        finally:
            os.close(folder)
        self.seq = self.durable = loader.chain.top
        self.head, self.repair = loader.chain.head, loader.repair
        self.size = loader.end - loader.checkpoint_end


async def _in_thread(job: Callable[[], _T]) -> _T:
    """Run `job` in a thread and await it even if cancelled: it uses a file that is closed then."""
    step = asyncio.ensure_future(asyncio.to_thread(job))
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        while not step.done():
            with suppress(asyncio.CancelledError):  # cancelled again, and still not done
                await asyncio.wait([step])
        step.exception()  # retrieved, so that asyncio does not log it
        raise


def _log_repair(session_id: str, repair: Repaired) -> None:
    if repair.torn:
        log.warning("session %s: a torn last line was cut off", session_id)
    for line in repair.broken:
        skipped = "" if line.why.endswith("kept") or not line.size else " was skipped"
        log.warning(
            "session %s: a line after record %d%s: %s", session_id, line.after, skipped, line.why
        )
