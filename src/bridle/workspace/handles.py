"""Opening by directory handles: from the root down, one component at a time, no link trusted.

The kernel is never asked to follow a link or to go up. Links are read and walked here, from the
handles that are held, so what is opened is inside the root even when somebody swaps a folder for a
link in between. Knows nothing of workspaces, limits or text.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from bridle.errors import OutsideWorkspace, ToolError
from bridle.workspace.text import one_line

MOST_HOPS = 40  # links followed for one path; the kernel's own limit
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_THROUGH = _FOLDER | getattr(os, "O_PATH", 0)  # passing through asks for no right to read


class Spot:
    """Where a path leads: the handle of the last folder, and a name in it that is no link.

    `name` is empty for the folder itself. `missing` are names below it that do not exist yet.
    """

    def __init__(self, root: int) -> None:
        self.folders = [root]
        self.names: list[str] = []
        self.name = ""
        self.missing: list[str] = []

    @property
    def folder(self) -> int:
        """The handle of the last folder that was reached."""
        return self.folders[-1]

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
        """Back to the folder above. Raise `OutsideWorkspace` at the root."""
        if len(self.folders) == 1:
            raise OutsideWorkspace("The path leads out of the workspace through a link.")
        os.close(self.folders.pop())
        self.names.pop()

    def restart(self) -> None:
        """Back to the root."""
        while len(self.folders) > 1:
            self.up()

    def enter(self, name: str) -> None:
        """Into a folder that is no link. Raise `NotADirectoryError` for a link or a file."""
        self.folders.append(os.open(name, _THROUGH, dir_fd=self.folder))
        self.names.append(name)

    def close(self) -> None:
        """Let go of every handle."""
        while self.folders:
            os.close(self.folders.pop())


@contextmanager
def walked(roots: Sequence[str], parts: Sequence[str], *, make: bool = False) -> Iterator[Spot]:
    """Walk from `roots[0]`, its real path, down `parts`, which hold no `..`.

    `roots` are the spellings of the root that an absolute link may begin with. With `make`,
    missing folders on the way are made.
    """
    try:
        spot = Spot(os.open(roots[0], _THROUGH))
    except FileNotFoundError as error:
        raise ToolError("The workspace itself is gone: its folder was removed.", error) from error
    try:
        _walk(spot, deque(parts), roots, make)
        yield spot
    finally:
        spot.close()


def _walk(spot: Spot, pending: deque[str], roots: Sequence[str], make: bool) -> None:
    hops = 0
    while pending:
        part = pending.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            spot.up()
            continue
        target = _link(spot.folder, part)
        if target is not None:
            hops += 1
            if hops > MOST_HOPS:
                raise ToolError(f"Too many links on the way: {one_line(part)} leads in a circle.")
            _follow(spot, target, pending, roots)
        elif not any(rest not in ("", ".") for rest in pending):
            spot.name = part
            return
        elif not _enter(spot, part, make):
            spot.missing = _nowhere(part, pending)
            return


def _nowhere(part: str, pending: deque[str]) -> list[str]:
    if ".." in pending:  # a link that goes up from a folder that is not there
        raise OutsideWorkspace("The path goes up from where nothing is.")
    return [part, *pending]


def _link(folder: int, name: str) -> str | None:
    """Where a link leads; None for what is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _follow(spot: Spot, target: str, pending: deque[str], roots: Sequence[str]) -> None:
    """Put the parts of a link's target before what is pending."""
    parts = target.split("/")
    if target.startswith("/"):
        inside = below(roots, target)
        if inside is None:
            raise OutsideWorkspace("The path leads out of the workspace through a link.")
        spot.restart()
        parts = inside
    pending.extendleft(reversed(parts))


def below(roots: Sequence[str], path: str) -> list[str] | None:
    """The components of an absolute path after the root's own; None when it begins elsewhere."""
    parts = path.split("/")
    for root in roots:
        own = root.rstrip("/").split("/")
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
    return os.open(spot.name or ".", _FOLDER, dir_fd=spot.folder)


def open_file(spot: Spot) -> int:
    """A handle of the regular file at the spot. Raise `ToolError` for a device, FIFO or socket."""
    _refuse_odd(spot.status)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    handle = os.open(spot.name or ".", flags, dir_fd=spot.folder)
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
