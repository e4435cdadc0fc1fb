"""The workspace: a folder, and everything in it, for tools that may not leave it.

Paths are judged by their words first (`relative`: no `..` above the root, absolute only inside it)
and enforced when something is opened, handle by handle (`handles.py`). The root comes from the
person and is resolved once; so do other folders that the person named. What must never be written
is refused here as well as by the gate, and no link leads to a name that takes care: the gate judged
the name it was shown. Knows nothing of tools, rules or sessions.
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
from bridle.workspace.handles import LedOut, Root, Spot, Way, below, open_file, open_folder, reached
from bridle.workspace.text import one_line

# What is in files and folders, by handles that are open already: read it, replace it, list it.

_CHUNK = 1 << 20
_TRIES = 3

One = TypeVar("One")


class Listed(list[One]):
    """A list that says whether it is `cut`: there is more than was asked for."""

    cut: bool = False


def gather(handle: int, most: int) -> bytes:
    """Up to so many bytes of a file that rests, as far as its times tell, or that only grows.

    One that changed meanwhile is read again. Raise `ToolError` where it does not come to rest.
    """
    for _ in range(_TRIES):
        before = os.fstat(handle)
        os.lseek(handle, 0, os.SEEK_SET)
        data = _read(handle, most)
        after = os.fstat(handle)
        if after.st_mtime_ns == before.st_mtime_ns or after.st_size > before.st_size:
            return data
    raise ToolError("The file changes while it is being read. Wait until it rests, and try again.")


def _read(handle: int, most: int) -> bytes:
    """Up to so many bytes, without asking for their room beforehand."""
    chunks: list[bytes] = []
    left = most
    while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def replace(spot: Spot, data: bytes, old: os.stat_result | None) -> None:
    """Write beside the file under a name that cannot be guessed, then put it in its place.

    Another name of the old file (a hard link) keeps what it had. What replaces something is on the
    disk before it does: a power loss leaves the old content or the new, never an empty file.
    """
    mode = 0o666 if old is None else 0o600
    with atomic_write(spot.name, spot.folder, mode=mode, sync=old is not None) as handle:
        if old is not None:
            with suppress(PermissionError):  # only root may give a file to somebody else
                os.fchown(handle, old.st_uid, old.st_gid)
            os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
        write_all(handle, data)


def listed(handle: int, most: int) -> Listed[tuple[str, str]]:
    """The entries of a folder with their kind, sorted; the first so many that the system names."""
    found = Listed[tuple[str, str]]()
    with os.scandir(handle) as entries:
        for entry in entries:
            if len(found) >= most:
                found.cut = True
                break
            found.append((entry.name, _kind(entry)))
    found.sort()
    return found


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


READ_LIMIT = 64 * 1024 * 1024  # bytes held for one file
MOST_ENTRIES = 200_000  # of one folder
_LONGEST = 4096  # bytes of a path, as the kernel has it

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

_Parts = list[str]  # in the class, `list` is a verb


class Workspace:
    """A folder that tools work in. Keeps the promise `Files`.

    `also` are other folders that the person named: paths in them are absolute.
    """

    def __init__(self, root: str | Path, *, also: Sequence[str | Path] = ()) -> None:
        self._roots = tuple(_root(one) for one in (root, *also))
        self._root = self._roots[0][0]
        self._owners = {Path(one[0]).stat().st_uid for one in self._roots}

    @property
    def root(self) -> str:
        """The real path of the folder."""
        return self._root

    @property
    def roots(self) -> tuple[str, ...]:
        """The real paths of the folder and of the others that the person named."""
        return tuple(root[0] for root in self._roots)

    def relative(self, path: str) -> str:
        """The path from the root, with `/`; refuses what leads out by its words alone.

        A path in another folder that the person named stays absolute.
        """
        number, parts = self._parts(path)
        return self._joined(number, parts) if number else "/".join(parts) or "."

    def resolve(self, path: str) -> str:
        """The real path, every link followed."""
        with self._at(path) as spot:
            return self._joined(spot.root, [spot.path] if spot.path else [])

    def resolve_path(self, path: str) -> str | None:
        """The real path, every link followed; None when it is unsafe."""
        try:
            return self.resolve(path)
        except ToolError:
            return None

    def is_path_safe(self, path: str) -> bool:
        """Does the path stay inside, also through links?"""
        return self.resolve_path(path) is not None

    def read(self, path: str, limit: int | None = None) -> bytes:
        """The bytes of a file, or as many as `limit` says. Without it a huge file is refused."""

        most = READ_LIMIT if limit is None else limit
        with self.opened(path) as file:
            data = gather(file.fileno(), most if limit is not None else most + 1)
        if limit is None and len(data) > most:
            raise ToolError(
                f"{_shown(path)} has more than {most // (1 << 20)} MB; it cannot be read at once."
            )
        return data

    @contextmanager
    def opened(self, path: str) -> Iterator[FileIO]:
        """A regular file, open, for those who read it piece by piece."""
        with self.reading(path) as spot, os.fdopen(open_file(spot), "rb", buffering=0) as file:
            self._check_owner(path, os.fstat(file.fileno()))
            yield file

    def write(self, path: str, data: bytes) -> None:
        """Replace the file in one step; missing folders are made."""

        with self._at(path) as before:
            self._check_write(path, before)  # before a folder is made on the way
        with self._at(path, make=True) as spot:
            self._check_write(path, spot)
            if not spot.name:
                raise ToolError(f"{_shown(path)} is a folder, not a file.")
            status = spot.status
            if status is not None and not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{_shown(path)} is not a regular file; it is left as it is.")
            replace(spot, data, status)

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself and not what it leads to."""
        with self._at(path, as_link=True) as spot:
            self._check_file(path, spot)
            os.unlink(spot.name, dir_fd=spot.folder)

    def rename(self, path: str, to: str) -> None:
        """Give a file, or a link itself, another name, under which nothing is yet."""
        with self._at(path, as_link=True) as old:
            self._check_file(path, old)
            with self._at(to, as_link=True) as there:
                self._check_write(to, there)
            with self._at(to, make=True, as_link=True) as new:
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

    def names(self, path: str = ".", most: int = MOST_ENTRIES) -> "Listed[str]":
        """The entries of a folder, sorted; folders end in `/`. `cut` says when there are more."""

        entries = self.entries(path, most)
        named = Listed(f"{name}/" if kind == "folder" else name for name, kind in entries)
        named.cut = entries.cut
        return named

    def list(self, path: str = ".") -> "Listed[str]":
        """The entries of a folder, as `names` gives them."""
        return self.names(path)

    def entries(self, path: str = ".", most: int = MOST_ENTRIES) -> "Listed[tuple[str, str]]":
        """The entries of a folder with their kind: file, folder, link or other; sorted.

        `cut` says when there are more than were asked for.
        """

        with self.reading(path) as spot:
            handle = open_folder(spot)
            try:
                return listed(handle, most)
            finally:
                os.close(handle)

    def _status(self, path: str) -> os.stat_result | None:
        try:
            with self._at(path) as spot:
                return spot.status
        except NotAFolder:
            return None

    @contextmanager
    def reading(self, path: str) -> Iterator[Spot]:
        """The spot of a path, for those who open it themselves. Nothing is opened yet."""
        with self._at(path) as spot:
            self._check_read(path, spot)
            yield spot

    @contextmanager
    def _at(self, path: str, *, make: bool = False, as_link: bool = False) -> Iterator[Spot]:
        """Where the path leads. What the system refuses becomes an error that can be read."""
        number, parts = self._parts(path)
        try:
            with reached(Way(self._roots, number, parts, make, as_link)) as spot:
                if spot.missing and make:
                    raise ToolError(f"{_shown(path)} cannot be made.")
                yield spot
        except OSError as error:
            raise _readable(path, error) from error
        except LedOut:
            raise OutsideWorkspace(
                f"{_shown(path)} leads out of the workspace through a link; it is not opened."
            ) from None

    def _parts(self, path: str) -> tuple[int, _Parts]:
        """The number of the root, and the names below it."""
        _refuse_impossible(path)
        number = 0
        parts: _Parts | None = path.split("/")
        if path.startswith("/"):
            whole = os.path.normpath("/" + path.lstrip("/"))
            inside = [below(root, whole) for root in self._roots]
            number = next((at for at, found in enumerate(inside) if found is not None), 0)
            parts = inside[number]
        kept = None if parts is None else _plain(parts)
        if kept is None:
            raise OutsideWorkspace(
                f"{_shown(path)} is outside the workspace. "
                f"Use a path relative to it; the workspace is {_shown(self._root)}."
            )
        return number, kept

    def _joined(self, number: int, parts: Sequence[str]) -> str:
        return "/".join([self._roots[number][0].rstrip("/"), *parts]) or "/"

    def _check_write(self, path: str, spot: Spot) -> None:
        """What must never be written is not, and nothing that takes care through a link."""
        from bridle.workspace.sensitive import care_of

        care = care_of(spot.path)
        if care.writing == "deny":
            raise OutsideWorkspace(f"{_shown(path)} is protected: {care.why}. It is left as it is.")
        if spot.hops and care.writing and not care_of("/".join(self._parts(path)[1])).writing:
            raise OutsideWorkspace(_through(path, spot, care.why))

    def _check_read(self, path: str, spot: Spot) -> None:
        """Nothing that takes care is read through a link: the gate judged another name."""
        if not spot.hops:
            return
        from bridle.workspace.sensitive import care_of

        care = care_of(spot.path)
        if care.reading and not care_of("/".join(self._parts(path)[1])).reading:
            raise OutsideWorkspace(_through(path, spot, care.why))

    def _check_file(self, path: str, spot: Spot) -> None:
        """A file or a link that may be removed."""
        self._check_write(path, spot)
        status = spot.status
        if status is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise ToolError(f"{_shown(path)} is not a regular file; it is left as it is.")

    def _check_owner(self, path: str, status: os.stat_result) -> None:
        """A file of somebody else's that has another name may be anything of theirs."""
        if status.st_nlink > 1 and status.st_uid not in self._owners | {os.geteuid()}:
            raise ToolError(
                f"{_shown(path)} belongs to somebody else and has another name elsewhere "
                "(a hard link); it is not read."
            )


def _root(path: str | Path) -> Root:
    """A root's spellings: the real path, and the one that was given."""
    given = os.path.abspath(path)  # noqa: PTH100 - the spelling as it was given, links and all
    real = os.path.realpath(given)
    if not Path(real).is_dir():
        raise ConfigError(
            f"The workspace {one_line(str(path), 200)} is not a folder.",
            hint="Name a folder that exists: --workspace DIR.",
        )
    return (real, given)


def _plain(parts: Sequence[str]) -> list[str] | None:
    """The names without `.` and `..`; None where they lead above the first."""
    kept: list[str] = []
    for part in parts:
        if part == "..":
            if not kept:
                return None
            kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    return kept


def _through(path: str, spot: Spot, why: str) -> str:
    return (
        f"{_shown(path)} is a link, or lies behind one, to {_shown(spot.path)}: {why}. "
        "Use that path itself."
    )


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
