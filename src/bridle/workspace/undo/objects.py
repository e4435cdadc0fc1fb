"""Contents, each kept once under a name that is made of its bytes.

An object is written under another name and then renamed, so that one which is there is whole; what
is read is held against its name, so that a damaged one is noticed. Private to the user.
"""

import os
from contextlib import suppress
from hashlib import blake2b

from bridle.workspace.undo.shelf import HALF_DONE, Shelf

_SIZE = 20  # bytes of a name


def name_of(data: bytes) -> str:
    """The name of a content."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


class Objects:
    """The objects of a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._made: set[str] = set()

    def put(self, data: bytes) -> tuple[str, bool]:
        """Keep a content: its name, and whether it was new. Raise `OSError`."""
        name = name_of(data)
        folder = f"objects/{name[:2]}"
        if folder not in self._made:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700, dir_fd=self._shelf.handle)
            self._made.add(folder)
        path = f"{folder}/{name[2:]}"
        with suppress(FileNotFoundError):
            # A power failure can leave an empty file under the name; then it is written anew.
            found = os.stat(path, dir_fd=self._shelf.handle, follow_symlinks=False)
            if found.st_size == len(data):
                return name, False
        self._shelf.place(path, data)
        return name, True

    def get(self, name: str) -> bytes | None:
        """A content; None where it is missing or damaged."""
        try:
            data = self._shelf.found(f"objects/{name[:2]}/{name[2:]}")
        except OSError:
            return None
        return data if data is not None and name_of(data) == name else None

    def sweep(self, wanted: set[str]) -> int:
        """Remove what is not wanted, and what was never finished: so many bytes."""
        freed = 0
        for folder in sorted((self._shelf.path / "objects").glob("??")):
            for path in sorted(folder.iterdir()):
                if path.name.startswith(HALF_DONE) or folder.name + path.name not in wanted:
                    freed += path.lstat().st_size
                    path.unlink()
        return freed
