"""Scans a workspace: every name below the root, and the content of what is new.

It uses folder handles and follows no link. What git ignores, `.git` and bridle's own state are
named and not opened; what git tracks is never ignored, which its index says without starting a
program. A file that the system reports as unchanged since the last scan is not read, so a scan
without changes costs one stat per name.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import islice

from msgspec import Struct

from bridle.workspace.fs import FOLDER, READ
from bridle.workspace.git.repository import tracked
from bridle.workspace.ignore import Ignored, parse_ignore
from bridle.workspace.undo.storage import ContentStore
from bridle.workspace.undo.tree import IGNORED, TRACKED, Entry, Folder, Tree

_LARGEST = 64 << 20  # bytes of an index
_LINE = 4096
_WORKTREE = b"gitdir: "  # what `.git` says where it is a file


def tracked_by_git(root: str) -> frozenset[str]:
    """Paths from the root, with the folders that they lie in."""
    data = _read(f"{root}/.git/index", _LARGEST)
    if data is None:
        said = _read(f"{root}/.git", _LINE) or b""
        if said.startswith(_WORKTREE):
            folder = os.fsdecode(said.removeprefix(_WORKTREE).strip())
            data = _read(f"{root}/{folder}/index" if folder[:1] != "/" else f"{folder}/index")
    found: set[str] = set()
    with suppress(ValueError):
        for path in tracked(data or b""):
            while path and path not in found:
                found.add(path)
                path = path.rpartition("/")[0]
    return frozenset(found)


def _read(path: str, limit: int = _LARGEST) -> bytes | None:
    """What stands in a regular file; None for anything else, and for more than that."""
    try:
        handle = os.open(path, READ)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        return b"".join(iter(lambda: os.read(handle, 1 << 20), b""))
    except OSError:
        return None
    finally:
        os.close(handle)


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


class EntryReader:
    """Finds out what stands at names, for one look; it has so much time and room, and no more."""

    def __init__(self, objects: ContentStore, limits: Limits) -> None:
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
        handle = os.open(name, READ, dir_fd=folder)
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


_THROUGH = FOLDER | getattr(os, "O_PATH", 0)  # passing through asks for no right to read
_DEEPEST = 100  # folders below each other; each holds a handle open
_IGNORE = ".gitignore"
_NOTHING = Folder(rules="-")


class Rules:
    """The ignore rules that hold in a folder. They are read when a name has to be judged."""

    def __init__(self, objects: ContentStore) -> None:
        self.name = ""
        self._objects = objects
        self._base = ""
        self._above: Rules | None = None
        self._object = ""
        self._parsed: Ignored | None = None
        self._everything = False

    def within(self, folder: str, entry: Entry | None) -> "Rules":
        """The rules below a folder with this .gitignore."""
        if entry is None or not stat.S_ISREG(entry.mode) or entry.why or self._everything:
            return self
        inner = Rules(self._objects)
        inner._base, inner._above, inner._object = folder, self, entry.object
        words = os.fsencode(f"{self.name}\n{folder}\n{entry.object}")
        inner.name = blake2b(words, digest_size=8).hexdigest()
        return inner

    def within_ignored(self) -> "Rules":
        """The rules below a folder that is ignored: everything is."""
        inner = Rules(self._objects)
        inner.name, inner._everything = f"{self.name}*", True
        return inner

    def cover(self, path: str, is_folder: bool) -> bool:
        """Is the path ignored?"""
        return self._everything or self._chain().covers(path, is_folder)

    def _chain(self) -> Ignored:
        if self._parsed is None:
            data = self._objects.get(self._object) if self._object else b""
            above = self._above._chain() if self._above is not None else None
            rules = parse_ignore((data or b"").decode(errors="replace"))
            self._parsed = Ignored(self._base, rules, above)
        return self._parsed


class Scan:
    """One look at a workspace.

    With `pinned` the names that `known` has are covered, or ignored, as they were there, whatever
    the ignore rules say by now: what a turn began with is what it is compared with.
    """

    def __init__(
        self,
        objects: ContentStore,
        limits: Limits,
        known: Tree,
        *,
        pinned: bool = False,
        hidden: Sequence[str] = (),
    ) -> None:
        self._objects = objects
        self._limits = limits
        self._known = known.folders
        self._pinned = pinned
        self._hidden = frozenset(hidden)
        self._reader = EntryReader(objects, limits)
        self._folders: dict[str, Folder] = {}
        self._seen = 0
        self._root = ""
        self._tracked: frozenset[str] | None = None
        self.ignored: list[str] = []
        self.missed: list[tuple[str, str]] = []  # folders that were not looked at, and why
        self.changed = False

    def at(self, root: str) -> Tree:
        """Everything below the root. Raise `OSError` where that itself cannot be looked at."""
        self._root = root
        handle = os.open(root, FOLDER)
        try:
            self._enter(handle, "", Rules(self._objects), 0)
        finally:
            os.close(handle)
        self.changed |= self._folders.keys() != self._known.keys()
        return Tree(self._folders)

    def _enter(self, handle: int, path: str, rules: Rules, depth: int) -> None:
        old = self._known.get(path, _NOTHING)
        with os.scandir(handle) as found:
            listed = list(islice(found, max(0, self._limits.entries - self._seen + 1)))
        self._seen += len(listed)
        if self._seen > self._limits.entries:
            self._miss(path, "many")
            return
        rules = rules.within(path, self._ignore_file(handle, listed, old))
        entries, below = self._names(handle, path, rules, listed)
        if entries == old.entries and rules.name == old.rules and not old.why:
            self._folders[path] = old
        else:
            self._folders[path] = Folder(rules.name, entries)
            self.changed = True
        for name in below:
            inner = rules.within_ignored() if entries[name].object == TRACKED else rules
            self._descend(handle, f"{path}/{name}" if path else name, inner, depth + 1)

    def _descend(self, above: int, path: str, rules: Rules, depth: int) -> None:
        if depth > _DEEPEST:
            self._miss(path, "deep")
            return
        try:
            handle = os.open(path.rpartition("/")[2], FOLDER, dir_fd=above)
        except FileNotFoundError:
            return
        except OSError:  # not ours to read, or a link by now
            self._miss(path, "unreadable")
            return
        try:
            self._enter(handle, path, rules, depth)
        except OSError:
            self._miss(path, "unreadable")
        finally:
            os.close(handle)

    def _miss(self, path: str, why: str) -> None:
        self._folders[path] = Folder(why=why)
        self.missed.append((f"{path}/" if path else "the workspace", why))
        self.changed = True

    def _names(
        self, handle: int, path: str, rules: Rules, listed: "list[os.DirEntry[str]]"
    ) -> tuple[dict[str, Entry], list[str]]:
        """The names of a folder with what stands there, and those that are folders to go into.

        This is where the time goes: it runs for every file of the workspace.
        """
        prefix = f"{path}/" if path else ""
        old = self._known.get(path, _NOTHING)
        known, trusted = old.entries, old.rules == rules.name or (self._pinned and old != _NOTHING)
        entries: dict[str, Entry] = {}
        below: list[str] = []
        for item in listed:
            name = item.name
            was = known.get(name)
            if was is None or not trusted or (was.why and not was.mode):
                left = self._left_out(prefix + name, item, rules, was if trusted else None)
                if left is not None and left.object != TRACKED:
                    entries[name] = left
                    continue
                was = left or was
            try:
                now = item.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since the folder was listed
            if (
                was is None
                or was.ctime != now.st_ctime_ns
                or was.mtime != now.st_mtime_ns
                or was.inode != now.st_ino
                or was.size != now.st_size
                or was.mode != now.st_mode
            ):
                was = self._reader.entry(handle, name, now, was)
            if was.mode:
                entries[name] = was
                if now.st_mode & 0o170000 == 0o040000:
                    below.append(name)
        return entries, below

    def _left_out(
        self, path: str, item: "os.DirEntry[str]", rules: Rules, was: Entry | None
    ) -> Entry | None:
        """What stands for a name that is not looked into; None for one that is.

        A folder that is looked into for the files alone that git keeps track of is marked so.
        """
        if item.name == ".git":
            return Entry(0, why="git")
        if path in self._hidden:
            return Entry(0, why="state")
        if item.name == _IGNORE:
            return None  # it says what is kept, so it is kept itself
        is_folder = item.is_dir(follow_symlinks=False)
        ignored = rules.cover(path, is_folder) if was is None else was.why == IGNORED
        if not ignored:
            return None
        if was is None and path in self._kept_by_git():
            return Entry(stat.S_IFDIR, TRACKED) if is_folder else None
        self.ignored.append(f"{path}/" if is_folder else path)
        return Entry(0, why=IGNORED)

    def _kept_by_git(self) -> frozenset[str]:
        """What git keeps track of, and the folders of it: no rule ignores that."""
        if self._tracked is None:
            self._tracked = tracked_by_git(self._root)
        return self._tracked

    def _ignore_file(
        self, handle: int, listed: "list[os.DirEntry[str]]", old: Folder
    ) -> Entry | None:
        """What stands in the folder's .gitignore: it decides about the other names."""
        item = next((one for one in listed if one.name == _IGNORE), None)
        if item is None:
            return None
        was = old.entries.get(_IGNORE)
        with suppress(OSError):
            now = item.stat(follow_symlinks=False)
            if was is not None and was.ctime == now.st_ctime_ns and was.inode == now.st_ino:
                return was
            return self._reader.entry(handle, _IGNORE, now, was)
        return None


def scan(
    objects: ContentStore, limits: Limits, root: str, path: str
) -> tuple[Entry, os.stat_result | None]:
    """What stands at one path, ignored or not, and what the system says of it. No link is followed.

    An entry with the mode 0: nothing is there.
    """
    try:
        with open_folder(root, path) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return EntryReader(objects, limits).entry(folder, name, found, None), found
    except OSError as error:
        gone = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        return Entry(0, why="" if gone else "unreadable"), None


@contextmanager
def open_folder(root: str, path: str) -> Iterator[tuple[int, str]]:
    """The handle of the folder that a path lies in, reached without a link, and the last name.

    Raise `OSError` where there is no such folder.
    """
    *folders, name = path.split("/")
    handle = os.open(root, _THROUGH)
    try:
        for folder in folders:
            inner = os.open(folder, _THROUGH, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle, name
    finally:
        os.close(handle)
