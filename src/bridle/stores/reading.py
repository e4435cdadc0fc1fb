"""Reading a folder of sessions: no lock, no event loop, nothing is changed.

Kept apart from the writing so that a list of sessions is there at once.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from bridle.errors import StoreFailed, UnknownSession
from bridle.promises.store import Record, SessionSummary, to_record
from bridle.stores.clock import stamp
from bridle.stores.memory import summarise

_PROMPT = re.compile(rb'"type":"user_prompt","content":"((?:[^"\\]|\\.){0,200})')
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class SessionFolder:
    """A folder of sessions, for reading."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The records that have been written, as far as they are whole."""
        try:
            file = opened(self.path(session_id))
        except FileNotFoundError:
            raise UnknownSession(f"there is no session {session_id}") from None
        except OSError as error:
            raise StoreFailed(
                f"cannot read session {session_id}: {error.strerror}", error
            ) from error
        with file:
            last = 0
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written; what follows it is not for this reader
                record = readable(line, last)
                if record is not None:
                    last = record.seq
                    if last > after:
                        yield record

    def sessions(self) -> list[SessionSummary]:
        """All of them, the newest first."""
        try:
            with os.scandir(self.folder / "sessions") as entries:
                found = [
                    _summary(Path(entry.path)) for entry in entries if _ID.fullmatch(entry.name)
                ]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreFailed(f"cannot list the sessions: {error.strerror}", error) from error
        return sorted(filter(None, found), key=lambda one: one.updated_at, reverse=True)

    def path(self, session_id: str) -> Path:
        """Where a session's log lies."""
        if not _ID.fullmatch(session_id):
            raise UnknownSession(f"{session_id[:60]!r} is not the id of a session")
        return self.folder / "sessions" / session_id / "log.jsonl"


def opened(path: Path) -> BinaryIO:
    """A log for reading; a link in its place is not followed."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb")


def readable(line: bytes, last: int = 0) -> Record | None:
    """A line as a record, if it is one; logs of other programs have no numbers, so it gets one."""
    try:
        record = to_record(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if record.seq else msgspec.structs.replace(record, seq=last + 1)


def _summary(folder: Path) -> SessionSummary | None:
    """What the head of a log says of its session, without reading the rest."""
    try:
        with opened(folder / "log.jsonl") as file:
            head = file.read(8192)
            info = os.fstat(file.fileno())
    except OSError:
        return None
    lines = head.splitlines(keepends=True)
    records = [record for line in lines[:12] if (record := readable(line)) is not None]
    if not records:
        return None
    found = summarise(folder.name, records)
    newest = stamp(info.st_mtime)
    title = found.title or _beginning(head)
    return msgspec.structs.replace(found, updated_at=newest, title=title, size=info.st_size)


def _beginning(head: bytes) -> str:
    """The first words of a prompt that is too long for the head of its log."""
    match = _PROMPT.search(head)
    whole = match[1].decode("utf-8", "ignore") if match is not None else ""
    try:
        return str(msgspec.json.decode(f'"{whole}"'))
    except msgspec.DecodeError:
        return ""
