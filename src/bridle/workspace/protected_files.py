"""Files of the workspace that no command may change: compared after each command, and restored.

Landlock cannot exclude files, so it lets a command write the whole workspace, and with it the files
that run code at the person's next step: git's hooks and configuration, bridle's own project files.
They are kept before a command (in memory, and on disk in case bridle is killed) and restored after
it, byte for byte; new ones are removed. Changes of `.git/config` that cannot run anything (a
branch, a remote) may stay, and so may a new repository as git creates it. Links are never followed.

Repositories inside the workspace are protected like its own. One that a command removes is not
restored, but if it exists again later, its hooks are what they were.
"""

import fcntl
import hashlib
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from bridle.workspace.fs import (
    SavedEntry,
    is_below,
    list_folder,
    open_parent,
    remove_entry,
    restore_entry,
    set_aside,
)
from bridle.workspace.git.config import Setting, is_harmless, parse_config
from bridle.workspace.git.repository import Danger, Repositories

# What protected and guarded files held, on disk while a command runs, in case bridle is killed.

Row = tuple[bytes, int, tuple[int, ...], bytes | None]  # a path, and what was there
_UNFINISHED = ".new"
_MAX_BACKUP = 64 * 1024 * 1024


class CrashBackup:
    """A backup of one workspace's files, in a folder of bridle's state that has this name."""

    def __init__(self, state: str, root: str, folder: str = "watched") -> None:
        self._folder = Path(state, folder)
        self._prefix = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._path: Path | None = None
        self._handle = -1

    def write(self, data: bytes) -> None:
        """Replace the backup."""
        path = self._folder / f"{self._prefix}.{os.urandom(8).hex()}"
        handle = -1
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = path.with_name(path.name + _UNFINISHED)
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
            with os.fdopen(handle, "wb", closefd=False) as file:
                file.write(data)
            new.rename(path)
        except OSError:
            if handle >= 0:
                os.close(handle)
            return
        self.discard()
        self._path, self._handle = path, handle

    def discard(self) -> None:
        """Remove the backup: no command is running."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._path = None

    def recover_data(self) -> Iterator[bytes]:
        """Yield the backups of processes that were killed, and remove them."""
        for path in sorted(self._folder.glob(f"{self._prefix}.*")):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.suffix != _UNFINISHED:
                    yield file.read(_MAX_BACKUP)
                path.unlink()


def to_rows(entries: Mapping[str, SavedEntry]) -> list[Row]:
    """Return entries, by path, as they are written to a backup."""
    return [(os.fsencode(path), *entry) for path, entry in entries.items()]


def from_rows(rows: Iterable[Row]) -> dict[str, SavedEntry]:
    """Return the entries of a backup by path."""
    return {os.fsdecode(path): SavedEntry(mode, stamp, data) for path, mode, stamp, data in rows}


# Which files tools other than commands are changing in this process, with permission.

_lock = threading.Lock()
_changing: Counter[str] = Counter()
_changed: set[str] = set()


@contextmanager
def record_changes(root: str, paths: Iterable[str]) -> Iterator[None]:
    """Note, for the block, that a tool may change these files, named from the root or absolute."""
    whole = [path if path.startswith("/") else f"{root}/{path}" for path in paths]
    with _lock:
        _changing.update(whole)
    try:
        yield
    finally:
        with _lock:
            _changing.subtract(whole)
            for path in whole:
                if not _changing[path]:
                    del _changing[path]
            _changed.update(whole)


def changes_by_tools(root: str) -> set[str]:
    """Return the files that tools change now, or have changed below a root since the last call."""
    with _lock:
        changed = {path for path in _changed if path.startswith(f"{root}/")}
        _changed.difference_update(changed)
        return changed.union(_changing)


# What a command did to git's configuration: may it stay? Pure.


def is_harmless_change(before: str, after: str) -> bool:
    """Does a configuration change only in what cannot run anything, nor send work elsewhere?

    A branch, a new remote or a name may be added. Only settings of branches may be removed. A
    branch may only be pushed to a remote that was there; a new configuration may bring its own.
    """
    try:
        old, new = Counter(parse_config(before)), Counter(parse_config(after))
    except ValueError:
        return False
    old_remotes = _remotes(old)
    targets = old_remotes if old else _remotes(new)
    return all(
        _is_harmless_addition(setting, old_remotes, targets) for setting in new - old
    ) and all(setting.section == "branch" for setting in old - new)


def _remotes(settings: Iterable[Setting]) -> set[str | None]:
    return {setting.subsection for setting in settings if setting.section == "remote"}


def _is_harmless_addition(setting: Setting, old: set[str | None], targets: set[str | None]) -> bool:
    if not is_harmless(setting) or "::" in (setting.value or ""):
        return False
    if setting.section == "remote":
        # a new `origin` would get what was pushed to the only other remote until now
        is_new = setting.subsection not in old and not (old and setting.subsection == "origin")
        return is_new and setting.key in ("url", "fetch")
    if setting.section == "branch" and setting.key in ("remote", "pushremote"):
        return setting.value == "." or setting.value in targets
    return setting.section in ("core", "branch", "user", "init", "pull")


NAMES = (
    *(".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes"),
    *(".git/hooks", ".git/modules", ".hg/hgrc", ".bridle"),
)
_NESTED_NAMES = tuple(name for name in NAMES if name != ".bridle")
_INFO = ".git/info"
_MAX_ENTRIES = 4000  # that are kept, of each name
_MAX_DEPTH = 40  # names in a path
_MAX_BYTES = 16 * 1024 * 1024  # that are kept
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Restoration(NamedTuple):
    """What commands changed: restored, or `lost` (too large, or the repository is gone).

    `undone` are restored files that run by themselves, for which no turn ends.
    """

    restored: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.restored or self.lost)

    def plus(self, later: "Restoration") -> "Restoration":
        """Return both together."""
        return Restoration(
            self.restored + later.restored, self.lost + later.lost, self.undone + later.undone
        )


class ProtectedFiles:
    """The protected files of one workspace."""

    def __init__(
        self,
        root: str,
        names: Sequence[str] = NAMES,
        most: int = _MAX_ENTRIES,
        backup: CrashBackup | None = None,
    ) -> None:
        self.root = root
        self._backup = backup
        self.names = names
        self.repositories: tuple[str, ...] = ()  # inside it
        self._most = most
        self._before: dict[str, SavedEntry] = {}
        self._size = 0  # bytes of `_before`
        self._parents: set[str] = set()  # folders on the way to what is kept
        self._incomplete: set[str] = set()  # names with more below them than is kept
        self._lock = threading.Lock()  # commands may run in parallel, in threads

    def take_snapshot(self) -> None:
        """Keep what is there now."""
        with self._lock:
            self._take_snapshot()
            if self._backup is not None:
                self._backup.write(msgspec.msgpack.encode(to_rows(self._before)))

    def discard_backup(self) -> None:
        """Remove the backup: no command is running."""
        with self._lock:
            if self._backup is not None:
                self._backup.discard()

    def recover(self) -> Restoration:
        """Restore what a command had changed when bridle was killed.

        What is there now is set aside: it may be what the person has done since.
        """
        restoration = Restoration()
        with self._lock:
            for data in self._backup.recover_data() if self._backup is not None else ():
                try:
                    rows = msgspec.msgpack.decode(data, type=list[Row])
                except msgspec.MsgspecError:
                    continue
                entries = from_rows(rows)
                self._parents = {parent for path in entries for parent in _parents(path)}
                for path, entry in list(entries.items()):
                    if stat.S_ISDIR(entry.mode) and path not in self._parents:
                        del entries[path]  # it was empty, perhaps made by another sandbox
                self._before = entries
                self.repositories = tuple({_nested_repository(path) for path in entries} - {""})
                counts = Counter(
                    top for path in entries for top in self._tops if is_below(path, top)
                )
                self._incomplete = {top for top, count in counts.items() if count >= self._most}
                restoration = restoration.plus(self._restore_all(remove=set_aside))
        return restoration

    def restore(self) -> Restoration:
        """Restore what is not as it was."""
        with self._lock:
            return self._restore_all()

    def _take_snapshot(self) -> None:
        old, self._before, self._size = self._before, {}, 0
        self._incomplete.clear()
        for top in self._tops:
            for path, status in self._walk(top, self._most):
                known = old.get(path)
                stamp = _stamp(status)
                if known is None or known.stamp != stamp or known.data is None:
                    known = SavedEntry(status.st_mode, stamp, self._read(path, status))
                self._size += len(known.data or b"")
                self._before[path] = known
        for path, entry in old.items():
            if path not in self._before and self._is_removed(path):
                self._before[path] = entry
        self._parents = {parent for path in self._before for parent in _parents(path)}

    def _restore_all(self, remove: Callable[[int, str], object] = remove_entry) -> Restoration:
        self._remove_empty_folders()
        now: dict[str, os.stat_result] = {}
        for top in self._tops:
            now.update(self._walk(top) if top not in self._incomplete else self._kept_below(top))
        changed = [
            path
            for path in sorted({*now, *self._before})
            if self._differs(path, now) and not self._is_removed(path)
        ]
        restored: list[str] = []
        lost: list[str] = []
        for path in changed:
            (restored if self._restore(path, remove) else lost).append(path)
        return Restoration(tuple(restored), tuple(lost))

    @property
    def _tops(self) -> tuple[str, ...]:
        """The protected names, also of nested repositories; `.git` because it may be a file."""
        nested = [
            f"{repository}/{name}"
            for repository in self.repositories
            for name in (".git", *_NESTED_NAMES)
        ]
        return (".git", *self.names, *nested)

    def _is_removed(self, path: str) -> bool:
        """Does it belong to a repository inside the workspace that was removed?"""
        repository = _nested_repository(path)
        if repository not in self.repositories:
            return False
        return all(self._status(f"{repository}/{name}") is None for name in (".git", ".hg"))

    def _remove_empty_folders(self) -> None:
        """Remove new empty folders: a sandbox creates them to cover what is not there."""
        for name in (*self.names, _INFO):
            if name not in self._before:
                with suppress(OSError), open_parent(self.root, name) as (handle, last):
                    os.rmdir(last, dir_fd=handle)

    def _walk(self, top: str, most: int | None = None) -> Iterator[tuple[str, os.stat_result]]:
        """Yield what is there below a protected name, folders first; no more than `most`."""
        waiting = [top]
        count = 0
        while waiting:
            if count == most:
                self._incomplete.add(top)
                return
            path = waiting.pop()
            with suppress(OSError), open_parent(self.root, path) as (handle, name):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                is_folder = stat.S_ISDIR(status.st_mode)
                if path == top and _own_name(path) == ".git" and is_folder:
                    return
                count += 1
                if not _is_module_data(path, is_folder):
                    yield path, status
                if is_folder and path.count("/") < _MAX_DEPTH:
                    waiting += self._paths_in(path, list_folder(handle, name))

    def _paths_in(self, folder: str, names: list[str]) -> list[str]:
        """Return the paths to look at in a folder; few of a repository's own, and what was kept."""
        paths = [f"{folder}/{name}" for name in names]
        if "objects" in names and "HEAD" in names:
            own = [f"{folder}/{name}" for name in ("modules", "hooks", "config")]
            return [path for path in paths if path in own or path in self._parents]
        return paths

    def _kept_below(self, top: str) -> dict[str, os.stat_result]:
        """Return the status of what is kept below a name that has more: others need not be new."""
        paths = [path for path in self._before if is_below(path, top)]
        return {path: status for path in paths if (status := self._status(path))}

    def _status(self, path: str) -> os.stat_result | None:
        with suppress(OSError), open_parent(self.root, path) as (handle, name):
            return os.stat(name, dir_fd=handle, follow_symlinks=False)
        return None

    def _read(self, path: str, status: os.stat_result) -> bytes | None:
        with suppress(OSError), open_parent(self.root, path) as (handle, name):
            if stat.S_ISLNK(status.st_mode):
                return os.fsencode(os.readlink(name, dir_fd=handle))
            if not stat.S_ISREG(status.st_mode):
                return b""
            if self._size + status.st_size <= _MAX_BYTES:
                with os.fdopen(os.open(name, _FILE, dir_fd=handle), "rb") as file:
                    return file.read(_MAX_BYTES)
        return None

    def _differs(self, path: str, now: dict[str, os.stat_result]) -> bool:
        before, status = self._before.get(path), now.get(path)
        if before is not None and status is not None:
            if before.stamp == _stamp(status):
                return False
            if before.mode == status.st_mode and stat.S_ISDIR(status.st_mode):
                return False
            same_kind = before.mode == status.st_mode and before.data is not None
            if same_kind and self._read(path, status) == before.data:
                return False
        return not self._is_harmless(path, before, status)

    def _is_harmless(
        self, path: str, before: SavedEntry | None, status: os.stat_result | None
    ) -> bool:
        if status is None:
            return False
        name = _own_name(path)
        if before is None and name.startswith(".git/") and _is_sample(name, status):
            return True
        if not name.endswith("/config") or not stat.S_ISREG(status.st_mode):
            return False
        if not name.startswith(".git/") or "/hooks/" in name:
            return False
        old = b"" if before is None else before.data
        new = self._read(path, status)
        if old is None or new is None or (before and before.mode != status.st_mode):
            return False
        return is_harmless_change(old.decode(errors="replace"), new.decode(errors="replace"))

    def _restore(self, path: str, remove: Callable[[int, str], object]) -> bool:
        """Restore or remove it. Return whether that worked."""
        before = self._before.get(path)
        top = path.partition("/")[0]
        if before is not None and (before.data is None or (top == ".git" and self._is_gone(top))):
            return False
        try:
            with open_parent(self.root, path, make=before is not None) as (handle, name):
                if before is None or not stat.S_ISDIR(before.mode):
                    remove(handle, name)
                if before is not None:
                    restore_entry(handle, name, before)
        except OSError:  # also if the folder that it was in is gone already
            return before is None and not os.path.lexists(f"{self.root}/{path}")
        return True

    def _is_gone(self, top: str) -> bool:
        return not os.path.lexists(f"{self.root}/{top}") and top not in self._before


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_mode, status.st_ino, status.st_size, status.st_nlink, *times)


def _nested_repository(path: str) -> str:
    """Return the repository inside the workspace that a protected file belongs to, or empty."""
    if path.startswith((".git/", ".hg/", ".bridle/")):
        return ""
    ends = (f"{path}/".find(name) for name in ("/.git/", "/.hg/"))
    return next((path[:end] for end in ends if end > 0), "")


def _own_name(path: str) -> str:
    """Return the path of a protected file from the top of the repository that it belongs to."""
    repository = _nested_repository(path)
    return path[len(repository) + 1 :] if repository else path


def _is_module_data(path: str, is_folder: bool) -> bool:
    """Is it below `.git/modules`, and neither a configuration nor a hook?"""
    path = _own_name(path)
    if not path.startswith((".git/modules", "modules")):
        return False
    return is_folder or not (path.endswith("/config") or "/hooks/" in path)


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_sample(path: str, status: os.stat_result) -> bool:
    """Is it what git puts into a new repository: a folder, or a hook that is not active?"""
    if stat.S_ISDIR(status.st_mode):
        return path in (".git/hooks", ".git/modules")
    return stat.S_ISREG(status.st_mode) and path.endswith(".sample")


# A repository that was safe before a command is safe after it.

_MAX_REPOSITORIES = 200  # that are set aside after one command


class RepositoryGuard:
    """Keeps the repository of a workspace, and those inside it, safe for git to read."""

    def __init__(self, root: str, home: str) -> None:
        self._root = root
        self._repositories = Repositories(home)
        self._was_safe = False

    def take_snapshot(self) -> None:
        """Note whether it is safe."""
        self._was_safe = self._repositories.is_safe(self._root)

    def restore(self) -> Restoration:
        """Set aside what has made it unsafe since."""
        done: list[str] = []
        for _ in range(_MAX_REPOSITORIES if self._was_safe else 0):
            danger = self._repositories.find_danger(self._root)
            if danger is None:
                break
            moved = self._set_aside(danger)
            if not moved:
                self._was_safe = False  # it is reported once
                lost = self._describe(danger, danger.file or danger.entry)
                return Restoration(tuple(done), (lost,))
            done.append(self._describe(danger, moved))
        return Restoration(tuple(done))

    def _describe(self, danger: Danger, path: str) -> str:
        name = path.removeprefix(f"{self._root}/")
        return f"{name} (git would run code: {danger.why})"

    def _set_aside(self, danger: Danger) -> str:
        """Rename the file, or else the repository, so that git does not find it. Return which."""
        own = f"{self._root}/.git"
        for path in (danger.file, danger.entry):
            is_inside = path.startswith(f"{self._root}/")
            if not is_inside or path in (own, f"{own}/index"):
                continue
            with suppress(OSError), open_parent(self._root, path[len(self._root) + 1 :]) as place:
                if set_aside(*place):
                    return path
        return ""
