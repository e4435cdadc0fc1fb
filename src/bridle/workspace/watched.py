"""Files of the workspace that no command may change: compared after each, and put back.

A sandbox that cannot subtract lets a command write the whole workspace, and with it the files that
run code at the person's next step: git's hooks and configuration, bridle's own project files. What
stood there is kept in memory before a command and restored after it, byte for byte; what is new is
removed. Changes of `.git/config` that cannot run anything (a branch, a remote) are let be, and so
is a new repository as git makes it. Links are never followed.
"""

import os
import shutil
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from bridle.workspace.git_config import Setting, is_harmless, parse

NAMES = (
    *(".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes"),
    *(".git/hooks", ".git/modules", ".hg/hgrc", ".bridle"),
)
_MOST = 4000  # entries that are looked at
_BYTES = 16 * 1024 * 1024  # that are held
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Entry(NamedTuple):
    """What stood at a path: its kind and mode, when it was changed last, and its bytes or target.

    `data` is None for a file that is too large to be held: it can be compared, not restored.
    """

    mode: int
    mark: tuple[int, ...]
    data: bytes | None


class Mended(NamedTuple):
    """What a command changed: put back, or (too large, or the repository is gone) only noticed."""

    restored: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.restored or self.lost)

    def and_then(self, later: "Mended") -> "Mended":
        """Both together."""
        return Mended(self.restored + later.restored, self.lost + later.lost)


class Watched:
    """The protected files of one workspace."""

    def __init__(self, root: str, names: Sequence[str] = NAMES, most: int = _MOST) -> None:
        self.root = self._root = root
        self._names = names
        self._most = most
        self._before: dict[str, _Entry] = {}
        self._held = 0
        self._is_over = False  # there is more than is looked at
        self._lock = threading.Lock()  # commands may run side by side, in threads

    def look(self) -> None:
        """Keep what stands there now."""
        with self._lock:
            self._look()

    def mend(self) -> Mended:
        """Put back what is not as it was."""
        with self._lock:
            return self._mend()

    def _look(self) -> None:
        old, self._before, self._held = self._before, {}, 0
        for path, status in self._found():
            known = old.get(path)
            mark = _mark(status)
            if known is None or known.mark != mark or known.data is None:
                known = _Entry(status.st_mode, mark, self._bytes(path, status))
            self._held += len(known.data or b"")
            self._before[path] = known

    def _mend(self) -> Mended:
        before_was_over = self._is_over
        now = dict(self._found())
        if before_was_over or self._is_over:  # what came into view need not be new
            now = {path: found for path in self._before if (found := self._status(path))}
        changed = [path for path in sorted({*now, *self._before}) if self._differs(path, now)]
        restored: list[str] = []
        lost: list[str] = []
        for path in changed:
            (restored if self._restore(path) else lost).append(path)
        return Mended(tuple(restored), tuple(lost))

    def _found(self) -> Iterator[tuple[str, os.stat_result]]:
        """Everything protected that is there, folders before what is in them."""
        waiting = [*reversed(self._names), ".git"]
        seen = 0
        self._is_over = False
        while waiting:
            if seen >= self._most:
                self._is_over = True
                return
            path = waiting.pop()
            with suppress(OSError), _Parent(self._root, path) as (handle, name):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                is_folder = stat.S_ISDIR(status.st_mode)
                if path != ".git" or not is_folder:
                    seen += 1
                    if not _is_module_data(path, is_folder):
                        yield path, status
                if is_folder and path != ".git":
                    waiting += [f"{path}/{one}" for one in _names_in(handle, name)]

    def _status(self, path: str) -> os.stat_result | None:
        with suppress(OSError), _Parent(self._root, path) as (handle, name):
            return os.stat(name, dir_fd=handle, follow_symlinks=False)
        return None

    def _bytes(self, path: str, status: os.stat_result) -> bytes | None:
        with suppress(OSError), _Parent(self._root, path) as (handle, name):
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

    def _is_harmless(self, path: str, before: _Entry | None, status: os.stat_result | None) -> bool:
        if status is None:
            return False
        if before is None and path.startswith(".git/") and _is_sample(path, status):
            return True
        if not path.endswith("/config") or not stat.S_ISREG(status.st_mode):
            return False
        if not path.startswith(".git/") or "/hooks/" in path:
            return False
        old = b"" if before is None else before.data
        new = self._bytes(path, status)
        if old is None or new is None or (before and before.mode != status.st_mode):
            return False
        return _is_tame(old.decode(errors="replace"), new.decode(errors="replace"))

    def _restore(self, path: str) -> bool:
        """Put it back, or take it away. Did that work?"""
        before = self._before.get(path)
        top = path.partition("/")[0]
        if before is not None and (before.data is None or (top == ".git" and self._is_gone(top))):
            return False
        try:
            with _Parent(self._root, path, make=before is not None) as (handle, name):
                if before is None or not stat.S_ISDIR(before.mode):
                    _remove(handle, name)
                if before is not None:
                    _put(handle, name, before)
        except OSError:
            return before is None and not os.path.lexists(f"{self._root}/{path}")
        return True

    def _is_gone(self, top: str) -> bool:
        return not os.path.lexists(f"{self._root}/{top}") and top not in self._before


class _Parent:
    """The folder that a path lies in, opened name by name without following a link."""

    def __init__(self, root: str, path: str, make: bool = False) -> None:
        *self._folders, self._name = path.split("/")
        self._root = root
        self._make = make
        self._handle = -1

    def __enter__(self) -> tuple[int, str]:
        self._handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in self._folders:
                above, self._handle = self._handle, self._step(folder)
                os.close(above)
        except BaseException:
            os.close(self._handle)
            raise
        return self._handle, self._name

    def _step(self, folder: str) -> int:
        try:
            return os.open(folder, _FOLDER, dir_fd=self._handle)
        except OSError:
            if not self._make:
                raise
        _remove(self._handle, folder)  # a link or a file that was put there instead
        os.mkdir(folder, dir_fd=self._handle)
        return os.open(folder, _FOLDER, dir_fd=self._handle)

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _mark(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_mode, status.st_ino, status.st_size, status.st_nlink, *times)


def _is_tame(before: str, after: str) -> bool:
    """Does a configuration change only by what cannot run anything, nor send work elsewhere?

    Something may be added: a branch, a remote that was not there, a name. Of what stood there only
    the settings of branches may go. A branch is pushed to a remote that was there already; only a
    whole new configuration brings its own.
    """
    try:
        old, new = Counter(parse(before)), Counter(parse(after))
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


def _is_module_data(path: str, is_folder: bool) -> bool:
    """Below `.git/modules` only configurations and hooks count, and nothing of what leads there."""
    if not path.startswith(".git/modules"):
        return False
    return is_folder or not (path.endswith("/config") or "/hooks/" in path)


def _is_sample(path: str, status: os.stat_result) -> bool:
    """Is it what git puts into a new repository: a folder, or a hook that is not switched on?"""
    if stat.S_ISDIR(status.st_mode):
        return path in (".git/hooks", ".git/modules")
    return stat.S_ISREG(status.st_mode) and path.endswith(".sample")


def _names_in(handle: int, name: str) -> list[str]:
    folder = os.open(name, _FOLDER, dir_fd=handle)
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name for entry in entries), reverse=True)
    finally:
        os.close(folder)
    if "objects" in found and "HEAD" in found:  # a repository: most of it is not ours to look at
        return [one for one in found if one in ("config", "hooks", "modules")]
    return found


def _remove(handle: int, name: str) -> None:
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=handle)
        else:
            os.unlink(name, dir_fd=handle)


def _put(handle: int, name: str, before: _Entry) -> None:
    mode = stat.S_IMODE(before.mode)
    if stat.S_ISDIR(before.mode):
        try:
            folder = os.open(name, _FOLDER, dir_fd=handle)
        except OSError:
            _remove(handle, name)
            os.mkdir(name, dir_fd=handle)
            folder = os.open(name, _FOLDER, dir_fd=handle)
        os.fchmod(folder, mode)
        os.close(folder)
    elif stat.S_ISLNK(before.mode):
        os.symlink(before.data or b"", name.encode(errors="surrogateescape"), dir_fd=handle)
    elif stat.S_ISREG(before.mode):
        with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=handle), "wb") as file:
            file.write(before.data or b"")
            os.fchmod(file.fileno(), mode)
