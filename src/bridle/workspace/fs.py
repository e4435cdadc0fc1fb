"""The file operations that must be safe everywhere, each defined once.

Folders and files are opened without following links, a file is replaced in one step, and a private
file is readable by its owner only. Everything raises `OSError` unless it says otherwise.
"""

import atexit
import errno
import fcntl
import os
import re
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple

# How to open a folder, a file to read, and a file that does not exist yet: never through a link. A
# FIFO does not block us, and a terminal does not become our controlling terminal.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
TRAVERSE = FOLDER | getattr(os, "O_PATH", 0)  # to go through a folder needs no right to read it
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
    """Return a name beside `path` that nobody can guess."""
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
    from pathlib import Path  # a list of sessions needs none, and it takes 4 ms to load

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
    """Return the names in a folder, in no order."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def open_file(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading."""
    handle = os.open(path, READ)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file")
    return handle


# Files and folders that are restored in a folder that somebody hostile may write.

_REFUSED = ".bridle-refused"
# All of the end of a name, so that no name that a program looks for (`ci.yml`) can match.
_SET_ASIDE = re.compile(r"\.bridle-refused-[0-9a-f]{8}\Z")


class SavedEntry(NamedTuple):
    """What was at a path: its kind and mode, what changes when it does, and its bytes or target.

    `data` is None for a file that is too large to be kept: it can be compared, not restored.
    """

    mode: int
    stamp: tuple[int, ...]
    data: bytes | None


@contextmanager
def open_parent(root: str, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that a path lies in, following no link: its handle, and the path's last name.

    With `make`, create missing folders; a link or a file that is in their place is removed.
    """
    *folders, name = path.split("/")
    handle = os.open(root, TRAVERSE)
    try:
        for folder in folders:
            try:
                inner = os.open(folder, TRAVERSE, dir_fd=handle)
            except OSError:
                if not make:
                    raise
                remove_entry(handle, folder)
                os.mkdir(folder, dir_fd=handle)
                inner = os.open(folder, TRAVERSE, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle, name
    finally:
        os.close(handle)


def list_folder(handle: int, name: str) -> list[str]:
    """Return the names in a folder below an open one, the last first."""
    folder = os.open(name, FOLDER, dir_fd=handle)
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name for entry in entries), reverse=True)
    finally:
        os.close(folder)


def remove_entry(handle: int, name: str) -> None:
    """Remove a file, or a folder with everything in it. If it is too deep, set it aside."""
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            import shutil  # as slow to load as `pathlib`, and seldom needed

            try:
                shutil.rmtree(name, dir_fd=handle)
            except (OSError, RecursionError):
                set_aside(handle, name)
        else:
            os.unlink(name, dir_fd=handle)


def is_set_aside(name: str) -> bool:
    """Is it a name that `set_aside` gives?"""
    return _SET_ASIDE.search(name) is not None


def set_aside(handle: int, name: str) -> str:
    """Rename it to a name that no program looks for. Return that name, or empty if it is gone."""
    new = f"{name[:50]}{_REFUSED}-{os.urandom(4).hex()}"
    try:
        os.rename(name, new, src_dir_fd=handle, dst_dir_fd=handle)
    except FileNotFoundError:
        return ""
    return new


def restore_entry(handle: int, name: str, before: SavedEntry) -> None:
    """Create what was there. Only a folder may exist already."""
    mode = stat.S_IMODE(before.mode)
    if stat.S_ISDIR(before.mode):
        try:
            folder = os.open(name, FOLDER, dir_fd=handle)
        except OSError:
            remove_entry(handle, name)
            os.mkdir(name, dir_fd=handle)
            folder = os.open(name, FOLDER, dir_fd=handle)
        os.fchmod(folder, mode)
        os.close(folder)
    elif stat.S_ISLNK(before.mode):
        os.symlink(before.data or b"", name.encode(errors="surrogateescape"), dir_fd=handle)
    elif stat.S_ISREG(before.mode):
        with os.fdopen(os.open(name, CREATE, 0o600, dir_fd=handle), "wb") as file:
            file.write(before.data or b"")
            os.fchmod(file.fileno(), mode)


# Temporary folders, private to the user, that are removed when their owners are.

_PREFIX = "bridle-shell-"  # of those that are locked: a new one has another name until it is


def private_folder(owner: object) -> str:
    """Create a temporary folder for an object, and return its real path."""
    import tempfile  # loads `random`, which reading a file does not need

    own = _process_folder(os.getpid(), tempfile.gettempdir())
    if not os.path.isdir(own):  # noqa: PTH112 - somebody has removed it
        _process_folder.cache_clear()
        own = _process_folder(os.getpid(), tempfile.gettempdir())
    path = tempfile.mkdtemp(dir=own)
    weakref.finalize(owner, _remove_own, path, os.getpid())
    return path


@cache
def _process_folder(pid: int, above: str) -> str:
    """Create the folder of this process, which has the others in it."""
    import tempfile
    from pathlib import Path

    _remove_left_behind(above)
    new = Path(os.path.realpath(tempfile.mkdtemp(prefix="bridle-", dir=above)))
    path = str(new.with_name(new.name.replace("bridle-", _PREFIX, 1)))
    lock = os.open(new, FOLDER)
    with suppress(OSError):  # if files cannot be locked here, nobody removes it either
        fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(path)
    atexit.register(_remove_own, path, pid)
    return path


def _remove_left_behind(above: str) -> None:
    with suppress(OSError), os.scandir(above) as entries:
        for path in [entry.path for entry in entries if entry.name.startswith(_PREFIX)]:
            with suppress(OSError):
                handle = os.open(path, FOLDER)
                try:
                    if os.fstat(handle).st_uid == os.geteuid():
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        _remove_tree(path)
                finally:
                    os.close(handle)


def _remove_own(path: str, creator: int) -> None:
    """Remove a folder, unless this is a fork of the process that created it."""
    if os.getpid() == creator:
        _remove_tree(path)


def _remove_tree(path: str) -> None:
    """Remove it with everything in it, also folders that a command has made unreadable."""
    import shutil

    with suppress(RecursionError):
        for folder, _, _ in os.walk(path):
            with suppress(OSError):
                os.chmod(folder, 0o700)  # noqa: PTH101
        shutil.rmtree(path, ignore_errors=True)
