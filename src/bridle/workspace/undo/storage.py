"""The private folder in which undo keeps one workspace's contents, scans and journal.

It is locked, and accessed by a handle. Files are complete or absent. A content is stored once,
under its hash; reading checks the hash, so that damage is noticed. Knows nothing of what the files
mean. Raises `OSError`.
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

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20
_PATIENCE = 30.0  # seconds for a lock: the first look at a large workspace takes some
_PAUSE = 0.01
UNFINISHED = "."  # how the name of a file begins that is being written


class FolderBusy(OSError):
    """Somebody else has had the lock for too long."""


class UndoFolder:
    """The folder of one workspace below `STATE/undo`, created when it is first used.

    `root` is the real path of the workspace.
    """

    def __init__(self, state: str | Path, root: str) -> None:
        name = blake2b(os.fsencode(root), digest_size=10).hexdigest()
        self.path = Path(state) / "undo" / name
        self.root = root
        self._handle = -1

    @classmethod
    def list_all(cls, state: str | Path) -> "list[UndoFolder]":
        """Return the folders of all workspaces that have one."""
        folders = []
        for path in sorted((Path(state) / "undo").glob("*/root")):
            with suppress(OSError):
                folders.append(cls(state, os.fsdecode(path.read_bytes())))
        return [folder for folder in folders if folder.exists]

    @property
    def exists(self) -> bool:
        """Is there such a folder?"""
        return self.path.is_dir()

    @property
    def handle(self) -> int:
        """A handle of the folder, which is open for as long as this object exists."""
        if self._handle < 0:
            for folder in (self.path.parent.parent, self.path.parent, self.path):
                folder.mkdir(0o700, parents=True, exist_ok=True)
            self._handle = os.open(self.path, FOLDER)
            weakref.finalize(self, os.close, self._handle)
            for name in ("objects", "open"):
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=self._handle)
            if self.read("root") is None:
                self.write("root", os.fsencode(self.root))
        return self._handle

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for the block. Raise `FolderBusy` if that takes too long."""
        lock = os.open("lock", _APPEND, 0o600, dir_fd=self.handle)
        try:
            deadline = time.monotonic() + _PATIENCE
            while not try_lock(lock):
                if time.monotonic() > deadline:
                    raise FolderBusy("another session has locked what undo keeps for too long")
                time.sleep(_PAUSE)
            yield
        finally:
            os.close(lock)

    def register_use(self) -> None:
        """Say that this process uses the folder, for as long as this object exists."""
        users = os.open("users", _APPEND, 0o600, dir_fd=self.handle)
        weakref.finalize(self, os.close, users)
        fcntl.flock(users, fcntl.LOCK_SH)

    def is_used(self) -> bool:
        """Does anybody else use it?"""
        users = os.open("users", _APPEND, 0o600, dir_fd=self.handle)
        try:
            return not try_lock(users)
        finally:
            os.close(users)

    def write(self, name: str, data: bytes, *, hold: bool = False) -> int:
        """Write a file in one step. With `hold`, return its handle, locked, for the caller."""
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

    def read(self, name: str, offset: int = 0) -> bytes | None:
        """Read a file from an offset on. Return None if there is no such file."""
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
        """Open a file to read it. Return its handle."""
        return os.open(name, READ, dir_fd=self.handle)

    def append(self, name: str, line: bytes) -> None:
        """Append a line to a file. If the last line is unfinished, end it first."""
        handle = os.open(name, _APPEND, 0o600, dir_fd=self.handle)
        try:
            size = os.fstat(handle).st_size
            torn = size and os.pread(handle, 1, size - 1) != b"\n"
            write_all(handle, (b"\n" if torn else b"") + line + b"\n")
        finally:
            os.close(handle)

    def size(self, name: str) -> int:
        """Return how long a file is, 0 if there is none."""
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False).st_size
        except FileNotFoundError:
            return 0

    def stamp(self, name: str) -> tuple[int, int, int]:
        """Return what tells one version of a file from another."""
        try:
            status = os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return (0, 0, 0)
        return (status.st_ino, status.st_mtime_ns, status.st_size)

    def link(self, name: str, other: str) -> None:
        """Give a file another name, which stays when the first is replaced."""
        folder = self.handle
        try:
            os.link(name, other, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError:  # not every file system has hard links
            self.write(other, self.read(name) or b"")

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted, without those of files that are being written."""
        inside = os.open(folder, FOLDER, dir_fd=self.handle)
        try:
            with os.scandir(inside) as entries:
                names = [entry.name for entry in entries]
            return sorted(name for name in names if not name.startswith(UNFINISHED))
        finally:
            os.close(inside)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.handle)


def try_lock(handle: int) -> bool:
    """Lock a file unless somebody has locked it. Return whether it worked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_SIZE = 20  # bytes of a name


def content_name(data: bytes) -> str:
    """Return the name that a content is stored under: its hash."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


class ContentStore:
    """The contents of files in a folder, each stored once."""

    def __init__(self, folder: UndoFolder) -> None:
        self._folder = folder
        self._created: set[str] = set()

    def put(self, data: bytes) -> tuple[str, bool]:
        """Store a content. Return its name, and whether it is new."""
        name = content_name(data)
        folder = f"objects/{name[:2]}"
        if folder not in self._created:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700, dir_fd=self._folder.handle)
            self._created.add(folder)
        path = f"{folder}/{name[2:]}"
        with suppress(FileNotFoundError):
            # A power failure can leave an empty file under the name; then it is written again.
            status = os.stat(path, dir_fd=self._folder.handle, follow_symlinks=False)
            if status.st_size == len(data):
                return name, False
        self._folder.write(path, data)
        return name, True

    def get(self, name: str) -> bytes | None:
        """Return a content, or None if it is missing or damaged."""
        try:
            data = self._folder.read(f"objects/{name[:2]}/{name[2:]}")
        except OSError:
            return None
        return data if data is not None and content_name(data) == name else None

    def sweep(self, wanted: set[str]) -> int:
        """Remove what is not wanted or was never finished. Return how many bytes that frees."""
        freed = 0
        for folder in sorted((self._folder.path / "objects").glob("??")):
            for path in sorted(folder.iterdir()):
                if path.name.startswith(UNFINISHED) or folder.name + path.name not in wanted:
                    freed += path.lstat().st_size
                    path.unlink()
        return freed
