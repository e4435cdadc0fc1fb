"""One log's file, as the one who writes it sees it: made, written, made durable, let go.

Runs in the writer's thread. What is not durable yet is kept, because a disk that fails to sync may
have dropped it. Lines and records are not known here, only bytes and where they belong.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB

from bridle.stores.disk import FOLDER, Disk, sync_path, write_all

NAME = "log.jsonl"
DELETED = "it was deleted while it was in use"
REPLACED = "another file was put in its place while it was in use"
CUT = "somebody else cut it off while it was in use"
_OTHERS = 0o077  # rights of anybody but the user
_MAKING = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Ground:
    """The folder in which all sessions lie, and those above it: made where they are missing."""

    def __init__(self, disk: Disk, state: str) -> None:
        self.disk = disk
        self.path = f"{state}/sessions"
        # Folders with entries that may not be durable: True where this process made the entry, and
        # False where another may have, which died before it came to sync it.
        self.unsure = {state: False, os.path.dirname(state) or ".": False}  # noqa: PTH120 - no Path

    def make(self) -> None:
        """Make the folder and whatever is missing above it."""
        missing, path = [], self.path
        while path and not os.path.isdir(path):  # noqa: PTH112 - no Path where logs are made
            missing.append(path)
            path = os.path.dirname(path)  # noqa: PTH120 - as above
        for path in reversed(missing):
            with suppress(FileExistsError):
                self.disk.make_folder(path, 0o700)
            self.unsure[os.path.dirname(path) or "."] = True  # noqa: PTH120 - as above

    def settle(self) -> None:
        """Make the folders above durable. Once a process, for all logs."""
        for path, made in list(self.unsure.items()):
            try:
                sync_path(self.disk, path)
            except PermissionError:
                if made:
                    raise
            self.unsure.pop(path, None)


class LogFile:
    """A file that only grows."""

    __slots__ = (
        "_disk",
        "_folder",
        "_kept",
        "_lost",
        "_made",
        "_mark",
        "_path",
        "_syncs",
        "end",
        "fresh",
        "ground",
        "handle",
        "unsafe",
    )

    def __init__(self, ground: Ground, *, syncs: bool) -> None:
        self.ground = ground
        self.handle = -1
        self.end = 0  # so many bytes are in the kernel's hands
        self.unsafe = 0  # so many of them are not durable
        self.fresh = False  # its folder's entry in the folder of sessions may not be durable
        self._disk = ground.disk
        self._folder = -1  # held until the file's own entry is durable
        self._syncs = syncs
        self._kept: list[bytes] = []  # written, not durable
        self._lost = False  # a sync failed: what was kept has to be written again
        self._made = False  # here, and not by somebody before
        self._path = ""  # where it lies
        self._mark: tuple[int, int] | None = None  # which file that is, once somebody looked

    def make(self, session_id: str) -> None:
        """A new file, private and locked, in a folder of its own."""
        disk, path = self._disk, f"{self.ground.path}/{session_id}"
        made = self._make_folder(path)
        try:
            folder = disk.open(path, FOLDER)
            try:
                handle = self._make_file(folder)
            except BaseException:
                disk.close(folder)
                raise
        except BaseException:
            if made:
                with suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106 - no Path where logs are made
            raise
        self.handle, self._path = handle, f"{path}/{NAME}"
        self._made = True
        if self._syncs:
            self._folder, self.fresh = folder, True
        else:
            disk.close(folder)

    def _make_folder(self, path: str) -> bool:
        """Was it missing?"""
        try:
            self._disk.make_folder(path, 0o700)
        except FileExistsError:
            return False  # a try that failed, or an empty folder; a log in it is not touched
        except FileNotFoundError:
            self.ground.make()
            self._disk.make_folder(path, 0o700)
        return True

    def _make_file(self, folder: int) -> int:
        handle = self._disk.open(NAME, _MAKING, 0o600, dir_fd=folder)
        try:
            self._disk.lock(handle, LOCK_EX | LOCK_NB)
        except BaseException:
            self._disk.close(handle)
            raise
        return handle

    def write(self, data: bytes, cuts: Sequence[int] = ()) -> None:
        """Hand bytes to the kernel. When it fails nothing is counted: it can be tried again.

        What stands before a cut is durable before anything behind it is written.
        """
        if self.end and self._disk.look(self.handle).st_size < self.end:
            raise OSError(errno.ESTALE, CUT)  # to write on would leave a hole
        if self._lost:
            self._write_again()
        if data:
            done = self._write_apart(data, cuts) if cuts and self._syncs else 0
            rest = data[done:]
            write_all(self._disk, self.handle, rest, self.end + done)
            self.end += len(data)
            if self._syncs:
                self._kept.append(rest)
                self.unsafe += len(rest)

    def _write_apart(self, data: bytes, cuts: Sequence[int]) -> int:
        """Write up to the last cut, and sync at each: so many bytes are durable."""
        done = 0
        for cut in cuts:
            if cut > done:
                write_all(self._disk, self.handle, data[done:cut], self.end + done)
            if cut > done or self.unsafe:
                self._sync_file()
            done = cut
        return done

    def _write_again(self) -> None:
        kept = b"".join(self._kept)
        write_all(self._disk, self.handle, kept, self.end - len(kept))
        self._lost = False

    def sync(self) -> None:
        """Make everything that was written durable, and see that the file is still there."""
        self._check_place()
        if not self._syncs:
            return
        if self._lost:  # somebody else's batch came between
            self._write_again()
        if self.unsafe:
            self._sync_file()
        if self._folder >= 0:
            self._disk.sync_folder(self._folder)
            folder, self._folder = self._folder, -1
            self._disk.close(folder)
        if self.ground.unsure:
            self.ground.settle()

    def _check_place(self) -> None:
        """Nobody finds what is written into a file that was moved away."""
        try:
            info = self._disk.find(self._path)
        except (FileNotFoundError, NotADirectoryError):
            raise OSError(errno.ENOENT, DELETED) from None
        found = info.st_dev, info.st_ino
        if self._mark is None:  # made a moment ago, and looked at for the first time
            self._mark = found
        elif found != self._mark:
            raise OSError(errno.ESTALE, REPLACED)

    def _sync_file(self) -> None:
        try:
            self._disk.sync(self.handle)
        except OSError:
            self._lost = bool(self._kept)
            raise
        self._kept.clear()
        self.unsafe = 0

    def adopt(
        self, session_id: str, handle: int, end: int, folder: int, missing: bytes = b""
    ) -> None:
        """Go on with a file that was there; durable before anything is built on it.

        `missing` is put behind its end.
        """
        _narrow(handle)
        _narrow(folder)
        if self._disk.look(handle).st_size > end:
            self._disk.cut(handle, end)
        if missing:
            write_all(self._disk, handle, missing, end)
            end += len(missing)
        if self._syncs:  # whoever wrote it may have died before it was on disk
            self._disk.sync(handle)
            self._disk.sync_folder(folder)
            sync_path(self._disk, self.ground.path)
            self.ground.settle()
        self.handle, self._path = handle, f"{self.ground.path}/{session_id}/{NAME}"
        self.end = end
        info = self._disk.look(handle)
        self._mark = (info.st_dev, info.st_ino)

    def close(self) -> None:
        """Let the file and its lock go. One that got no line, for want of room, is not left."""
        if self._made and not self.end and self.handle >= 0:
            with suppress(OSError):
                self._check_place()
                os.unlink(self._path)  # noqa: PTH108 - no Path where logs are made
                os.rmdir(self._path.rpartition("/")[0])  # noqa: PTH106 - as above
        handle, self.handle = self.handle, -1
        folder, self._folder = self._folder, -1
        for one in (handle, folder):
            if one >= 0:
                self._disk.close(one)


def _narrow(handle: int) -> None:
    """Take away what others may do with it, as far as the system lets us."""
    mode = os.fstat(handle).st_mode
    if mode & _OTHERS:
        with suppress(OSError):
            os.fchmod(handle, mode & 0o7777 & ~_OTHERS)
