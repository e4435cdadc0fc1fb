"""Can git read a repository without code of that repository running? Found out without git.

A repository is taken for hostile: it may have come in an archive, with a configuration that names
programs for `git status` to run. The person's own configuration (`~/.gitconfig`, the system's) is
trusted and not looked at. Every repository counts that git would find from a folder: `.git` as a
folder, as a file or as a link, a linked worktree, a bare one, one above the workspace, and those of
submodules, which `git status` goes into. That one is tame is remembered for as long as nothing that
was looked at has changed: by its times, and by what is in it while those are too young to tell.
"""

import os
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from bridle.workspace.git.config import Setting, is_harmless, parse_config

# Git's index, as far as it matters here: the paths at which other repositories are linked in.

_LINK = 0o160000  # the mode of a link to another repository
_BEFORE_HASH = 40  # bytes of an entry
_HASHES = (20, 32)  # the index does not say which


def gitlinks(data: bytes) -> list[str]:
    """The paths of all links to other repositories."""
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3", b"\0\0\0\4"):
        raise ValueError("not an index")
    if _LINK.to_bytes(4, "big") not in data:  # most have none: no need to walk the entries
        return []
    for size in _HASHES:
        try:
            found = [path for mode, path in _entries(data, size) if mode == _LINK]
        except (ValueError, IndexError):
            continue
        return [path.decode("utf-8", "surrogateescape") for path in found]
    raise ValueError("not an index")


def tracked_paths(data: bytes) -> list[str]:
    """The paths of everything that git keeps track of."""
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3", b"\0\0\0\4"):
        raise ValueError("not an index")
    for size in _HASHES:
        try:
            return [path.decode("utf-8", "surrogateescape") for _, path in _entries(data, size)]
        except (ValueError, IndexError):
            continue
    raise ValueError("not an index")


def _entries(data: bytes, hash_size: int) -> Iterator[tuple[int, bytes]]:
    """Mode and path of each entry."""
    version, count = data[7], int.from_bytes(data[8:12], "big")
    at, before = 12, b""
    for _ in range(count):
        start = at
        mode = int.from_bytes(data[start + 24 : start + 28], "big")
        at += _BEFORE_HASH + hash_size
        at += 4 if data[at] & 0x40 else 2  # flags, and more flags
        strip = 0
        if version == 4:
            strip, at = _number(data, at)
        end = data.index(b"\0", at)
        path = before[: len(before) - strip] + data[at:end] if version == 4 else data[at:end]
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        before = path
        yield mode, path
    _check_end(data, at, hash_size)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) + (data[at] & 0x7F)
    return value, at + 1


def _check_end(data: bytes, at: int, hash_size: int) -> None:
    """After the entries come extensions, each with its length, and a hash: no byte is left."""
    end = len(data) - hash_size
    while at < end:
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    if at != end:
        raise ValueError("the index does not end where it should")


_MOST_BYTES = 1 << 20  # of a configuration
_MOST_INDEX = 64 << 20
_MOST_LEVELS = 64
_MOST_REPOSITORIES = 100
_MOST_LINKS = 1_000
_MOST_REMEMBERED = 256
_UNSETTLED = 2.0  # seconds in which a second change may leave no trace in a file's times
_HOOKS = ("post-index-change", "reference-transaction")  # run also where git only reads

Mark = tuple[int, ...] | None


class Hostile(Exception):
    """The repository could run code, or nobody can tell."""


class Danger(NamedTuple):
    """What could run code: in words, the file that says so, and the `.git` that leads to it."""

    why: str
    file: str
    entry: str


class Repositories:
    """Which folders' repositories are tame."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._known: dict[str, dict[str, Mark]] = {}
        self._young: tuple[str, Look] | None = None  # the last folder that was not settled

    def is_safe(self, folder: str) -> bool:
        """Can git be run in that folder, a real path, to read?"""
        return not self.danger_reason(folder)

    def danger_reason(self, folder: str) -> str:
        """What in the folder's repository could run code, in words for a person; empty if none."""
        found = self.find_danger(folder)
        return found.why if found else ""

    def find_danger(self, folder: str) -> Danger | None:
        """What in the folder's repository could run code, and where."""
        if self._is_known(folder):
            return None
        self._known.pop(folder, None)
        look = Look(self._home)
        try:
            look.at(folder)
        except Hostile as error:
            return Danger(str(error), look.file, look.entry)
        except (OSError, ValueError) as error:
            return Danger(f"its configuration cannot be read: {error}", look.file, look.entry)
        self._remember(folder, look, settled=look.is_settled)
        return None

    def _is_known(self, folder: str) -> bool:
        """Was it tame, and is everything as it was then?"""
        known = self._known.get(folder)
        if known is not None:
            return _are(known)
        if self._young is None or self._young[0] != folder:
            return False
        look = self._young[1]
        settled = look.is_settled  # before anything is read again: what is read then, is read late
        if not _are(look.marks) or not look.reads_alike():
            return False
        if settled:
            self._remember(folder, look, settled=True)
        return True

    def _remember(self, folder: str, look: "Look", *, settled: bool) -> None:
        self._young = None if settled else (folder, look)
        if settled and len(self._known) < _MOST_REMEMBERED:
            self._known[folder] = look.marks


class Look:
    """One look at a folder's repositories. `marks` are the times of everything looked at.

    `file` is what was read last, and `entry` the `.git` that led there: where a look ended in an
    error, that is where it lies.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._seen: set[str] = set()
        self._read: dict[str, bytes] = {}
        self.marks: dict[str, Mark] = {}
        self.file = ""
        self.entry = ""

    def reads_alike(self) -> bool:
        """Is there in each file what was read there? Only for a little: else it is looked anew."""
        if sum(map(len, self._read.values())) > _MOST_BYTES:
            return False
        try:
            return all(_holds(path, data) for path, data in self._read.items())
        except OSError:
            return False

    @property
    def is_settled(self) -> bool:
        """Is all of it old enough for its times to tell of the next change?"""
        now = time.time_ns()
        changed = [mark[0] for mark in self.marks.values() if mark is not None]
        return all(now - one > _UNSETTLED * 1e9 for one in changed)

    def at(self, folder: str) -> None:
        """Raise `Hostile` where a repository of the folder, or above it, could run code."""
        for _ in range(_MOST_LEVELS):
            if self._is_found(folder):
                return
            if folder == "/":
                return
            folder = os.path.dirname(folder)  # noqa: PTH120 - a string in the hottest path
        raise Hostile("the folder lies too deep")

    def _is_found(self, folder: str) -> bool:
        """Look at what git would take for a repository here; true where it would look no further.

        What only resembles one is looked at as well, and then the folders above it.
        """
        own = f"{folder}/.git"
        mark = self._status(own)
        if mark is not None:
            self.entry = own
            place = self._pointed(own) if stat.S_ISREG(mark.st_mode) else own
            if self._repository(place, folder):
                return True
        if self._exists(f"{folder}/HEAD") and self._exists(f"{folder}/config"):
            return self._repository(folder, None)
        return False

    def _pointed(self, file: str) -> str:
        """Where a `.git` that is a file points to."""
        word, _, path = self._text(file).partition(":")
        path = path.strip("\r\n ")
        if word != "gitdir" or not path:
            raise Hostile("its `.git` is a file that does not say where it leads")
        return os.path.normpath(os.path.join(os.path.dirname(file), path))  # noqa: PTH118, PTH120 - as git does

    def _repository(self, place: str, worktree: str | None) -> bool:
        """Look at one repository's folder; is it a whole one?"""
        if place in self._seen:
            return True
        self._seen.add(place)
        self.file = ""
        if len(self._seen) > _MOST_REPOSITORIES:
            raise Hostile("it has too many submodules to look at")
        common = self._common(place)
        hooks = [f"{common}/hooks"]
        for file in dict.fromkeys([f"{common}/config", f"{place}/config.worktree"]):
            for setting in self._settings(file):
                hooks += self._judge(setting, place, worktree)
        for file in [f"{folder}/{hook}" for folder in hooks for hook in _HOOKS]:
            if self._exists(file):
                self.file = file
                raise Hostile("it has a hook that runs also when git only reads")
        if worktree is not None:
            self._submodules(place, worktree)
        return self._exists(f"{place}/HEAD") and self._exists(f"{common}/objects")

    def _common(self, place: str) -> str:
        """A linked worktree shares the folder of the repository that it belongs to."""
        if not self._exists(f"{place}/commondir"):
            return place
        path = self._text(f"{place}/commondir").strip("\r\n")
        return os.path.normpath(os.path.join(place, path))  # noqa: PTH118 - as git does

    def _settings(self, file: str) -> Iterator[Setting]:
        return parse_config(self._text(file)) if self._exists(file) else iter(())

    def _judge(self, setting: Setting, place: str, worktree: str | None) -> list[str]:
        """Raise `Hostile` for a setting that could run code. Return where it puts the hooks."""
        name = (setting.section, setting.subsection, setting.key)
        if name == ("core", None, "hookspath"):
            return self._hooks(setting.value or "", [place, worktree or place])
        if name == ("core", None, "worktree"):
            there = os.path.realpath(os.path.join(place, setting.value or ""))  # noqa: PTH118 - as git does
            if worktree is None or there != os.path.realpath(worktree):
                raise Hostile("core.worktree leads elsewhere")
        elif not is_harmless(setting):
            raise Hostile(f"its configuration sets {'.'.join(filter(None, name))}")
        return []

    def _hooks(self, path: str, bases: list[str]) -> list[str]:
        if path.startswith("~/"):
            return [self._home + path[1:]]
        if path.startswith(("~", "%")):
            raise Hostile("core.hooksPath leads nobody knows where")
        return [os.path.join(base, path) for base in bases]  # noqa: PTH118 - an absolute path wins

    def _submodules(self, place: str, worktree: str) -> None:
        """Git goes into every repository that the index names, with that one's configuration."""
        index = self.file = f"{place}/index"
        if not self._exists(index):
            return
        if any(name.startswith("sharedindex.") for name in os.listdir(place)):  # noqa: PTH208 - names alone
            raise Hostile("its index is in two parts")
        links = gitlinks(self._bytes(index, _MOST_INDEX))
        if len(links) > _MOST_LINKS:
            raise Hostile("it has too many submodules to look at")
        for path in links:
            inner = os.path.normpath(f"{worktree}/{path}")
            if not inner.startswith(f"{worktree.rstrip('/')}/"):
                raise Hostile("a submodule leads elsewhere")
            self._is_found(inner)

    def _status(self, path: str) -> os.stat_result | None:
        """What is there, links followed. It is looked at again before the answer is given again."""
        try:
            status = os.stat(path)  # noqa: PTH116 - nine for each git command: a Path costs more
        except (FileNotFoundError, NotADirectoryError):
            self.marks[path] = None
            return None
        self.marks[path] = _times(status)
        return status

    def _exists(self, path: str) -> bool:
        return self._status(path) is not None

    def _text(self, path: str) -> str:
        return self._bytes(path, _MOST_BYTES).decode("utf-8", "surrogateescape")

    def _bytes(self, path: str, most: int) -> bytes:
        """A whole regular file. Raise `Hostile` for one that is too long, or no file."""
        self.file = path
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            self.marks[path] = _times(status)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                raise Hostile("a file that git reads is too large, or no file")
            data = file.read(most + 1)
        if len(data) > most:
            raise Hostile("a file that git reads has no end")
        self._read[path] = data
        return data


def _times(status: os.stat_result) -> Mark:
    if stat.S_ISDIR(status.st_mode):  # its own times change with everything in it
        return (0, status.st_ino, status.st_dev)
    changed = max(status.st_ctime_ns, status.st_mtime_ns)
    return (changed, status.st_ino, status.st_dev, status.st_size, status.st_mode)


def _holds(path: str, data: bytes) -> bool:
    """Is that all that is in the file?"""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return os.read(handle, len(data) + 1) == data
    finally:
        os.close(handle)


def _are(marks: dict[str, Mark]) -> bool:
    """Is everything as it was?"""
    return all(_mark(path) == mark for path, mark in marks.items())


def _mark(path: str) -> Mark:
    try:
        return _times(os.stat(path))  # noqa: PTH116 - as above
    except OSError:
        return None
