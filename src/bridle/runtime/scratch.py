"""A copy of a folder to try things in: the files as they are now, and nothing shared with them.

Links are copied only where they stay inside: one that leads out would lead the copy's tools out.
Knows nothing of sessions.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from bridle.errors import ConfigError

MOST_FILES = 100_000
MOST_BYTES = 1_000_000_000
_Found = tuple[str, os.stat_result]  # the path from the root, and what stands there


class Copied(Struct, frozen=True):
    """How much was copied. `left_out`: links that lead out, devices, what cannot be read."""

    files: int = 0
    size: int = 0
    left_out: int = 0


def copy_folder(
    source: Path, target: Path, progress: Callable[[int, int], None] | None = None
) -> Copied:
    """Copy what is in a folder into another, which is empty. Raise `ConfigError` if it is too much.

    The limits are looked at before the first byte is copied.
    """
    found = list(_bounded(source))
    total = sum(info.st_size for _, info in found if stat.S_ISREG(info.st_mode))
    files = size = left_out = 0
    for path, info in found:
        if not _copy(source, target, path, info):
            left_out += 1
        elif stat.S_ISREG(info.st_mode):
            files, size = files + 1, size + info.st_size
        if progress is not None:
            progress(size, total)
    return Copied(files, size, left_out)


def _bounded(source: Path) -> Iterator[_Found]:
    size = 0
    for count, (path, info) in enumerate(_walk(source), 1):
        size += info.st_size if stat.S_ISREG(info.st_mode) else 0
        if count > MOST_FILES or size > MOST_BYTES:
            raise ConfigError(
                f"{source} is too large to copy: at most {MOST_FILES:,} entries and "
                f"{MOST_BYTES // 1_000_000:,} MB are; nothing was run",
                hint="Name a smaller folder that holds what the session needs with --workspace.",
            )
        yield path, info


def _walk(source: Path) -> Iterator[_Found]:
    """Everything below, folders before what is in them; no link is followed."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(source / folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue  # it cannot be looked into: it is copied as an empty folder
        for entry in found:
            path = f"{folder}/{entry.name}" if folder else entry.name
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                folders.append(path)
            yield path, info


def _copy(source: Path, target: Path, path: str, info: os.stat_result) -> bool:
    """One entry; False where it is left out."""
    try:
        if stat.S_ISDIR(info.st_mode):
            (target / path).mkdir(mode=0o700 | stat.S_IMODE(info.st_mode))
        elif stat.S_ISLNK(info.st_mode):
            return _copy_link(source, target, path)
        elif stat.S_ISREG(info.st_mode):
            shutil.copy2(source / path, target / path, follow_symlinks=False)
        else:
            return False
    except OSError:
        return False
    return True


def _copy_link(source: Path, target: Path, path: str) -> bool:
    """A link that stays inside, by its words and in truth, made to stay inside the copy."""
    place = source / path
    words = place.readlink()
    spelled = Path(os.path.normpath(place.parent / words))
    if not spelled.is_relative_to(source) or not place.resolve().is_relative_to(source.resolve()):
        return False
    inside = target / spelled.relative_to(source)
    (target / path).symlink_to(os.path.relpath(inside, (target / path).parent))
    return True
