"""The format of a session's log: one JSON object per line, numbered and chained by hashes.

    {"seq":7,"timestamp":"2026-01-31T10:30:00.123Z","data":{"type":"usage",…},"hash":"…"}

This module knows what the bytes of such a line look like, and not what a record means. It loads
neither the codec nor hashlib, so that a list of sessions stays fast. `hash_chain` checks whether a
line follows the lines before it; `codec` decodes the data.
"""

import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

Read = Callable[[int, int], bytes]  # so many bytes, from this offset on

FORMAT = 1  # the newest format that this version reads; a log names its own in `session_start`
LOG_NAME = "log.jsonl"
MAX_LINE = 64 << 20  # bytes; no record is longer
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # the name of a folder, nothing else
HASH = re.compile(rb"[0-9a-f]{32}")
HASH_FIELD = b',"hash":"'
TAIL = 43  # bytes of `,"hash":"…"}`, which end each line
MIN_LINE = 80  # bytes; none of our records is shorter

# The number, the timestamp and the type of a record.
HEADER = re.compile(
    rb'\{"seq":(\d{1,18}),"timestamp":"([^"\\]{0,64})","data":\{"type":"([a-z_]{1,40})"'
)
_MAX_HEADER = 128  # bytes before the data
_BLOCK = 1 << 20  # bytes that are read at a time, backwards
_SMALL_BLOCK = 1 << 13  # ... near the end, where most of what is searched for is
_TYPE = len(b'"data":{"type":"')
# The number alone: what follows it may be damaged.
NUMBER = re.compile(rb'\{"seq":(\d{1,18}),"timestamp":"')

_newest_timestamp = (-1, "")  # a millisecond and its text: one value, so threads see both or none


def record_types(*types: str) -> tuple[bytes, ...]:
    """What `find_headers` searches for: the beginning of the data of records of these types."""
    return tuple(b'"data":{"type":"%b"' % name.encode() for name in types)


def find_headers(block: bytes, types: tuple[bytes, ...]) -> Iterator[re.Match[bytes]]:
    """Find the headers of all records of these types (`record_types`) in a block of lines.

    Text inside a record that only looks like the beginning of another one is skipped.
    """
    for data in _pattern(types).finditer(block):
        if (header := _header_before(block, data.start())) is not None:
            yield header


def find_headers_backward(block: bytes, types: tuple[bytes, ...]) -> Iterator[re.Match[bytes]]:
    """Like `find_headers`, but the last one comes first."""
    offsets = {data: offset for data in types if (offset := block.rfind(data)) >= 0}
    while offsets:
        data, offset = max(offsets.items(), key=itemgetter(1))
        if (header := _header_before(block, offset)) is not None:
            yield header
        offsets[data] = block.rfind(data, 0, offset)
        if offsets[data] < 0:
            del offsets[data]


@lru_cache
def _pattern(types: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, types)))


def _header_before(block: bytes, offset: int) -> re.Match[bytes] | None:
    """The header that ends with the data at this offset; None if that is inside a record."""
    farthest = max(0, offset - _MAX_HEADER)
    newline = block.rfind(b"\n", farthest, offset)
    if newline < 0 and farthest > 0:
        return None
    header = HEADER.match(block, newline + 1)
    return header if header is not None and header.start(3) == offset + _TYPE else None


def line_at(block: bytes, offset: int) -> bytes:
    """The line that contains this offset, with its newline if that is in the block."""
    end = block.find(b"\n", offset) + 1
    return block[block.rfind(b"\n", 0, offset) + 1 : end or len(block)]


class TypedLine(NamedTuple):
    """The line of a record, with its newline, its type, and where it begins."""

    offset: int
    type: bytes
    line: bytes


def iter_blocks_backward(read: Read, size: int) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines with their offsets, from the end of the file to its beginning.

    An unfinished last line is left out: it is torn, or being written. So are lines that are too
    long to be records. Blocks become larger, because what is searched for is mostly near the end.
    """
    length, position, at_end, is_too_long = _SMALL_BLOCK, size, True, False
    rest: list[bytes] = []  # pieces of the line whose beginning has not been read, the last first
    while position > 0:
        start = max(0, position - length)
        data = read(position - start, start)
        position, length = start, min(length * 4, _BLOCK)
        if at_end:
            data = data[: data.rfind(b"\n") + 1]
            at_end = not data
        first = data.find(b"\n") + 1 if start else 0
        if start and not first:
            rest.append(data)
            is_too_long = is_too_long or sum(map(len, rest)) > MAX_LINE
            if is_too_long:
                rest = []
            continue
        last = data.rfind(b"\n") + 1
        line = b"".join((data[last:], *reversed(rest)))
        if line and not is_too_long:
            yield start + last, line
        if first < last:
            yield start + first, data[first:last]
        rest, is_too_long = [data[:first]], False


def iter_lines_backward(read: Read, size: int, types: tuple[bytes, ...]) -> Iterator[TypedLine]:
    """The lines of all records of these types (`record_types`), the newest first."""
    for offset, block in iter_blocks_backward(read, size):
        for header in find_headers_backward(block, types):
            line = line_at(block, header.start())
            yield TypedLine(offset + header.start(), header[3], line)


def stated_hash(line: bytes) -> str:
    """The hash at the end of a line without its newline; empty if there is none."""
    digest = line[-34:-2]
    whole = line[-TAIL:-34] == HASH_FIELD and line.endswith(b'"}') and HASH.fullmatch(digest)
    return digest.decode() if whole else ""


def utc_timestamp(seconds: float | None = None) -> str:
    """Now, or the given time since 1970, as `2026-01-31T10:30:00.123Z`.

    The text is kept for as long as the millisecond lasts.
    """
    global _newest_timestamp
    milliseconds = int((time.time() if seconds is None else seconds) * 1000)
    known, text = _newest_timestamp
    if milliseconds != known:
        second, rest = divmod(milliseconds, 1000)
        if second == known // 1000:
            date = text[:19]
        else:
            date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        text = f"{date}.{rest:03d}Z"
        _newest_timestamp = (milliseconds, text)
    return text
