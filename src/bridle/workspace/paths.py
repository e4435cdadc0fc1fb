"""The workspace: one folder, and everything in it, for tools that may not leave it.

Paths are judged by their words first (`relative`: no `..` above the root, absolute only inside it)
and enforced when something is opened, handle by handle (`handles.py`). The root comes from the
person and is resolved once. Knows nothing of tools, rules or sessions.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bridle.errors import ConfigError, OutsideWorkspace, ToolError
from bridle.workspace.handles import Spot, below, open_file, open_folder, walked
from bridle.workspace.text import one_line

READ_LIMIT = 64 * 1024 * 1024  # bytes held for one file
_LONGEST = 4096  # bytes of a path, as the kernel has it
_CHUNK = 1 << 20

_REASONS = {
    errno.ENOENT: "does not exist",
    errno.EISDIR: "is a folder, not a file",
    errno.ENOTDIR: "is not a folder, or lies below a file",
    errno.EACCES: "may not be accessed: permission is denied",
    errno.EPERM: "may not be accessed: permission is denied",
    errno.ELOOP: "changed while it was being opened",
    errno.ENAMETOOLONG: "is too long a name",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EROFS: "cannot be written: the file system is read-only",
    errno.EXDEV: "cannot be replaced: it is a mount point",
    errno.EBUSY: "is busy",
}


class Workspace:
    """A folder that tools work in. Keeps the promise `Files`."""

    def __init__(self, root: str | Path) -> None:
        given = os.path.abspath(root)  # noqa: PTH100 - the spelling as it was given, links and all
        self._root = os.path.realpath(given)
        self._roots = (self._root, given)
        if not Path(self._root).is_dir():
            raise ConfigError(
                f"The workspace {one_line(str(root), 200)} is not a folder.",
                hint="Name a folder that exists: --workspace DIR.",
            )

    @property
    def root(self) -> str:
        """The real path of the folder."""
        return self._root

    def relative(self, path: str) -> str:
        """The path from the root, with `/`; refuses what leads out by its words alone."""
        return "/".join(self._parts(path)) or "."

    def resolve_path(self, path: str) -> str | None:
        """The real path, every link followed; None when it is unsafe."""
        try:
            with self._at(path) as spot:
                names = [*spot.names, spot.name, *spot.missing]
        except ToolError:
            return None
        return "/".join([self._root.rstrip("/"), *filter(None, names)]) or "/"

    def is_path_safe(self, path: str) -> bool:
        """Does the path stay inside, also through links?"""
        return self.resolve_path(path) is not None

    def read(self, path: str, limit: int | None = None) -> bytes:
        """The bytes of a file, or as many as `limit` says. Without it a huge file is refused."""
        most = READ_LIMIT if limit is None else limit
        with self._at(path) as spot, os.fdopen(open_file(spot), "rb", buffering=0) as file:
            data = _gather(file.fileno(), most if limit is not None else most + 1)
        if limit is None and len(data) > most:
            raise ToolError(
                f"{_shown(path)} has more than {most // (1 << 20)} MB; it cannot be read at once."
            )
        return data

    def write(self, path: str, data: bytes) -> None:
        """Replace the file in one step; missing folders are made."""
        with self._at(path, make=True) as spot:
            if not spot.name:
                raise ToolError(f"{_shown(path)} is a folder, not a file.")
            status = spot.status
            if status is not None and not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{_shown(path)} is not a regular file; it is left as it is.")
            _replace(spot, data, status)

    def exists(self, path: str) -> bool:
        """Is anything there?"""
        return self._status(path) is not None

    def is_folder(self, path: str) -> bool:
        """Is a folder there?"""
        status = self._status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def names(self, path: str = ".") -> list[str]:
        """The entries of a folder, sorted; folders end in `/`."""
        return [f"{name}/" if kind == "folder" else name for name, kind in self.entries(path)]

    def entries(self, path: str = ".") -> list[tuple[str, str]]:
        """The entries of a folder with their kind: file, folder, link or other; sorted."""
        with self._at(path) as spot:
            handle = open_folder(spot)
            try:
                with os.scandir(handle) as found:
                    return sorted((entry.name, _kind(entry)) for entry in found)
            finally:
                os.close(handle)

    def _status(self, path: str) -> os.stat_result | None:
        try:
            with self._at(path) as spot:
                return spot.status
        except NotAFolder:
            return None

    @contextmanager
    def _at(self, path: str, *, make: bool = False) -> Iterator[Spot]:
        """Where the path leads. What the system refuses becomes an error that can be read."""
        parts = self._parts(path)
        try:
            with walked(self._roots, parts, make=make) as spot:
                if spot.missing and make:
                    raise ToolError(f"{_shown(path)} cannot be made.")
                yield spot
        except OSError as error:
            raise _readable(path, error) from error
        except OutsideWorkspace:
            raise OutsideWorkspace(
                f"{_shown(path)} leads out of the workspace through a link; it is not opened."
            ) from None

    def _parts(self, path: str) -> list[str]:
        _refuse_impossible(path)
        parts: Sequence[str] | None = path.split("/")
        if path.startswith("/"):
            parts = below(self._roots, os.path.normpath("/" + path.lstrip("/")))
        kept: list[str] = []
        for part in parts or ():
            if part == "..":
                if not kept:
                    parts = None
                    break
                kept.pop()
            elif part not in ("", "."):
                kept.append(part)
        if parts is None:
            raise OutsideWorkspace(
                f"{_shown(path)} is outside the workspace. "
                f"Use a path relative to it; the workspace is {_shown(self._root)}."
            )
        return kept


class NotAFolder(ToolError):
    """A path that goes on below a file: nothing can be there."""


def _refuse_impossible(path: str) -> None:
    if not path:
        raise ToolError("The path is empty. Name a file or a folder of the workspace.")
    if "\0" in path:
        raise ToolError(f"{_shown(path)} holds a NUL character; no path does.")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ToolError(f"{_shown(path)} is not valid text; no path can be made of it.") from None
    if size > _LONGEST:
        raise ToolError(f"The path is too long: {size} bytes, {_LONGEST} are the most.")


def _shown(path: str) -> str:
    return f"`{one_line(path, 200)}`"


def _readable(path: str, error: OSError) -> ToolError:
    reason = _REASONS.get(error.errno or 0, f"cannot be used: {error.strerror or error}")
    kind = NotAFolder if error.errno == errno.ENOTDIR else ToolError
    return kind(f"{_shown(path)} {reason}.", error)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _gather(handle: int, most: int) -> bytes:
    """Up to so many bytes of a file, without asking for their room beforehand."""
    chunks: list[bytes] = []
    left = most
    while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _replace(spot: Spot, data: bytes, old: os.stat_result | None) -> None:
    """Write beside the file under a name that cannot be guessed, then put it in its place."""
    beside = f".{os.urandom(12).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(beside, flags, 0o666 if old is None else 0o600, dir_fd=spot.folder)
    try:
        with os.fdopen(handle, "wb") as file:
            if old is not None:
                with suppress(PermissionError):  # not ours to give away
                    os.fchown(handle, old.st_uid, old.st_gid)
                os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
            file.write(data)
        os.rename(beside, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=spot.folder)
        raise
