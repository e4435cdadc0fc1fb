"""Files and folders of the workspace: their status, and the entries of a folder.

Everything is opened by the workspace itself, folder by folder without following links, so that
whatever is read or listed here lies inside of it, even if somebody swaps a folder for a link
meanwhile.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple

from bridle.protocols.tool import Files
from bridle.workspace.handles import open_folder
from bridle.workspace.workspace import NotAFolder, Workspace

MAX_ENTRIES = 100_000  # of one folder; further ones are not looked at


class Entry(NamedTuple):
    """An entry of a folder. `kind` is file, folder, link or other; `size` is -1 if unknown."""

    name: str
    kind: str
    size: int = -1


def workspace_of(files: Files) -> Workspace:
    """Return `files` as a `Workspace`, which has more methods."""
    return files if isinstance(files, Workspace) else Workspace(files.root)


def file_status(files: Files, path: str) -> os.stat_result | None:
    """Return the status of a file or folder, None if there is none."""
    try:
        with workspace_of(files).reading(path) as spot:
            return spot.status
    except NotAFolder:
        return None


def iter_entries(files: Files, path: str) -> Iterator[Entry]:
    """Yield the entries of a folder in the system's order, one at a time: there may be millions."""
    with _folder_handle(files, path) as handle:
        yield from _entries(handle)


def first_entries(
    files: Files, path: str, count: int, keep: Callable[[Entry], bool] = lambda entry: True
) -> tuple[list[Entry], int]:
    """Return the first entries of a folder by name, with sizes, and how many there are in all.

    No more than `MAX_ENTRIES` are looked at. A larger total means that there are even more.
    """
    total = 0

    def counted(handle: int) -> Iterator[Entry]:
        nonlocal total
        for entry in islice(_entries(handle), MAX_ENTRIES + 1):
            if keep(entry):
                total += 1
                yield entry

    with _folder_handle(files, path) as handle:
        entries = nsmallest(count, counted(handle))
        return [entry._replace(size=_size(handle, entry)) for entry in entries], total


@contextmanager
def _folder_handle(files: Files, path: str) -> Iterator[int]:
    with workspace_of(files).reading(path) as spot:
        handle = open_folder(spot)
        try:
            yield handle
        finally:
            os.close(handle)


def _entries(handle: int) -> Iterator[Entry]:
    with os.scandir(handle) as entries:
        for entry in entries:
            if entry.is_symlink():
                kind = "link"
            elif entry.is_dir(follow_symlinks=False):
                kind = "folder"
            else:
                kind = "file" if entry.is_file(follow_symlinks=False) else "other"
            yield Entry(entry.name, kind)


def _size(handle: int, entry: Entry) -> int:
    if entry.kind != "file":
        return -1
    try:
        return os.stat(entry.name, dir_fd=handle, follow_symlinks=False).st_size
    except OSError:  # it is gone
        return -1
