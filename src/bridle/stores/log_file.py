"""The files of logs, and the thread that writes them: in order, and synced in groups.

Bytes that are not durable yet are kept in memory, because a disk that fails to sync may have
dropped them. The event loop hands over batches and is called back when they are written, or
durable; it never waits for the disk itself. This module knows nothing of lines and records.
"""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridle.stores.disk import Disk, sync_path, write_at
from bridle.stores.log_format import LOG_NAME
from bridle.workspace.fs import FOLDER

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

DELETED = "it was deleted while it was in use"
REPLACED = "another file was put in its place while it was in use"
CUT = "another process cut it off while it was in use"
CLOSED = "the log is closed"
_OTHERS = 0o077  # the permissions of anybody but the user
_GROUP = 32  # batches that are reported together: the first need not wait for the thousandth
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class SessionsDir:
    """The folder of all sessions, and the folders above it. They are created if missing."""

    def __init__(self, disk: Disk, state: str) -> None:
        self.disk = disk
        self.path = f"{state}/sessions"
        # Folders with entries that may not be durable: True if this process made the entry, False
        # if another process may have made it and died before it was synced.
        self.unsynced = {state: False, os.path.dirname(state) or ".": False}  # noqa: PTH120 - no Path

    def make(self) -> None:
        """Create the folder, and those above it that are missing."""
        missing, path = [], self.path
        while path and not os.path.isdir(path):  # noqa: PTH112 - no Path where logs are made
            missing.append(path)
            path = os.path.dirname(path)  # noqa: PTH120 - as above
        for path in reversed(missing):
            with suppress(FileExistsError):
                self.disk.make_folder(path, 0o700)
            self.unsynced[os.path.dirname(path) or "."] = True  # noqa: PTH120 - as above

    def sync(self) -> None:
        """Make the folders above durable, once per process for all logs."""
        for path, made in list(self.unsynced.items()):
            try:
                sync_path(self.disk, path)
            except PermissionError:
                if made:
                    raise
            self.unsynced.pop(path, None)


class LogFile:
    """A file that only grows. It is created, private and locked, when it is first written."""

    __slots__ = (
        "_disk",
        "_folder",
        "_identity",
        "_is_created",
        "_path",
        "_sync_failed",
        "_syncs",
        "_unsynced",
        "end",
        "failure",
        "handle",
        "is_closed",
        "is_new",
        "sessions_dir",
        "unsafe",
    )

    def __init__(self, sessions_dir: SessionsDir, session_id: str, *, syncs: bool) -> None:
        self.sessions_dir = sessions_dir
        self.handle = -1
        self.is_closed = False  # then it is not created any more
        self.failure: OSError | None = None  # bytes were not written: later ones must not be either
        self.end = 0  # bytes that were handed to the kernel
        self.unsafe = 0  # those of them that are not durable
        self.is_new = False  # its entry in the folder of sessions may not be durable
        self._disk = sessions_dir.disk
        self._folder = -1  # open until the entry of the file is durable
        self._syncs = syncs
        self._unsynced: list[bytes] = []  # written, but not durable
        self._sync_failed = False  # then what is not durable has to be written again
        self._is_created = False  # by this object
        self._path = f"{sessions_dir.path}/{session_id}/{LOG_NAME}"
        self._identity: tuple[int, int] | None = None  # device and inode, once they are known

    def _create(self) -> None:
        """Create the file in a folder of its own."""
        disk, path = self._disk, self._path.rpartition("/")[0]
        is_new_folder = True
        try:
            disk.make_folder(path, 0o700)
        except FileExistsError:
            is_new_folder = False  # left by a failed attempt, or empty; a log in it is not touched
        except FileNotFoundError:
            self.sessions_dir.make()
            disk.make_folder(path, 0o700)
        handles: list[int] = []
        try:
            handles.append(folder := disk.open(path, FOLDER))
            handles.append(handle := disk.open(LOG_NAME, _NEW_FILE, 0o600, dir_fd=folder))
            disk.lock(handle, LOCK_EX | LOCK_NB)
        except BaseException:
            for open_handle in reversed(handles):
                disk.close(open_handle)
            if is_new_folder:
                with suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106 - no Path where logs are made
            raise
        self.handle = handle
        self._is_created = True
        if self._syncs:
            self._folder, self.is_new = folder, True
        else:
            disk.close(folder)

    def write(self, data: bytes, cuts: Sequence[int] = ()) -> None:
        """Append bytes. If this fails nothing is counted, so it can be tried again.

        What is before each of the `cuts` is durable before anything behind it is written.
        """
        if self.handle < 0:
            if self.is_closed:
                raise OSError(errno.EBADF, CLOSED)
            self._create()
        if self.end and self._disk.look(self.handle).st_size < self.end:
            raise OSError(errno.ESTALE, CUT)  # writing would leave a hole
        if self._sync_failed:
            self._write_again()
        if data:
            done = self._write_apart(data, cuts) if cuts and self._syncs else 0
            rest = data[done:]
            write_at(self._disk, self.handle, rest, self.end + done)
            self.end += len(data)
            if self._syncs:
                self._unsynced.append(rest)
                self.unsafe += len(rest)

    def _write_apart(self, data: bytes, cuts: Sequence[int]) -> int:
        """Write up to the last cut and sync at each one. Return the number of durable bytes."""
        done = 0
        for cut in cuts:
            if cut > done:
                write_at(self._disk, self.handle, data[done:cut], self.end + done)
            if cut > done or self.unsafe:
                self._sync_file()
            done = cut
        return done

    def _write_again(self) -> None:
        data = b"".join(self._unsynced)
        write_at(self._disk, self.handle, data, self.end - len(data))
        self._sync_failed = False

    def sync(self) -> None:
        """Make everything that was written durable, and check that the file is still there."""
        self._check_place()
        if not self._syncs:
            return
        if self._sync_failed:  # another batch came in between
            self._write_again()
        if self.unsafe:
            self._sync_file()
        if self._folder >= 0:
            self._disk.sync_folder(self._folder)
            folder, self._folder = self._folder, -1
            self._disk.close(folder)
        if self.sessions_dir.unsynced:
            self.sessions_dir.sync()

    def _check_place(self) -> None:
        """Raise if the file was deleted or replaced: nobody would find what is written to it."""
        try:
            info = self._disk.find(self._path)
        except (FileNotFoundError, NotADirectoryError):
            raise OSError(errno.ENOENT, DELETED) from None
        identity = info.st_dev, info.st_ino
        if self._identity is None:  # created a moment ago, and checked for the first time
            self._identity = identity
        elif identity != self._identity:
            raise OSError(errno.ESTALE, REPLACED)

    def _sync_file(self) -> None:
        try:
            self._disk.sync(self.handle)
        except OSError:
            self._sync_failed = bool(self._unsynced)
            raise
        self._unsynced.clear()
        self.unsafe = 0

    def adopt(self, handle: int, end: int, folder: int, missing: bytes = b"") -> None:
        """Continue an existing file: cut it off at `end`, append `missing`, make it durable."""
        _make_private(handle)
        _make_private(folder)
        if self._disk.look(handle).st_size > end:
            self._disk.cut(handle, end)
        if missing:
            write_at(self._disk, handle, missing, end)
            end += len(missing)
        if self._syncs:  # the process that wrote it may have died before it was on disk
            self._disk.sync(handle)
            self._disk.sync_folder(folder)
            sync_path(self._disk, self.sessions_dir.path)
            self.sessions_dir.sync()
        self.handle, self.end = handle, end
        info = self._disk.look(handle)
        self._identity = (info.st_dev, info.st_ino)

    def close(self) -> None:
        """Close the file and release its lock. An empty one that was created here is deleted."""
        if self._is_created and not self.end and self.handle >= 0:  # the disk was full
            with suppress(OSError):
                self._check_place()
                os.unlink(self._path)  # noqa: PTH108 - no Path where logs are made
                os.rmdir(self._path.rpartition("/")[0])  # noqa: PTH106 - as above
        handle, self.handle = self.handle, -1
        folder, self._folder = self._folder, -1
        for open_handle in (handle, folder):
            if open_handle >= 0:
                self._disk.close(open_handle)


def _make_private(handle: int) -> None:
    """Remove the permissions of others, if the system lets us."""
    mode = os.fstat(handle).st_mode
    if mode & _OTHERS:
        with suppress(OSError):
            os.fchmod(handle, mode & 0o7777 & ~_OTHERS)


class Batch(Struct, kw_only=True, eq=False):
    """Lines of one log on their way through the writer."""

    file: LogFile
    data: bytes
    cuts: list[int]  # where checkpoints begin in the data
    records: list[Any]
    last: int  # the number of the newest record
    durable: bool  # whether it has to be synced
    on_done: Callable[["Batch"], None]  # called in the event loop
    error: OSError | None = None
    is_written: bool = False
    is_rest_durable: bool = False  # if this cannot be written: whether all before it is durable

    @property
    def previous(self) -> int:
        """The number of the newest record before these lines."""
        return self.last - len(self.records)

    def write(self) -> None:
        """In the writer's thread: write the lines, unless earlier ones were not written."""
        file = self.file
        try:
            if file.failure is not None:
                raise file.failure
            file.write(self.data, self.cuts)
        except OSError as error:
            file.failure = error
            if self.durable and file.handle >= 0 and not file.is_new:
                with suppress(OSError):
                    file.sync()
                    self.is_rest_durable = True
            raise
        self.is_written = True


class Writer:
    """A thread that starts with its first job and ends with `close`."""

    def __init__(self, sessions_dir: SessionsDir) -> None:
        self._sessions_dir = sessions_dir
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, job: Callable[[], None]) -> None:
        """Run `job` in the thread, after those before it. It must not raise."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="bridle-writer", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def write(
        self, loop: "AbstractEventLoop", batches: list[Batch], on_done: Callable[[], None]
    ) -> None:
        """Write the batches and call `on_done` in the event loop. Those of one file keep order."""
        self.run(partial(self._write, loop, batches, on_done))

    def close(self) -> None:
        """End the thread once everything is written."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _write(
        self, loop: "AbstractEventLoop", batches: list[Batch], on_done: Callable[[], None]
    ) -> None:
        """Write all batches of a group, and then sync them.

        A file system with a journal writes that once for the group and not once for each file.
        """
        for start in range(0, len(batches), _GROUP):
            group = batches[start : start + _GROUP]
            for batch in group:
                batch.error = attempt(batch.write)
            to_sync = [batch for batch in group if batch.durable and batch.error is None]
            for batch in to_sync:
                batch.error = attempt(batch.file.sync)
            new = [batch for batch in to_sync if batch.file.is_new and batch.error is None]
            if new:  # the folder of sessions has new entries
                folder = self._sessions_dir
                error = attempt(partial(sync_path, folder.disk, folder.path))
                for batch in new:
                    batch.error, batch.file.is_new = error, error is not None
            is_last = start + _GROUP >= len(batches)
            with suppress(RuntimeError):  # the loop is closed: it is written, and nobody waits
                loop.call_soon_threadsafe(_report, group, on_done if is_last else None)


def attempt(job: Callable[[], None]) -> OSError | None:
    """Run `job` and return the error, of whatever kind, as one of the system."""
    try:
        job()
    except OSError as error:
        return error
    except Exception as error:  # if the thread died, everybody would wait forever
        return OSError(f"{type(error).__name__}: {error}")
    return None


def _report(batches: list[Batch], on_done: Callable[[], None] | None) -> None:
    for batch in batches:
        batch.on_done(batch)
    if on_done is not None:
        on_done()
