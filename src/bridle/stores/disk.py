"""The calls to the system that the store makes, in one place, so that a test can make them fail.

`Disk` is the real one: plain functions, bound once. It knows of no log and no record.
"""

import errno
import fcntl
import os
from collections.abc import Callable

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_WHOLLY: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: a sync stops at the drive


def _sync(handle: int) -> None:
    """Make what a file holds durable, down to the drive."""
    if _WHOLLY is not None:
        fcntl.fcntl(handle, _WHOLLY)
    else:
        os.fdatasync(handle)


def _sync_folder(handle: int) -> None:
    """Make the entries of a folder durable, where the file system has such a thing."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise


class Disk:
    """A real disk. Everything raises `OSError`; a write may take less than it was given."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    write: Callable[[int, bytes | memoryview, int], int] = staticmethod(os.pwrite)
    sync: Callable[[int], None] = staticmethod(_sync if _WHOLLY else os.fdatasync)
    sync_folder: Callable[[int], None] = staticmethod(_sync_folder)
    make_folder = staticmethod(os.mkdir)
    cut = staticmethod(os.ftruncate)
    look = staticmethod(os.fstat)
    find = staticmethod(os.lstat)
    lock = staticmethod(fcntl.flock)


def write_all(disk: Disk, handle: int, data: bytes, offset: int) -> None:
    """Write all of `data` there, however often the system has to be asked."""
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
