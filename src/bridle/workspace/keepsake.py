"""What protected and guarded files held, on disk while a command runs: for a bridle that is killed.

One file for each command under way, locked for as long as its bridle lives: what is not locked was
left behind. It lies where commands neither read nor write. That it cannot be written is no reason
not to run a command: it is for the day on which two things go wrong.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from bridle.workspace.placing import Entry

Row = tuple[bytes, int, tuple[int, ...], bytes | None]  # a path, and what stood there
_UNFINISHED = ".new"
_MOST = 64 * 1024 * 1024


class Keepsake:
    """Of one place, in a folder of bridle's state that has this name."""

    def __init__(self, state: str, root: str, folder: str = "watched") -> None:
        self._folder = Path(state, folder)
        self._start = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._path: Path | None = None
        self._handle = -1

    def write(self, data: bytes) -> None:
        """Put it there, in place of what was there before."""
        path = self._folder / f"{self._start}.{os.urandom(8).hex()}"
        handle = -1
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = path.with_name(path.name + _UNFINISHED)
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
            with os.fdopen(handle, "wb", closefd=False) as file:
                file.write(data)
            new.rename(path)
        except OSError:
            if handle >= 0:
                os.close(handle)
            return
        self.drop()
        self._path, self._handle = path, handle

    def drop(self) -> None:
        """Nothing is under way any more."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._path = None

    def left_behind(self) -> Iterator[bytes]:
        """What was written by a bridle that was killed. Each is given once."""
        for path in sorted(self._folder.glob(f"{self._start}.*")):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.suffix != _UNFINISHED:
                    yield file.read(_MOST)
                path.unlink()


def rows_of(held: Mapping[str, Entry]) -> list[Row]:
    """Entries by their paths, as they are written."""
    return [(os.fsencode(path), *entry) for path, entry in held.items()]


def entries_of(rows: Iterable[Row]) -> dict[str, Entry]:
    """The same, as they are used."""
    return {os.fsdecode(path): Entry(mode, mark, data) for path, mode, mark, data in rows}
