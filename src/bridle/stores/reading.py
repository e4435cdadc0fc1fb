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
from bridle.promises.codec import to_record
from bridle.promises.store import Record, SessionSummary
from bridle.stores.glance import ID, glance

_NUMBER = re.compile(rb'\{"seq":(\d{1,18}),')


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
                if after and 0 < (number := _number(line)) <= after:
                    last = number  # seen already: not worth decoding
                    continue
                record = readable(line, last)
                if record is not None:
                    last = record.seq
                    if last > after:
                        yield record

    def sessions(self) -> list[SessionSummary]:
        """All of them, the newest first."""
        try:
            return [SessionSummary(*one) for one in glance(self.folder)]
        except OSError as error:
            raise StoreFailed(f"cannot list the sessions: {error.strerror}", error) from error

    def path(self, session_id: str) -> Path:
        """Where a session's log lies."""
        if not ID.fullmatch(session_id):
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


def _number(line: bytes) -> int:
    """The number that our own lines begin with; 0 for any other line."""
    found = _NUMBER.match(line)
    return int(found[1]) if found is not None else 0
