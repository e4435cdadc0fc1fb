"""One name in a folder that is held open: what stands there, its content kept where that is new.

No link is followed. What cannot be kept is said in the entry, never raised.
"""

import os
import stat
import time

from msgspec import Struct

from bridle.workspace.undo.index import Entry
from bridle.workspace.undo.objects import Objects

_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_BLOCK = 1 << 20
_TRIES = 3  # for a file that changes while it is read
_TICK = 20_000_000  # nanoseconds: the clock that files are stamped with may stand still so long
_COARSE = 2_000_000_000  # ... and where stamps are whole seconds
_SECOND = 1_000_000_000


class Limits(Struct, frozen=True):
    """How much is kept: bytes of one file, names in the tree, new bytes and seconds for a look."""

    file: int = 10_000_000
    entries: int = 50_000
    fresh: int = 1_000_000_000
    seconds: float = 10.0


USUAL = Limits()


class Reader:
    """Finds out what stands at names, for one look; it has so much time and room, and no more."""

    def __init__(self, objects: Objects, limits: Limits) -> None:
        self._objects = objects
        self._limits = limits
        self._until = time.monotonic() + limits.seconds
        self._fresh = 0
        self._full = False

    def entry(self, folder: int, name: str, found: os.stat_result, old: Entry | None) -> Entry:
        """What stands there now. `found` is what the system says of it, `old` what stood there.

        An entry with the mode 0: it is gone by now.
        """
        kind = stat.S_IFMT(found.st_mode)
        if kind == stat.S_IFDIR:
            if old is None or not stat.S_ISDIR(old.mode):
                return Entry(found.st_mode)
            return old if old.mode == found.st_mode else Entry(found.st_mode, old.object)
        if kind == stat.S_IFREG:
            return self._file(folder, name, found)
        if kind == stat.S_IFLNK:
            return _link(folder, name, found)
        return _special(found)

    def _file(self, folder: int, name: str, found: os.stat_result) -> Entry:
        if found.st_size > self._limits.file:
            return _unkept(found, "large")
        if self._full:
            return _unkept(found, "store")
        if self._fresh > self._limits.fresh or time.monotonic() > self._until:
            return _unkept(found, "late")
        try:
            return self._read(folder, name)
        except FileNotFoundError:
            return Entry(0)
        except OSError:
            return _unkept(found, "unreadable")

    def _read(self, folder: int, name: str) -> Entry:
        """Read it until it stands still. What changed all the time is read again next time."""
        handle = os.open(name, _OPENING, dir_fd=folder)
        try:
            for _ in range(_TRIES):
                began = time.time_ns()
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode):
                    return _special(found)
                data = _gather(handle, self._limits.file)
                if len(data) > self._limits.file:
                    return _unkept(found, "large")
                still = _times(os.fstat(handle)) == _times(found) and len(data) == found.st_size
                if still:
                    break
        finally:
            os.close(handle)
        return self._kept(found, data, still and not _racy(found, began))

    def _kept(self, found: os.stat_result, data: bytes, certain: bool) -> Entry:
        try:
            name, new = self._objects.put(data)
        except OSError:  # the disk is full, most likely: then it is so for all that follow
            self._full = True
            return _unkept(found, "store")
        self._fresh += len(data) if new else 0
        if not certain:
            return Entry(found.st_mode, name)
        return Entry(found.st_mode, name, "", len(data), *_times(found), found.st_ino)


def _unkept(found: os.stat_result, why: str) -> Entry:
    """Something whose content is not kept: only that it changed will be known."""
    return Entry(found.st_mode, f"{found.st_size}:{found.st_mtime_ns}", why)


def _special(found: os.stat_result) -> Entry:
    return Entry(found.st_mode, str(found.st_rdev), "special")


def _link(folder: int, name: str, found: os.stat_result) -> Entry:
    began = time.time_ns()
    try:
        target = os.readlink(name, dir_fd=folder)
    except FileNotFoundError:
        return Entry(0)
    except OSError:
        return _unkept(found, "unreadable")
    if _racy(found, began):
        return Entry(found.st_mode, target)
    return Entry(found.st_mode, target, "", found.st_size, *_times(found), found.st_ino)


def _times(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_ctime_ns


def _racy(found: os.stat_result, began: int) -> bool:
    """Could it change again without its times telling? Then it is read anew at the next look."""
    latest = max(_times(found))
    window = _COARSE if latest % _SECOND == 0 else _TICK
    return latest > began - window


def _gather(handle: int, most: int) -> bytes:
    """All of a file, and a byte more than the most, where there is more."""
    os.lseek(handle, 0, os.SEEK_SET)
    chunks: list[bytes] = []
    left = most + 1
    while left > 0 and (chunk := os.read(handle, min(left, _BLOCK))):
        chunks.append(chunk)
        left -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
