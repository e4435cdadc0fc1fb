"""What the logs say was used on one day: a fold over their `usage` records, continued where it was.

Only lines that begin as such a record are decoded. A fork brings another session's records along;
they count there and not here; and so does what a child session used, whose log says it itself.
Nothing is written, and no budget is known.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from bridle.events import Forked, UsageReported
from bridle.stores.glance import Place, places
from bridle.stores.placing import opened
from bridle.stores.walking import readable

_BLOCK = 1 << 22
_LARGE = 1 << 20  # bytes; where to go on in a smaller log is not worth remembering
_WORDS = re.compile(rb'"data":\{"type":"(?:usage|fork)"')


class Spent(NamedTuple):
    """Use in all sessions. `unpriced` counts the replies whose cost nobody knows."""

    tokens: int = 0
    money: float = 0.0
    unpriced: int = 0


class Entry(Struct, array_like=True):
    """One log: how far it has been read, and what it used on the day."""

    offset: int = 0
    tokens: int = 0
    money: float = 0.0
    unpriced: int = 0

    def add(self, event: object) -> None:
        """Take one record into account."""
        if isinstance(event, Forked):
            self.tokens, self.money, self.unpriced = 0, 0.0, 0
        elif isinstance(event, UsageReported) and event.purpose != "task":
            self.tokens += event.usage.total_tokens
            self.money += event.cost or 0.0
            self.unpriced += event.cost is None

    @property
    def worth_keeping(self) -> bool:
        """Would it cost anything to forget it?"""
        return bool(self.tokens or self.money or self.unpriced) or self.offset >= _LARGE


class Ledger:
    """The day's use, log by log. A log that was deleted stays in it: what was spent is spent."""

    def __init__(self, date: str, since: float) -> None:
        self.date = date
        self.entries: dict[str, Entry] = {}
        self._since = since
        self._line = re.compile(
            rb'\{"seq":\d{1,18},"timestamp":"(%b)?[^"\\]{0,40}",' % date.encode()
        )

    def learn(self, known: Any) -> None:
        """What another process has read already, where it is further than this one."""
        for key, entry in known.items():
            mine = self.entries.get(key)
            if mine is None or mine.offset < entry.offset:
                self.entries[key] = entry

    def update(self, state: Path) -> Spent:
        """Read what was added since the last time."""
        for place in places(state):
            if place.changed >= self._since:
                self._read(place)
        entries = self.entries.values()
        return Spent(
            sum(one.tokens for one in entries),
            sum(one.money for one in entries),
            sum(one.unpriced for one in entries),
        )

    def _read(self, place: Place) -> None:
        key = f"{place.id}:{place.inode}"
        entry = self.entries.get(key)
        if entry is None or entry.offset > place.size:  # new, or cut: from its beginning
            entry = self.entries[key] = Entry()
        if entry.offset == place.size:
            return
        try:
            handle = opened(f"{place.path}/log.jsonl")
        except OSError:
            return
        try:
            for block in _blocks(handle, entry.offset):
                self._fold(block, entry)
                entry.offset += len(block)
        except OSError:
            return
        finally:
            os.close(handle)

    def _fold(self, block: bytes, entry: Entry) -> None:
        for found in _WORDS.finditer(block):
            start = block.rfind(b"\n", 0, found.start()) + 1
            line = self._line.fullmatch(block, start, found.start())
            if line is None or (line[1] is None and found[0].endswith(b'"usage"')):
                continue  # inside another record, or of another day
            record = readable(block[start : block.find(b"\n", start) + 1])
            if record is not None:
                entry.add(record.event)


def _blocks(handle: int, offset: int) -> Iterator[bytes]:
    """Whole lines from there on, many at a time."""
    rest = b""
    while block := os.pread(handle, _BLOCK, offset + len(rest)):
        end = block.rfind(b"\n") + 1
        if not end:
            rest += block
            continue
        lines = rest + block[:end]
        yield lines
        offset, rest = offset + len(lines), b""
