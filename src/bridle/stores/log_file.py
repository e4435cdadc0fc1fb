"""The file of one log, for its writer: create it, append, make it durable, close it.

Runs in the writer's thread. Bytes that are not durable yet are kept in memory, because a disk that
fails to sync may have dropped them. This module knows nothing of lines and records.
"""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from bridle.stores.disk import Disk, sync_path, write_at
from bridle.stores.log_format import LOG_NAME
from bridle.workspace.fs import FOLDER

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

DELETED = "it was deleted while it was in use"
REPLACED = "another file was put in its place while it was in use"
CUT = "another process cut it off while it was in use"
_OTHERS = 0o077  # the permissions of anybody but the user
_MAKING = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


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
    """A file that only grows."""

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
        "handle",
        "is_new",
        "sessions_dir",
        "unsafe",
    )

    def __init__(self, sessions_dir: SessionsDir, *, syncs: bool) -> None:
        self.sessions_dir = sessions_dir
        self.handle = -1
        self.end = 0  # bytes that were handed to the kernel
        self.unsafe = 0  # those of them that are not durable
        self.is_new = False  # its entry in the folder of sessions may not be durable
        self._disk = sessions_dir.disk
        self._folder = -1  # open until the entry of the file is durable
        self._syncs = syncs
        self._unsynced: list[bytes] = []  # written, but not durable
        self._sync_failed = False  # then what is not durable has to be written again
        self._is_created = False  # by this object
        self._path = ""
        self._identity: tuple[int, int] | None = None  # device and inode, once they are known

    def create(self, session_id: str) -> None:
        """Create the file, private and locked, in a folder of its own."""
        disk, path = self._disk, f"{self.sessions_dir.path}/{session_id}"
        created = self._create_folder(path)
        try:
            folder = disk.open(path, FOLDER)
            try:
                handle = self._create_file(folder)
            except BaseException:
                disk.close(folder)
                raise
        except BaseException:
            if created:
                with suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106 - no Path where logs are made
            raise
        self.handle, self._path = handle, f"{path}/{LOG_NAME}"
        self._is_created = True
        if self._syncs:
            self._folder, self.is_new = folder, True
        else:
            disk.close(folder)

    def _create_folder(self, path: str) -> bool:
        """Create the session's folder; return whether it was missing."""
        try:
            self._disk.make_folder(path, 0o700)
        except FileExistsError:
            return False  # left by a failed attempt, or empty; a log in it is not touched
        except FileNotFoundError:
            self.sessions_dir.make()
            self._disk.make_folder(path, 0o700)
        return True

    def _create_file(self, folder: int) -> int:
        handle = self._disk.open(LOG_NAME, _MAKING, 0o600, dir_fd=folder)
        try:
            self._disk.lock(handle, LOCK_EX | LOCK_NB)
        except BaseException:
            self._disk.close(handle)
            raise
        return handle

    def write(self, data: bytes, cuts: Sequence[int] = ()) -> None:
        """Append bytes. If this fails nothing is counted, so it can be tried again.

        What is before each of the `cuts` is durable before anything behind it is written.
        """
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

    def adopt(
        self, session_id: str, handle: int, end: int, folder: int, missing: bytes = b""
    ) -> None:
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
        self.handle, self._path = handle, f"{self.sessions_dir.path}/{session_id}/{LOG_NAME}"
        self.end = end
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


# The thread that writes logs: in order, and synced in groups.
#
# The event loop hands over batches and is called back when they are written, or durable. It never
# waits for the disk itself.

_GROUP = 32  # batches that are reported together: the first need not wait for the thousandth


class Batch(Protocol):
    """Some bytes for one file. Runs in the writer's thread; `done` runs in the event loop.

    All batches of a group are written before the first is synced, so that a file system with a
    journal writes that once for the group and not once for each file.
    """

    @property
    def durable(self) -> bool:
        """Whether it has to be synced."""
        ...

    @property
    def parent(self) -> str:
        """After the sync: a folder with a new entry, which is synced once for the whole group."""
        ...

    def write(self) -> None: ...
    def sync(self) -> None: ...
    def done(self, error: OSError | None) -> None: ...


class Writer:
    """A thread that starts with the first batch and ends with `close`."""

    def __init__(self, disk: Disk | None = None) -> None:
        self._disk = disk or Disk()
        self._jobs: SimpleQueue[tuple[AbstractEventLoop, list[Batch]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, loop: "AbstractEventLoop", batches: list[Batch]) -> None:
        """Have these written. The batches of one file must be put in order."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="bridle-writer", daemon=True)
            self._thread.start()
        self._jobs.put((loop, batches))

    def run(self, loop: "AbstractEventLoop", job: Callable[[], None], done: "Future[None]") -> None:
        """Run `job` in this thread, after what was put before."""
        self.put(loop, [Task(job, partial(_resolve, done))])

    def close(self) -> None:
        """End the thread once everything is written."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, batches = job
            for start in range(0, len(batches), _GROUP):
                outcome = self._write(batches[start : start + _GROUP])
                with suppress(RuntimeError):  # the loop is closed: it is written, and nobody waits
                    loop.call_soon_threadsafe(_report, outcome)

    def _write(self, batches: list[Batch]) -> "list[tuple[Batch, OSError | None]]":
        outcome = [(batch, _attempt(batch.write)) for batch in batches]
        outcome = [
            (batch, _attempt(batch.sync) if error is None and batch.durable else error)
            for batch, error in outcome
        ]
        parents = {batch.parent for batch, error in outcome if error is None and batch.parent}
        if not parents:
            return outcome
        errors = {path: _attempt(partial(sync_path, self._disk, path)) for path in parents}
        return [(batch, error or errors.get(batch.parent)) for batch, error in outcome]


class Task:
    """A function to be called in the order of the batches; then `on_done`, in the event loop."""

    parent = ""
    durable = False

    def __init__(self, job: Callable[[], None], on_done: Callable[[], None]) -> None:
        self.write = job
        self._on_done = on_done

    def sync(self) -> None:
        """Do nothing: there is no file."""

    def done(self, error: OSError | None) -> None:
        """Report that this and everything before it is done."""
        self._on_done()


def _resolve(done: "Future[None]") -> None:
    if not done.done():
        done.set_result(None)


def _attempt(write: Callable[[], None]) -> OSError | None:
    try:
        write()
    except OSError as error:
        return error
    except Exception as error:  # if the thread died, everybody would wait forever
        return OSError(f"{type(error).__name__}: {error}")
    return None


def _report(outcome: list[tuple[Batch, OSError | None]]) -> None:
    for batch, error in outcome:
        batch.done(error)
