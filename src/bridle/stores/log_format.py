"""The format of a session's log: one JSON object per line, numbered and chained by hashes.

    {"seq":7,"timestamp":"2026-01-31T10:30:00.123Z","data":{"type":"usage",…},"hash":"…"}

This module knows what the bytes of such a line look like, and not what a record means. It loads
neither the codec nor hashlib, so that a list of sessions stays fast. `hash_chain` checks whether a
line follows the lines before it; `codec` decodes the data.
"""

import re
import time
from collections.abc import Iterator

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
# The number alone: what follows it may be damaged.
NUMBER = re.compile(rb'\{"seq":(\d{1,18}),"timestamp":"')

_newest_timestamp = (-1, "")  # a millisecond and its text: one value, so threads see both or none


def record_types(*types: str) -> re.Pattern[bytes]:
    """A pattern for `find_headers`: the beginning of the data of records of these types."""
    return re.compile(rb'"data":\{"type":"(%b)"' % "|".join(types).encode())


def find_headers(
    block: bytes, types: re.Pattern[bytes], start: int = 0
) -> Iterator[re.Match[bytes]]:
    """Find the headers of all records of these types in a block of lines.

    Text inside a record that only looks like the beginning of another one is skipped.
    """
    for mark in types.finditer(block, start):
        farthest = max(0, mark.start() - _MAX_HEADER)
        newline = block.rfind(b"\n", farthest, mark.start())
        if newline < 0 and farthest > 0:
            continue
        header = HEADER.match(block, newline + 1)
        if header is not None and header.start(3) == mark.start(1):
            yield header


def line_at(block: bytes, offset: int) -> bytes:
    """The line that contains this offset, with its newline if that is in the block."""
    end = block.find(b"\n", offset) + 1
    return block[block.rfind(b"\n", 0, offset) + 1 : end or len(block)]


def stated_hash(line: bytes) -> str:
    """The hash at the end of a line without its newline; empty if there is none."""
    found = line[-34:-2]
    whole = line[-TAIL:-34] == HASH_FIELD and line.endswith(b'"}') and HASH.fullmatch(found)
    return found.decode() if whole else ""


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
