"""Which process owns a session: the lock on its log, and what the system knows about its owner."""

import fcntl
import os
import struct
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock
from typing import TYPE_CHECKING

from bridle.errors import SessionLocked, UnknownSession
from bridle.stores.disk import Disk
from bridle.workspace.fs import READ

if TYPE_CHECKING:
    from pathlib import Path  # a list of sessions needs none

LOCK_TABLE = "/proc/locks"
_GET_MARK: int | None = getattr(fcntl, "F_OFD_GETLK", None)


def lock(disk: Disk, handle: int, session_id: str) -> None:
    """Take the lock or raise `SessionLocked`. It is released when the process ends, however."""
    try:
        disk.lock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        pid = _owner_by_inode(disk.look(handle).st_ino)
        owner = "another process" if pid is None else describe_process(pid)
        raise SessionLocked(
            f"session {session_id} is in use by {owner}",
            hint="Wait until it is done there, or start another session.",
        ) from None


def describe_owner(log: "Path") -> str:
    """The process that owns the session of this log, in words; empty if none does."""
    pid = owner_pid(log)
    if pid is None:
        return ""
    return f"process {pid}" if pid > 0 else "another process"


def owner_pid(log: "Path") -> int | None:
    """The process that owns the session of this log; 0 if it has no number here; None if none does.

    A process of another container has no number here.
    """
    try:
        handle = os.open(log, READ)
    except OSError as error:
        raise UnknownSession(f"the session's log cannot be opened: {error.strerror}") from None
    try:
        pid = _owner_by_inode(os.fstat(handle).st_ino)
        return 0 if pid is None and is_locked(handle) else pid
    finally:
        os.close(handle)


def is_locked(handle: int) -> bool:
    """Whether another process has locked this file. Asks the lock itself, for a moment.

    Ask `lock_owners` first: while this asks, nobody else can take the lock.
    """
    try:
        flock(handle, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    flock(handle, LOCK_UN)
    return False


def is_owned(handle: int) -> bool:
    """Whether a process owns the session of this log, or that is not known.

    Looks for the mark that `Disk.lock` leaves and takes no lock, not even for a moment. The table
    of locks costs many milliseconds, because the kernel waits for all processors to show it.
    """
    if _GET_MARK is None:
        return True
    asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        found: int = struct.unpack_from("h", fcntl.fcntl(handle, _GET_MARK, asked))[0]
    except OSError:  # a file system without such marks
        return True
    return found != fcntl.F_UNLCK


def lock_owners() -> dict[tuple[int, int], int]:
    """The process that holds the lock of each locked file, by the file's device and inode.

    Empty if the system has no table of locks; 0 for a process of another container.
    """
    try:
        with open(LOCK_TABLE) as file:  # noqa: PTH123
            lines = [line.split() for line in file]
    except OSError:
        return {}
    return {
        _parse_file(fields[5]): int(fields[4]) if fields[4].isdecimal() else 0
        for fields in lines
        if len(fields) > 5 and fields[1] == "FLOCK"
    }


def _owner_by_inode(inode: int) -> int | None:
    """The process that has locked this inode: some file systems show another device there."""
    return next((pid for file, pid in lock_owners().items() if file[1] == inode), None)


def _parse_file(text: str) -> tuple[int, int]:
    """Device and inode of `fe:01:1234`, as the table of locks has them; or those of no file."""
    try:
        major, minor, inode = text.split(":")
        return os.makedev(int(major, 16), int(minor, 16)), int(inode)
    except ValueError:
        return -1, -1


def describe_process(pid: int) -> str:
    """A process in words for a person: `process 12 (bridle run)`."""
    if pid <= 0:  # of another container
        return "another process"
    name = _program(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def _program(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            arguments = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""
    return program_of(arguments.rstrip("\0").split("\0"))


def program_of(arguments: list[str]) -> str:
    """The program of a command line and its command, without what follows: `bridle run`."""
    first, *rest = [os.path.basename(word) for word in arguments[:4]]  # noqa: PTH119 - no paths
    if first.startswith("python") and rest:
        if rest[0] == "-m":
            rest = rest[1:]
        if rest and not rest[0].startswith("-"):
            first, *rest = rest
    name = f"{first} {rest[0]}" if rest and rest[0].isalpha() else first
    return name if name.isprintable() and len(name) <= 60 else ""
