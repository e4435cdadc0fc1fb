"""Does a line of a log follow the ones before? Each hash covers its line and the hash before.

Tells whole lines from damaged ones, and says what is wrong with those. Pure: bytes in, values out.
Lines come without their ends. Which records a reader wants is not known here.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from bridle.events import BrokenLine, Repaired
from bridle.promises.codec import chained, to_record
from bridle.promises.store import Record
from bridle.stores.lines import Overlong

_TAIL = 43  # bytes of `,"hash":"…"}`
_FIELD = b',"hash":"'
_HEX = re.compile(rb"[0-9a-f]{32}")
_START = re.compile(rb'\{"seq":(\d{1,18}),"timestamp":"')
_MOST = 8  # hashes that a line may go on from
_LEAST = 80  # bytes; no record of ours is shorter
_FAR = 1 << 20  # a number that is further off is damage, and not one that was used
UNREADABLE = "it is not a record"
BODY_PROVEN = "only its hash is damaged: the line behind it proves the rest, which was kept"


class Chain:
    """What stands between two lines: the number and the hash that the next one goes on from.

    After a damaged line there is more than one hash to go on from: the one before it, what it says
    and what it should have said. So exactly the damaged lines are passed over, and no whole one.
    """

    def __init__(self, last: int = 0, head: str = "") -> None:
        self.last = last  # the number of the newest whole record
        self.head = head  # and its hash
        self.top = last  # the largest number that may have been used
        self._hashed = bool(head)
        self._before = [head]  # the hashes that the next line may go on from
        self._damaged = False  # since the newest whole record
        self._held: tuple[bytes, str] | None = None  # the only one, and the hash it should have

    def follow(self, lines: Sequence[bytes], start: int) -> int:
        """The index of the first line from `start` on that is not exactly what has to come next.

        Our own lines, that is; any other wants a closer look. A large log is read here, so nothing
        is called twice.
        """
        seq, key, index = self.last, self.head.encode()[:64], start
        if self._damaged:
            return start
        for index in range(start, len(lines)):
            line = lines[index]
            if not line.startswith(b'{"seq":%d,' % (seq + 1)):
                break
            digest = blake2b(line[:-_TAIL], digest_size=16, key=key).hexdigest().encode()
            if not line.endswith(b',"hash":"%b"}' % digest):
                break
            seq, key = seq + 1, digest
        else:
            index = len(lines)
        if seq > self.last:
            self._accept(seq, key.decode())
        return index

    def look(self, line: bytes) -> tuple[list[Record], BrokenLine | None]:
        """Take any line: the records in it, and what is wrong with it."""
        after, explained = self.last, self._damaged
        record = None if isinstance(line, Overlong) else to_readable(line)
        why = self._against(line, record)
        if record is not None and not why:
            restored, told = self._restored(line, record.seq)
            gap = None if explained else _gap(after, record, line)
            return [*restored, self._taken(line, record)], told or gap
        found = self._glued(line)
        if found:
            why = "several records stand in one line; the whole ones were kept"
        else:
            self._doubt(line)
        if isinstance(line, Overlong):
            return found, BrokenLine(after, line.size, line.hash, "it is too long")
        return found, BrokenLine(after, len(line), fingerprint(line), why)

    def _against(self, line: bytes, record: Record | None) -> str:
        """What speaks against a line."""
        if record is None:
            return UNREADABLE
        if 0 < record.seq <= self.last:
            return "its number was used before"
        if not _claims(line) and not (record.seq and record.hash):
            return "it has no hash" if self._hashed else ""
        if any(proven(line, one) for one in self._before):
            return ""
        if record.seq > self.top + 1 and not self._damaged:
            return f"{_numbers(self.top + 1, record.seq - 1)} missing, so nothing proves it"
        return "its hash does not fit"

    def _restored(self, line: bytes, seq: int) -> tuple[list[Record], BrokenLine | None]:
        """The damaged line before, if this one goes on from the hash that it should have had."""
        if self._held is None or not proven(line, self._held[1]):
            return [], None
        damaged, digest = self._held
        record = to_readable(b'%b%b%b"}' % (damaged[:-_TAIL], _FIELD, digest.encode()))
        if record is None or not self.last < record.seq < seq:
            return [], None
        return [record], BrokenLine(self.last, len(damaged), fingerprint(damaged), BODY_PROVEN)

    def _taken(self, line: bytes, record: Record) -> Record:
        if not record.seq:  # another program's: they have no numbers, so it gets one
            record = msgspec.structs.replace(record, seq=self.last + 1)
        self._accept(record.seq, record.hash if _claims(line) else "")
        return record

    def _accept(self, seq: int, digest: str) -> None:
        self.last = self.top = seq
        self.head, self._before = digest, [digest]
        self._hashed = self._hashed or bool(digest)
        self._damaged, self._held = False, None

    def _glued(self, line: bytes) -> list[Record]:
        """Whole records that share a line with something else. Their hashes prove them."""
        starts = [found.start() for found in _START.finditer(line)]
        if not starts or starts == [0]:
            return []
        kept, known = [], (self.top, self._before, self._damaged)
        for start, end in zip(starts, [*starts[1:], len(line)], strict=True):
            piece = line[start:end]
            piece = piece[: piece.rfind(b'"}') + 2]
            record = to_readable(piece)
            if record is None or not _claims(piece) or self._against(piece, record):
                self._doubt(piece)
            else:
                kept.append(self._taken(piece, record))
        if not kept:
            self.top, self._before, self._damaged = known
        return kept

    def _doubt(self, line: bytes) -> None:
        """A damaged line: its number is used, and the next may go on from several hashes."""
        number = _START.match(line)
        used = int(number[1]) if number else 0
        self.top = max(self.top + (len(line) > _LEAST), used if used <= self.last + _FAR else 0)
        stated = [line[-34:-2].decode()] if _HEX.fullmatch(line[-34:-2]) else []
        made = [chained(line[:-_TAIL], one) for one in self._before]
        found = dict.fromkeys([self.head, *stated, *self._before, *made])
        self._before = list(found)[:_MOST]
        alone = not self._damaged and len(line) > _LEAST
        self._held = (line, made[0]) if alone else None
        self._damaged = True


def proven(line: bytes, before: str) -> bool:
    """Is it a whole line of ours that goes on from this hash?"""
    stated, formed = line[-34:-2], line[-_TAIL:-34] == _FIELD and line.endswith(b'"}')
    return formed and chained(line[:-_TAIL], before).encode() == stated


def _gap(after: int, record: Record, line: bytes) -> BrokenLine | None:
    """Are there numbers missing that nothing explains? It is known by the line behind it."""
    first, last = after + 1, record.seq - 1
    if last < first or isinstance(record.event, Repaired):
        return None
    return BrokenLine(after, 0, fingerprint(line), f"{_numbers(first, last)} missing")


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"the records {first} to {last} are"


def _claims(line: bytes) -> bool:
    """Does it say that it has a hash of ours, even if one of its bytes is damaged?"""
    return line[-_TAIL:-34] == _FIELD or _HEX.fullmatch(line[-34:-2]) is not None


def to_readable(line: bytes) -> Record | None:
    """A line as a record, if it is one."""
    try:
        return to_record(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def fingerprint(line: bytes) -> str:
    """The hash by which a damaged line is known again."""
    return blake2b(line, digest_size=16).hexdigest()
