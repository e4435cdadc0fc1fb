"""Opening by directory handles: from a root down, one component at a time, no link trusted.

The kernel is never asked to follow a link or to go up. Links are read and walked here, from the
handles that are held, so what is opened is inside a root even when somebody swaps a folder for a
link in between. Knows nothing of workspaces, limits or text.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import NamedTuple

from bridle.errors import OutsideWorkspace, ToolError
from bridle.workspace.fs import FOLDER, READ
from bridle.workspace.text import one_line

MOST_HOPS = 40  # links followed for one path; the kernel's own limit
Root = tuple[str, ...]  # a root's spellings, its real path first
_THROUGH = FOLDER | getattr(os, "O_PATH", 0)  # passing through asks for no right to read


class LedOut(OutsideWorkspace):
    """A link led out of every root."""


class Spot:
    """Where a path leads: the handle of the last folder, and a name in it that is no link.

    `name` is empty for the folder itself. `missing` are names below it that do not exist yet.
    `root` is the number of the root that it lies in, `hops` how many links led there.
    """

    def __init__(self, root: int, handle: int) -> None:
        self.root = root
        self.folders = [handle]
        self.names: list[str] = []
        self.name = ""
        self.missing: list[str] = []
        self.hops = 0

    @property
    def folder(self) -> int:
        """The handle of the last folder that was reached."""
        return self.folders[-1]

    @property
    def path(self) -> str:
        """The path from the root, links followed; empty for the root itself."""
        return "/".join(filter(None, [*self.names, self.name, *self.missing]))

    @property
    def status(self) -> os.stat_result | None:
        """What is there now; None where nothing is."""
        if self.missing:
            return None
        if not self.name:
            return os.fstat(self.folder)
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def up(self) -> None:
        """Back to the folder above, which is not above the root."""
        os.close(self.folders.pop())
        self.names.pop()

    def restart(self, root: int, handle: int) -> None:
        """Begin again at a root."""
        self.close()
        self.root, self.folders, self.names = root, [handle], []

    def enter(self, name: str) -> None:
        """Into a folder that is no link. Raise `NotADirectoryError` for a link or a file."""
        self.folders.append(os.open(name, _THROUGH, dir_fd=self.folder))
        self.names.append(name)

    def close(self) -> None:
        """Let go of every handle."""
        while self.folders:
            os.close(self.folders.pop())


class Way(NamedTuple):
    """Where to walk: down `parts`, which hold no `..`, from the root of that number.

    A link may lead from one of the `roots` into another. With `make`, missing folders on the way
    are made. With `as_link`, a link at the end is not followed: it is what is meant.
    """

    roots: Sequence[Root]
    root: int
    parts: Sequence[str]
    make: bool = False
    as_link: bool = False


def walked(
    root: Sequence[str], parts: Sequence[str], *, make: bool = False
) -> AbstractContextManager[Spot]:
    """Walk down from one root, given by its spellings, the real path first."""
    return reached(Way([tuple(root)], 0, parts, make))


@contextmanager
def reached(way: Way) -> Iterator[Spot]:
    """Walk there. The handles are held until the end."""
    spot = Spot(way.root, _open_root(way.roots[way.root]))
    try:
        _Walk(way, spot).go()
        yield spot
    finally:
        spot.close()


def _open_root(root: Root) -> int:
    try:
        return os.open(root[0], _THROUGH)
    except FileNotFoundError as error:
        raise ToolError("The workspace itself is gone: its folder was removed.", error) from error


class _Walk:
    """One walk: what was reached, and the names that are still to come."""

    def __init__(self, way: Way, spot: Spot) -> None:
        self._way = way
        self._spot = spot
        self._pending = deque(way.parts)

    def go(self) -> None:
        """Until the last name, or to where nothing is."""
        while self._pending:
            part = self._pending.popleft()
            if part == "..":
                self._up()
            elif part not in ("", ".") and self._step(part):
                return

    def _step(self, part: str) -> bool:
        """One name further. True at the end of the way."""
        spot = self._spot
        is_last = not any(rest not in ("", ".") for rest in self._pending)
        target = None if is_last and self._way.as_link else _link(spot.folder, part)
        if target is not None:
            self._hop(part)
            self._follow(target)
            return False
        if is_last:
            spot.name = part
        elif not _enter(spot, part, self._way.make):
            spot.missing = self._nowhere(part)
        return is_last or bool(spot.missing)

    def _hop(self, part: str) -> None:
        self._spot.hops += 1
        if self._spot.hops > MOST_HOPS:
            raise ToolError(f"Too many links on the way: {one_line(part)} leads in a circle.")

    def _nowhere(self, part: str) -> list[str]:
        if ".." in self._pending:  # a link that goes up from a folder that is not there
            raise LedOut("The path goes up from where nothing is.")
        return [part, *self._pending]

    def _up(self) -> None:
        """One folder up, as a link says. Above a root only the way into a root goes on."""
        if len(self._spot.folders) > 1:
            self._spot.up()
            return
        self._hop("..")
        above = self._way.roots[self._spot.root][0].rpartition("/")[0]
        target = os.path.normpath("/".join([above, *self._pending]) or "/")
        self._pending.clear()
        self._follow(target)

    def _follow(self, target: str) -> None:
        """Put the parts of a link's target before what is pending."""
        parts = target.split("/")
        if target.startswith("/"):
            parts = self._restart(target)
        self._pending.extendleft(reversed(parts))

    def _restart(self, target: str) -> list[str]:
        """Begin again in the root that an absolute path names. Return what is left of it."""
        roots = self._way.roots
        for number, root in enumerate(roots):
            inside = below(root, target)
            if inside is not None:
                self._spot.restart(number, _open_root(root))
                return inside
        raise LedOut("The path leads out of the workspace through a link.")


def _link(folder: int, name: str) -> str | None:
    """Where a link leads; None for what is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def below(root: Root, path: str) -> list[str] | None:
    """The components of an absolute path after the root's own; None when it begins elsewhere."""
    parts = path.split("/")
    for spelling in root:
        own = spelling.rstrip("/").split("/")
        if parts[: len(own)] == own:
            return parts[len(own) :]
    return None


def _enter(spot: Spot, name: str, make: bool) -> bool:
    try:
        spot.enter(name)
    except FileNotFoundError:
        if not make:
            return False
        with suppress(FileExistsError):  # somebody else made it: just as well
            os.mkdir(name, dir_fd=spot.folder)
        spot.enter(name)
    return True


def open_folder(spot: Spot) -> int:
    """A handle of the folder at the spot that can be listed."""
    return os.open(spot.name or ".", FOLDER, dir_fd=spot.folder)


def open_file(spot: Spot) -> int:
    """A handle of the regular file at the spot. Raise `ToolError` for a device, FIFO or socket."""
    _refuse_odd(spot.status)
    handle = os.open(spot.name or ".", READ, dir_fd=spot.folder)
    try:
        _refuse_odd(os.fstat(handle))  # what was opened, not what was there a moment ago
    except ToolError:
        os.close(handle)
        raise
    return handle


def _refuse_odd(status: os.stat_result | None) -> None:
    if status is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise ToolError("It is a device, a pipe or a socket, not a file.")
