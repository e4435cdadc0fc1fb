"""A look at all of a workspace: every name below the root, and the content of what is new.

Goes by folder handles and follows no link. What git ignores, `.git` and bridle's own state are
named and not looked into. What the system says is unchanged since the last look is not read, so a
look at a tree in which nothing happened costs one stat for each name.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import islice

from bridle.workspace.tree import Ignored, parse_ignore
from bridle.workspace.undo.index import IGNORED, TRACKED, Entry, Folder, Tree
from bridle.workspace.undo.kept_by_git import kept_by_git
from bridle.workspace.undo.objects import Objects
from bridle.workspace.undo.reader import Limits, Reader

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_THROUGH = _FOLDER | getattr(os, "O_PATH", 0)  # passing through asks for no right to read
_DEEPEST = 100  # folders below each other; each holds a handle open
_IGNORE = ".gitignore"
_NOTHING = Folder(rules="-")


class Rules:
    """The ignore rules that hold in a folder. They are read when a name has to be judged."""

    def __init__(self, objects: Objects) -> None:
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


class Look:
    """One look at a workspace.

    With `pinned` the names that `known` has are covered, or ignored, as they were there, whatever
    the ignore rules say by now: what a turn began with is what it is compared with.
    """

    def __init__(
        self,
        objects: Objects,
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
        self._reader = Reader(objects, limits)
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
        handle = os.open(root, _FOLDER)
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
            handle = os.open(path.rpartition("/")[2], _FOLDER, dir_fd=above)
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
            self._tracked = kept_by_git(self._root)
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


def look_at(
    objects: Objects, limits: Limits, root: str, path: str
) -> tuple[Entry, os.stat_result | None]:
    """What stands at one path, ignored or not, and what the system says of it. No link is followed.

    An entry with the mode 0: nothing is there.
    """
    try:
        with held(root, path) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return Reader(objects, limits).entry(folder, name, found, None), found
    except OSError as error:
        gone = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        return Entry(0, why="" if gone else "unreadable"), None


@contextmanager
def held(root: str, path: str) -> Iterator[tuple[int, str]]:
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
