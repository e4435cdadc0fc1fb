"""The file operations that must be safe everywhere, each defined once.

Folders and files are opened without following links, a file is replaced in one step, and a private
file is readable by its owner only. Everything raises `OSError` unless it says otherwise.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# How to open a folder, a file to read, and a file that does not exist yet: never through a link. A
# FIFO does not block whoever opens it, and a terminal does not become ours.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20


@contextmanager
def open_folder(
    name: str | os.PathLike[str], parent: int | None = None, *, make: bool = False
) -> Iterator[int]:
    """Open a folder that is not a link. With `make` it is created, private, if it is missing."""
    try:
        handle = os.open(name, FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):  # another process created it
            os.mkdir(name, 0o700, dir_fd=parent)
            if parent is not None:
                os.fsync(parent)
        handle = os.open(name, FOLDER, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data`, in as many calls as it takes."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def write_file(folder: int, name: str, data: bytes, *, sync: bool = True) -> None:
    """Write or replace a file in one step. With `sync` it is durable on return."""
    while True:
        temporary = f".{name[:80]}.{os.urandom(8).hex()}"
        with suppress(FileExistsError):
            handle = os.open(temporary, CREATE, 0o600, dir_fd=folder)
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


def read_file(folder: int, name: str, limit: int) -> bytes | None:
    """Read a regular file; None for anything else, and for more than `limit` bytes."""
    try:
        handle = os.open(name, READ, dir_fd=folder)
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


def list_names(folder: int) -> list[str]:
    """The names in a folder, in no order."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def open_file(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading."""
    handle = os.open(path, READ)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file")
    return handle
