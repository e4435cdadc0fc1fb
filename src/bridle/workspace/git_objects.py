"""Does a repository have a file of this content, and since when? Without running git.

Reads only where an object would lie: by its name among the loose ones, and in the sorted tables of
the packs. The time is that of the last change to the file, which no program can set.
"""

import hashlib
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TABLE = 8  # bytes before the first table of an index
_NAME = 20  # bytes of an object's name
_LONGEST = 4096  # bytes of a `.git` that is a file


def has_blob(root: str, path: str, data: bytes, before: int | None) -> bool:
    """Is it in the repository that this path belongs to? `before`: was it there at that time?"""
    objects = _objects(root, path)
    if not objects:
        return False
    name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
    loose = f"{objects}/{name.hex()[:2]}/{name.hex()[2:]}"
    if _is_older(loose, before):
        return True
    return any(_is_in_pack(pack, name) for pack in _packs(objects) if _is_older(pack, before))


def _objects(root: str, path: str) -> str:
    """The folder of objects of the repository that this path belongs to."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        mark = Path(root, folder, ".git")
        if mark.is_dir() and not mark.is_symlink():
            return str(mark / "objects")
        if mark.is_file() and not mark.is_symlink():
            if folder:
                return _objects_of_submodule(root, mark)
            from bridle.workspace.elsewhere import elsewhere

            shared = elsewhere(root).readable
            return f"{shared[0]}/objects" if shared else ""
    outer = (one / ".git/objects" for one in Path(root).parents)
    return str(next((one for one in outer if one.is_dir()), ""))


def _objects_of_submodule(root: str, mark: Path) -> str:
    """The folder of objects that a `.git` file names, if both are inside the workspace."""
    try:
        with mark.open("rb") as file:
            line = os.fsdecode(file.read(_LONGEST)).strip()
    except OSError:
        return ""
    folder = os.path.realpath(mark.parent / line.removeprefix("gitdir:").strip())
    return f"{folder}/objects" if folder.startswith(f"{os.path.realpath(root)}/") else ""


def _is_older(path: str, before: int | None) -> bool:
    with suppress(OSError):
        changed = Path(path).lstat().st_ctime_ns
        return before is None or changed < before
    return False


def _packs(objects: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(f"{objects}/pack") as entries:
        yield from [entry.path for entry in entries if entry.name.endswith(".idx")]


def _is_in_pack(index: str, name: bytes) -> bool:
    """Look the name up: 256 counts by its first byte, then all names in order."""
    with (
        suppress(OSError, ValueError),
        Path(index).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as table,
    ):
        if table[:_TABLE] != b"\xfftOc\0\0\0\x02":
            return False

        def count(byte: int) -> int:
            """How many names begin with that byte or a smaller one."""
            at = _TABLE + 4 * byte
            return int.from_bytes(table[at : at + 4])

        low, high = count(name[0] - 1) if name[0] else 0, count(name[0])
        names = _TABLE + 4 * 256
        while low < high:
            middle = (low + high) // 2
            there = table[names + _NAME * middle : names + _NAME * (middle + 1)]
            if there == name:
                return True
            low, high = (middle + 1, high) if there < name else (low, middle)
    return False
