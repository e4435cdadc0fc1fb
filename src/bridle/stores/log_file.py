"""The file of one log, for its writer: create it, append, make it durable, close it.

Runs in the writer's thread. Bytes that are not durable yet are kept in memory, because a disk that
fails to sync may have dropped them. This module knows nothing of lines and records.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB

from bridle.stores.disk import Disk, sync_path, write_at
from bridle.stores.log_format import LOG_NAME
from bridle.workspace.fs import FOLDER

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
