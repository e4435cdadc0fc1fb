"""One folder of a workspace, as the commands of all sessions in this process share it.

Subagents and a server's sessions run commands side by side in the same files. So what protected and
guarded files held is noted before the first of the commands under way, and every change since is
judged by what all of them may do: a change that one was permitted stays when another one ends, and
no command takes for given what another one did without permission.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct

from bridle.protocols.tool import Access
from bridle.workspace.git.objects import committed, has_blob
from bridle.workspace.git.paths import GitConfiguration
from bridle.workspace.git.worktree import WORKTREE_FILES, linked_repository
from bridle.workspace.guarded_files import AllowedChanges, GuardedFiles, GuardedPaths
from bridle.workspace.protected_files import (
    NAMES,
    CrashBackup,
    ProtectedFiles,
    RepositoryGuard,
    Restoration,
    changes_by_tools,
)

_MOST_HIDDEN, _MOST_CLOSED = 300, 100  # files of the workspace that bubblewrap covers
_MOST_REPOSITORIES = 200  # inside the folder, those of earlier commands too
_KILLED = "(changed when bridle was last ended here; what stood there is beside it)"


class Run(Struct, eq=False):
    """One command while it runs: what it may use, and which guarded files it cannot.

    `roots` are the folders of its workspace: paths in the first are named from there. `commits` are
    what the refs of each folder led to before the session's first command. `is_free`: a person let
    it run outside of the sandbox. `changed` is what was put back before it began, done by others.
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

    def named(self, root: str, path: str) -> str:
        """A path as the gate names it: from the first folder of the workspace, or whole."""
        return path if root == self.roots[0] else f"{root}/{path}"


class GuardedRoot:
    """The protected and guarded files of one folder, and the commands under way in it."""

    def __init__(self, root: str, state: str) -> None:
        home = os.path.expanduser("~")  # noqa: PTH111 - a string is wanted
        self.root = root
        self._git = GitConfiguration(root, home)
        guarded = CrashBackup(state, root, "guarded") if state else None
        self._files = GuardedFiles(root, self._git, guarded)
        self._watched = [
            ProtectedFiles(root, NAMES, backup=CrashBackup(state, root) if state else None)
        ]
        if own := linked_repository(root).own:
            backup = CrashBackup(state, own) if state else None
            self._watched.append(ProtectedFiles(own, WORKTREE_FILES, backup=backup))
        self._tamed = RepositoryGuard(root, home)
        self._runs: list[Run] = []
        self._is_new = True
        self._lock = threading.Lock()

    def begin(self, run: Run) -> Restoration:
        """Note what files hold before a command, and which ones it cannot use.

        If others are under way, what they did without permission is put back.
        """
        with self._lock:
            self._runs = [one for one in self._runs if not one.is_over]
            if self._runs:
                changed = self._restore(is_last=False)
                found = self._files.scan_again()
            else:
                changed = self._recover() if self._is_new else Restoration()
                self._is_new = False
                changes_by_tools(self.root)
                found = self._look()
            if run.level == "bubblewrap":
                run.unreadable += self._unreadable(found, run)
                run.unwritable += self._unwritable(found, run)
            self._runs.append(run)
            self._save()
            return changed

    def end(self, run: Run) -> Restoration:
        """A command has ended: put back what was done without permission."""
        with self._lock:
            self._runs = [one for one in self._runs if not one.is_over]
            is_last = len(self._runs) == 1
            found = self._restore(is_last=is_last) if run in self._runs else Restoration()
            run.is_over = True
            self._save()
            return found

    def rest(self) -> None:
        """Remove what was kept on disk if no command is under way."""
        with self._lock:
            self._save()

    def _look(self) -> GuardedPaths:
        found = self._files.look()
        top = self._watched[0]
        top.names = (*NAMES, *self._git.paths.files_in(self.root))
        seen = dict.fromkeys((*top.repositories, *self._files.repositories))
        top.repositories = tuple(seen)[:_MOST_REPOSITORIES]
        for protected_files in self._watched:
            protected_files.look()
        self._tamed.look()
        return found

    def _save(self) -> None:
        self._runs = [one for one in self._runs if not one.is_over]
        if not self._runs:
            for protected_files in self._watched:
                protected_files.rest()
        if self._runs and not any(run.is_free for run in self._runs):
            self._files.save(self._is_mounted)
        else:
            self._files.forget()

    def _recover(self) -> Restoration:
        """What was under way when a bridle was killed here is put back now."""
        found = self._together([protected_files.recover() for protected_files in self._watched])
        undone = self._files.recover()
        parts = (found.restored, found.lost, undone)
        return Restoration(*(tuple(f"{name} {_KILLED}" for name in part) for part in parts))

    def _restore(self, *, is_last: bool) -> Restoration:
        found = self._together([protected_files.restore() for protected_files in self._watched])
        is_free = any(run.is_free for run in self._runs)
        if not (is_free and is_last):
            by_tools = changes_by_tools(self.root)
            permissions = AllowedChanges(
                allowed=lambda path: f"{self.root}/{path}" in by_tools or self._allowed(path),
                is_mounted=self._is_mounted,
                from_git=self._from_git if any(run.access.git for run in self._runs) else None,
                is_free=is_free,
            )
            undone = tuple(self._files.restore(permissions, is_last=is_last))
            found = found.plus(Restoration(undone=undone))
        return found.plus(self._tamed.restore())

    def _together(self, parts: list[Restoration]) -> Restoration:
        """All of it. What is not in the folder itself is named by its whole path."""
        found = parts[0]
        for protected_files, part in zip(self._watched[1:], parts[1:], strict=True):
            names = (tuple(f"{protected_files.root}/{one}" for one in some) for some in part[:2])
            found = found.plus(Restoration(*names))
        return found

    def _allowed(self, path: str) -> bool:
        return any(run.access.writes(run.named(self.root, path)) for run in self._runs)

    def _is_mounted(self, path: str) -> bool:
        return all(f"{self.root}/{path}" in run.unwritable for run in self._runs)

    def _from_git(self, contents: Mapping[str, bytes]) -> set[str]:
        """Those that git may put in place: from any commit if a person allowed that very command.

        Otherwise from the commits that were there before the session of a git command under way.
        """
        found: set[str] = set()
        for run in self._runs:
            left = {path: data for path, data in contents.items() if path not in found}
            known = {path for path, data in left.items() if has_blob(self.root, path, data)}
            if run.access.git == "any":
                found |= known
            elif run.access.git:
                left = {path: left[path] for path in known}
                commits = run.commits.get(self.root, ())
                found |= committed(self.root, commits, left, roots=run.roots)
        return found

    def _unreadable(self, found: GuardedPaths, run: Run) -> tuple[str, ...]:
        """The credentials that bubblewrap hides.

        If there are too many, those not changed for the longest time: a command can make any number
        of files with such names, but none that is older.
        """
        paths = [
            f"{self.root}/{path}"
            for path in found.credentials
            if not run.access.reads(run.named(self.root, path))
        ]
        if len(paths) > _MOST_HIDDEN:
            paths = sorted(paths, key=_changed)[:_MOST_HIDDEN]
        return tuple(paths)

    def _unwritable(self, found: GuardedPaths, run: Run) -> tuple[str, ...]:
        """None if git is at work: it could not leave half of its files as they are."""
        if run.access.git:
            return ()
        tops = (top for top in found.autorun if not run.access.writes(run.named(self.root, top)))
        return tuple(f"{self.root}/{top}" for top in tops)[:_MOST_CLOSED]


_roots: WeakValueDictionary[tuple[str, str], GuardedRoot] = WeakValueDictionary()
_making = threading.Lock()


def guarded_root(root: str, state: str) -> GuardedRoot:
    """The one of this folder: the same for whoever asks while somebody has it."""
    key = (os.path.realpath(root), state)
    with _making:
        found = _roots.get(key)
        if found is None:
            found = _roots[key] = GuardedRoot(*key)
        return found


def _changed(path: str) -> int:
    with suppress(OSError):
        return Path(path).lstat().st_ctime_ns
    return 0
