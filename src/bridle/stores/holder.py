"""Who holds a session: the lock of its file, and what the system tells of the one who has it."""

import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from typing import TYPE_CHECKING

from bridle.errors import SessionLocked, UnknownSession
from bridle.stores.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path  # a list needs none, and it takes as long to load as a list

_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def lock(disk: Disk, handle: int, session_id: str) -> None:
    """Take the lock, at once or not at all. It goes with the process, however that ends."""
    try:
        disk.lock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        who = _holder(disk.look(handle).st_ino)
        raise SessionLocked(
            f"session {session_id} is in use by {who}",
            hint="Wait until it is done there, or start a session of its own.",
        ) from None


def _holder(inode: int) -> str:
    """Who holds the lock, as far as the system tells."""
    pid = _pid(inode)
    return "another process" if pid is None else named(pid)


def holder_of(log: "Path") -> str:
    """Who holds the session of this log, in words; empty where nobody does.

    Looks at the log's lock, and takes it for no longer.
    """
    pid = pid_of(log)
    if pid is None:
        return ""
    return f"process {pid}" if pid > 0 else "another process"


def pid_of(log: "Path") -> int | None:
    """The process that holds the session of this log; 0: one that cannot be named; None: nobody."""
    try:
        handle = os.open(log, _READING)
    except OSError as error:
        raise UnknownSession(f"the session's log cannot be opened: {error.strerror}") from None
    try:
        if (found := _pid(os.fstat(handle).st_ino)) is not None:
            return found
        flock(handle, LOCK_SH | LOCK_NB)  # as a last resort: it is a lock, too
    except BlockingIOError:
        return 0
    finally:
        os.close(handle)
    return None


def _pid(inode: int) -> int | None:
    """The process that has a lock on it, as far as the system tells; None: it tells of none."""
    for line in _locks():
        if line[5].endswith(f":{inode}"):
            return int(line[4]) if line[4].isdecimal() else 0
    return None


def held() -> dict[tuple[int, int], int]:
    """Which process holds which file, by its device and inode, as far as the system tells."""
    return {_file(line[5]): int(line[4]) if line[4].isdecimal() else 0 for line in _locks()}


def _locks() -> list[list[str]]:
    try:
        with open("/proc/locks") as file:  # noqa: PTH123 - see above
            lines = [line.split() for line in file]
    except OSError:
        return []
    return [line for line in lines if len(line) > 5 and line[1] == "FLOCK"]


def _file(spelled: str) -> tuple[int, int]:
    """A file's device and inode, of which the table of locks says `fe:01:1234`; or no file."""
    try:
        major, minor, inode = spelled.split(":")
        return os.makedev(int(major, 16), int(minor, 16)), int(inode)
    except ValueError:
        return -1, -1


def named(pid: int) -> str:
    """A process, in words for a person."""
    if pid <= 0:  # a process of another container
        return "another process"
    name = _program(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def _program(pid: int) -> str:
    """What somebody typed, without its arguments: `bridle run`."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - see above
            words = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""
    return program(words.rstrip("\0").split("\0"))


def program(words: list[str]) -> str:
    """The program of a command line, and the command that it was given."""
    first, *rest = [os.path.basename(word) for word in words[:4]]  # noqa: PTH119 - words, not paths
    if first.startswith("python") and rest:
        if rest[0] == "-m":
            rest = rest[1:]
        if rest and not rest[0].startswith("-"):
            first, *rest = rest
    found = f"{first} {rest[0]}" if rest and rest[0].isalpha() else first
    return found if found.isprintable() and len(found) <= 60 else ""
