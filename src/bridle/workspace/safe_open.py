"""Open paths by directory handles: from a root down, one name at a time, and no link is trusted.

The kernel is never asked to follow a link or to go up. Links are read and followed here, from the
handles that are held, so what is opened is inside a root even if somebody replaces a folder by a
link in between. Knows nothing of workspaces, limits or text.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from bridle.errors import OutsideWorkspace, ToolError
from bridle.workspace.fs import FOLDER, READ, TRAVERSE
from bridle.workspace.text import one_line

MAX_LINKS = 40  # links followed for one path; the kernel's own limit
Root = tuple[str, ...]  # the paths that a root is known by, its real path first


class OutsideRoots(OutsideWorkspace):
    """A link leads out of every root."""


class Location:
    """Where a path leads: an open folder, and a name in it that is not followed if it is a link.

    `name` is empty for the folder itself. `missing` are names below it that do not exist yet.
    `root` is the number of the root that it lies in, `links` how many links were followed.
    """

    def __init__(self, root: int, handle: int) -> None:
        self.root = root
        self.folders = [handle]  # from the root to the last one, all open
        self.names: list[str] = []
        self.name = ""
        self.missing: list[str] = []
        self.links = 0

    @property
    def folder(self) -> int:
        """The handle of the last folder."""
        return self.folders[-1]

    @property
    def path(self) -> str:
        """The path from the root, links followed; empty for the root itself."""
        return "/".join(filter(None, [*self.names, self.name, *self.missing]))

    @property
    def status(self) -> os.stat_result | None:
        """What is there now, or None if there is nothing."""
        if self.missing:
            return None
        if not self.name:
            return os.fstat(self.folder)
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_folder(self) -> int:
        """Open the folder that is there, so that it can be listed. Return its handle."""
        return os.open(self.name or ".", FOLDER, dir_fd=self.folder)

    def open_file(self) -> int:
        """Open the regular file that is there. Return its handle.

        Raise `ToolError` for a device, a pipe or a socket.
        """
        _check_regular(self.status)
        handle = os.open(self.name or ".", READ, dir_fd=self.folder)
        try:
            _check_regular(os.fstat(handle))  # what was opened, not what was there a moment ago
        except ToolError:
            os.close(handle)
            raise
        return handle

    def enter(self, name: str, *, make: bool = False) -> None:
        """Go into a folder; with `make`, create it if it is missing.

        Raise `FileNotFoundError` if it is missing, `NotADirectoryError` for a link or a file.
        """
        try:
            handle = os.open(name, TRAVERSE, dir_fd=self.folder)
        except FileNotFoundError:
            if not make:
                raise
            with suppress(FileExistsError):  # somebody else has just created it
                os.mkdir(name, dir_fd=self.folder)
            handle = os.open(name, TRAVERSE, dir_fd=self.folder)
        self.folders.append(handle)
        self.names.append(name)

    def leave(self) -> None:
        """Go back to the folder above, which must not be above the root."""
        os.close(self.folders.pop())
        self.names.pop()

    def restart(self, root: int, handle: int) -> None:
        """Start again at a root."""
        self.close()
        self.root, self.folders, self.names = root, [handle], []

    def count_link(self, name: str) -> None:
        """Note that a link is followed. Raise `ToolError` if there are too many."""
        self.links += 1
        if self.links > MAX_LINKS:
            raise ToolError(f"Too many links on the way: {one_line(name)} leads in a circle.")

    def close(self) -> None:
        """Close every handle."""
        while self.folders:
            os.close(self.folders.pop())


@contextmanager
def open_location(
    roots: Sequence[Root],
    parts: Sequence[str],
    *,
    root: int = 0,
    make: bool = False,
    as_link: bool = False,
) -> Iterator[Location]:
    """Walk down `parts`, which have no `..`, from the root of that number.

    A link may lead from one of the roots into another. With `make`, missing folders on the way are
    created. With `as_link`, a link at the end is not followed: the link itself is meant. The
    handles are closed when the block ends.
    """
    location = Location(root, _open_root(roots[root]))
    pending = deque(parts)
    try:
        while pending:
            name = pending.popleft()
            if name in ("", "."):
                continue
            if name == "..":  # of a link
                _go_up(location, roots, pending)
                continue
            is_last = not any(rest not in ("", ".") for rest in pending)
            target = None if is_last and as_link else _read_link(location.folder, name)
            if target is not None:
                location.count_link(name)
                _follow(location, roots, target, pending)
            elif is_last:
                location.name = name
                break
            else:
                try:
                    location.enter(name, make=make)
                except FileNotFoundError:
                    if make:
                        raise
                    if ".." in pending:  # of a link that goes up from a folder that is not there
                        raise OutsideRoots("The path goes up from a missing folder.") from None
                    location.missing = [name, *pending]
                    break
        yield location
    finally:
        location.close()


def _open_root(root: Root) -> int:
    try:
        return os.open(root[0], TRAVERSE)
    except FileNotFoundError as error:
        raise ToolError("The workspace itself is gone: its folder was removed.", error) from error


def _go_up(location: Location, roots: Sequence[Root], pending: deque[str]) -> None:
    """Go one folder up, as a link says. From a root, only a path into a root is followed."""
    if len(location.folders) > 1:
        location.leave()
        return
    location.count_link("..")
    above = roots[location.root][0].rpartition("/")[0]
    target = os.path.normpath("/".join([above, *pending]) or "/")
    pending.clear()
    _follow(location, roots, target, pending)


def _follow(location: Location, roots: Sequence[Root], target: str, pending: deque[str]) -> None:
    """Put the names of a link's target before the pending ones.

    An absolute target starts again at the root that it lies in.
    """
    parts = target.split("/")
    if target.startswith("/"):
        for number, root in enumerate(roots):
            inside = parts_below(root, target)
            if inside is not None:
                location.restart(number, _open_root(root))
                parts = inside
                break
        else:
            raise OutsideRoots("The path leads out of the workspace through a link.")
    pending.extendleft(reversed(parts))


def _read_link(folder: int, name: str) -> str | None:
    """Return where a link leads, or None if it is not a link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def parts_below(root: Root, path: str) -> list[str] | None:
    """Return the names of an absolute path below a root, or None if it is not below it."""
    parts = path.split("/")
    for spelling in root:
        own = spelling.rstrip("/").split("/")
        if parts[: len(own)] == own:
            return parts[len(own) :]
    return None


def _check_regular(status: os.stat_result | None) -> None:
    if status is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise ToolError("It is a device, a pipe or a socket, not a file.")
