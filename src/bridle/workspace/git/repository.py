"""Can git read a repository without running code of that repository? Found out without git.

No repository is trusted: it may have come in an archive, with a configuration that names programs
for `git status` to run. The person's own configuration (`~/.gitconfig`, the system's) is trusted
and not read. Every repository counts that git would find from a folder: `.git` as a folder, as a
file or as a link, a linked worktree, a bare one, one above the workspace, and those of submodules,
which `git status` goes into. A repository stays known as safe until something changes that was
looked at: its times, or, while those are too recent to tell, its content.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from bridle.workspace.git.config import Setting, is_harmless, parse_config

# Git's index: the paths that git tracks, and those of other repositories that are linked in.

_GITLINK = 0o160000  # the mode of a link to another repository
_BEFORE_HASH = 40  # bytes of an entry
_HASHES = (20, 32)  # the index does not say which


def gitlinks(data: bytes) -> list[str]:
    """Return the paths of all links to other repositories. Raise `ValueError` if it is no index."""
    _check_header(data)
    if _GITLINK.to_bytes(4, "big") not in data:  # most have none: no need to walk the entries
        return []
    return [path for mode, path in _parse_index(data) if mode == _GITLINK]


def tracked_paths(data: bytes) -> list[str]:
    """Return the paths of everything that git tracks. Raise `ValueError` if it is no index."""
    _check_header(data)
    return [path for _, path in _parse_index(data)]


def _check_header(data: bytes) -> None:
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3", b"\0\0\0\4"):
        raise ValueError("not an index")


def _parse_index(data: bytes) -> list[tuple[int, str]]:
    for size in _HASHES:
        with suppress(ValueError, IndexError):
            entries = list(_entries(data, size))
            return [(mode, path.decode("utf-8", "surrogateescape")) for mode, path in entries]
    raise ValueError("not an index")


def _entries(data: bytes, hash_size: int) -> Iterator[tuple[int, bytes]]:
    """Yield mode and path of each entry."""
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
    """Return a number of seven bits a byte, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) + (data[at] & 0x7F)
    return value, at + 1


def _check_end(data: bytes, at: int, hash_size: int) -> None:
    """Check that extensions, each with its length, and a hash follow, and nothing else."""
    end = len(data) - hash_size
    while at < end:
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    if at != end:
        raise ValueError("the index does not end where it should")


_MAX_BYTES = 1 << 20  # of a configuration
_MAX_INDEX = 64 << 20
_MAX_LEVELS = 64
_MAX_REPOSITORIES = 100
_MAX_LINKS = 1_000
_MAX_REMEMBERED = 256
_RECENT = 2.0  # seconds in which a second change may not alter the times of a file
_HOOKS = ("post-index-change", "reference-transaction")  # they run also if git only reads

Stamp = tuple[int, ...] | None


class UnsafeRepository(Exception):
    """The repository could run code, or that cannot be excluded."""


class Danger(NamedTuple):
    """Why code could run, in words; the file that says so, and the `.git` that leads to it."""

    why: str
    file: str
    entry: str


class Repositories:
    """Says whether the repositories of folders are safe, and remembers those that are."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._known: dict[str, dict[str, Stamp]] = {}
        self._recent: tuple[str, Inspection] | None = None  # the last folder, changed recently

    def is_safe(self, folder: str) -> bool:
        """Can git be run in that folder, a real path, to read?"""
        return not self.danger_reason(folder)

    def danger_reason(self, folder: str) -> str:
        """Return why code could run, in words for a person, or empty if it is safe."""
        danger = self.find_danger(folder)
        return danger.why if danger else ""

    def find_danger(self, folder: str) -> Danger | None:
        """Return what in the folder's repository could run code, or None if it is safe."""
        if self._is_known(folder):
            return None
        self._known.pop(folder, None)
        inspection = Inspection(self._home)
        try:
            inspection.check(folder)
        except (UnsafeRepository, OSError, ValueError) as error:
            is_known = isinstance(error, UnsafeRepository)
            why = str(error) if is_known else f"its configuration cannot be read: {error}"
            return Danger(why, inspection.file, inspection.entry)
        self._remember(folder, inspection, is_old=inspection.is_old)
        return None

    def _is_known(self, folder: str) -> bool:
        """Was it safe, and is everything as it was then?"""
        known = self._known.get(folder)
        if known is not None:
            return _is_unchanged(known)
        if self._recent is None or self._recent[0] != folder:
            return False
        inspection = self._recent[1]
        is_old = inspection.is_old  # asked first: what is read again after that is read late enough
        if not _is_unchanged(inspection.stamps) or not inspection.has_same_content():
            return False
        if is_old:
            self._remember(folder, inspection, is_old=True)
        return True

    def _remember(self, folder: str, inspection: "Inspection", *, is_old: bool) -> None:
        self._recent = None if is_old else (folder, inspection)
        if is_old and len(self._known) < _MAX_REMEMBERED:
            self._known[folder] = inspection.stamps


class Inspection:
    """One inspection of a folder's repositories. `stamps` has everything that was looked at.

    `file` is what was read last, and `entry` the `.git` that led there: if the inspection failed,
    the cause is there.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._repositories: set[str] = set()
        self._contents: dict[str, bytes] = {}
        self.stamps: dict[str, Stamp] = {}
        self.file = ""
        self.entry = ""

    def has_same_content(self) -> bool:
        """Has each file the content that was read? If it is much, do not compare, and say no."""
        if sum(map(len, self._contents.values())) > _MAX_BYTES:
            return False
        try:
            return all(_has_content(path, data) for path, data in self._contents.items())
        except OSError:
            return False

    @property
    def is_old(self) -> bool:
        """Is all of it old enough for its times to show the next change?"""
        now = time.time_ns()
        times = [stamp[0] for stamp in self.stamps.values() if stamp is not None]
        return all(now - changed > _RECENT * 1e9 for changed in times)

    def check(self, folder: str) -> None:
        """Raise `UnsafeRepository` if a repository of the folder, or above it, could run code."""
        for _ in range(_MAX_LEVELS):
            if self._check_folder(folder):
                return
            if folder == "/":
                return
            folder = os.path.dirname(folder)  # noqa: PTH120 - a string in the hottest path
        raise UnsafeRepository("the folder lies too deep")

    def _check_folder(self, folder: str) -> bool:
        """Check what git would take for a repository in a folder. Return whether it is one.

        If it only resembles one, git would go on with the folders above.
        """
        own = f"{folder}/.git"
        status = self._status(own)
        if status is not None:
            self.entry = own
            place = self._read_pointer(own) if stat.S_ISREG(status.st_mode) else own
            if self._check_repository(place, folder):
                return True
        if self._exists(f"{folder}/HEAD") and self._exists(f"{folder}/config"):
            return self._check_repository(folder, None)
        return False

    def _read_pointer(self, file: str) -> str:
        """Return where a `.git` that is a file points to."""
        word, _, path = self._read_text(file).partition(":")
        path = path.strip("\r\n ")
        if word != "gitdir" or not path:
            raise UnsafeRepository("its `.git` is a file that does not say where it leads")
        return os.path.normpath(os.path.join(os.path.dirname(file), path))  # noqa: PTH118, PTH120 - as git does

    def _check_repository(self, place: str, worktree: str | None) -> bool:
        """Check one repository. Return whether it is complete."""
        if place in self._repositories:
            return True
        self._repositories.add(place)
        self.file = ""
        if len(self._repositories) > _MAX_REPOSITORIES:
            raise UnsafeRepository("it has too many submodules to look at")
        common = self._common(place)
        hooks = [f"{common}/hooks"]
        for file in dict.fromkeys([f"{common}/config", f"{place}/config.worktree"]):
            for setting in self._settings(file):
                hooks += self._check_setting(setting, place, worktree)
        for file in [f"{folder}/{hook}" for folder in hooks for hook in _HOOKS]:
            if self._exists(file):
                self.file = file
                raise UnsafeRepository("it has a hook that runs also when git only reads")
        if worktree is not None:
            self._check_submodules(place, worktree)
        return self._exists(f"{place}/HEAD") and self._exists(f"{common}/objects")

    def _common(self, place: str) -> str:
        """Return the folder that a linked worktree shares with its repository, or its own."""
        if not self._exists(f"{place}/commondir"):
            return place
        path = self._read_text(f"{place}/commondir").strip("\r\n")
        return os.path.normpath(os.path.join(place, path))  # noqa: PTH118 - as git does

    def _settings(self, file: str) -> Iterator[Setting]:
        return parse_config(self._read_text(file)) if self._exists(file) else iter(())

    def _check_setting(self, setting: Setting, place: str, worktree: str | None) -> list[str]:
        """Raise `UnsafeRepository` if it could run code. Return the folders of hooks it names."""
        name = (setting.section, setting.subsection, setting.key)
        if name == ("core", None, "hookspath"):
            return self._hook_folders(setting.value or "", [place, worktree or place])
        if name == ("core", None, "worktree"):
            target = os.path.realpath(os.path.join(place, setting.value or ""))  # noqa: PTH118 - as git does
            if worktree is None or target != os.path.realpath(worktree):
                raise UnsafeRepository("core.worktree leads elsewhere")
        elif not is_harmless(setting):
            raise UnsafeRepository(f"its configuration sets {'.'.join(filter(None, name))}")
        return []

    def _hook_folders(self, path: str, bases: list[str]) -> list[str]:
        if path.startswith("~/"):
            return [self._home + path[1:]]
        if path.startswith(("~", "%")):
            raise UnsafeRepository("it is unclear where core.hooksPath leads")
        return [os.path.join(base, path) for base in bases]  # noqa: PTH118 - an absolute path wins

    def _check_submodules(self, place: str, worktree: str) -> None:
        """Check the repositories that the index names: git uses the configuration of each."""
        index = self.file = f"{place}/index"
        if not self._exists(index):
            return
        if any(name.startswith("sharedindex.") for name in os.listdir(place)):  # noqa: PTH208 - names alone
            raise UnsafeRepository("its index is in two parts")
        links = gitlinks(self._read_bytes(index, _MAX_INDEX))
        if len(links) > _MAX_LINKS:
            raise UnsafeRepository("it has too many submodules to look at")
        for path in links:
            inner = os.path.normpath(f"{worktree}/{path}")
            if not inner.startswith(f"{worktree.rstrip('/')}/"):
                raise UnsafeRepository("a submodule leads elsewhere")
            self._check_folder(inner)

    def _status(self, path: str) -> os.stat_result | None:
        """Return what is there, links followed, and note it in `stamps`."""
        try:
            status = os.stat(path)  # noqa: PTH116 - nine for each git command: a Path costs more
        except (FileNotFoundError, NotADirectoryError):
            self.stamps[path] = None
            return None
        self.stamps[path] = _stamp_of(status)
        return status

    def _exists(self, path: str) -> bool:
        return self._status(path) is not None

    def _read_text(self, path: str) -> str:
        return self._read_bytes(path, _MAX_BYTES).decode("utf-8", "surrogateescape")

    def _read_bytes(self, path: str, most: int) -> bytes:
        """Read a regular file. Raise `UnsafeRepository` if it is too long, or not a file."""
        self.file = path
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            self.stamps[path] = _stamp_of(status)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                raise UnsafeRepository("a file that git reads is too large, or not a file")
            data = file.read(most + 1)
        if len(data) > most:
            raise UnsafeRepository("a file that git reads has no end")
        self._contents[path] = data
        return data


def _stamp_of(status: os.stat_result) -> Stamp:
    if stat.S_ISDIR(status.st_mode):  # its times change with everything in it
        return (0, status.st_ino, status.st_dev)
    changed = max(status.st_ctime_ns, status.st_mtime_ns)
    return (changed, status.st_ino, status.st_dev, status.st_size, status.st_mode)


def _has_content(path: str, data: bytes) -> bool:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return os.read(handle, len(data) + 1) == data
    finally:
        os.close(handle)


def _is_unchanged(stamps: dict[str, Stamp]) -> bool:
    return all(_stamp(path) == stamp for path, stamp in stamps.items())


def _stamp(path: str) -> Stamp:
    try:
        return _stamp_of(os.stat(path))  # noqa: PTH116 - as above
    except OSError:
        return None
