"""Where a path leads, for judging it: every link followed by reading it, nothing opened.

What is found is how things stand now; `handles.py` enforces it when something is opened. Never
raises. Knows nothing of workspaces or of what may be touched.
"""

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

_LONGEST = 4096  # bytes of a path that the kernel takes
MOST_HOPS = 40  # links followed for one path; the kernel's own limit
# They swallow what is written, or are the command's own input and output.
_SWALLOWING = ("null", "zero", "full", "random", "urandom")
_OWN = ("stdin", "stdout", "stderr", "fd/0", "fd/1", "fd/2")
DEVICES = frozenset(f"/dev/{name}" for name in (*_SWALLOWING, *_OWN))


class Found(NamedTuple):
    """Where a path leads.

    `status` is what is there (None: nothing yet, or a folder that was gone up to). `passed` are the
    paths that links on the way had made of it. `doubt` says why it is not certain.
    """

    path: str
    status: os.stat_result | None
    passed: tuple[str, ...] = ()
    doubt: str = ""


def follow(start: str, path: str) -> Found:
    """From `start`, a real absolute path, along `path`, whose names stand apart by `/`."""
    current = "" if start == "/" else start
    pending = path.split("/")[::-1]
    passed: list[str] = []
    status: os.stat_result | None = None
    doubt = ""
    while pending:
        name = pending.pop()
        if name in ("", "."):
            continue
        if name == "..":
            current, status = current.rpartition("/")[0], None
            continue
        current = f"{current}/{name}"
        status, target, trouble = _look(current)
        doubt = doubt or trouble
        if target is None:
            continue
        if current in DEVICES or (current.startswith("/proc/") and current.count("/") > 2):
            # What the kernel shows of a process is another for each process: nothing to follow.
            return Found("/".join([current, *reversed(pending)]), None, tuple(passed))
        if len(passed) == MOST_HOPS:
            return Found(current, status, tuple(passed), "its links lead in a circle")
        pending += target.split("/")[::-1]
        current = "" if target.startswith("/") else current.rpartition("/")[0]
        passed.append(os.path.normpath("/".join([current, *reversed(pending)]) or "/"))
    return Found(current or "/", status, tuple(passed), doubt)


def _look(path: str) -> tuple[os.stat_result | None, str | None, str]:
    """What is there, where it leads if it is a link, and what went wrong."""
    try:
        status = os.lstat(path)
        target = str(Path(path).readlink()) if stat.S_ISLNK(status.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None, None, ""
    except (OSError, ValueError) as error:
        if getattr(error, "errno", 0) == errno.ENAMETOOLONG and len(os.fsencode(path)) < _LONGEST:
            return None, None, ""  # a name in it is too long for a file: there is none
        return None, None, "it cannot be looked at"
    return status, target, ""
