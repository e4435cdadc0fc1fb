"""What lies below a folder that a search through all of it would give away: by names, bounded.

Installed packages (`node_modules`, `site-packages`) hold test keys and public certificates but
nobody's own, and the folder of a repository its objects: both are passed over. No link is followed;
links are told, for a program may be handed one.
"""

import os
from collections.abc import Callable

from bridle.workspace.protected import care_of

MOST_ENTRIES = 20_000
_PASSED = frozenset({".git", "node_modules", "site-packages"})


def delicate_below(top: str, most: int = MOST_ENTRIES) -> tuple[str, ...] | None:
    """Paths from that folder that take care to read, and links; None where there is too much."""
    found: list[str] = []
    waiting = [""]
    left = most
    takes_care = _remembering()
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{top}/{folder}") as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return None
                    path = f"{folder}{entry.name}"
                    if entry.is_symlink() or takes_care(entry.name, path):
                        found.append(path)
                    elif entry.name not in _PASSED and entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/")
        except (OSError, ValueError):
            continue  # who may not look into it, or finds it gone, reads nothing there
    return tuple(found)


def _remembering() -> Callable[[str, str], bool]:
    """Whether a name takes care to read; most names come often. Few depend on their folder."""
    known: dict[str, bool] = {}

    def takes_care(name: str, path: str) -> bool:
        if path.startswith((".config/", ".docker/")) or "/.config/" in path or "/.docker/" in path:
            return care_of(path).reading != ""
        if name not in known:
            known[name] = care_of(name).reading != ""
        return known[name]

    return takes_care
