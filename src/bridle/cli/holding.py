"""Does a process hold this session now? Looks at the log's lock, and takes it for no longer."""

import fcntl
import os
from pathlib import Path

from bridle.errors import UnknownSession

_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def holder_of(log: Path) -> str:
    """Who holds the session of this log, in words; empty where nobody does."""
    try:
        handle = os.open(log, _READING)
    except OSError as error:
        raise UnknownSession(f"the session's log cannot be opened: {error.strerror}") from None
    try:
        if found := _named(os.fstat(handle).st_ino):
            return found
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # as a last resort: it is a lock, too
    except BlockingIOError:
        return "another process"
    finally:
        os.close(handle)
    return ""


def _named(inode: int) -> str:
    """The process, as far as the system tells; empty where it tells of none."""
    try:
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ""
    for line in map(str.split, locks):
        if len(line) > 5 and line[1] == "FLOCK" and line[5].endswith(f":{inode}"):
            return f"process {line[4]}" if int(line[4]) > 0 else "another process"
    return ""
