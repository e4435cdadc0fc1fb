"""The system calls of the store, in one place, so that a test can make them fail."""

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from contextlib import suppress

from bridle.errors import StoreFailed
from bridle.workspace.fs import FOLDER

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync stops at the drive
# A mark that others can ask for without taking a lock (`locks.is_owned`); only Linux has it.
_SET_MARK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_MARK = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # the whole file


def _lock(handle: int, operation: int) -> None:
    """Lock a log and mark it as owned; both end with the handle."""
    fcntl.flock(handle, operation)
    if _SET_MARK is not None:
        with suppress(OSError):  # some network file systems know no marks
            fcntl.fcntl(handle, _SET_MARK, _MARK)


def _sync(handle: int) -> None:
    """Make the content of a file durable, also in the drive's own cache."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(handle, _FULL_SYNC)
    else:
        os.fdatasync(handle)


def _sync_folder(handle: int) -> None:
    """Make the entries of a folder durable, if the file system supports that."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise


class Disk:
    """A real disk. Everything raises `OSError`; `write` may write less than it was given."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    write: Callable[[int, bytes | memoryview, int], int] = staticmethod(os.pwrite)
    sync: Callable[[int], None] = staticmethod(_sync if _FULL_SYNC else os.fdatasync)
    sync_folder: Callable[[int], None] = staticmethod(_sync_folder)
    make_folder = staticmethod(os.mkdir)
    cut = staticmethod(os.ftruncate)
    look = staticmethod(os.fstat)
    find = staticmethod(os.lstat)
    lock: Callable[[int, int], None] = staticmethod(_lock)


def write_at(disk: Disk, handle: int, data: bytes, offset: int) -> None:
    """Write all of `data` at this offset, in as many calls as it takes."""
    count = disk.write(handle, data, offset)
    if count < len(data):
        view = memoryview(data)
        while count < len(data):
            count += disk.write(handle, view[count:], offset + count)


def sync_path(disk: Disk, path: str) -> None:
    """Make the entries of a folder durable."""
    handle = disk.open(path, FOLDER & ~os.O_NOFOLLOW)
    try:
        disk.sync_folder(handle)
    finally:
        disk.close(handle)


# Errors of the operating system as errors of a store, with a hint what to do about each.

_KEPT = "What could not be written does not count as done."
_HINTS = {
    errno.ENOSPC: "Free some space; the session then continues where it is.",
    errno.EDQUOT: "Free some space; the session then continues where it is.",
    errno.EFBIG: "Raise the limit on the size of files; the session then continues where it is.",
    errno.EIO: "Check the disk; the session continues once it can be written.",
    errno.EROFS: "Make it writable, or set BRIDLE_STATE to another folder.",
    errno.EACCES: "Check the permissions of the state folder.",
    errno.EPERM: "Check the permissions of the state folder.",
    errno.ELOOP: "A log or its folder was replaced by a symbolic link: put the real one back.",
    errno.ENOENT: "Start a new session; a deleted one can only be restored from a copy.",
    errno.ESTALE: "The file that is there now was not changed: put the log back, or resume it.",
    errno.EBADMSG: "`bridle sessions verify` says what is wrong; bring in a copy with `import`.",
    errno.EEXIST: "Resume that session, or start one with another id.",
}
_DEFAULT_HINT = "Check the disk and the permissions of the folder."


class NewerFormat(OSError):
    """The log was written by a newer version."""


def to_store_failed(session_id: str, error: OSError, action: str = "written") -> StoreFailed:
    """Convert a system error. `action` completes "the log of session … cannot be …"."""
    if isinstance(error, NewerFormat):
        hint = "Use a bridle that is at least as new; nothing was changed."
    elif action == "read":
        hint = f"Nothing was changed. {_HINTS.get(error.errno or 0, _DEFAULT_HINT)}"
    else:
        hint = f"{_KEPT} {_HINTS.get(error.errno or 0, _DEFAULT_HINT)}"
    message = f"the log of session {session_id} cannot be {action}: {error.strerror or error}"
    return StoreFailed(message, error, hint=hint)
