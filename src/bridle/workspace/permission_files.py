"""Files of a workspace that a command may read or change only with a person's permission.

The gate asks about a command that names such a file, but a script does not name it. So they are
looked for before each command: credentials, which the sandbox hides if it can, and files that run
by themselves, which are restored afterwards if the command had no permission for them.

Their content is kept until the last of the running commands has ended, also on disk, in case bridle
is killed. A change that was permitted replaces what was kept.

Only folders that have changed are read again, and installed packages are skipped. Links are
followed only to hide the credentials that they lead to. What a command created or changed is
renamed, never deleted.
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
from bridle.workspace.fs import (
    SavedEntry,
    is_below,
    is_set_aside,
    list_folder,
    open_parent,
    restore_entry,
    set_aside,
)
from bridle.workspace.git.objects import has_blob
from bridle.workspace.git.paths import GitConfiguration
from bridle.workspace.protected_files import CrashBackup, Row, from_rows, to_rows
from bridle.workspace.sensitive_paths import Protection, fold, protection_of

MAX_FOLDERS = 20_000  # that are looked at, those nearest to the root first
_MAX_KEPT = 4000  # files whose content is kept
_MAX_BYTES = 16 * 1024 * 1024  # of their content
_MAX_DEPTH = 40  # names in a path
_MAX_LINKED = 2000  # files and folders that are looked at behind one link
_SKIPPED = frozenset(
    {".git", ".hg", ".jj", ".svn", ".bzr", ".bridle", "node_modules", "site-packages"}
)
_REPOSITORY = frozenset({".git", ".hg"})  # marks a folder as one
_MAX_REPOSITORIES = 100  # inside the folder that are protected, those nearest to it first
# where package managers put packages, with the workflows and settings of their own projects
_INSTALLED = frozenset({"vendor", "target", "Pods", "bower_components", ".pnpm-store", ".yarn"})
_ENVIRONMENT = "pyvenv.cfg"  # marks a folder with a Python environment
_DIRENV = ".direnv"  # has environments in it; elsewhere a command could fake one to hide files
_OTHERS_WHYS = frozenset(
    {sensitive_paths.GIT_WHY, sensitive_paths.GIT_FILES_WHY}
    | {group.why for group in sensitive_paths.INSIDE if ".bridle/**" in group.patterns}
    | {group.why for group in sensitive_paths.INSIDE if ".svn/**" in group.patterns}
)
_RECENT = 1_000_000_000  # nanoseconds: a folder that changed so recently may change again unseen
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Device, inode and time of the last change of a file. It stays the same when a folder above the
# file is renamed, and a command that cannot open the file cannot change it.
Identity = tuple[int, int, int]


class GuardedPaths(NamedTuple):
    """Credentials, and files and folders that run by themselves, as paths from the root.

    A folder stands for everything in it.
    """

    credentials: tuple[str, ...] = ()
    autorun: tuple[str, ...] = ()


class AllowedChanges(NamedTuple):
    """Which changes may stay. Paths are relative to the root.

    `is_allowed` says whether a path may have changed, and `is_mounted` whether no running command
    could change it, so that somebody else did. `from_git` returns which of these contents git may
    have put in place; None if no command runs git. With `is_free`, a person let a command run
    outside of the sandbox, so any change may stay.
    """

    is_allowed: Callable[[str], bool]
    is_mounted: Callable[[str], bool]
    from_git: Callable[[Mapping[str, bytes]], set[str]] | None
    is_free: bool = False


class _Folder(NamedTuple):
    """What is guarded in one folder, known by its inode and the time of its last change.

    `links` may lead to credentials: where they lead is looked up each time.
    """

    inode: int
    changed: int
    below: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    autorun: tuple[str, ...] = ()
    is_repository: bool = False  # a repository of its own, inside the workspace
    links: tuple[str, ...] = ()


class _Backup(msgspec.Struct, frozen=True, array_like=True):
    """What is on disk, with paths as bytes."""

    before: list[tuple[bytes, list[Row]]]
    hidden: list[tuple[bytes, Identity]]
    above: list[tuple[bytes, int]]
    mounted: list[bytes]


class GuardedFiles:
    """The guarded files of one folder of the workspace. Credentials that git has are not guarded.

    Not thread-safe.
    """

    def __init__(
        self, root: str, git: GitConfiguration | None = None, backup: CrashBackup | None = None
    ) -> None:
        self.root = root
        self._git = git  # names folders of hooks, which run by themselves as well
        self._backup = backup
        self._folders: dict[str, _Folder] = {}
        self._before: dict[str, dict[str, SavedEntry]] = {}  # by the guarded file or folder
        self._hidden: dict[str, Identity] = {}
        self._committed: dict[str, tuple[tuple[int, ...], bool]] = {}
        self._earlier: dict[
            str, set[int]
        ] = {}  # hashes of contents that were there before a command
        self._parents: dict[str, int] = {}  # inodes of the folders that they are in

    @property
    def repositories(self) -> tuple[str, ...]:
        """The repositories inside the folder that the last scan found, nearest to it first."""
        paths = (path for path, folder in self._folders.items() if folder.is_repository)
        return tuple(islice(paths, _MAX_REPOSITORIES))

    def take_snapshot(self) -> GuardedPaths:
        """Find them before the first command, and keep the content of those that run."""
        guarded = self._scan()
        old = {path: entry for entries in self._before.values() for path, entry in entries.items()}
        left = [_MAX_KEPT, _MAX_BYTES]
        self._before = {top: self._keep(top, old, left) for top in guarded.autorun}
        for entries in self._before.values():
            for path, entry in entries.items():
                self._earlier.setdefault(path, set()).add(hash(entry.data))
        self._parents = self._inodes(guarded.autorun)
        return self._guard(guarded)

    def scan_again(self) -> GuardedPaths:
        """Find them before one more command. Their content now may be a command's doing."""
        return self._guard(self._scan())

    def _guard(self, found: GuardedPaths) -> GuardedPaths:
        """Return what is guarded from now on. What was hidden stays so."""
        hidden_before = [
            path for path, identity in self._hidden.items() if self._identity(path) == identity
        ]
        credentials = dict.fromkeys((*found.credentials, *hidden_before))
        hidden = tuple(path for path in credentials if not self._is_committed(path))
        identities = {path: self._identity(path) for path in hidden}
        self._hidden = {path: known for path, known in identities.items() if known is not None}
        known = (top for top in found.autorun if top in self._before)
        return GuardedPaths(hidden, tuple(top for top in known if not self._has_environment(top)))

    def write_backup(self, is_mounted: Callable[[str], bool]) -> None:
        """Write what `recover` needs to disk, while commands are running."""
        if self._backup is None:
            return
        backup = _Backup(
            before=[(os.fsencode(top), to_rows(entries)) for top, entries in self._before.items()],
            hidden=[(os.fsencode(path), identity) for path, identity in self._hidden.items()],
            above=[(os.fsencode(path), inode) for path, inode in self._parents.items()],
            mounted=[os.fsencode(top) for top in self._before if is_mounted(top)],
        )
        self._backup.write(msgspec.msgpack.encode(backup))

    def discard_backup(self) -> None:
        """Remove the backup: no command is running."""
        if self._backup is not None:
            self._backup.discard()

    def recover(self) -> list[str]:
        """Restore what commands had changed when bridle was killed. Return what was done."""
        done: list[str] = []
        for data in self._backup.recover_data() if self._backup is not None else ():
            with suppress(msgspec.MsgspecError):
                backup = msgspec.msgpack.decode(data, type=_Backup)
                self._before = {os.fsdecode(top): from_rows(rows) for top, rows in backup.before}
                self._hidden = {os.fsdecode(path): identity for path, identity in backup.hidden}
                self._parents = {os.fsdecode(path): inode for path, inode in backup.above}
                mounted = {os.fsdecode(top) for top in backup.mounted}
                none = AllowedChanges(lambda path: False, mounted.__contains__, None)
                done += self.restore(none)
        return done

    def restore(self, permissions: AllowedChanges, *, is_last: bool = True) -> list[str]:
        """Restore what runs by itself and has changed. Return what was done, for a person.

        A change that may stay replaces what was kept, for commands that are still running; none is
        after the last. Git may restore any content that was there before (a stash).
        """
        found = self._scan()
        moved = [] if permissions.is_free else self._move_credentials_back(found)
        inodes = self._inodes(found.autorun)
        now: dict[str, os.stat_result] = {}
        before: dict[str, SavedEntry] = {}
        tops: dict[str, str] = {}  # of what has changed
        accepted: dict[str, bytes | None] = {}  # changes that may stay, with their content
        unclear: dict[str, bytes] = {}  # perhaps done by git
        for top in dict.fromkeys((*self._before, *found.autorun)):
            same_place = all(self._parents.get(path) == inodes.get(path) for path in _parents(top))
            is_mounted = top in self._before and same_place and permissions.is_mounted(top)
            if is_mounted and is_last:
                continue
            current, old = dict(self._entries(top)), self._before.get(top, {})
            now |= current
            before |= old
            for path in {*current, *old}:
                status, entry = current.get(path), old.get(path)
                if not self._differs(path, status, entry):
                    continue
                tops[path] = top
                if is_mounted or permissions.is_free or permissions.is_allowed(path):
                    accepted[path] = self._content(path, status) if status else None
                elif permissions.from_git:
                    data = self._content_by_git(path, status, entry)
                    if data is not None:
                        unclear[path] = data
        by_git = {
            path for path, data in unclear.items() if hash(data) in self._earlier.get(path, ())
        }
        if permissions.from_git and unclear:
            left = {path: data for path, data in unclear.items() if path not in by_git}
            by_git |= permissions.from_git(left)
        accepted |= {path: unclear[path] for path in by_git}
        for path, content in accepted.items():
            self._accept(tops[path], path, now.get(path), content)
        wrong = sorted(tops.keys() - accepted.keys())
        return [*moved, *self._restore_all(wrong, now, before)]

    def _accept(
        self, top: str, path: str, status: os.stat_result | None, content: bytes | None
    ) -> None:
        """Keep this from now on. The content is the one that was judged."""
        entries = self._before.setdefault(top, {})
        if status is None:
            entries.pop(path, None)
        else:
            entries[path] = SavedEntry(status.st_mode, _stamp(status), content)
            self._earlier.setdefault(path, set()).add(hash(content))

    def _move_credentials_back(self, found: GuardedPaths) -> list[str]:
        """Move credentials back whose folder was renamed so that they are no longer found."""
        lost = {
            identity: path
            for path, identity in self._hidden.items()
            if self._identity(path) != identity
        }
        done: list[str] = []
        for path, new in self._find_moved(lost) if lost else ():
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
        """Rename a file; set aside what is at the new path. Return False if it is there already."""
        with (
            open_parent(self.root, old) as (handle, name),
            open_parent(self.root, new, make=True) as (new_handle, new_name),
        ):
            inode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_ino
            if kept := set_aside(new_handle, new_name):
                # a job in the background may have renamed the folder back meanwhile
                status = os.stat(kept, dir_fd=new_handle, follow_symlinks=False)
                if (status.st_dev, status.st_ino) == (os.fstat(handle).st_dev, inode):
                    os.rename(kept, new_name, src_dir_fd=new_handle, dst_dir_fd=new_handle)
                    return False
            os.rename(name, new_name, src_dir_fd=handle, dst_dir_fd=new_handle)
        return True

    def _find_moved(self, lost: dict[Identity, str]) -> list[tuple[str, str]]:
        """Look into every folder for these files. Return their old and new paths."""
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
        """Does git have this very content? Then it is not a secret of this machine.

        Otherwise git, tests that read certificates, and programs that read settings such as
        `.npmrc` would fail on files that everybody has who has the repository.
        """
        status = self._status(path)
        if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            return False
        stamp = _stamp(status)
        known = self._committed.get(path)
        if known is None or known[0] != stamp:
            data = self._content(path, status)
            known = stamp, data is not None and has_blob(self.root, path, data)
            self._committed[path] = known
        return known[1]

    def _status(self, path: str) -> os.stat_result | None:
        with suppress(OSError), open_parent(self.root, path) as (handle, name):
            return os.stat(name, dir_fd=handle, follow_symlinks=False)
        return None

    def _scan(self) -> GuardedPaths:
        credentials: list[str] = []
        autorun: list[str] = []
        folders: dict[str, _Folder] = {}
        waiting = deque([""])
        while waiting and len(folders) < MAX_FOLDERS:
            path = waiting.popleft()
            folder = self._folder(path)
            if folder is not None:
                folders[path] = folder
                if folder.credentials or folder.autorun:
                    credentials += folder.credentials
                    autorun += folder.autorun
                for link in folder.links:
                    credentials += self._credentials_behind(link)
                waiting.extend(folder.below)
        self._folders = folders
        known = set(autorun)
        for path in self._named_by_git():
            if os.path.lexists(f"{self.root}/{path}") and known.isdisjoint((path, *_parents(path))):
                known.add(path)
                autorun.append(path)
        return GuardedPaths(tuple(credentials), tuple(autorun))

    def _named_by_git(self) -> Iterator[str]:
        """Yield hooks that git's configuration names, and files that nested repositories include.

        Files that the top repository includes are protected files.
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

    def _credentials_behind(self, link: str) -> Iterator[str]:
        """Yield the credentials that a link leads to, by their names through the link."""
        waiting = [(link, _real_path(self.root, link))]
        seen: set[str] = set()
        while waiting and len(seen) < _MAX_LINKED:
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
            waiting += [
                (f"{name}/{entry}", _real_path(self.root, f"{path}/{entry}")) for entry in names
            ]

    def _folder(self, path: str) -> _Folder | None:
        """Return a folder as it is remembered, or read it if it has changed."""
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
                items = list(entries)
        except OSError:  # what we cannot list, a command cannot read
            return None
        changed = status.st_ctime_ns
        is_recent = abs(time.time_ns() - changed) < _RECENT
        return _classify(path, items)._replace(
            inode=status.st_ino, changed=-1 if is_recent else changed
        )

    def _inodes(self, tops: tuple[str, ...]) -> dict[str, int]:
        """Return the inodes of the folders that those are in, as of the last scan."""
        paths = {parent for top in tops for parent in _parents(top)}
        return {path: folder.inode for path in paths if (folder := self._folders.get(path))}

    def _keep(self, top: str, old: dict[str, SavedEntry], left: list[int]) -> dict[str, SavedEntry]:
        entries: dict[str, SavedEntry] = {}
        for path, status in self._entries(top):
            known, stamp = old.get(path), _stamp(status)
            if known is None or known.stamp != stamp or known.data is None:
                fits = left[0] > 0 and left[1] >= status.st_size
                data = self._content(path, status) if fits else None
                known = SavedEntry(status.st_mode, stamp, data)
            left[0] -= 1
            left[1] -= len(known.data or b"")
            entries[path] = known
        return entries

    def _entries(self, top: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield a file, or a folder with all that is in it, without what was set aside."""
        waiting = [top]
        while waiting:
            path = waiting.pop()
            with suppress(OSError), open_parent(self.root, path) as (handle, name):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if is_set_aside(name):
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                names = list_folder(handle, name) if is_folder else []
                if _ENVIRONMENT in names and _is_of_direnv(path):
                    continue
                if path != top or not self._has_environment(top):
                    yield path, status
                if is_folder and path.count("/") < _MAX_DEPTH:
                    waiting += [f"{path}/{child}" for child in names]

    def _has_environment(self, top: str) -> bool:
        """Does it have a Python environment in it, whose packages come and go?"""
        if fold(top.rpartition("/")[2]) != _DIRENV:
            return False
        with suppress(OSError), os.scandir(f"{self.root}/{top}") as entries:
            return any(os.path.lexists(f"{entry.path}/{_ENVIRONMENT}") for entry in entries)
        return False

    def _content(self, path: str, status: os.stat_result) -> bytes | None:
        with suppress(OSError), open_parent(self.root, path) as (handle, name):
            if stat.S_ISLNK(status.st_mode):
                return os.fsencode(os.readlink(name, dir_fd=handle))
            if not stat.S_ISREG(status.st_mode):
                return b""
            with os.fdopen(os.open(name, _FILE, dir_fd=handle), "rb") as file:
                return file.read(_MAX_BYTES)
        return None

    def _differs(self, path: str, now: os.stat_result | None, before: SavedEntry | None) -> bool:
        if now is None or before is None:
            return True
        if stat.S_ISDIR(now.st_mode) and stat.S_ISDIR(before.mode):
            return False
        if before.stamp == _stamp(now):
            return False
        same = before.mode == now.st_mode and before.data is not None
        return not (same and self._content(path, now) == before.data)

    def _content_by_git(
        self, path: str, now: os.stat_result | None, before: SavedEntry | None
    ) -> bytes | None:
        """Return the content that git may have written or removed, or None if git does neither."""
        if now is not None and stat.S_ISREG(now.st_mode) and not now.st_mode & 0o6000:
            return self._content(path, now)
        if now is None and before is not None and stat.S_ISREG(before.mode):
            return before.data
        return None

    def _restore_all(
        self, changed: list[str], now: dict[str, os.stat_result], before: dict[str, SavedEntry]
    ) -> list[str]:
        done: list[str] = []
        gone: list[str] = []  # folders that were set aside with all that is in them
        wrong = set(changed)
        for path in changed:
            if any(path.startswith(f"{folder}/") for folder in gone):
                continue
            status, old = now.get(path), before.get(path)
            if old is not None and stat.S_ISDIR(old.mode):
                continue  # created again with what was in it
            is_folder = status is not None and stat.S_ISDIR(status.st_mode)
            if is_folder and any(is_below(other, path) and other not in wrong for other in now):
                continue  # something in it may stay
            try:
                done.append(self._restore(path, old, exists=status is not None))
            except OSError:
                done.append(f"{path} (could not be put back)")
            if is_folder:
                gone.append(path)
        return done

    def _restore(self, path: str, old: SavedEntry | None, *, exists: bool) -> str:
        with open_parent(self.root, path, make=old is not None) as (handle, name):
            kept = set_aside(handle, name) if exists else ""
            if old is not None and old.data is None:
                return f"{path} (it is too large to be put back)"
            if old is not None:
                restore_entry(handle, name, old)
        folder = path.rpartition("/")[0]
        where = f"{folder}/{kept}" if folder else kept
        return f"{path} (the command's version is kept as {where})" if kept else path


def _classify(folder: str, items: "list[os.DirEntry[str]]") -> _Folder:
    """Return what is guarded in a folder, and the folders in it."""
    credentials: list[str] = []
    autorun: list[str] = []
    below: list[str] = []
    links: list[str] = []
    names = folder.split("/")
    secret = _secret_heads()
    inside = _heads().intersection(map(fold, names))
    # what runs by itself here is part of a guarded folder, of an installed package, or set aside
    is_inside = (
        not _INSTALLED.isdisjoint(names)
        or any(map(is_set_aside, names))
        or (bool(inside) and _runs(protection_of(f"{folder}/x")))
    )
    is_repository = False
    for entry in items:
        name = entry.name
        if name in _SKIPPED:
            is_repository = is_repository or (name in _REPOSITORY and folder != "")
            continue
        is_excluded = is_inside or is_set_aside(name)
        path = f"{folder}/{name}" if folder else name
        matters = inside or fold(name) in _heads()
        protection = protection_of(path) if matters else _protection_of_name(name)
        if entry.is_symlink() and (
            protection.reading or not secret.isdisjoint(map(fold, (*names, name)))
        ):
            links.append(path)
        if entry.is_dir(follow_symlinks=False):
            below.append(path)
            if matters and not is_excluded and _runs(protection_of(f"{path}/x")):
                autorun.append(path)
        elif protection.reading:
            if not entry.is_symlink():
                credentials.append(path)
        elif _runs(protection) and not is_excluded:
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


def _runs(protection: Protection) -> bool:
    """Does it run by itself?"""
    return (
        bool(protection.writing) and not protection.reading and protection.why not in _OTHERS_WHYS
    )


@cache
def _heads() -> frozenset[str]:
    """Return the first names of patterns with several: for those, the folder matters."""
    patterns = (text for group in sensitive_paths.INSIDE for text in group.patterns.split())
    return frozenset(text.partition("/")[0] for text in patterns if "/" in text)


@cache
def _secret_heads() -> frozenset[str]:
    """Return the same for credentials alone."""
    texts = (
        text for group in sensitive_paths.INSIDE if group.reading for text in group.patterns.split()
    )
    return frozenset(text.partition("/")[0] for text in texts if "/" in text)


@lru_cache(maxsize=1 << 16)
def _protection_of_name(name: str) -> Protection:
    return protection_of(name)


def _is_of_direnv(path: str) -> bool:
    """Is it in the folder in which direnv creates environments?"""
    return fold(path.rpartition("/")[0].rpartition("/")[2]) == _DIRENV


def _real_path(root: str, path: str) -> str:
    """Return where in the workspace a path leads, or empty if it leads out."""
    real = os.path.realpath(f"{root}/{path}")
    return real[len(root) + 1 :] if real.startswith(f"{root}/") else ""


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_mode, status.st_ino, status.st_size, *times)


def _parents(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path
