"""The private folder in which undo keeps one workspace's contents, scans and journal.

It is locked and reached by a handle. Files are complete or absent. A content is stored once, under
a name made of its bytes; reading compares it with its name, so that damage is noticed. Knows
nothing of what the files mean. Raises `OSError`.
"""

import fcntl
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from bridle.workspace.fs import FOLDER, READ, atomic_write, write_all

_ADDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20
_PATIENCE = 30.0  # seconds for a lock: the first look at a large workspace takes some
_PAUSE = 0.01
UNFINISHED = "."  # what the name of a file begins with that is being written


class Busy(OSError):
    """Somebody else has had the lock for too long."""


class UndoFolder:
    """The folder of one workspace below `STATE/undo`. Made when it is first used."""

    def __init__(self, state: str | Path, root: str) -> None:
        name = blake2b(os.fsencode(root), digest_size=10).hexdigest()
        self.path = Path(state) / "undo" / name
        self._root = root
        self._handle = -1

    @classmethod
    def all(cls, state: str | Path) -> "list[UndoFolder]":
        """Those of every workspace of which something was kept."""
        found = []
        for path in sorted((Path(state) / "undo").glob("*/root")):
            with suppress(OSError):
                found.append(cls(state, os.fsdecode(path.read_bytes())))
        return [folder for folder in found if folder.exists]

    @property
    def root(self) -> str:
        """The workspace, by its real path."""
        return self._root

    @property
    def exists(self) -> bool:
        """Was anything kept?"""
        return self.path.is_dir()

    @property
    def handle(self) -> int:
        """A handle of the folder, which is held for as long as the folder is."""
        if self._handle < 0:
            for folder in (self.path.parent.parent, self.path.parent, self.path):
                folder.mkdir(0o700, parents=True, exist_ok=True)
            self._handle = os.open(self.path, FOLDER)
            weakref.finalize(self, os.close, self._handle)
            for name in ("objects", "open"):
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=self._handle)
            if self.found("root") is None:
                self.place("root", os.fsencode(self._root))
        return self._handle

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else reads or writes here meanwhile. Raise `Busy` when that takes too long."""
        lock = os.open("lock", _ADDING, 0o600, dir_fd=self.handle)
        try:
            _acquire(lock)
            yield
        finally:
            os.close(lock)

    def use(self) -> None:
        """Be known as one who works with this folder, for as long as it is held."""
        users = os.open("users", _ADDING, 0o600, dir_fd=self.handle)
        weakref.finalize(self, os.close, users)
        fcntl.flock(users, fcntl.LOCK_SH)

    def is_used(self) -> bool:
        """Does anybody else work with it?"""
        users = os.open("users", _ADDING, 0o600, dir_fd=self.handle)
        try:
            return not free(users)
        finally:
            os.close(users)

    def place(self, name: str, data: bytes, *, hold: bool = False) -> int:
        """Put a file there in one step; with `hold` its handle, locked, which is the caller's."""
        held = -1
        try:
            with atomic_write(name, self.handle) as handle:
                if hold:
                    held = os.dup(handle)  # it shares the lock, and outlives the block
                    fcntl.flock(handle, fcntl.LOCK_EX)
                write_all(handle, data)
        except BaseException:
            if held >= 0:
                os.close(held)
            raise
        return held

    def found(self, name: str, offset: int = 0) -> bytes | None:
        """What stands in a file, from there on; None where there is none."""
        try:
            handle = self.open(name)
        except FileNotFoundError:
            return None
        try:
            os.lseek(handle, offset, os.SEEK_SET)
            return b"".join(iter(lambda: os.read(handle, _BLOCK), b""))
        finally:
            os.close(handle)

    def open(self, name: str) -> int:
        """A handle of a file, to read it."""
        return os.open(name, READ, dir_fd=self.handle)

    def add(self, name: str, line: bytes) -> None:
        """Add a line to a file; one that was left unfinished there is ended first."""
        handle = os.open(name, _ADDING, 0o600, dir_fd=self.handle)
        try:
            size = os.fstat(handle).st_size
            torn = size and os.pread(handle, 1, size - 1) != b"\n"
            write_all(handle, (b"\n" if torn else b"") + line + b"\n")
        finally:
            os.close(handle)

    def size(self, name: str) -> int:
        """How long a file is; 0 where there is none."""
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False).st_size
        except FileNotFoundError:
            return 0

    def stamp(self, name: str) -> tuple[int, int, int]:
        """What tells one version of a file from another."""
        try:
            found = os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return (0, 0, 0)
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def link(self, name: str, other: str) -> None:
        """Another name for a file: it stays when the first is replaced."""
        folder = self.handle
        try:
            os.link(name, other, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError:  # not every file system has such a thing
            self.place(other, self.found(name) or b"")

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; not those of files that are being written."""
        inside = os.open(folder, FOLDER, dir_fd=self.handle)
        try:
            with os.scandir(inside) as found:
                return sorted(one.name for one in found if not one.name.startswith(UNFINISHED))
        finally:
            os.close(inside)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.handle)


def free(handle: int) -> bool:
    """Lock a file, if nobody has it locked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _acquire(lock: int) -> None:
    until = time.monotonic() + _PATIENCE
    while not free(lock):
        if time.monotonic() > until:
            raise Busy("another session has had what undo keeps here for too long")
        time.sleep(_PAUSE)


_SIZE = 20  # bytes of a name


def content_name(data: bytes) -> str:
    """The name of a content."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


class ContentStore:
    """The objects of a folder."""

    def __init__(self, folder: UndoFolder) -> None:
        self._folder = folder
        self._made: set[str] = set()

    def put(self, data: bytes) -> tuple[str, bool]:
        """Keep a content: its name, and whether it was new. Raise `OSError`."""
        name = content_name(data)
        folder = f"objects/{name[:2]}"
        if folder not in self._made:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700, dir_fd=self._folder.handle)
            self._made.add(folder)
        path = f"{folder}/{name[2:]}"
        with suppress(FileNotFoundError):
            # A power failure can leave an empty file under the name; then it is written anew.
            found = os.stat(path, dir_fd=self._folder.handle, follow_symlinks=False)
            if found.st_size == len(data):
                return name, False
        self._folder.place(path, data)
        return name, True

    def get(self, name: str) -> bytes | None:
        """A content; None where it is missing or damaged."""
        try:
            data = self._folder.found(f"objects/{name[:2]}/{name[2:]}")
        except OSError:
            return None
        return data if data is not None and content_name(data) == name else None

    def sweep(self, wanted: set[str]) -> int:
        """Remove what is not wanted, and what was never finished: so many bytes."""
        freed = 0
        for folder in sorted((self._folder.path / "objects").glob("??")):
            for path in sorted(folder.iterdir()):
                if path.name.startswith(UNFINISHED) or folder.name + path.name not in wanted:
                    freed += path.lstat().st_size
                    path.unlink()
        return freed
