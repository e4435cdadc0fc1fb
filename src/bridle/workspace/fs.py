"""The file operations that must be safe everywhere, each defined once.

Folders and files are opened without following links, a file is replaced in one step, and a private
file is readable by its owner only. Everything raises `OSError` unless it says otherwise.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# How to open a folder, a file to read, and a file that does not exist yet: never through a link. A
# FIFO does not block whoever opens it, and a terminal does not become ours.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20


def is_below(path: str, folder: str) -> bool:
    """Is `path` that folder or something in it?

    Only the text is compared, name by name: resolve links and `..` before, if they matter. Nothing
    lies below an empty name.
    """
    if path == folder:
        return True
    return folder != "" and path.startswith(f"{folder.rstrip('/')}/")


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


@contextmanager
def atomic_write(
    path: str | os.PathLike[str],
    folder: int | None = None,
    *,
    mode: int = 0o600,
    sync: bool = False,
    overwrite: bool = True,
) -> Iterator[int]:
    """Yield the handle of a new file that becomes `path` when the block ends.

    Until then it lies beside `path`, under a name that nobody can guess. If anything fails it is
    removed, and `path` is what it was. A link at `path` is replaced, not followed. `path` may be
    relative to a `folder` that is open.

    With `sync`, the content is durable before the file gets its name: a power loss leaves the old
    content or the new. Without `overwrite`, raise `FileExistsError` if `path` exists.
    """
    temporary = temporary_name(path)
    handle = os.open(temporary, CREATE, mode, dir_fd=folder)
    try:
        try:
            yield handle
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException:
        _remove(temporary, folder)
        raise
    put_in_place(temporary, path, folder, overwrite=overwrite)


def temporary_name(path: str | os.PathLike[str]) -> str:
    """A name beside `path` that nobody can guess."""
    parent, slash, _ = os.fspath(path).rpartition("/")
    return f"{parent}{slash}.{os.urandom(12).hex()}.tmp"


def put_in_place(
    temporary: str,
    path: str | os.PathLike[str],
    folder: int | None = None,
    *,
    overwrite: bool = True,
) -> None:
    """Rename a finished file to `path`. If that fails the finished file is removed."""
    try:
        if overwrite:
            os.rename(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
        else:  # unlike a rename, a link never takes the place of another file
            os.link(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
            _remove(temporary, folder)
    except BaseException:
        _remove(temporary, folder)
        raise


def _remove(name: str, folder: int | None) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def write_file(folder: int, name: str, data: bytes, *, sync: bool = True) -> None:
    """Write or replace a private file in one step. With `sync` it is durable on return."""
    write_private(name, data, folder, sync=sync)
    if sync:
        os.fsync(folder)


def write_private(
    path: str | os.PathLike[str],
    data: bytes,
    folder: int | None = None,
    *,
    sync: bool = False,
    overwrite: bool = True,
) -> None:
    """Write a file that only its owner can read in one step; see `atomic_write`."""
    with atomic_write(path, folder, sync=sync, overwrite=overwrite) as handle:
        write_all(handle, data)


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write or replace a private file in one step; if `path` is a link, the file it leads to.

    Its folder is created, private, if it is missing.
    """
    real = Path(os.path.realpath(path))
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(real, data, sync=True)


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
