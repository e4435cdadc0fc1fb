"""Restores files, links and folders: everything that is asked for, or nothing.

It uses folder handles: a link that somebody has put on the way is an error, and is not followed.
Each file is replaced in one step. Whether something may be replaced is decided in plan.py.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from bridle.workspace.fs import (
    FOLDER,
    atomic_write,
    open_parent,
    put_in_place,
    temporary_name,
    write_all,
)
from bridle.workspace.undo.storage import ContentStore
from bridle.workspace.undo.tree import State

_PATH_ONLY: int = getattr(os, "O_PATH", 0)


class Step(Struct, frozen=True):
    """A path, what is there now, and what is wanted. `status` is the system's of what is there."""

    path: str
    now: State
    wanted: State
    status: os.stat_result | None = None

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def stays_folder(self) -> bool:
        """Is it a folder whose mode alone changes?"""
        return self.now.is_folder and self.wanted.is_folder

    @property
    def removes_first(self) -> bool:
        """Must what is there be removed first? A file is replaced by a file or a link directly."""
        if not self.now.mode or self.stays_folder:
            return False
        return not self.wanted.mode or self.now.is_folder or self.wanted.is_folder


class PartlyRestored(OSError):
    """It failed, and some of what had been done could not be reverted: `paths`."""

    def __init__(self, cause: OSError, paths: list[str]) -> None:
        super().__init__(cause.errno, cause.strerror, cause.filename)
        self.paths = paths


class Restorer:
    """Restores files of one workspace.

    If it is not `careful`, it goes on after an error, and does not check what it replaces.
    """

    def __init__(self, root: str, objects: ContentStore, *, careful: bool = True) -> None:
        self._root = root
        self._objects = objects
        self._careful = careful
        self._done: list[Step] = []
        self._left: list[str] = []
        self._failed: set[str] = set()

    def apply(self, steps: Iterable[Step]) -> list[str]:
        """Take the steps. Return folders that stay because they are not empty. Raise `OSError`.

        After an error everything is as it was before; if that is not possible, the error is
        `PartlyRestored`.
        """
        steps = sorted(steps, key=lambda step: (step.depth, step.path))
        try:
            return self._apply(steps)
        except OSError as error:
            reverse = {step.path: Step(step.path, step.wanted, step.now) for step in self._done}
            back = sorted(reverse.values(), key=lambda step: (step.depth, step.path))
            restorer = Restorer(self._root, self._objects, careful=False)
            if lost := {*restorer._apply(back), *restorer._failed}:
                raise PartlyRestored(error, sorted(lost)) from error
            raise

    def _apply(self, steps: list[Step]) -> list[str]:
        deepest_first = steps[::-1]
        # first, so that what lies in a folder can be reached
        self._each(self._make_accessible, (step for step in steps if step.stays_folder))
        self._each(self._remove, (step for step in deepest_first if step.removes_first))
        self._each(
            self._create, (step for step in steps if step.wanted.mode and not step.stays_folder)
        )
        self._each(self._set_mode, (step for step in deepest_first if step.wanted.is_folder))
        return self._left

    def _each(self, work: Callable[[Step], None], steps: Iterable[Step]) -> None:
        """Do this for each step. If not careful, note a path that fails and go on."""
        for step in steps:
            try:
                work(step)
            except OSError:
                if self._careful:
                    raise
                self._failed.add(step.path)

    def _remove(self, step: Step) -> None:
        """Remove what is there, but not a folder that is not empty and may stay."""
        try:
            with open_parent(self._root, step.path) as (folder, name):
                self._check(folder, name, step)
                (os.rmdir if step.now.is_folder else os.unlink)(name, dir_fd=folder)
                self._done.append(step)  # not before: what was not removed need not come back
        except FileNotFoundError:
            return
        except OSError as error:
            if step.wanted.mode or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            self._left.append(step.path)

    def _create(self, step: Step) -> None:
        with open_parent(self._root, step.path) as (folder, name):
            if not step.removes_first:
                self._check(folder, name, step)
            if step.wanted.is_folder:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)
            elif step.wanted.is_link:
                temporary = temporary_name(name)
                os.symlink(step.wanted.object, temporary, dir_fd=folder)
                put_in_place(temporary, name, folder)
            else:
                self._write(folder, name, step)
            self._done.append(step)

    def _write(self, folder: int, name: str, step: Step) -> None:
        data = self._objects.get(step.wanted.object)
        if data is None:
            raise OSError(errno.EIO, "its kept content is missing or damaged", step.path)
        with atomic_write(name, folder) as handle:
            if step.status is not None:
                with suppress(PermissionError):  # only root may give a file to somebody else
                    os.fchown(handle, step.status.st_uid, step.status.st_gid)
            write_all(handle, data)
            os.fchmod(handle, stat.S_IMODE(step.wanted.mode))

    def _make_accessible(self, step: Step) -> None:
        self._set_mode(step, 0o700)

    def _set_mode(self, step: Step, also: int = 0) -> None:
        mode = step.wanted.mode | also
        with open_parent(self._root, step.path) as (folder, name):
            handle = os.open(name, FOLDER | _PATH_ONLY, dir_fd=folder)
            try:
                if _PATH_ONLY:  # so that a folder which may not be read can be made readable again
                    Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(mode))
                else:
                    os.fchmod(handle, stat.S_IMODE(mode))
            finally:
                os.close(handle)
            if step.stays_folder:
                self._done.append(step)

    def _check(self, folder: int, name: str, step: Step) -> None:
        """Raise `OSError` if something else is there than a moment ago."""
        if not self._careful or step.now.is_folder:
            return
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            status = None
        if _stamp(status) != _stamp(step.status):
            raise OSError(errno.EBUSY, "it changed while it was being put back", step.path)


def _stamp(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None:
        return ()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns
