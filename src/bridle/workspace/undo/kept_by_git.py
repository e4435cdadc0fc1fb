"""What git keeps track of in a workspace: that is never ignored, whatever the rules say.

Reads git's index as data, and starts no program. What cannot be read tracks nothing.
"""

import os
import stat
from contextlib import suppress

from bridle.workspace.git_index import tracked

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_LARGEST = 64 << 20  # bytes of an index
_LINE = 4096
_WORKTREE = b"gitdir: "  # what `.git` says where it is a file


def kept_by_git(root: str) -> frozenset[str]:
    """Paths from the root, with the folders that they lie in."""
    data = _read(f"{root}/.git/index", _LARGEST)
    if data is None:
        said = _read(f"{root}/.git", _LINE) or b""
        if said.startswith(_WORKTREE):
            folder = os.fsdecode(said.removeprefix(_WORKTREE).strip())
            data = _read(f"{root}/{folder}/index" if folder[:1] != "/" else f"{folder}/index")
    found: set[str] = set()
    with suppress(ValueError):
        for path in tracked(data or b""):
            while path and path not in found:
                found.add(path)
                path = path.rpartition("/")[0]
    return frozenset(found)


def _read(path: str, limit: int = _LARGEST) -> bytes | None:
    """What stands in a regular file; None for anything else, and for more than that."""
    try:
        handle = os.open(path, _READING)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        return b"".join(iter(lambda: os.read(handle, 1 << 20), b""))
    except OSError:
        return None
    finally:
        os.close(handle)
