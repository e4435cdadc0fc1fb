"""A session's inbox: verbs from processes that do not hold it, a file each, in order of name.

A letter is there whole or not at all, and durable once it is posted. Who takes it, and what it
leads to, is not known here. The bell is one file for all inboxes: whoever posts makes it longer,
and whoever holds sessions watches its size.
"""

import errno
import logging
import os
import re
import stat
import time
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bridle.errors import StoreFailed
from bridle.promises.store import Letter
from bridle.stores.placing import entered, found, names, place

log = logging.getLogger(__name__)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NAME = re.compile(r"(\d{20})-([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.json")
_LATEST = 10**20 - 1
_LARGEST = 256 * 1024 * 1024  # bytes; pictures travel in letters
_encode = msgspec.json.Encoder(enc_hook=str).encode
_decode = msgspec.json.Decoder(Letter).decode
_told: set[str] = set()  # files that are no letters, each mentioned once


def post(folder: Path, letter: Letter) -> None:
    """Put a letter into the inbox of the session in `folder`; it is durable on return."""
    if not _ID.fullmatch(letter.id):
        raise StoreFailed(f"{letter.id[:60]!r} cannot be the id of a letter; nothing was sent")
    try:
        data = _encode(letter if letter.at else replace(letter, at=time.time()))
        with entered(folder) as session, entered("inbox", session, make=True) as inbox:
            place(inbox, f"{_next(inbox):020d}-{letter.id}.json", data)
    except UnicodeEncodeError as error:
        raise StoreFailed(
            "the letter holds characters that cannot be stored; nothing was sent", error
        ) from error
    except OSError as error:
        raise _typed(folder, "the letter cannot be stored", error) from error


def _next(inbox: int) -> int:
    """Now, or just after the newest letter where the clock has jumped back."""
    known = [int(name[1]) for name in map(_NAME.fullmatch, names(inbox)) if name]
    return min(max([time.time_ns(), *(number + 1 for number in known)]), _LATEST)


def letters(folder: Path) -> list[Letter]:
    """The letters of the session in `folder`, in order; what is no letter is left alone."""
    try:
        with entered(folder) as session, entered("inbox", session) as inbox:
            shown = sorted(name for name in names(inbox) if not name.startswith("."))
            opened = [_open(inbox, name, folder) for name in shown]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _typed(folder, "the inbox cannot be read", error) from error
    return [letter for letter in opened if letter is not None]


def _open(inbox: int, name: str, folder: Path) -> Letter | None:
    known = _NAME.fullmatch(name)
    data = found(inbox, name, _LARGEST) if known else None
    try:
        letter = _decode(data) if data is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        letter = None
    if letter is not None and known is not None and letter.id == known[2]:
        return replace(letter, at=max(letter.at, _written(inbox, name)))
    if (path := f"{folder}/inbox/{name}") not in _told and _is_there(inbox, name):
        _told.add(path)
        log.warning("session %s: %r in its inbox is no letter", folder.name, name)
    return None


def _written(inbox: int, name: str) -> float:
    """When the file was written: a letter cannot say that it is older than that."""
    try:
        return os.stat(name, dir_fd=inbox, follow_symlinks=False).st_mtime
    except OSError:  # taken by its holder meanwhile
        return time.time()


def _is_there(inbox: int, name: str) -> bool:
    """Taken by its holder since the folder was listed, it is no news."""
    try:
        os.stat(name, dir_fd=inbox, follow_symlinks=False)
    except OSError:
        return False
    return True


def discard(folder: Path, letter: Letter) -> None:
    """That letter has been done. Not synced: its record names it, should it come back."""
    try:
        with entered(folder) as session, entered("inbox", session) as inbox:
            for name in names(inbox):
                known = _NAME.fullmatch(name)
                if known and known[2] == letter.id:
                    _remove(inbox, name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _typed(folder, "a letter that was done cannot be removed", error) from error


def _remove(inbox: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=inbox)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EISDIR, errno.EPERM):
            raise


def _typed(folder: Path, what: str, error: OSError) -> StoreFailed:
    return StoreFailed(
        f"session {folder.name}: {what}: {error.strerror or error}",
        error,
        hint="Nothing was lost that was acknowledged. Check the disk and the folder's rights.",
    )


class Bell:
    """One file that grows with each letter, whichever session it is for."""

    def __init__(self, state: Path) -> None:
        self._path = Path(state) / "bell"

    def ring(self) -> None:
        """There may be a new letter somewhere."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(self._path, flags | os.O_NONBLOCK, 0o600)
            try:
                os.write(handle, b".")
            finally:
                os.close(handle)
        except OSError as error:
            raise StoreFailed(
                f"the letter is stored, but nobody can be told of it: {error.strerror or error}",
                error,
                hint="It is taken when the session is next taken up.",
            ) from error

    def size(self) -> int:
        """How often it rang; it only ever grows."""
        try:
            info = os.lstat(self._path)
        except OSError:
            return 0
        return info.st_size if stat.S_ISREG(info.st_mode) else 0
