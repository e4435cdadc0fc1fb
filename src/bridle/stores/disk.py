"""The calls to the system that the store makes, in one place, so that a test can make them fail.

`Disk` is the real one: plain functions, bound once. It knows of no log and no record.
"""

import fcntl
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Disk:
    """A real disk. Everything raises `OSError`; a write may take less than it was given."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read: "Callable[[int, int, int], bytes]" = staticmethod(os.pread)
    write: "Callable[[int, Buffer, int], int]" = staticmethod(os.pwrite)
    sync: "Callable[[int], None]" = staticmethod(getattr(os, "fdatasync", os.fsync))
    sync_folder: "Callable[[int], None]" = staticmethod(os.fsync)
    make_folder = staticmethod(os.mkdir)
    cut = staticmethod(os.ftruncate)
    look = staticmethod(os.fstat)
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
