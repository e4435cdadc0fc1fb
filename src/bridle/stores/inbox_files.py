"""The inbox of a session: commands from processes that do not own it, one file each, in order.

A message is there whole or not at all, and is durable once it was sent. One file in the state
folder, the notifier, grows with each message to any inbox; processes that own sessions watch its
size.
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
from bridle.protocols.store import InboxMessage
from bridle.workspace.fs import list_names, open_folder, read_file, write_file

log = logging.getLogger(__name__)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NAME = re.compile(r"(\d{20})-([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.json")
_MAX_NUMBER = 10**20 - 1
_MAX_SIZE = 256 * 1024 * 1024  # bytes; messages contain pictures
_encode = msgspec.json.Encoder(enc_hook=str).encode
_decode = msgspec.json.Decoder(InboxMessage).decode
_reported: set[str] = set()  # files that are not messages: each is logged once


def send(folder: Path, message: InboxMessage) -> None:
    """Put a message into the inbox of the session in `folder`. It is durable on return."""
    if not _ID.fullmatch(message.id):
        raise StoreFailed(f"{message.id[:60]!r} cannot be the id of a message; nothing was sent")
    try:
        data = _encode(message if message.at else replace(message, at=time.time()))
        with open_folder(folder) as session, open_folder("inbox", session, make=True) as inbox:
            write_file(inbox, f"{_next_number(inbox):020d}-{message.id}.json", data)
    except UnicodeEncodeError as error:
        raise StoreFailed(
            "the message holds characters that cannot be stored; nothing was sent", error
        ) from error
    except OSError as error:
        raise _failure(folder, "the message cannot be stored", error) from error


def read_messages(folder: Path) -> list[InboxMessage]:
    """The messages to the session in `folder`, in order. Other files are left alone."""
    try:
        with open_folder(folder) as session, open_folder("inbox", session) as inbox:
            names = sorted(name for name in list_names(inbox) if not name.startswith("."))
            messages = [_read(inbox, name, folder) for name in names]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _failure(folder, "the inbox cannot be read", error) from error
    return [message for message in messages if message is not None]


def discard(folder: Path, message: InboxMessage) -> None:
    """Remove a message that has been handled.

    Not synced: if the file comes back, its record in the log shows that it was handled.
    """
    try:
        with open_folder(folder) as session, open_folder("inbox", session) as inbox:
            for name in list_names(inbox):
                match = _NAME.fullmatch(name)
                if match and match[2] == message.id:
                    _remove(inbox, name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _failure(folder, "a message that was handled cannot be removed", error) from error


class Notifier:
    """One file of the state folder that grows with each message, whichever session it is for."""

    def __init__(self, state: Path) -> None:
        self._path = Path(state) / "bell"

    def notify(self) -> None:
        """Tell the processes that own sessions that there may be a new message."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(self._path, flags | os.O_NONBLOCK, 0o600)
            try:
                os.write(handle, b".")
            finally:
                os.close(handle)
        except OSError as error:
            raise StoreFailed(
                "the message is stored, but the session's owner cannot be notified: "
                f"{error.strerror or error}",
                error,
                hint="It takes effect when the session is next resumed.",
            ) from error

    def count(self) -> int:
        """The number of notifications, which only grows."""
        try:
            info = os.lstat(self._path)
        except OSError:
            return 0
        return info.st_size if stat.S_ISREG(info.st_mode) else 0


def _next_number(inbox: int) -> int:
    """The time now, or just after the newest message if the clock was set back."""
    known = [int(match[1]) for match in map(_NAME.fullmatch, list_names(inbox)) if match]
    return min(max([time.time_ns(), *(number + 1 for number in known)]), _MAX_NUMBER)


def _read(inbox: int, name: str, folder: Path) -> InboxMessage | None:
    match = _NAME.fullmatch(name)
    data = read_file(inbox, name, _MAX_SIZE) if match else None
    try:
        message = _decode(data) if data is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = None
    written = _written(inbox, name)
    if message is not None and match is not None and message.id == match[2]:
        # A message cannot claim to be older than its file.
        return replace(message, at=max(message.at, written or time.time()))
    path = f"{folder}/inbox/{name}"
    if path not in _reported and written is not None:
        _reported.add(path)
        log.warning("session %s: %r in its inbox is not a message", folder.name, name)
    return None


def _written(inbox: int, name: str) -> float | None:
    """When the file was written; None if the session's owner has taken it meanwhile."""
    try:
        return os.stat(name, dir_fd=inbox, follow_symlinks=False).st_mtime
    except OSError:
        return None


def _remove(inbox: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=inbox)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EISDIR, errno.EPERM):
            raise


def _failure(folder: Path, what: str, error: OSError) -> StoreFailed:
    return StoreFailed(
        f"session {folder.name}: {what}: {error.strerror or error}",
        error,
        hint="What could not be written does not count as done. "
        "Check the disk and the permissions of the folder.",
    )
