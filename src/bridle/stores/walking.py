"""Through a log line by line: which record stands where, and the hash to go on from.

Lines are numbered as every reader numbers them; most are never decoded. Nothing is changed.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import msgspec

from bridle.promises.codec import to_record
from bridle.promises.store import Record

_OURS = re.compile(rb'\{"seq":(\d{1,18}),"timestamp":"')
_TAIL = re.compile(rb',"hash":"([0-9a-f]{32})"\}\n')
_TAIL_SIZE = len(b',"hash":""}\n') + 32


class Walked(NamedTuple):
    """A line, where it begins, and what it is: `seq` is 0 where it is no record."""

    line: bytes
    offset: int
    seq: int
    hash: str


def walk(file: BinaryIO) -> Iterator[Walked]:
    """The whole lines of a log, in order. A torn end is not among them."""
    offset = last = 0
    for line in file:
        if not line.endswith(b"\n"):
            return
        seq, digest = _read(line, last)
        yield Walked(line, offset, seq, digest)
        last = seq or last
        offset += len(line)


def _read(line: bytes, last: int) -> tuple[int, str]:
    ours, tail = own(line)
    if ours and tail:
        return ours, tail
    record = readable(line, last)
    return (record.seq, record.hash) if record is not None else (0, "")


def readable(line: bytes, last: int = 0) -> Record | None:
    """A line as a record, if it is one; logs of other programs have no numbers, so it gets one."""
    try:
        record = to_record(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if record.seq else msgspec.structs.replace(record, seq=last + 1)


def own(line: bytes) -> tuple[int, str]:
    """The number and the hash of a line that looks like ours; without a look at what is between."""
    start = _OURS.match(line)
    tail = _TAIL.fullmatch(line, max(0, len(line) - _TAIL_SIZE))
    return (int(start[1]) if start else 0), (tail[1].decode() if tail else "")
