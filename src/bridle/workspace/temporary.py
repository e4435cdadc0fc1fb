"""Folders for temporary files, private to the user, that go when their owners go.

All of a process lie in one, which is locked for as long as the process lives: one that is not
locked was left behind by a process that was killed, and is removed when the next one is made.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "bridle-shell-"  # of those that are locked: a new one has another name until it is
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def private_folder(owner: object) -> str:
    """Make one under a name that cannot be guessed: its real path."""
    own = _of_process(os.getpid(), tempfile.gettempdir())
    if not Path(own).is_dir():  # somebody has cleaned up
        _of_process.cache_clear()
        own = _of_process(os.getpid(), tempfile.gettempdir())
    path = tempfile.mkdtemp(dir=own)
    weakref.finalize(owner, _end, path, os.getpid())
    return path


@cache
def _of_process(pid: int, above: str) -> str:
    """The folder of this process."""
    _remove_left_behind(above)
    new = Path(os.path.realpath(tempfile.mkdtemp(prefix="bridle-", dir=above)))
    path = str(new.with_name(new.name.replace("bridle-", _PREFIX, 1)))
    lock = os.open(new, _FOLDER)
    with suppress(OSError):  # where nothing can be locked, nobody removes it either
        fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(path)
    atexit.register(_end, path, pid)
    return path


def _remove_left_behind(above: str) -> None:
    with suppress(OSError), os.scandir(above) as entries:
        for path in [entry.path for entry in entries if entry.name.startswith(_PREFIX)]:
            with suppress(OSError):
                handle = os.open(path, _FOLDER)
                try:
                    if os.fstat(handle).st_uid == os.geteuid():
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        _remove(path)
                finally:
                    os.close(handle)


def _end(path: str, maker: int) -> None:
    """Remove it. A fork owns nothing."""
    if os.getpid() == maker:
        _remove(path)


def _remove(path: str) -> None:
    """Remove it with everything in it, also what a command has locked."""
    with suppress(RecursionError):
        for folder, _, _ in os.walk(path):
            with suppress(OSError):
                Path(folder).chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)
