"""Files of a workspace that only a person may have read or changed, while a command runs.

The gate asks about a command that names such a file; a script does not name it. So they are looked
for before each command: credentials, which the sandbox hides where it can, and files that run by
themselves, which are put back afterwards if the command had no permission for them.

What they hold is kept until the last of the commands under way has ended; a change that was
permitted is kept from then on. For a bridle that is killed meanwhile it is kept on disk, too.

Only folders that have changed are read again, and installed packages are passed over. Links are
followed only to hide the credentials that they lead to. What a command made or changed is renamed,
never deleted.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

import msgspec

from bridle.workspace import sensitive_paths
from bridle.workspace.fs import Entry, Parent, is_set_aside, names_in, put, set_aside
from bridle.workspace.git.objects import has_blob
from bridle.workspace.git.paths import GitConfiguration
from bridle.workspace.protected_files import CrashBackup, Row, entries_of, rows_of
from bridle.workspace.sensitive_paths import Protection, fold, protection_of

MOST_FOLDERS = 20_000  # that are looked at, those nearest to the root first
_MOST_HELD = 4000  # files whose content is kept
_BYTES = 16 * 1024 * 1024  # of their content
_DEEPEST = 40  # names in a path
_MOST_LINKED = 2000  # files and folders that are looked at behind one link
_PASSED = frozenset(
    {".git", ".hg", ".jj", ".svn", ".bzr", ".bridle", "node_modules", "site-packages"}
)
_REPOSITORY = frozenset({".git", ".hg"})  # marks a folder as one
_MOST_REPOSITORIES = 100  # inside the folder that are protected, those nearest to it first
# where other package managers put packages, with the workflows and settings of their own projects
_INSTALLED = frozenset({"vendor", "target", "Pods", "bower_components", ".pnpm-store", ".yarn"})
_ENVIRONMENT = "pyvenv.cfg"  # marks a folder with a Python environment
_DIRENV = ".direnv"  # has environments in it; anywhere else a command could hide behind the mark
_NOT_OURS = frozenset(
    {sensitive_paths.GIT_WHY, sensitive_paths.GIT_FILES_WHY}
    | {group.why for group in sensitive_paths.INSIDE if ".bridle/**" in group.patterns}
    | {group.why for group in sensitive_paths.INSIDE if ".svn/**" in group.patterns}
)
_FRESH = 1_000_000_000  # nanoseconds: a folder that changed so lately may change again unseen
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Device, inode and time of the last change of a file. It stays the same when a folder above the
# file is renamed, and a command that cannot open the file cannot change it.
Identity = tuple[int, int, int]


class GuardedPaths(NamedTuple):
    """What there is, as paths from the root: credentials; files and folders that run by themselves.

    A folder stands for everything in it.
    """

    credentials: tuple[str, ...] = ()
    autorun: tuple[str, ...] = ()


class AllowedChanges(NamedTuple):
    """Which changes may stand. Paths are relative to the root.

    `allowed` says which paths may have changed, `is_mounted` which could not be changed by any
    command under way, so that a change is somebody else's. `from_git` says which of these contents
    git may have put in place; None if git is not at work. `is_free`: a person let a command run
    outside of the sandbox, so any change may stand.
    """

    allowed: Callable[[str], bool]
    is_mounted: Callable[[str], bool]
    from_git: Callable[[Mapping[str, bytes]], set[str]] | None
    is_free: bool = False


class _Folder(NamedTuple):
    """What was found in one folder, which is known by its inode and the time of its last change.

    `links` are those that may lead to credentials: where they lead is looked up each time.
    """

    inode: int
    changed: int
    below: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    autorun: tuple[str, ...] = ()
    is_repository: bool = False  # a repository of its own, inside the workspace
    links: tuple[str, ...] = ()


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    """What is kept on disk, with paths as bytes."""

    before: list[tuple[bytes, list[Row]]]
    hidden: list[tuple[bytes, Identity]]
    above: list[tuple[bytes, int]]
    mounted: list[bytes]


class GuardedFiles:
    """Those of one folder of the workspace. What git has of credentials is not guarded.

    Whoever uses it sees to it that only one thread does at a time.
    """

    def __init__(
        self, root: str, git: GitConfiguration | None = None, backup: CrashBackup | None = None
    ) -> None:
        self.root = root
        self._git = git  # names folders of hooks, which run by themselves as well
        self._backup = backup
        self._folders: dict[str, _Folder] = {}
        self._before: dict[str, dict[str, Entry]] = {}  # by the file or folder that it belongs to
        self._hidden: dict[str, Identity] = {}
        self._committed: dict[str, tuple[tuple[int, ...], bool]] = {}
        self._stood: dict[str, set[int]] = {}  # contents that were there before a command
        self._above: dict[str, int] = {}  # inodes of the folders that they are in

    @property
    def repositories(self) -> tuple[str, ...]:
        """The repositories inside the folder that the last look found, nearest to it first."""
        found = (path for path, folder in self._folders.items() if folder.is_repository)
        return tuple(islice(found, _MOST_REPOSITORIES))

    def look(self) -> GuardedPaths:
        """Find them before the first command, and keep what those hold that run by themselves."""
        found = self._scan()
        old = {path: entry for held in self._before.values() for path, entry in held.items()}
        left = [_MOST_HELD, _BYTES]
        self._before = {top: self._held(top, old, left) for top in found.autorun}
        for held in self._before.values():
            for path, entry in held.items():
                self._stood.setdefault(path, set()).add(hash(entry.data))
        self._above = self._inodes(found.autorun)
        return self._guarded(found)

    def scan_again(self) -> GuardedPaths:
        """Find them before one more command. What they hold now may be a command's doing."""
        return self._guarded(self._scan())

    def _guarded(self, found: GuardedPaths) -> GuardedPaths:
        still = [path for path, one in self._hidden.items() if self._identity(path) == one]
        there = dict.fromkeys((*found.credentials, *still))
        hidden = tuple(path for path in there if not self._is_committed(path))
        identities = {path: self._identity(path) for path in hidden}
        self._hidden = {path: one for path, one in identities.items() if one is not None}
        known = (top for top in found.autorun if top in self._before)
        return GuardedPaths(hidden, tuple(top for top in known if not self._has_environment(top)))

    def save(self, is_mounted: Callable[[str], bool]) -> None:
        """Keep on disk what `recover` needs, as long as commands are under way."""
        if self._backup is None:
            return
        saved = _Saved(
            before=[(os.fsencode(top), rows_of(held)) for top, held in self._before.items()],
            hidden=[(os.fsencode(path), one) for path, one in self._hidden.items()],
            above=[(os.fsencode(path), inode) for path, inode in self._above.items()],
            mounted=[os.fsencode(top) for top in self._before if is_mounted(top)],
        )
        self._backup.write(msgspec.msgpack.encode(saved))

    def forget(self) -> None:
        """Remove it from the disk: no command is under way."""
        if self._backup is not None:
            self._backup.drop()

    def recover(self) -> list[str]:
        """Put back what commands changed whose bridle was killed: what was done, for a person."""
        done: list[str] = []
        for data in self._backup.take_left_behind() if self._backup is not None else ():
            with suppress(msgspec.MsgspecError):
                saved = msgspec.msgpack.decode(data, type=_Saved)
                self._before = {os.fsdecode(top): entries_of(rows) for top, rows in saved.before}
                self._hidden = {os.fsdecode(path): one for path, one in saved.hidden}
                self._above = {os.fsdecode(path): inode for path, inode in saved.above}
                mounted = {os.fsdecode(top) for top in saved.mounted}
                none = AllowedChanges(lambda path: False, mounted.__contains__, None)
                done += self.restore(none)
        return done

    def restore(self, permissions: AllowedChanges, *, is_last: bool = True) -> list[str]:
        """Put back what runs by itself and has changed: what was done, for a person.

        A change that may stand is from now on what stood there, for the commands that are still
        under way; there are none after the last. What stood there once, git may put back (a stash).
        """
        found = self._scan()
        back = [] if permissions.is_free else self._bring_back(found)
        inodes = self._inodes(found.autorun)
        now: dict[str, os.stat_result] = {}
        before: dict[str, Entry] = {}
        tops: dict[str, str] = {}  # of what has changed
        standing: dict[str, bytes | None] = {}  # changes that may stand, with their content
        doubtful: dict[str, bytes] = {}
        for top in dict.fromkeys((*self._before, *found.autorun)):
            same_place = all(self._above.get(one) == inodes.get(one) for one in _above(top))
            is_mounted = top in self._before and same_place and permissions.is_mounted(top)
            if is_mounted and is_last:
                continue
            there, old = dict(self._entries(top)), self._before.get(top, {})
            now |= there
            before |= old
            for path in {*there, *old}:
                status, entry = there.get(path), old.get(path)
                if not self._differs(path, status, entry):
                    continue
                tops[path] = top
                if is_mounted or permissions.is_free or permissions.allowed(path):
                    standing[path] = self._content(path, status) if status else None
                elif permissions.from_git and (data := self._file(path, status, entry)) is not None:
                    doubtful[path] = data
        stood = {path for path, data in doubtful.items() if self._has_stood(path, data)}
        if permissions.from_git and doubtful:
            left = {path: data for path, data in doubtful.items() if path not in stood}
            stood |= permissions.from_git(left)
        standing |= {path: doubtful[path] for path in stood}
        for path, content in standing.items():
            self._accept(tops[path], path, now.get(path), content)
        wrong = sorted(tops.keys() - standing.keys())
        return [*back, *self._put_back(wrong, now, before)]

    def _accept(
        self, top: str, path: str, status: os.stat_result | None, content: bytes | None
    ) -> None:
        """From now on that is what stood there. The content is the one that was judged."""
        held = self._before.setdefault(top, {})
        if status is None:
            held.pop(path, None)
        else:
            held[path] = Entry(status.st_mode, _mark(status), content)
            self._stood.setdefault(path, set()).add(hash(content))

    def _has_stood(self, path: str, data: bytes) -> bool:
        return hash(data) in self._stood.get(path, ())

    def _bring_back(self, found: GuardedPaths) -> list[str]:
        """Move credentials back whose folder was renamed so that they are not found any more."""
        lost = {one: path for path, one in self._hidden.items() if self._identity(path) != one}
        done: list[str] = []
        for path, new in self._moved(lost) if lost else ():
            if new in found.credentials:
                continue
            try:
                if not self._move(new, path):
                    continue
                done.append(f"{path} (it holds credentials, and was moved to {new})")
            except OSError:
                done.append(
                    f"{path} (it holds credentials, is now at {new}, and could not be put back)"
                )
        return done

    def _move(self, old: str, new: str) -> bool:
        """Rename a file; what is at the new path is set aside. False if it is there already."""
        with (
            Parent(self.root, old) as (handle, name),
            Parent(self.root, new, make=True) as (there, wanted),
        ):
            inode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_ino
            if kept := set_aside(there, wanted):
                # a job in the background may have renamed the folder back meanwhile
                status = os.stat(kept, dir_fd=there, follow_symlinks=False)
                if (status.st_dev, status.st_ino) == (os.fstat(handle).st_dev, inode):
                    os.rename(kept, wanted, src_dir_fd=there, dst_dir_fd=there)
                    return False
            os.rename(name, wanted, src_dir_fd=handle, dst_dir_fd=there)
        return True

    def _moved(self, lost: dict[Identity, str]) -> list[tuple[str, str]]:
        """Where those files are now: old and new paths. Looks into every folder."""
        inodes = {inode for _, inode, _ in lost}
        moved: list[tuple[str, str]] = []
        waiting = [""]
        while waiting and len(moved) < len(lost):
            folder = waiting.pop()
            with suppress(OSError), os.scandir(f"{self.root}/{folder}") as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    elif entry.inode() in inodes:
                        old = lost.get(self._identity(path) or (0, 0, 0))
                        moved += [(old, path)] if old is not None else []
        return moved

    def _identity(self, path: str) -> Identity | None:
        status = self._status(path)
        return None if status is None else (status.st_dev, status.st_ino, status.st_ctime_ns)

    def _is_committed(self, path: str) -> bool:
        """Does git have this very content? Then it is no secret of this machine.

        Otherwise git, and what reads certificates for tests or settings like `.npmrc`, would fail
        on files that everybody has who has the repository.
        """
        status = self._status(path)
        if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > _BYTES:
            return False
        mark = _mark(status)
        known = self._committed.get(path)
        if known is None or known[0] != mark:
            data = self._content(path, status)
            known = mark, data is not None and has_blob(self.root, path, data)
            self._committed[path] = known
        return known[1]

    def _status(self, path: str) -> os.stat_result | None:
        with suppress(OSError), Parent(self.root, path) as (handle, name):
            return os.stat(name, dir_fd=handle, follow_symlinks=False)
        return None

    def _scan(self) -> GuardedPaths:
        credentials: list[str] = []
        autorun: list[str] = []
        folders: dict[str, _Folder] = {}
        waiting = deque([""])
        while waiting and len(folders) < MOST_FOLDERS:
            path = waiting.popleft()
            found = self._folder(path)
            if found is not None:
                folders[path] = found
                if found.credentials or found.autorun:
                    credentials += found.credentials
                    autorun += found.autorun
                for link in found.links:
                    credentials += self._behind(link)
                waiting.extend(found.below)
        self._folders = folders
        known = set(autorun)
        for path in self._named_by_git():
            if os.path.lexists(f"{self.root}/{path}") and known.isdisjoint((path, *_above(path))):
                known.add(path)
                autorun.append(path)
        return GuardedPaths(tuple(credentials), tuple(autorun))

    def _named_by_git(self) -> Iterator[str]:
        """Hooks that git's configuration names, and files that nested repositories include.

        Files that the top repository includes are protected more strictly, by others.
        """
        if self._git is None:
            return
        yield from self._git.paths.hooks_in(self.root)
        strict = self._git.paths.files_in(self.root)
        for repository in self.repositories:
            folder = f"{self.root}/{repository}"
            paths = self._git.nested(folder).paths
            yield from paths.hooks_in(self.root, folder)
            yield from (path for path in paths.files_in(self.root) if path not in strict)

    def _behind(self, link: str) -> Iterator[str]:
        """The credentials that a link leads to: by the names that they have through the link."""
        waiting = [(link, _real(self.root, link))]
        seen: set[str] = set()
        while waiting and len(seen) < _MOST_LINKED:
            name, path = waiting.pop()
            if not path or path in seen:
                continue
            seen.add(path)
            try:
                with os.scandir(f"{self.root}/{path}") as entries:
                    names = [entry.name for entry in entries]
            except NotADirectoryError:
                if protection_of(name).reading:
                    yield path
                continue
            except OSError:
                continue
            waiting += [(f"{name}/{one}", _real(self.root, f"{path}/{one}")) for one in names]

    def _folder(self, path: str) -> _Folder | None:
        """A folder as it is remembered, or read anew if it has changed."""
        whole = f"{self.root}/{path}"
        try:
            status = os.lstat(
                whole
            )  # a path object for each would changes_by_tools three times as long
            known = self._folders.get(path)
            if (
                known is not None
                and known.changed == status.st_ctime_ns
                and known.inode == status.st_ino
            ):
                return known
            with os.scandir(whole) as entries:
                listed = list(entries)
        except OSError:  # who may not look into it, or finds it gone, reads nothing there
            return None
        changed = status.st_ctime_ns
        is_fresh = abs(time.time_ns() - changed) < _FRESH
        return _sorted_out(path, listed)._replace(
            inode=status.st_ino, changed=-1 if is_fresh else changed
        )

    def _inodes(self, tops: tuple[str, ...]) -> dict[str, int]:
        """The folders that those are in, as the last look found them."""
        named = {above for top in tops for above in _above(top)}
        return {path: found.inode for path in named if (found := self._folders.get(path))}

    def _held(self, top: str, old: dict[str, Entry], left: list[int]) -> dict[str, Entry]:
        held: dict[str, Entry] = {}
        for path, status in self._entries(top):
            known, mark = old.get(path), _mark(status)
            if known is None or known.mark != mark or known.data is None:
                fits = left[0] > 0 and left[1] >= status.st_size
                data = self._content(path, status) if fits else None
                known = Entry(status.st_mode, mark, data)
            left[0] -= 1
            left[1] -= len(known.data or b"")
            held[path] = known
        return held

    def _entries(self, top: str) -> Iterator[tuple[str, os.stat_result]]:
        """A file, or a folder with all that is in it: everything but what was set aside."""
        waiting = [top]
        while waiting:
            path = waiting.pop()
            with suppress(OSError), Parent(self.root, path) as (handle, name):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if is_set_aside(name):
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                names = names_in(handle, name) if is_folder else []
                if _ENVIRONMENT in names and _is_of_direnv(path):
                    continue
                if path != top or not self._has_environment(top):
                    yield path, status
                if is_folder and path.count("/") < _DEEPEST:
                    waiting += [f"{path}/{one}" for one in names]

    def _has_environment(self, top: str) -> bool:
        """Does it hold a Python environment, whose packages come and go?"""
        if fold(top.rpartition("/")[2]) != _DIRENV:
            return False
        with suppress(OSError), os.scandir(f"{self.root}/{top}") as entries:
            return any(os.path.lexists(f"{entry.path}/{_ENVIRONMENT}") for entry in entries)
        return False

    def _content(self, path: str, status: os.stat_result) -> bytes | None:
        with suppress(OSError), Parent(self.root, path) as (handle, name):
            if stat.S_ISLNK(status.st_mode):
                return os.fsencode(os.readlink(name, dir_fd=handle))
            if not stat.S_ISREG(status.st_mode):
                return b""
            with os.fdopen(os.open(name, _FILE, dir_fd=handle), "rb") as file:
                return file.read(_BYTES)
        return None

    def _differs(self, path: str, now: os.stat_result | None, before: Entry | None) -> bool:
        if now is None or before is None:
            return True
        if stat.S_ISDIR(now.st_mode) and stat.S_ISDIR(before.mode):
            return False
        if before.mark == _mark(now):
            return False
        same = before.mode == now.st_mode and before.data is not None
        return not (same and self._content(path, now) == before.data)

    def _file(self, path: str, now: os.stat_result | None, before: Entry | None) -> bytes | None:
        """The content that git may have put there, or taken away; None if git does neither."""
        if now is not None and stat.S_ISREG(now.st_mode) and not now.st_mode & 0o6000:
            return self._content(path, now)
        if now is None and before is not None and stat.S_ISREG(before.mode):
            return before.data
        return None

    def _put_back(
        self, changed: list[str], now: dict[str, os.stat_result], before: dict[str, Entry]
    ) -> list[str]:
        done: list[str] = []
        gone: list[str] = []  # folders that were set aside with all that is in them
        wrong = set(changed)
        for path in changed:
            if any(path.startswith(f"{folder}/") for folder in gone):
                continue
            status, old = now.get(path), before.get(path)
            if old is not None and stat.S_ISDIR(old.mode):
                continue  # made again with what was in it
            is_folder = status is not None and stat.S_ISDIR(status.st_mode)
            if is_folder and any(_is_in(one, path) and one not in wrong for one in now):
                continue  # something in it may be there
            try:
                done.append(self._put_back_one(path, status is not None, old))
            except OSError:
                done.append(f"{path} (could not be put back)")
            if is_folder:
                gone.append(path)
        return done

    def _put_back_one(self, path: str, is_there: bool, old: Entry | None) -> str:
        with Parent(self.root, path, make=old is not None) as (handle, name):
            kept = set_aside(handle, name) if is_there else ""
            if old is not None and old.data is None:
                return f"{path} (it is too large to be put back)"
            if old is not None:
                put(handle, name, old)
        folder = path.rpartition("/")[0]
        where = f"{folder}/{kept}" if folder else kept
        return f"{path} (the command's version is kept as {where})" if kept else path


def _sorted_out(folder: str, listed: "list[os.DirEntry[str]]") -> _Folder:
    """What is to be guarded in a folder, and the folders in it."""
    credentials: list[str] = []
    autorun: list[str] = []
    below: list[str] = []
    links: list[str] = []
    names = folder.split("/")
    secret = _secret_heads()
    inside = _heads().intersection(map(fold, names))
    # what runs by itself here is part of a folder that was found, of an installed package, or was
    # set aside
    within = (
        not _INSTALLED.isdisjoint(names)
        or any(map(is_set_aside, names))
        or (bool(inside) and _runs(protection_of(f"{folder}/x")))
    )
    is_repository = False
    for entry in listed:
        name = entry.name
        if name in _PASSED:
            is_repository = is_repository or (name in _REPOSITORY and folder != "")
            continue
        is_aside = within or is_set_aside(name)
        path = f"{folder}/{name}" if folder else name
        matters = inside or fold(name) in _heads()
        care = protection_of(path) if matters else _care_of_name(name)
        if entry.is_symlink() and (
            care.reading or not secret.isdisjoint(map(fold, (*names, name)))
        ):
            links.append(path)
        if entry.is_dir(follow_symlinks=False):
            below.append(path)
            if matters and not is_aside and _runs(protection_of(f"{path}/x")):
                autorun.append(path)
        elif care.reading:
            if not entry.is_symlink():
                credentials.append(path)
        elif _runs(care) and not is_aside:
            autorun.append(path)
    return _Folder(
        inode=0,
        changed=0,
        below=tuple(below),
        credentials=tuple(credentials),
        autorun=tuple(autorun),
        links=tuple(links),
        is_repository=is_repository,
    )


def _runs(care: Protection) -> bool:
    return bool(care.writing) and not care.reading and care.why not in _NOT_OURS


@cache
def _heads() -> frozenset[str]:
    """The first names of patterns that have several: what lies below depends on its folder."""
    patterns = (text for group in sensitive_paths.INSIDE for text in group.patterns.split())
    return frozenset(text.partition("/")[0] for text in patterns if "/" in text)


@cache
def _secret_heads() -> frozenset[str]:
    """The same, for credentials alone."""
    texts = (
        text for group in sensitive_paths.INSIDE if group.reading for text in group.patterns.split()
    )
    return frozenset(text.partition("/")[0] for text in texts if "/" in text)


@lru_cache(maxsize=1 << 16)
def _care_of_name(name: str) -> Protection:
    return protection_of(name)


def _is_of_direnv(path: str) -> bool:
    """Does it lie in the folder in which direnv makes environments?"""
    return fold(path.rpartition("/")[0].rpartition("/")[2]) == _DIRENV


def _real(root: str, path: str) -> str:
    """Where in the workspace a path leads; empty if it leads elsewhere."""
    real = os.path.realpath(f"{root}/{path}")
    return real[len(root) + 1 :] if real.startswith(f"{root}/") else ""


def _mark(status: os.stat_result) -> tuple[int, ...]:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_mode, status.st_ino, status.st_size, *times)


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path
