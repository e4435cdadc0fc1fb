"""One folder of a workspace, which the commands of all sessions in this process share.

Subagents and a server's sessions run commands in parallel in the same files. So protected and
guarded files are kept before the first of the running commands, and every change since is judged by
what all of them may do: a change that one was permitted stays when another one ends, and no command
builds on what another one did without permission.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct

from bridle.protocols.tool import Access
from bridle.workspace.git.objects import committed_paths, has_blob
from bridle.workspace.git.paths import GitConfiguration
from bridle.workspace.git.worktree import WORKTREE_FILES, linked_repository
from bridle.workspace.permission_files import AllowedChanges, GuardedFiles, GuardedPaths
from bridle.workspace.protected_files import (
    NAMES,
    CrashBackup,
    ProtectedFiles,
    RepositoryGuard,
    Restoration,
    changes_by_tools,
)

_MAX_HIDDEN, _MAX_CLOSED = 300, 100  # files of the workspace that bubblewrap covers
_MAX_REPOSITORIES = 200  # inside the folder, those of earlier commands too
_KILLED = "(changed when bridle was last ended here; what stood there is beside it)"


class Run(Struct, eq=False):
    """One command while it runs: what it may use, and which guarded files it cannot.

    `roots` are the folders of its workspace: paths in the first are relative to it. `commits` are
    those of each folder's refs before the session's first command. `is_free`: a person let it run
    outside of the sandbox. `changed` is what others did and was restored before it began.
    """

    access: Access
    roots: tuple[str, ...]
    level: str = "none"
    is_free: bool = False
    commits: Mapping[str, Sequence[str]] = {}
    unreadable: tuple[str, ...] = ()
    unwritable: tuple[str, ...] = ()
    changed: Restoration = Restoration()
    is_over: bool = False

    def gate_path(self, root: str, path: str) -> str:
        """Return a path as the gate names it: from the workspace's first folder, or absolute."""
        return path if root == self.roots[0] else f"{root}/{path}"


class GuardedRoot:
    """The protected and guarded files of one folder, and the commands that run in it."""

    def __init__(self, root: str, state: str) -> None:
        home = os.path.expanduser("~")  # noqa: PTH111 - as a string
        self.root = root
        self._git = GitConfiguration(root, home)
        backup = CrashBackup(state, root, "guarded") if state else None
        self._guarded = GuardedFiles(root, self._git, backup)
        self._protected = [
            ProtectedFiles(root, NAMES, backup=CrashBackup(state, root) if state else None)
        ]
        if own := linked_repository(root).own:
            backup = CrashBackup(state, own) if state else None
            self._protected.append(ProtectedFiles(own, WORKTREE_FILES, backup=backup))
        self._repositories = RepositoryGuard(root, home)
        self._runs: list[Run] = []
        self._is_new = True
        self._lock = threading.Lock()

    def begin(self, run: Run) -> Restoration:
        """Keep what is there before a command, and decide which files it cannot use.

        If others are running, restore what they changed without permission.
        """
        with self._lock:
            self._runs = [other for other in self._runs if not other.is_over]
            if self._runs:
                changed = self._restore(is_last=False)
                paths = self._guarded.scan_again()
            else:
                changed = self._recover() if self._is_new else Restoration()
                self._is_new = False
                changes_by_tools(self.root)
                paths = self._take_snapshot()
            if run.level == "bubblewrap":
                run.unreadable += self._unreadable(paths, run)
                run.unwritable += self._unwritable(paths, run)
            self._runs.append(run)
            self._save()
            return changed

    def end(self, run: Run) -> Restoration:
        """Restore what was changed without permission: a command has ended."""
        with self._lock:
            self._runs = [other for other in self._runs if not other.is_over]
            is_last = len(self._runs) == 1
            restoration = self._restore(is_last=is_last) if run in self._runs else Restoration()
            run.is_over = True
            self._save()
            return restoration

    def discard_backups(self) -> None:
        """Remove what was kept on disk if no command is running."""
        with self._lock:
            self._save()

    def _take_snapshot(self) -> GuardedPaths:
        guarded = self._guarded.take_snapshot()
        top = self._protected[0]
        top.names = (*NAMES, *self._git.paths.files_in(self.root))
        repositories = dict.fromkeys((*top.repositories, *self._guarded.repositories))
        top.repositories = tuple(repositories)[:_MAX_REPOSITORIES]
        for protected_files in self._protected:
            protected_files.take_snapshot()
        self._repositories.take_snapshot()
        return guarded

    def _save(self) -> None:
        self._runs = [other for other in self._runs if not other.is_over]
        if not self._runs:
            for protected_files in self._protected:
                protected_files.discard_backup()
        if self._runs and not any(run.is_free for run in self._runs):
            self._guarded.write_backup(self._is_mounted)
        else:
            self._guarded.discard_backup()

    def _recover(self) -> Restoration:
        """Restore what commands had changed when a bridle was killed here."""
        restoration = self._combine(
            [protected_files.recover() for protected_files in self._protected]
        )
        undone = self._guarded.recover()
        parts = (restoration.restored, restoration.lost, undone)
        return Restoration(*(tuple(f"{name} {_KILLED}" for name in part) for part in parts))

    def _restore(self, *, is_last: bool) -> Restoration:
        restoration = self._combine(
            [protected_files.restore() for protected_files in self._protected]
        )
        is_free = any(run.is_free for run in self._runs)
        if not (is_free and is_last):
            by_tools = changes_by_tools(self.root)
            permissions = AllowedChanges(
                is_allowed=lambda path: f"{self.root}/{path}" in by_tools or self._is_allowed(path),
                is_mounted=self._is_mounted,
                from_git=self._from_git if any(run.access.git for run in self._runs) else None,
                is_free=is_free,
            )
            undone = tuple(self._guarded.restore(permissions, is_last=is_last))
            restoration = restoration.plus(Restoration(undone=undone))
        return restoration.plus(self._repositories.restore())

    def _combine(self, parts: list[Restoration]) -> Restoration:
        """Return all together. What is not in the folder itself has its absolute path."""
        restoration = parts[0]
        for protected_files, part in zip(self._protected[1:], parts[1:], strict=True):
            names = (
                tuple(f"{protected_files.root}/{path}" for path in paths) for paths in part[:2]
            )
            restoration = restoration.plus(Restoration(*names))
        return restoration

    def _is_allowed(self, path: str) -> bool:
        return any(run.access.writes(run.gate_path(self.root, path)) for run in self._runs)

    def _is_mounted(self, path: str) -> bool:
        return all(f"{self.root}/{path}" in run.unwritable for run in self._runs)

    def _from_git(self, contents: Mapping[str, bytes]) -> set[str]:
        """Return the paths whose content git may have put there.

        That is a content of any commit, if a person allowed that very git command; otherwise, of
        the commits from before the session.
        """
        paths: set[str] = set()
        for run in self._runs:
            left = {path: data for path, data in contents.items() if path not in paths}
            known = {path for path, data in left.items() if has_blob(self.root, path, data)}
            if run.access.git == "any":
                paths |= known
            elif run.access.git:
                left = {path: left[path] for path in known}
                commits = run.commits.get(self.root, ())
                paths |= committed_paths(self.root, commits, left, roots=run.roots)
        return paths

    def _unreadable(self, guarded: GuardedPaths, run: Run) -> tuple[str, ...]:
        """Return the credentials that bubblewrap hides.

        If there are too many, those not changed for the longest time: a command can create any
        number of files with such names, but none that is older.
        """
        paths = [
            f"{self.root}/{path}"
            for path in guarded.credentials
            if not run.access.reads(run.gate_path(self.root, path))
        ]
        if len(paths) > _MAX_HIDDEN:
            paths = sorted(paths, key=_change_time)[:_MAX_HIDDEN]
        return tuple(paths)

    def _unwritable(self, guarded: GuardedPaths, run: Run) -> tuple[str, ...]:
        """Return what bubblewrap makes read-only. Nothing for git, which would fail half-way."""
        if run.access.git:
            return ()
        tops = (
            top for top in guarded.autorun if not run.access.writes(run.gate_path(self.root, top))
        )
        return tuple(f"{self.root}/{top}" for top in tops)[:_MAX_CLOSED]


_roots: WeakValueDictionary[tuple[str, str], GuardedRoot] = WeakValueDictionary()
_roots_lock = threading.Lock()


def guarded_root(root: str, state: str) -> GuardedRoot:
    """Return the object of a folder, the same one for all callers while any of them has it."""
    key = (os.path.realpath(root), state)
    with _roots_lock:
        guarded = _roots.get(key)
        if guarded is None:
            guarded = _roots[key] = GuardedRoot(*key)
        return guarded


def _change_time(path: str) -> int:
    with suppress(OSError):
        return Path(path).lstat().st_ctime_ns
    return 0
