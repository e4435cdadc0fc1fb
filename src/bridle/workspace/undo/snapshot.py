"""Scans a workspace: every name below the root, and the content of what is new.

It uses folder handles and follows no link. What git ignores, `.git` and bridle's own state are
named and not opened. What git tracks is never ignored; git's index is read for that, so that no
program has to be started. A file that the system reports as unchanged since the last scan is not
read, so a scan without changes costs one stat per name.
"""

import errno
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from itertools import islice

from msgspec import Struct

from bridle.workspace.fs import FOLDER, READ, open_parent
from bridle.workspace.git.repository import tracked_paths
from bridle.workspace.ignore import IgnoreRules, parse_ignore
from bridle.workspace.undo.storage import ContentStore
from bridle.workspace.undo.tree import IGNORED, TRACKED, Entry, Folder, Tree

_MAX_INDEX = 64 << 20  # bytes
_MAX_LINE = 4096
_WORKTREE = b"gitdir: "  # how `.git` begins if it is a file


def tracked_by_git(root: str) -> frozenset[str]:
    """Return the paths that git tracks, from the root, and the folders that they lie in."""
    data = _read(f"{root}/.git/index", _MAX_INDEX)
    if data is None:
        line = _read(f"{root}/.git", _MAX_LINE) or b""
        if line.startswith(_WORKTREE):
            folder = os.fsdecode(line.removeprefix(_WORKTREE).strip())
            data = _read(f"{root}/{folder}/index" if folder[:1] != "/" else f"{folder}/index")
    paths: set[str] = set()
    with suppress(ValueError):
        for path in tracked_paths(data or b""):
            while path and path not in paths:
                paths.add(path)
                path = path.rpartition("/")[0]
    return frozenset(paths)


def _read(path: str, limit: int = _MAX_INDEX) -> bytes | None:
    """Read a regular file. Return None for anything else, and for more than `limit` bytes."""
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
_TICK = 20_000_000  # nanoseconds: two changes within this time may have the same timestamp
_COARSE = 2_000_000_000  # the same, if timestamps are whole seconds
_SECOND = 1_000_000_000


class Limits(Struct, frozen=True):
    """How much is kept: bytes of a file, names in the tree, new bytes and seconds for a scan."""

    file: int = 10_000_000
    entries: int = 50_000
    fresh: int = 1_000_000_000
    max_seconds: float = 10.0


DEFAULT_LIMITS = Limits()


class EntryReader:
    """Reads entries for one scan, within its limits of time and new bytes."""

    def __init__(self, objects: ContentStore, limits: Limits) -> None:
        self._objects = objects
        self._limits = limits
        self._deadline = time.monotonic() + limits.max_seconds
        self._new_bytes = 0
        self._is_full = False

    def entry(self, folder: int, name: str, status: os.stat_result, old: Entry | None) -> Entry:
        """Return the entry of a name, given its status now and the entry before.

        Its mode is 0 if it is gone by now.
        """
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:
            if old is None or not stat.S_ISDIR(old.mode):
                return Entry(status.st_mode)
            return old if old.mode == status.st_mode else Entry(status.st_mode, old.object)
        if kind == stat.S_IFREG:
            return self._file(folder, name, status)
        if kind == stat.S_IFLNK:
            return _link(folder, name, status)
        return _special(status)

    def _file(self, folder: int, name: str, status: os.stat_result) -> Entry:
        if status.st_size > self._limits.file:
            return _without_content(status, "large")
        if self._is_full:
            return _without_content(status, "store")
        if self._new_bytes > self._limits.fresh or time.monotonic() > self._deadline:
            return _without_content(status, "late")
        try:
            return self._read(folder, name)
        except FileNotFoundError:
            return Entry(0)
        except OSError:
            return _without_content(status, "unreadable")

    def _read(self, folder: int, name: str) -> Entry:
        """Read a file until it does not change; else the next scan reads it again."""
        handle = os.open(name, READ, dir_fd=folder)
        try:
            for _ in range(_TRIES):
                began = time.time_ns()
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    return _special(status)
                data = _read_handle(handle, self._limits.file)
                if len(data) > self._limits.file:
                    return _without_content(status, "large")
                is_stable = (
                    _times(os.fstat(handle)) == _times(status) and len(data) == status.st_size
                )
                if is_stable:
                    break
        finally:
            os.close(handle)
        return self._store(
            status, data, is_certain=is_stable and not _may_change_unseen(status, began)
        )

    def _store(self, status: os.stat_result, data: bytes, *, is_certain: bool) -> Entry:
        try:
            name, is_new = self._objects.put(data)
        except OSError:  # most likely the disk is full, for all other files as well
            self._is_full = True
            return _without_content(status, "store")
        self._new_bytes += len(data) if is_new else 0
        if not is_certain:
            return Entry(status.st_mode, name)
        return Entry(status.st_mode, name, "", len(data), *_times(status), status.st_ino)


def _without_content(status: os.stat_result, why: str) -> Entry:
    """Return the entry of something whose content is not kept: it only tells whether it changed."""
    return Entry(status.st_mode, f"{status.st_size}:{status.st_mtime_ns}", why)


def _special(status: os.stat_result) -> Entry:
    return Entry(status.st_mode, str(status.st_rdev), "special")


def _link(folder: int, name: str, status: os.stat_result) -> Entry:
    began = time.time_ns()
    try:
        target = os.readlink(name, dir_fd=folder)
    except FileNotFoundError:
        return Entry(0)
    except OSError:
        return _without_content(status, "unreadable")
    if _may_change_unseen(status, began):
        return Entry(status.st_mode, target)
    return Entry(status.st_mode, target, "", status.st_size, *_times(status), status.st_ino)


def _times(status: os.stat_result) -> tuple[int, int]:
    return status.st_mtime_ns, status.st_ctime_ns


def _may_change_unseen(status: os.stat_result, began: int) -> bool:
    """Is it so young that its times may stay the same when it changes? Then it is read again."""
    latest = max(_times(status))
    window = _COARSE if latest % _SECOND == 0 else _TICK
    return latest > began - window


def _read_handle(handle: int, most: int) -> bytes:
    """Read a file, up to one byte more than `most`."""
    os.lseek(handle, 0, os.SEEK_SET)
    chunks: list[bytes] = []
    left = most + 1
    while left > 0 and (chunk := os.read(handle, min(left, _BLOCK))):
        chunks.append(chunk)
        left -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


_MAX_DEPTH = 100  # folders below each other; each has a handle open
_IGNORE = ".gitignore"
_UNKNOWN = Folder(rules="-")


class Rules:
    """The ignore rules of a folder. They are parsed when they are first needed.

    `name` tells rules apart without parsing them.
    """

    def __init__(self, objects: ContentStore) -> None:
        self.name = ""
        self._objects = objects
        self._base = ""
        self._above: Rules | None = None
        self._object = ""
        self._ignore: IgnoreRules | None = None
        self._ignores_all = False

    def of_folder(self, folder: str, entry: Entry | None) -> "Rules":
        """Return the rules of a folder below, whose .gitignore has this entry."""
        if entry is None or not stat.S_ISREG(entry.mode) or entry.why or self._ignores_all:
            return self
        inner = Rules(self._objects)
        inner._base, inner._above, inner._object = folder, self, entry.object
        words = os.fsencode(f"{self.name}\n{folder}\n{entry.object}")
        inner.name = blake2b(words, digest_size=8).hexdigest()
        return inner

    def of_ignored_folder(self) -> "Rules":
        """Return the rules of a folder that is ignored: everything in it is, too."""
        inner = Rules(self._objects)
        inner.name, inner._ignores_all = f"{self.name}*", True
        return inner

    def ignore(self, path: str, is_folder: bool) -> bool:
        """Is the path ignored?"""
        return self._ignores_all or self._load().ignore(path, is_folder)

    def _load(self) -> IgnoreRules:
        if self._ignore is None:
            data = self._objects.get(self._object) if self._object else b""
            above = self._above._load() if self._above is not None else None
            rules = parse_ignore((data or b"").decode(errors="replace"))
            self._ignore = IgnoreRules(self._base, rules, above)
        return self._ignore


class Scan:
    """One scan of a workspace.

    With `pinned`, names in the tree `known` are covered, or ignored, as they were there, whatever
    the ignore rules are now: a turn is compared with what it began with. `missed` are folders that
    were not looked at, and why.
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
        self._count = 0
        self._root = ""
        self.ignored: list[str] = []
        self.missed: list[tuple[str, str]] = []
        self.changed = False

    def run(self, root: str) -> Tree:
        """Scan everything below the root. Raise `OSError` if the root itself cannot be read."""
        self._root = root
        handle = os.open(root, FOLDER)
        try:
            self._enter(handle, "", Rules(self._objects), 0)
        finally:
            os.close(handle)
        self.changed |= self._folders.keys() != self._known.keys()
        return Tree(self._folders)

    def _enter(self, handle: int, path: str, rules: Rules, depth: int) -> None:
        old = self._known.get(path, _UNKNOWN)
        with os.scandir(handle) as scanned:
            items = list(islice(scanned, max(0, self._limits.entries - self._count + 1)))
        self._count += len(items)
        if self._count > self._limits.entries:
            self._skip(path, "many")
            return
        rules = rules.of_folder(path, self._ignore_file(handle, items, old))
        entries, below = self._names(handle, path, rules, items)
        if entries == old.entries and rules.name == old.rules and not old.why:
            self._folders[path] = old
        else:
            self._folders[path] = Folder(rules.name, entries)
            self.changed = True
        for name in below:
            inner = rules.of_ignored_folder() if entries[name].object == TRACKED else rules
            self._descend(handle, f"{path}/{name}" if path else name, inner, depth + 1)

    def _descend(self, above: int, path: str, rules: Rules, depth: int) -> None:
        if depth > _MAX_DEPTH:
            self._skip(path, "deep")
            return
        try:
            handle = os.open(path.rpartition("/")[2], FOLDER, dir_fd=above)
        except FileNotFoundError:
            return
        except OSError:  # we may not read it, or it is a link by now
            self._skip(path, "unreadable")
            return
        try:
            self._enter(handle, path, rules, depth)
        except OSError:
            self._skip(path, "unreadable")
        finally:
            os.close(handle)

    def _skip(self, path: str, why: str) -> None:
        self._folders[path] = Folder(why=why)
        self.missed.append((f"{path}/" if path else "the workspace", why))
        self.changed = True

    def _names(
        self, handle: int, path: str, rules: Rules, items: "list[os.DirEntry[str]]"
    ) -> tuple[dict[str, Entry], list[str]]:
        """Return the entries of a folder, and the names of the folders to scan.

        Nearly all time is spent here: it runs for every file of the workspace.
        """
        prefix = f"{path}/" if path else ""
        old = self._known.get(path, _UNKNOWN)
        known, trusted = old.entries, old.rules == rules.name or (self._pinned and old != _UNKNOWN)
        entries: dict[str, Entry] = {}
        below: list[str] = []
        for item in items:
            name = item.name
            was = known.get(name)
            if was is None or not trusted or (was.why and not was.mode):
                excluded = self._excluded(prefix + name, item, rules, was if trusted else None)
                if excluded is not None and excluded.object != TRACKED:
                    entries[name] = excluded
                    continue
                was = excluded or was
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

    def _excluded(
        self, path: str, item: "os.DirEntry[str]", rules: Rules, was: Entry | None
    ) -> Entry | None:
        """Return the entry of a name that is not read, or None if it is.

        An ignored folder that has files which git tracks is scanned for them, and marked so.
        """
        if item.name == ".git":
            return Entry(0, why="git")
        if path in self._hidden:
            return Entry(0, why="state")
        if item.name == _IGNORE:
            return None  # it decides what is kept, so it is kept itself
        is_folder = item.is_dir(follow_symlinks=False)
        ignored = rules.ignore(path, is_folder) if was is None else was.why == IGNORED
        if not ignored:
            return None
        if was is None and path in self._tracked_paths:
            return Entry(stat.S_IFDIR, TRACKED) if is_folder else None
        self.ignored.append(f"{path}/" if is_folder else path)
        return Entry(0, why=IGNORED)

    @cached_property
    def _tracked_paths(self) -> frozenset[str]:
        """What git tracks, and the folders of it: no rule ignores them."""
        return tracked_by_git(self._root)

    def _ignore_file(
        self, handle: int, items: "list[os.DirEntry[str]]", old: Folder
    ) -> Entry | None:
        """Return the entry of the folder's .gitignore, which decides about the other names."""
        item = next((item for item in items if item.name == _IGNORE), None)
        if item is None:
            return None
        was = old.entries.get(_IGNORE)
        with suppress(OSError):
            now = item.stat(follow_symlinks=False)
            if was is not None and was.ctime == now.st_ctime_ns and was.inode == now.st_ino:
                return was
            return self._reader.entry(handle, _IGNORE, now, was)
        return None


def read_path(
    objects: ContentStore, limits: Limits, root: str, path: str
) -> tuple[Entry, os.stat_result | None]:
    """Return the entry of one path, ignored or not, and its status. No link is followed.

    The mode of the entry is 0 if nothing is there.
    """
    try:
        with open_parent(root, path) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return EntryReader(objects, limits).entry(folder, name, status, None), status
    except OSError as error:
        is_gone = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        return Entry(0, why="" if is_gone else "unreadable"), None
