"""The workspace: a folder, and everything in it, for tools that must not leave it.

A path is judged by its words first (`relative`: no `..` above the root, absolute only inside it),
and again when something is opened, handle by handle (`handles.py`). The root comes from the person
and is resolved once; so are other folders that the person named. What must never be written is
refused here as well as by the gate. A link may not lead to a protected name: the gate has judged
the name that it was shown. Knows nothing of tools, rules or sessions.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TypeVar

from bridle.errors import ConfigError, OutsideWorkspace, ToolError
from bridle.workspace.fs import atomic_write, write_all
from bridle.workspace.safe_open import Location, OutsideRoots, Root, open_location, parts_below
from bridle.workspace.sensitive_paths import protection_of
from bridle.workspace.text import one_line

READ_LIMIT = 64 * 1024 * 1024  # bytes of one file in memory
MAX_ENTRIES = 200_000  # of one folder
_MAX_PATH = 4096  # bytes of a path, as the kernel has it
_CHUNK = 1 << 20
_TRIES = 3  # for a file that changes while it is read

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
    errno.EINVAL: "cannot be used: the system does not take the name",
    errno.EILSEQ: "cannot be used: the file system does not take the name",
    errno.EIO: "cannot be used: the disk reports an error",
    errno.EDQUOT: "cannot be written: the quota is used up",
    errno.EFBIG: "cannot be written: it is too large for the file system",
    errno.EMFILE: "cannot be opened: too many files are open",
    errno.ENFILE: "cannot be opened: too many files are open",
}

Item = TypeVar("Item")
_Parts = list[str]  # in the class `Workspace`, `list` is a method


class BoundedList(list[Item]):
    """A list with a limit. `cut` says whether there is more than the list has."""

    cut: bool = False


class NotAFolder(ToolError):
    """A path that goes on below a file: nothing can be there."""


class Workspace:
    """A folder that tools work in. Implements `protocols.tool.Files`.

    `also` are other folders that the person named: paths in them are absolute. `root` is the real
    path of the folder, `roots` those of all of them.
    """

    def __init__(self, root: str | Path, *, also: Sequence[str | Path] = ()) -> None:
        self._roots = tuple(_root(folder) for folder in (root, *also))
        self.roots = tuple(names[0] for names in self._roots)
        self.root = self.roots[0]
        self._owners = {Path(folder).stat().st_uid for folder in self.roots}

    def relative(self, path: str) -> str:
        """Return the path from the root, with `/`.

        Raise `OutsideWorkspace` for one that leads out by its words alone. A path in another folder
        that the person named stays absolute.
        """
        number, parts = self._parse(path)
        return self._absolute(number, parts) if number else "/".join(parts) or "."

    def resolve(self, path: str) -> str:
        """Return the real path, every link followed."""
        with self._open(path) as location:
            return self._absolute(location.root, [location.path] if location.path else [])

    def resolve_path(self, path: str) -> str | None:
        """Return the real path, every link followed, or None if it leads out."""
        try:
            return self.resolve(path)
        except ToolError:
            return None

    def is_path_safe(self, path: str) -> bool:
        """Does the path stay inside, also through links?"""
        return self.resolve_path(path) is not None

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Read a file, or no more of it than `limit` bytes. Without a limit, refuse a huge file."""
        most = READ_LIMIT if limit is None else limit
        with self.open_file(path) as file:
            data = _read_unchanged(file.fileno(), most if limit is not None else most + 1)
        if limit is None and len(data) > most:
            raise ToolError(
                f"{_shown(path)} has more than {most // (1 << 20)} MB; it cannot be read at once."
            )
        return data

    @contextmanager
    def open_file(self, path: str) -> Iterator[FileIO]:
        """Open a regular file, to read it piece by piece."""
        with (
            self.open_path(path) as location,
            os.fdopen(location.open_file(), "rb", buffering=0) as file,
        ):
            status = os.fstat(file.fileno())
            if status.st_nlink > 1 and status.st_uid not in self._owners | {os.geteuid()}:
                raise ToolError(  # it may be any file of theirs
                    f"{_shown(path)} belongs to somebody else and has another name elsewhere "
                    "(a hard link); it is not read."
                )
            yield file

    def write(self, path: str, data: bytes) -> None:
        """Replace a file in one step. Missing folders are created."""
        with self._open(path) as before:
            self._check_write(path, before)  # before a folder is created on the way
        with self._open(path, make=True) as location:
            self._check_write(path, location)
            if not location.name:
                raise ToolError(f"{_shown(path)} is a folder, not a file.")
            status = location.status
            if status is not None and not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{_shown(path)} is not a regular file; it is left as it is.")
            _replace(location, data, status)

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself and not what it leads to."""
        with self._open(path, as_link=True) as location:
            self._check_removal(path, location)
            os.unlink(location.name, dir_fd=location.folder)

    def rename(self, path: str, to: str) -> None:
        """Rename a file, or a link itself. Raise `ToolError` if the new name exists."""
        with self._open(path, as_link=True) as old:
            self._check_removal(path, old)
            with self._open(to, as_link=True) as before:
                self._check_write(to, before)
            with self._open(to, make=True, as_link=True) as new:
                self._check_write(to, new)
                if not new.name or new.status is not None:
                    raise ToolError(f"{_shown(to)} exists already; nothing is renamed.")
                os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)

    def exists(self, path: str) -> bool:
        """Is anything there?"""
        return self._status(path) is not None

    def is_folder(self, path: str) -> bool:
        """Is a folder there?"""
        status = self._status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def names(self, path: str = ".", most: int = MAX_ENTRIES) -> "BoundedList[str]":
        """Return the names in a folder, sorted; folders end in `/`."""
        entries = self.entries(path, most)
        names = BoundedList(f"{name}/" if kind == "folder" else name for name, kind in entries)
        names.cut = entries.cut
        return names

    def list(self, path: str = ".") -> "BoundedList[str]":
        """Return the names in a folder, as `names` does."""
        return self.names(path)

    def entries(self, path: str = ".", most: int = MAX_ENTRIES) -> "BoundedList[tuple[str, str]]":
        """Return the names in a folder with their kind: file, folder, link or other; sorted.

        If there are more than `most`, they are the first ones that the system names.
        """
        entries = BoundedList[tuple[str, str]]()
        with self.open_path(path) as location:
            handle = location.open_folder()
            try:
                with os.scandir(handle) as found:
                    for entry in found:
                        if len(entries) >= most:
                            entries.cut = True
                            break
                        entries.append((entry.name, _kind(entry)))
            finally:
                os.close(handle)
        entries.sort()
        return entries

    @contextmanager
    def open_path(self, path: str) -> Iterator[Location]:
        """Find where a path leads, for callers that open it themselves, to read."""
        with self._open(path) as location:
            if location.links:
                protection = protection_of(location.path)
                if protection.reading and not protection_of("/".join(self._parse(path)[1])).reading:
                    raise OutsideWorkspace(_link_refusal(path, location, protection.why))
            yield location

    @contextmanager
    def _open(self, path: str, *, make: bool = False, as_link: bool = False) -> Iterator[Location]:
        """Find where a path leads. Errors of the system become errors that a person can read."""
        number, parts = self._parse(path)
        try:
            with open_location(
                self._roots, parts, root=number, make=make, as_link=as_link
            ) as location:
                yield location
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, f"cannot be used: {error.strerror or error}")
            kind = NotAFolder if error.errno == errno.ENOTDIR else ToolError
            raise kind(f"{_shown(path)} {reason}.", error) from error
        except OutsideRoots:
            raise OutsideWorkspace(
                f"{_shown(path)} leads out of the workspace through a link; it is not opened."
            ) from None

    def _parse(self, path: str) -> tuple[int, _Parts]:
        """Return the number of the root that a path lies in, and the names below it.

        Raise `ToolError` for what cannot be a path, `OutsideWorkspace` for one that leads out.
        """
        if not path:
            raise ToolError("The path is empty. Name a file or a folder of the workspace.")
        if "\0" in path:
            raise ToolError(f"{_shown(path)} contains a NUL character, which no path does.")
        try:
            size = len(os.fsencode(path))
        except UnicodeEncodeError:
            raise ToolError(f"{_shown(path)} is not valid text; it cannot be a path.") from None
        if size > _MAX_PATH:
            raise ToolError(f"The path is too long: {size} bytes; the most is {_MAX_PATH}.")
        number = 0
        parts: _Parts | None = path.split("/")
        if path.startswith("/"):
            whole = os.path.normpath("/" + path.lstrip("/"))
            inside = [parts_below(root, whole) for root in self._roots]
            number = next((index for index, names in enumerate(inside) if names is not None), 0)
            parts = inside[number]
        names = None if parts is None else _without_dots(parts)
        if names is None:
            raise OutsideWorkspace(
                f"{_shown(path)} is outside the workspace. "
                f"Use a path relative to it; the workspace is {_shown(self.root)}."
            )
        return number, names

    def _absolute(self, number: int, parts: Sequence[str]) -> str:
        return "/".join([self.roots[number].rstrip("/"), *parts]) or "/"

    def _status(self, path: str) -> os.stat_result | None:
        try:
            with self._open(path) as location:
                return location.status
        except NotAFolder:
            return None

    def _check_write(self, path: str, location: Location) -> None:
        """Refuse what must never be written, and a link to anything that is protected."""
        protection = protection_of(location.path)
        why = protection.why
        if protection.writing == "deny":
            raise OutsideWorkspace(f"{_shown(path)} is protected: {why}. It is left as it is.")
        if not location.links or not protection.writing:
            return
        if not protection_of("/".join(self._parse(path)[1])).writing:
            raise OutsideWorkspace(_link_refusal(path, location, why))

    def _check_removal(self, path: str, location: Location) -> None:
        """Refuse everything but a file or a link that may be written."""
        self._check_write(path, location)
        status = location.status
        if status is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise ToolError(f"{_shown(path)} is not a regular file; it is left as it is.")


def _root(path: str | Path) -> Root:
    """Return the real path of a root, and the path that was given for it."""
    given = os.path.abspath(path)  # noqa: PTH100 - as it was given, links and all
    real = os.path.realpath(given)
    if not Path(real).is_dir():
        raise ConfigError(
            f"The workspace {one_line(str(path), 200)} is not a folder.",
            hint="Name a folder that exists: --workspace DIR.",
        )
    return (real, given)


def _without_dots(parts: Sequence[str]) -> list[str] | None:
    """Return the names without `.` and `..`, or None if they lead above the first."""
    names: list[str] = []
    for part in parts:
        if part == "..":
            if not names:
                return None
            names.pop()
        elif part not in ("", "."):
            names.append(part)
    return names


def _link_refusal(path: str, location: Location, why: str) -> str:
    return (
        f"{_shown(path)} is a link, or lies behind one, to {_shown(location.path)}: {why}. "
        "Use that path itself."
    )


def _shown(path: str) -> str:
    return f"`{one_line(path, 200)}`"


# Files and folders that are open: read, replace, list.


def _read_unchanged(handle: int, most: int) -> bytes:
    """Read up to `most` bytes of a file that does not change meanwhile, or that only grows.

    If it has changed, read it again. Raise `ToolError` if it keeps changing.
    """
    for _ in range(_TRIES):
        before = os.fstat(handle)
        os.lseek(handle, 0, os.SEEK_SET)
        chunks: list[bytes] = []  # memory is not asked for beforehand: the limit may be huge
        left = most
        while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
            chunks.append(chunk)
            left -= len(chunk)
        after = os.fstat(handle)
        if after.st_mtime_ns == before.st_mtime_ns or after.st_size > before.st_size:
            return b"".join(chunks)
    raise ToolError("The file changes while it is being read. Wait until it is complete.")


def _replace(location: Location, data: bytes, old: os.stat_result | None) -> None:
    """Write a file beside the old one, under a name that cannot be guessed, and rename it.

    Another name of the old file (a hard link) keeps the old content. If there was an old file, the
    new content is durable first: a power loss leaves the one or the other, never an empty file.
    """
    mode = 0o666 if old is None else 0o600
    is_new = old is None
    with atomic_write(location.name, location.folder, mode=mode, sync=not is_new) as handle:
        if old is not None:
            with suppress(PermissionError):  # only root may give a file to somebody else
                os.fchown(handle, old.st_uid, old.st_gid)
            os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
        write_all(handle, data)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
