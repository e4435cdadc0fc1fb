"""Single records of a log, looked for from its end: the newest is mostly what is wanted.

Nothing is locked, nothing is changed, and most lines are never decoded.
"""

import os
from collections.abc import Iterator

from bridle.errors import UnknownSession
from bridle.promises.store import Record
from bridle.stores.failure import typed
from bridle.stores.placing import opened
from bridle.stores.reading import SessionFolder
from bridle.stores.walking import readable

_SMALLEST, _LARGEST = 1 << 13, 1 << 22  # bytes read at a time


def found(folder: SessionFolder, session_id: str, words: bytes) -> Iterator[Record]:
    """The records whose lines hold these bytes, the newest first. They may be somebody's content.

    Raise `UnknownSession`, `StoreFailed`.
    """
    try:
        handle = opened(folder.path(session_id))
    except FileNotFoundError:
        raise UnknownSession(f"there is no session {session_id}") from None
    except OSError as error:
        raise typed(session_id, error, "read") from error
    try:
        for lines in backwards(handle, os.fstat(handle).st_size):
            yield from _among(lines, words)
    except OSError as error:
        raise typed(session_id, error, "read") from error
    finally:
        os.close(handle)


def _among(lines: bytes, words: bytes) -> Iterator[Record]:
    at = lines.rfind(words)
    while at >= 0:
        start = lines.rfind(b"\n", 0, at) + 1
        record = readable(lines[start : lines.find(b"\n", at) + 1])
        if record is not None:
            yield record
        at = lines.rfind(words, 0, start)


def backwards(handle: int, size: int) -> Iterator[bytes]:
    """Whole lines, many at a time, from the end of the file to its beginning."""
    block, position, rest, at_end = _SMALLEST, size, b"", True
    while position > 0:
        start = max(0, position - block)
        data = os.pread(handle, position - start, start) + rest
        if at_end:  # what stands after the last line is torn, or being written
            data = data[: data.rfind(b"\n") + 1]
            at_end = not data
        first = data.find(b"\n") + 1 if start else 0
        rest, lines = data[:first], data[first:]
        if lines:
            yield lines
        position, block = start, min(block * 4, _LARGEST)
