"""What is in files and folders, by handles that are open already: read it, replace it, list it.

Bounded: never more is held than was asked for. Knows nothing of paths; `paths.py` found them.
"""

import os
import stat
from contextlib import suppress
from typing import TypeVar

from bridle.errors import ToolError
from bridle.workspace.fs import atomic_write, write_all
from bridle.workspace.handles import Spot

_CHUNK = 1 << 20
_TRIES = 3

One = TypeVar("One")


class Listed(list[One]):
    """A list that says whether it is `cut`: there is more than was asked for."""

    cut: bool = False


def gather(handle: int, most: int) -> bytes:
    """Up to so many bytes of a file that rests, as far as its times tell, or that only grows.

    One that changed meanwhile is read again. Raise `ToolError` where it does not come to rest.
    """
    for _ in range(_TRIES):
        before = os.fstat(handle)
        os.lseek(handle, 0, os.SEEK_SET)
        data = _read(handle, most)
        after = os.fstat(handle)
        if after.st_mtime_ns == before.st_mtime_ns or after.st_size > before.st_size:
            return data
    raise ToolError("The file changes while it is being read. Wait until it rests, and try again.")


def _read(handle: int, most: int) -> bytes:
    """Up to so many bytes, without asking for their room beforehand."""
    chunks: list[bytes] = []
    left = most
    while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def replace(spot: Spot, data: bytes, old: os.stat_result | None) -> None:
    """Write beside the file under a name that cannot be guessed, then put it in its place.

    Another name of the old file (a hard link) keeps what it had. What replaces something is on the
    disk before it does: a power loss leaves the old content or the new, never an empty file.
    """
    mode = 0o666 if old is None else 0o600
    with atomic_write(spot.name, spot.folder, mode=mode, sync=old is not None) as handle:
        if old is not None:
            with suppress(PermissionError):  # only root may give a file to somebody else
                os.fchown(handle, old.st_uid, old.st_gid)
            os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
        write_all(handle, data)


def listed(handle: int, most: int) -> Listed[tuple[str, str]]:
    """The entries of a folder with their kind, sorted; the first so many that the system names."""
    found = Listed[tuple[str, str]]()
    with os.scandir(handle) as entries:
        for entry in entries:
            if len(found) >= most:
                found.cut = True
                break
            found.append((entry.name, _kind(entry)))
    found.sort()
    return found


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
