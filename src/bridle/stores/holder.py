"""Who holds a session: the lock of its file, and what the system tells of the one who has it."""

import os
from fcntl import LOCK_EX, LOCK_NB
from pathlib import Path

from bridle.errors import SessionLocked
from bridle.stores.disk import Disk


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
    try:
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
                return named(int(fields[4]))
    except (OSError, ValueError):
        pass
    return "another process"


def named(pid: int) -> str:
    """A process, in words for a person."""
    if pid <= 0:  # a process of another container
        return "another process"
    name = _program(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def _program(pid: int) -> str:
    """What somebody typed, without its arguments: `bridle run`."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()[:4096].decode("utf-8", "replace")
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
