"""The system calls of the store, in one place, so that a test can make them fail."""

import errno
import fcntl
import os
from collections.abc import Callable

from bridle.workspace.fs import FOLDER

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync stops at the drive


def _sync(handle: int) -> None:
    """Make the content of a file durable, also in the drive's own cache."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(handle, _FULL_SYNC)
    else:
        os.fdatasync(handle)


def _sync_folder(handle: int) -> None:
    """Make the entries of a folder durable, if the file system supports that."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise


class Disk:
    """A real disk. Everything raises `OSError`; `write` may write less than it was given."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    write: Callable[[int, bytes | memoryview, int], int] = staticmethod(os.pwrite)
    sync: Callable[[int], None] = staticmethod(_sync if _FULL_SYNC else os.fdatasync)
    sync_folder: Callable[[int], None] = staticmethod(_sync_folder)
    make_folder = staticmethod(os.mkdir)
    cut = staticmethod(os.ftruncate)
    look = staticmethod(os.fstat)
    find = staticmethod(os.lstat)
    lock = staticmethod(fcntl.flock)


def write_at(disk: Disk, handle: int, data: bytes, offset: int) -> None:
    """Write all of `data` at this offset, in as many calls as it takes."""
    count = disk.write(handle, data, offset)
    if count < len(data):
        view = memoryview(data)
        while count < len(data):
            count += disk.write(handle, view[count:], offset + count)


def sync_path(disk: Disk, path: str) -> None:
    """Make the entries of a folder durable."""
    handle = disk.open(path, FOLDER & ~os.O_NOFOLLOW)
    try:
        disk.sync_folder(handle)
    finally:
        disk.close(handle)
