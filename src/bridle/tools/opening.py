"""Files of the workspace, opened: the verbs that the promise `Files` does not have.

Everything goes through the workspace's own way down, handle by handle, so that what is opened or
listed here lies inside, whatever anybody swaps meanwhile. Knows nothing of text.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from heapq import nsmallest
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bridle.protocols.tool import Files
from bridle.workspace.fs import READ
from bridle.workspace.handles import Spot, open_file, open_folder
from bridle.workspace.paths import NotAFolder, Workspace

_HANDLES = Path("/proc/self/fd")
LOOKED = 100_000  # entries of one folder that anybody looks at


class Entry(NamedTuple):
    """One name in a folder. `kind` is file, folder, link or other; `size` is -1 where unknown."""

    name: str
    kind: str
    size: int = -1

    @property
    def shown(self) -> str:
        """The name as it is listed."""
        return f"{self.name}/" if self.kind == "folder" else self.name


def on_disk(files: Files) -> Workspace:
    """The workspace that can be walked."""
    return files if isinstance(files, Workspace) else Workspace(files.root)


def opened(files: Files, path: str) -> AbstractContextManager[FileIO]:
    """A regular file, to be read piece by piece. Raise `ToolError` for a pipe or a device."""
    return on_disk(files).opened(path)


@contextmanager
def pinned(files: Files, path: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """A folder or a file for another program: where to start it, what to name, what to hand it.

    The program is given what was opened here, so that nothing can be put in its place meanwhile.
    """
    with on_disk(files).reading(path) as spot:
        found = spot.status
        is_folder = found is not None and stat.S_ISDIR(found.st_mode)
        handle = open_folder(spot) if is_folder else open_file(spot)
        try:
            if not _HANDLES.is_dir():  # another system than Linux
                yield files.root, files.relative(path), ()
            elif is_folder:
                yield f"{_HANDLES}/{handle}", ".", ()
            else:
                yield files.root, f"{_HANDLES}/{handle}", (handle,)
        finally:
            os.close(handle)


def status(files: Files, path: str) -> os.stat_result | None:
    """What the system says of a path; None where nothing is."""
    try:
        with on_disk(files).reading(path) as spot:
            return spot.status
    except NotAFolder:
        return None


@contextmanager
def _folder(files: Files, path: str) -> Iterator[int]:
    """The handle of a folder that can be listed."""
    with on_disk(files).reading(path) as spot:
        handle = open_folder(spot)
        try:
            yield handle
        finally:
            os.close(handle)


def scan(files: Files, path: str) -> Iterator[Entry]:
    """The entries of a folder as the system names them, one at a time: there may be millions."""
    with _folder(files, path) as handle:
        yield from _scanned(handle)


def _scanned(handle: int) -> Iterator[Entry]:
    with os.scandir(handle) as found:
        for entry in found:
            yield Entry(entry.name, _kind(entry))


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def first_entries(
    files: Files, path: str, most: int, keep: Callable[[Entry], bool] = lambda entry: True
) -> tuple[list[Entry], int]:
    """The first entries of a folder by their names, with sizes, and how many there are in all.

    No more than `LOOKED` are looked at; where the number is larger, there are others.
    """
    count = 0

    def counted(handle: int) -> Iterator[Entry]:
        nonlocal count
        for entry in islice(_scanned(handle), LOOKED + 1):
            if keep(entry):
                count += 1
                yield entry

    with _folder(files, path) as handle:
        found = nsmallest(most, counted(handle))
        return [entry._replace(size=_size(handle, entry)) for entry in found], count


def _size(handle: int, entry: Entry) -> int:
    if entry.kind != "file":
        return -1
    try:
        return os.stat(entry.name, dir_fd=handle, follow_symlinks=False).st_size
    except OSError:  # gone already
        return -1


def set_mode(files: Files, path: str, mode: int) -> None:
    """Give a file these permissions."""
    with opened(files, path) as file:
        os.fchmod(file.fileno(), mode & 0o777)


class InTurn:
    """Reads many files below a folder one after the other; each folder on the way is entered once.

    What is not plainly a file of its own, in plain folders (a link, a second name), is read as the
    workspace does it.
    """

    def __init__(self, files: Files, top: str) -> None:
        self._workspace = on_disk(files)
        self._top = top
        self._prefix = "" if top == "." else f"{top}/"
        self._spot: Spot | None = None

    def __enter__(self) -> "InTurn":
        if self._workspace.is_folder(self._top):
            with self._workspace.reading(self._top) as top:
                self._spot = Spot(0, open_folder(top))
        return self

    def __exit__(self, *failed: object) -> None:
        if self._spot is not None:
            self._spot.close()

    def read(self, path: str, most: int) -> bytes:
        """Up to so many bytes of a file. Raise `ToolError` where there are none to be had."""
        *folders, name = path.removeprefix(self._prefix).split("/")
        if self._spot is None or ".." in folders or not path.startswith(self._prefix):
            return self._workspace.read(path, most)
        try:
            handle = os.open(name, READ, dir_fd=_entered(self._spot, folders))
        except OSError:
            return self._workspace.read(path, most)
        try:
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size < most:
                return os.read(handle, found.st_size)
        finally:
            os.close(handle)
        return self._workspace.read(path, most)


def _entered(spot: Spot, folders: list[str]) -> int:
    """The handle of that folder, from wherever one is. Raise `OSError` where a link leads there."""
    while spot.names != folders[: len(spot.names)]:
        spot.up()
    for name in folders[len(spot.names) :]:
        spot.enter(name)
    return spot.folder
