"""Puts files, links and folders back as they were: everything that is asked for, or nothing.

It uses folder handles: a link that was planted on the way is an error, and no way out. Each file is
replaced in one step. Whether something may be replaced is decided elsewhere.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from bridle.workspace.fs import FOLDER, atomic_write, put_in_place, temporary_name, write_all
from bridle.workspace.undo.snapshot import open_folder
from bridle.workspace.undo.storage import ContentStore
from bridle.workspace.undo.tree import State

_NAMED: int = getattr(os, "O_PATH", 0)


class Step(Struct, frozen=True):
    """A path, what stands there now, what shall; `seen` is what the system said of it."""

    path: str
    now: State
    wanted: State
    seen: os.stat_result | None = None

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def stays_folder(self) -> bool:
        """Is it a folder of which only the mode changes?"""
        return self.now.is_folder and self.wanted.is_folder

    @property
    def makes_way(self) -> bool:
        """Has what stands there to go first? A file is replaced by a file or a link as it is."""
        if not self.now.mode or self.stays_folder:
            return False
        return not self.wanted.mode or self.now.is_folder or self.wanted.is_folder


class PartlyRestored(OSError):
    """It failed, and what had been done until then could not all be taken back: `paths`."""

    def __init__(self, cause: OSError, paths: list[str]) -> None:
        super().__init__(cause.errno, cause.strerror, cause.filename)
        self.paths = paths


class Restorer:
    """Changes files of one workspace."""

    def __init__(self, root: str, objects: ContentStore, *, careful: bool = True) -> None:
        self._root = root
        self._objects = objects
        self._careful = careful
        self._touched: list[Step] = []
        self._left: list[str] = []
        self._failed: set[str] = set()

    def apply(self, steps: Iterable[Step]) -> list[str]:
        """Make it so; folders that are not empty stay, and are named. Raise `OSError`.

        After an error everything is again as it was; where the system does not let it be so, the
        error is `PartlyRestored`.
        """
        steps = sorted(steps, key=lambda step: (step.depth, step.path))
        try:
            return self._apply(steps)
        except OSError as error:
            back = _once([Step(one.path, one.wanted, one.now) for one in self._touched])
            way = Restorer(self._root, self._objects, careful=False)
            if lost := {*way._apply(back), *way._failed}:
                raise PartlyRestored(error, sorted(lost)) from error
            raise

    def _apply(self, steps: list[Step]) -> list[str]:
        deepest_first = steps[::-1]
        # first, so that what lies in a folder can be reached
        self._each(self._open_up, (one for one in steps if one.stays_folder))
        self._each(self._remove, (one for one in deepest_first if one.makes_way))
        self._each(self._make, (one for one in steps if one.wanted.mode and not one.stays_folder))
        self._each(self._set_mode, (one for one in deepest_first if one.wanted.is_folder))
        return self._left

    def _each(self, work: Callable[[Step], None], steps: Iterable[Step]) -> None:
        """On the way back one path that cannot be mended does not stop the rest: it is noted."""
        for step in steps:
            try:
                work(step)
            except OSError:
                if self._careful:
                    raise
                self._failed.add(step.path)

    def _remove(self, step: Step) -> None:
        """Remove what stands there; a folder that is not empty, and may stay, is left."""
        try:
            with open_folder(self._root, step.path) as (folder, name):
                self._check(folder, name, step)
                (os.rmdir if step.now.is_folder else os.unlink)(name, dir_fd=folder)
                self._touched.append(step)  # not before: what did not go need not come back
        except FileNotFoundError:
            return
        except OSError as error:
            if step.wanted.mode or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            self._left.append(step.path)

    def _make(self, step: Step) -> None:
        with open_folder(self._root, step.path) as (folder, name):
            if not step.makes_way:
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
            self._touched.append(step)

    def _write(self, folder: int, name: str, step: Step) -> None:
        data = self._objects.get(step.wanted.object)
        if data is None:
            raise OSError(errno.EIO, "what was kept of it is missing or damaged", step.path)
        with atomic_write(name, folder) as handle:
            if step.seen is not None:
                with suppress(PermissionError):  # only root may give a file to somebody else
                    os.fchown(handle, step.seen.st_uid, step.seen.st_gid)
            write_all(handle, data)
            os.fchmod(handle, stat.S_IMODE(step.wanted.mode))

    def _open_up(self, step: Step) -> None:
        self._set_mode(step, 0o700)

    def _set_mode(self, step: Step, also: int = 0) -> None:
        mode = step.wanted.mode | also
        with open_folder(self._root, step.path) as (folder, name):
            handle = os.open(name, FOLDER | _NAMED, dir_fd=folder)
            try:
                if _NAMED:  # so that a folder which may not be read can be opened up again
                    Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(mode))
                else:
                    os.fchmod(handle, stat.S_IMODE(mode))
            finally:
                os.close(handle)
            if step.stays_folder:
                self._touched.append(step)

    def _check(self, folder: int, name: str, step: Step) -> None:
        """Raise `OSError` where something else stands there than a moment ago."""
        if not self._careful or step.now.is_folder:
            return
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if _sign(found) != _sign(step.seen):
            raise OSError(errno.EBUSY, "it changed while it was being put back", step.path)


def _sign(found: os.stat_result | None) -> tuple[int, ...]:
    if found is None:
        return ()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def _once(steps: list[Step]) -> list[Step]:
    """Each path once, shallow ones first."""
    found = {step.path: step for step in steps}
    return sorted(found.values(), key=lambda step: (step.depth, step.path))
