"""What protected files held, on disk while a command runs: for when bridle is killed meanwhile.

One file for each command under way, locked for as long as its bridle lives: what is not locked was
left behind. It lies where commands neither read nor write. That it cannot be written is no reason
not to run a command: it is for the day on which two things go wrong.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from bridle.workspace.placing import Entry

Held = dict[str, Entry]
_FOLDER = "watched"
_UNFINISHED = ".new"
_MOST = 64 * 1024 * 1024
_File = list[tuple[bytes, int, tuple[int, ...], bytes | None]]


class Keepsake:
    """Of one protected place, in the folder of bridle's state."""

    def __init__(self, state: str, root: str) -> None:
        self._folder = Path(state, _FOLDER)
        self._start = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._path: Path | None = None
        self._handle = -1

    def write(self, held: Held) -> None:
        """Put it there, in place of what was there before."""
        path = self._folder / f"{self._start}.{os.urandom(8).hex()}"
        handle = -1
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = path.with_name(path.name + _UNFINISHED)
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
            with os.fdopen(handle, "wb", closefd=False) as file:
                file.write(_packed(held))
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

    def left_behind(self) -> Iterator[Held]:
        """What was held when a bridle was killed. Each is given once."""
        for path in sorted(self._folder.glob(f"{self._start}.*")):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.suffix != _UNFINISHED:
                    with suppress(msgspec.MsgspecError):
                        yield _unpacked(file.read(_MOST))
                path.unlink()


def _packed(held: Held) -> bytes:
    rows = [(os.fsencode(path), *entry) for path, entry in held.items()]
    return msgspec.msgpack.encode(rows)


def _unpacked(data: bytes) -> Held:
    rows = msgspec.msgpack.decode(data, type=_File)
    return {os.fsdecode(path): Entry(mode, mark, data) for path, mode, mark, data in rows}
