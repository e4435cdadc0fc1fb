"""Private files that are there whole or not at all, reached by folder handles; no link is followed.

What stands in the files is not known here. Everything raises `OSError`.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20


@contextmanager
def entered(
    name: str | os.PathLike[str], above: int | None = None, *, make: bool = False
) -> Iterator[int]:
    """The handle of a folder that is no link; with `make` it is made, private, where missing."""
    handle = _enter(name, above, make)
    try:
        yield handle
    finally:
        os.close(handle)


def _enter(name: str | os.PathLike[str], above: int | None, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # somebody else made it: just as well
        os.mkdir(name, 0o700, dir_fd=above)
        if above is not None:
            os.fsync(above)
    return os.open(name, _FOLDER, dir_fd=above)


def place(folder: int, name: str, data: bytes, *, sync: bool = True) -> None:
    """Put a file there in one step, in place of an older one; durable on return with `sync`."""
    while True:
        temporary = f".{name[:80]}.{os.urandom(8).hex()}"
        with suppress(FileExistsError):
            handle = os.open(temporary, _MAKING, 0o600, dir_fd=folder)
            break
    try:
        try:
            write_all(handle, data)
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    if sync:
        os.fsync(folder)


def write_all(handle: int, data: bytes) -> None:
    """All of it, however often the system has to be asked."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def found(folder: int, name: str, limit: int) -> bytes | None:
    """What stands in a regular file; None for anything else, and for more than `limit` bytes."""
    try:
        handle = os.open(name, _READING, dir_fd=folder)
    except OSError:
        return None
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
            return None
        blocks = list(iter(lambda: os.read(handle, _BLOCK), b""))
    except OSError:
        return None
    finally:
        os.close(handle)
    return b"".join(blocks)


def names(folder: int) -> list[str]:
    """The entries of a folder, in no order."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def opened(path: str | os.PathLike[str]) -> int:
    """The handle of a regular file, for reading."""
    handle = os.open(path, _READING)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file")
    return handle
