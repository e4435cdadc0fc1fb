"""A file with several names (hard links): is one of the others a name that nobody may touch?

A name in the workspace says nothing of the file's other names, and the system cannot list them. So
the file is compared with the credentials of the person and of the system, where they lie; that is
forbidden. Any other file with several names is asked about, because one of them may be outside: but
not where package managers put their files, which they link from a cache by the thousand.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from bridle.workspace.protected import FREE, Protection, home_paths, system_paths

MOST_LOOKS = 2_000  # files that are compared
_MOST_A_FOLDER = 200
_TOOLS = "node_modules site-packages .venv venv .tox .nox .pnpm-store .yarn .git target vendor"
_LINKED_BY_TOOLS = frozenset(_TOOLS.split())
_CREDENTIALS = Protection("deny", "deny", "it is another name of a file that holds credentials")
_OTHERS = Protection("ask", "ask", "the file has other names, and they may be outside (hard link)")


def is_planted(path: str, status: os.stat_result, homes: Iterable[str], root: str) -> Protection:
    """The care of a file that has several names."""
    own = (status.st_dev, status.st_ino)
    if any((one.st_dev, one.st_ino) == own for one in _credentials(homes)):
        return _CREDENTIALS
    return FREE if not _LINKED_BY_TOOLS.isdisjoint(path[len(root) :].split("/")) else _OTHERS


def _credentials(homes: Iterable[str]) -> Iterator[os.stat_result]:
    """The files that hold credentials, as far as they are few."""
    looks = 0
    places = [f"{home.rstrip('/')}/{path}" for home in homes for path in home_paths()]
    for place in [*places, *(f"/{path}" for path in system_paths())]:
        for status in _files(place):
            yield status
            looks += 1
            if looks > MOST_LOOKS:
                return


def _files(place: str) -> Iterator[os.stat_result]:
    """The file at a place, or the files in the folder there and below it, the first of them."""
    waiting = [place]
    looks = 0
    while waiting and looks < _MOST_A_FOLDER:
        path = waiting.pop()
        looks += 1
        try:
            status = Path(path).stat()
            if stat.S_ISREG(status.st_mode):
                yield status
            elif stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    below = [one.path for one in entries if not one.is_symlink()]
                waiting += below[:_MOST_A_FOLDER]
        except OSError:
            continue
