"""Files of the workspace that no command may change: compared after each, and put back.

A sandbox that cannot subtract lets a command write the whole workspace, and with it the files that
run code at the person's next step: git's hooks and configuration, bridle's own project files. What
stood there is kept before a command (in memory, and for a bridle that is killed on disk) and
restored after it, byte for byte; what is new is removed. Changes of `.git/config` that cannot run
anything (a branch, a remote) are let be, and so is a new repository as git makes it. Links are
never followed.

Repositories inside the workspace are protected like its own. One that a command removes is not
brought back, but if it is there again later, its hooks are what they were.
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

from bridle.workspace.fs import Entry, Parent, names_in, put, remove, set_aside
from bridle.workspace.git.config import Setting, is_harmless, parse_config
from bridle.workspace.git.repository import Danger, Repositories

# What protected and guarded files held, on disk while a command runs: for a bridle that is
# killed.

Row = tuple[bytes, int, tuple[int, ...], bytes | None]  # a path, and what stood there
_UNFINISHED = ".new"
_MOST_BYTES_KEPT = 64 * 1024 * 1024


class CrashBackup:
    """Of one place, in a folder of bridle's state that has this name."""

    def __init__(self, state: str, root: str, folder: str = "watched") -> None:
        self._folder = Path(state, folder)
        self._start = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._path: Path | None = None
        self._handle = -1

    def write(self, data: bytes) -> None:
        """Put it there, in place of what was there before."""
        path = self._folder / f"{self._start}.{os.urandom(8).hex()}"
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
        self.drop()
        self._path, self._handle = path, handle

    def drop(self) -> None:
        """Nothing is under way any more."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._path = None

    def take_left_behind(self) -> Iterator[bytes]:
        """What was written by a bridle that was killed. Each is given once."""
        for path in sorted(self._folder.glob(f"{self._start}.*")):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.suffix != _UNFINISHED:
                    yield file.read(_MOST_BYTES_KEPT)
                path.unlink()


def rows_of(held: Mapping[str, Entry]) -> list[Row]:
    """Entries by their paths, as they are written."""
    return [(os.fsencode(path), *entry) for path, entry in held.items()]


def entries_of(rows: Iterable[Row]) -> dict[str, Entry]:
    """The same, as they are used."""
    return {os.fsdecode(path): Entry(mode, mark, data) for path, mode, mark, data in rows}


# Which files tools other than commands are changing in this process, with permission.

_lock = threading.Lock()
_under_way: Counter[str] = Counter()
_done: set[str] = set()


@contextmanager
def record_changes(root: str, paths: Iterable[str]) -> Iterator[None]:
    """While a tool may change these files, named from the root or by their whole paths."""
    whole = [path if path.startswith("/") else f"{root}/{path}" for path in paths]
    with _lock:
        _under_way.update(whole)
    try:
        yield
    finally:
        with _lock:
            _under_way.subtract(whole)
            for path in whole:
                if not _under_way[path]:
                    del _under_way[path]
            _done.update(whole)


def changes_by_tools(root: str) -> set[str]:
    """The files below a root that tools are changing now, or have changed since this was asked."""
    with _lock:
        done = {path for path in _done if path.startswith(f"{root}/")}
        _done.difference_update(done)
        return done.union(_under_way)


# What a command did to git's configuration: can it be let be? Pure.


def is_harmless_change(before: str, after: str) -> bool:
    """Does a configuration change only by what cannot run anything, nor send work elsewhere?

    Something may be added: a branch, a remote that was not there, a name. Of what stood there only
    the settings of branches may go. A branch is pushed to a remote that was there already; only a
    whole new configuration brings its own.
    """
    try:
        old, new = Counter(parse_config(before)), Counter(parse_config(after))
    except ValueError:
        return False
    there = _remotes(old) if old else _remotes(new)
    return all(_is_plain(one, _remotes(old), there) for one in new - old) and all(
        one.section == "branch" for one in old - new
    )


def _remotes(settings: Iterable[Setting]) -> set[str | None]:
    return {one.subsection for one in settings if one.section == "remote"}


def _is_plain(setting: Setting, old: set[str | None], there: set[str | None]) -> bool:
    if not is_harmless(setting) or "::" in (setting.value or ""):
        return False
    if setting.section == "remote":
        # a new `origin` would get what was sent to the only other one until now
        is_new = setting.subsection not in old and not (old and setting.subsection == "origin")
        return is_new and setting.key in ("url", "fetch")
    if setting.section == "branch" and setting.key in ("remote", "pushremote"):
        return setting.value == "." or setting.value in there
    return setting.section in ("core", "branch", "user", "init", "pull")


NAMES = (
    *(".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes"),
    *(".git/hooks", ".git/modules", ".hg/hgrc", ".bridle"),
)
_OF_NESTED = tuple(name for name in NAMES if name != ".bridle")
_INFO = ".git/info"
_MOST = 4000  # entries that are held, of each name
_DEEPEST = 40  # names in a path
_BYTES = 16 * 1024 * 1024  # that are held
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Restoration(NamedTuple):
    """What a command changed: put back, or (too large, or the repository is gone) only noticed.

    `undone` is what was put back of files that run by themselves: it ends no turn.
    """

    restored: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.restored or self.lost)

    def plus(self, later: "Restoration") -> "Restoration":
        """Both together."""
        return Restoration(
            self.restored + later.restored, self.lost + later.lost, self.undone + later.undone
        )


class ProtectedFiles:
    """The protected files of one workspace."""

    def __init__(
        self,
        root: str,
        names: Sequence[str] = NAMES,
        most: int = _MOST,
        backup: CrashBackup | None = None,
    ) -> None:
        self.root = self._root = root
        self._backup = backup
        self.names = names
        self.repositories: tuple[str, ...] = ()  # inside it
        self._most = most
        self._before: dict[str, Entry] = {}
        self._held = 0
        self._leading: set[str] = set()  # folders on the way to what is held
        self._over: set[str] = set()  # names with more below them than is held
        self._lock = threading.Lock()  # commands may run side by side, in threads

    def look(self) -> None:
        """Keep what stands there now."""
        with self._lock:
            self._look()
            if self._backup is not None:
                self._backup.write(msgspec.msgpack.encode(rows_of(self._before)))

    def rest(self) -> None:
        """Nothing is under way that could change anything."""
        with self._lock:
            if self._backup is not None:
                self._backup.drop()

    def recover(self) -> Restoration:
        """Put back what a command changed whose bridle was killed. What stands there is set aside.

        For it may be the person's own work, done since.
        """
        found = Restoration()
        with self._lock:
            for data in self._backup.take_left_behind() if self._backup is not None else ():
                try:
                    rows = msgspec.msgpack.decode(data, type=list[Row])
                except msgspec.MsgspecError:
                    continue
                held = entries_of(rows)
                self._leading = {above for path in held for above in _above(path)}
                for path, entry in list(held.items()):
                    if stat.S_ISDIR(entry.mode) and path not in self._leading:
                        del held[path]  # it was empty, perhaps made by the sandbox of another
                self._before = held
                self.repositories = tuple({_nested(path) for path in held} - {""})
                counts = Counter(top for path in held for top in self._tops if _is_in(path, top))
                self._over = {top for top, count in counts.items() if count >= self._most}
                found = found.plus(self._mend(take_away=set_aside))
        return found

    def restore(self) -> Restoration:
        """Put back what is not as it was."""
        with self._lock:
            return self._mend()

    def _look(self) -> None:
        old, self._before, self._held = self._before, {}, 0
        self._over.clear()
        for top in self._tops:
            for path, status in self._found(top, self._most):
                known = old.get(path)
                mark = _mark(status)
                if known is None or known.mark != mark or known.data is None:
                    known = Entry(status.st_mode, mark, self._bytes(path, status))
                self._held += len(known.data or b"")
                self._before[path] = known
        for path, entry in old.items():
            if path not in self._before and self._is_removed(path):
                self._before[path] = entry
        self._leading = {above for path in self._before for above in _above(path)}

    def _mend(self, take_away: Callable[[int, str], object] = remove) -> Restoration:
        self._sweep()
        now: dict[str, os.stat_result] = {}
        for top in self._tops:
            now.update(self._found(top) if top not in self._over else self._held_of(top))
        changed = [
            path
            for path in sorted({*now, *self._before})
            if self._differs(path, now) and not self._is_removed(path)
        ]
        restored: list[str] = []
        lost: list[str] = []
        for path in changed:
            (restored if self._restore(path, take_away) else lost).append(path)
        return Restoration(tuple(restored), tuple(lost))

    @property
    def _tops(self) -> tuple[str, ...]:
        """The names, and what a worktree has instead of the folder that they are in."""
        nested = [f"{one}/{name}" for one in self.repositories for name in (".git", *_OF_NESTED)]
        return (".git", *self.names, *nested)

    def _is_removed(self, path: str) -> bool:
        """Does it belong to a repository inside the workspace that is not there any more?"""
        repository = _nested(path)
        if repository not in self.repositories:
            return False
        return all(self._status(f"{repository}/{mark}") is None for mark in (".git", ".hg"))

    def _sweep(self) -> None:
        """An empty folder does nothing: a sandbox makes one to cover what is not there."""
        for name in (*self.names, _INFO):
            if name not in self._before:
                with suppress(OSError), Parent(self._root, name) as (handle, last):
                    os.rmdir(last, dir_fd=handle)

    def _found(self, top: str, most: int | None = None) -> Iterator[tuple[str, os.stat_result]]:
        """Everything protected that is there, folders before what is in them; or so much of it."""
        waiting = [top]
        seen = 0
        while waiting:
            if seen == most:
                self._over.add(top)
                return
            path = waiting.pop()
            with suppress(OSError), Parent(self._root, path) as (handle, name):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                is_folder = stat.S_ISDIR(status.st_mode)
                if path == top and _own_name(path) == ".git" and is_folder:
                    return
                seen += 1
                if not _is_module_data(path, is_folder):
                    yield path, status
                if is_folder and path.count("/") < _DEEPEST:
                    waiting += self._inside(path, names_in(handle, name))

    def _inside(self, path: str, names: list[str]) -> list[str]:
        """What is looked at there. Most of a repository is not, but for what was."""
        found = [f"{path}/{one}" for one in names]
        if "objects" in names and "HEAD" in names:
            own = [f"{path}/{one}" for one in ("modules", "hooks", "config")]
            return [one for one in found if one in own or one in self._leading]
        return found

    def _held_of(self, top: str) -> dict[str, os.stat_result]:
        """Where there is more than is held: of that only. What came into view need not be new."""
        held = [path for path in self._before if _is_in(path, top)]
        return {path: found for path in held if (found := self._status(path))}

    def _status(self, path: str) -> os.stat_result | None:
        with suppress(OSError), Parent(self._root, path) as (handle, name):
            return os.stat(name, dir_fd=handle, follow_symlinks=False)
        return None

    def _bytes(self, path: str, status: os.stat_result) -> bytes | None:
        with suppress(OSError), Parent(self._root, path) as (handle, name):
            if stat.S_ISLNK(status.st_mode):
                return os.fsencode(os.readlink(name, dir_fd=handle))
            if not stat.S_ISREG(status.st_mode):
                return b""
            if self._held + status.st_size <= _BYTES:
                with os.fdopen(os.open(name, _FILE, dir_fd=handle), "rb") as file:
                    return file.read(_BYTES)
        return None

    def _differs(self, path: str, now: dict[str, os.stat_result]) -> bool:
        before, status = self._before.get(path), now.get(path)
        if before is not None and status is not None:
            if before.mark == _mark(status):
                return False
            if before.mode == status.st_mode and stat.S_ISDIR(status.st_mode):
                return False
            same_kind = before.mode == status.st_mode and before.data is not None
            if same_kind and self._bytes(path, status) == before.data:
                return False
        return not self._is_harmless(path, before, status)

    def _is_harmless(self, path: str, before: Entry | None, status: os.stat_result | None) -> bool:
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
        new = self._bytes(path, status)
        if old is None or new is None or (before and before.mode != status.st_mode):
            return False
        return is_harmless_change(old.decode(errors="replace"), new.decode(errors="replace"))

    def _restore(self, path: str, take_away: Callable[[int, str], object]) -> bool:
        """Put it back, or changes_by_tools it away. Did that work?"""
        before = self._before.get(path)
        top = path.partition("/")[0]
        if before is not None and (before.data is None or (top == ".git" and self._is_gone(top))):
            return False
        try:
            with Parent(self._root, path, make=before is not None) as (handle, name):
                if before is None or not stat.S_ISDIR(before.mode):
                    take_away(handle, name)
                if before is not None:
                    put(handle, name, before)
        except OSError:  # also where what it was in is gone already
            return before is None and not os.path.lexists(f"{self._root}/{path}")
        return True

    def _is_gone(self, top: str) -> bool:
        return not os.path.lexists(f"{self._root}/{top}") and top not in self._before


def _mark(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_mode, status.st_ino, status.st_size, status.st_nlink, *times)


def _nested(path: str) -> str:
    """The repository inside the workspace that a protected file belongs to; empty for its own."""
    if path.startswith((".git/", ".hg/", ".bridle/")):
        return ""
    found = (f"{path}/".find(mark) for mark in ("/.git/", "/.hg/"))
    return next((path[:at] for at in found if at > 0), "")


def _own_name(path: str) -> str:
    """How a protected file is named from the top of the repository that it belongs to."""
    repository = _nested(path)
    return path[len(repository) + 1 :] if repository else path


def _is_module_data(path: str, is_folder: bool) -> bool:
    """Below `.git/modules` only configurations and hooks count, and nothing of what leads there."""
    path = _own_name(path)
    if not path.startswith((".git/modules", "modules")):
        return False
    return is_folder or not (path.endswith("/config") or "/hooks/" in path)


def _is_in(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_sample(path: str, status: os.stat_result) -> bool:
    """Is it what git puts into a new repository: a folder, or a hook that is not switched on?"""
    if stat.S_ISDIR(status.st_mode):
        return path in (".git/hooks", ".git/modules")
    return stat.S_ISREG(status.st_mode) and path.endswith(".sample")


# A repository that was tame before a command is tame after it.

_MOST_REPOSITORIES = 200  # that are set aside after one command


class RepositoryGuard:
    """The repository of one workspace, and those inside it."""

    def __init__(self, root: str, home: str) -> None:
        self._root = root
        self._repositories = Repositories(home)
        self._was_tame = False

    def look(self) -> None:
        """Note whether it is tame."""
        self._was_tame = self._repositories.is_safe(self._root)

    def restore(self) -> Restoration:
        """Set aside what has made it wild since."""
        done: list[str] = []
        for _ in range(_MOST_REPOSITORIES if self._was_tame else 0):
            found = self._repositories.find_danger(self._root)
            if found is None:
                break
            moved = self._tame(found)
            if not moved:
                self._was_tame = False  # it is told once
                return Restoration(tuple(done), (self._said(found, found.file or found.entry),))
            done.append(self._said(found, moved))
        return Restoration(tuple(done))

    def _said(self, found: Danger, path: str) -> str:
        name = path.removeprefix(f"{self._root}/")
        return f"{name} (git would run code: {found.why})"

    def _tame(self, found: Danger) -> str:
        """Move the file, or else the whole repository, out of git's sight: which it was."""
        own = f"{self._root}/.git"
        for path in (found.file, found.entry):
            is_inside = path.startswith(f"{self._root}/")
            if not is_inside or path in (own, f"{own}/index"):
                continue
            with suppress(OSError), Parent(self._root, path[len(self._root) + 1 :]) as place:
                if set_aside(*place):
                    return path
        return ""
