"""Files and folders put in place below a folder that somebody hostile may write.

Every name on the way is opened by itself and no link is followed. Decides nothing.
"""

import os
import re
import shutil
import stat
from contextlib import suppress
from typing import NamedTuple

_REFUSED = ".bridle-refused"
# All of a name's end, so that no name that a program looks for (`ci.yml`) can be spelled like it.
_SET_ASIDE = re.compile(r"\.bridle-refused-[0-9a-f]{8}\Z")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(NamedTuple):
    """What stood at a path: its kind and mode, when it was changed last, and its bytes or target.

    `data` is None for a file that is too large to be held: it can be compared, not restored.
    """

    mode: int
    mark: tuple[int, ...]
    data: bytes | None


class Parent:
    """The folder that a path lies in, opened name by name without following a link."""

    def __init__(self, root: str, path: str, make: bool = False) -> None:
        *self._folders, self._name = path.split("/")
        self._root = root
        self._make = make
        self._handle = -1

    def __enter__(self) -> tuple[int, str]:
        self._handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in self._folders:
                above, self._handle = self._handle, self._step(folder)
                os.close(above)
        except BaseException:
            os.close(self._handle)
            raise
        return self._handle, self._name

    def _step(self, folder: str) -> int:
        try:
            return os.open(folder, _FOLDER, dir_fd=self._handle)
        except OSError:
            if not self._make:
                raise
        remove(self._handle, folder)  # a link or a file that was put there instead
        os.mkdir(folder, dir_fd=self._handle)
        return os.open(folder, _FOLDER, dir_fd=self._handle)

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def names_in(handle: int, name: str) -> list[str]:
    """The names in a folder, the last first."""
    folder = os.open(name, _FOLDER, dir_fd=handle)
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name for entry in entries), reverse=True)
    finally:
        os.close(folder)


def remove(handle: int, name: str) -> None:
    """Take it away with everything in it. What cannot be (too deep) is renamed to nothing known."""
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
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
    """Rename it to what nothing looks for; nothing is lost. Its new name; empty if it is gone."""
    new = f"{name[:50]}{_REFUSED}-{os.urandom(4).hex()}"
    try:
        os.rename(name, new, src_dir_fd=handle, dst_dir_fd=handle)
    except FileNotFoundError:
        return ""
    return new


def put(handle: int, name: str, before: Entry) -> None:
    """Make what stood there; the name is free, but for a folder."""
    mode = stat.S_IMODE(before.mode)
    if stat.S_ISDIR(before.mode):
        try:
            folder = os.open(name, _FOLDER, dir_fd=handle)
        except OSError:
            remove(handle, name)
            os.mkdir(name, dir_fd=handle)
            folder = os.open(name, _FOLDER, dir_fd=handle)
        os.fchmod(folder, mode)
        os.close(folder)
    elif stat.S_ISLNK(before.mode):
        os.symlink(before.data or b"", name.encode(errors="surrogateescape"), dir_fd=handle)
    elif stat.S_ISREG(before.mode):
        with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=handle), "wb") as file:
            file.write(before.data or b"")
            os.fchmod(file.fileno(), mode)
