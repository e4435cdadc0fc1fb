"""The git branch of a folder and the sandbox level of this machine, for the status bar.

Reads little, within bounds, and starts no process: a repository's files may be anything.
"""

import os
import re
import stat

from bridle.errors import AgentError
from bridle.workspace.fs import READ

_MOST = 1024  # bytes of a file that says where something is
_HIGHEST = 40  # folders above that are looked at
_HASH = re.compile(r"[0-9a-f]{40,64}")


def git_branch(folder: str) -> str:
    """Return the branch that is checked out, or the start of a commit; empty if unknown."""
    place = os.path.abspath(folder)  # noqa: PTH100 - asked for with every frame
    for _ in range(_HIGHEST):
        git = f"{place}/.git"
        try:
            found = os.lstat(git)
        except (OSError, ValueError):
            above = place.rpartition("/")[0]
            if not above or above == place:
                return ""
            place = above
            continue
        if stat.S_ISDIR(found.st_mode):
            return _head(git)
        said = _read(git) if stat.S_ISREG(found.st_mode) else ""
        return _head(os.path.join(place, said[8:])) if said.startswith("gitdir: ") else ""  # noqa: PTH118
    return ""


def sandbox_level(wanted: str) -> str:
    """Return the level that commands run at, or "none"; empty if it is not available."""
    from bridle.workspace.sandbox import probe

    try:
        return probe(wanted).level
    except AgentError:
        return ""


def _head(git: str) -> str:
    said = _read(f"{git}/HEAD")
    if said.startswith("ref: refs/heads/"):
        return said[16:]
    return said[:8] if _HASH.fullmatch(said) else ""


def _read(path: str) -> str:
    """Return the line of a small file; nothing of a pipe, a link or a device."""
    try:
        handle = os.open(path, READ)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return os.read(handle, _MOST).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(handle)
