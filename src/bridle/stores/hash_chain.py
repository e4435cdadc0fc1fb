"""Check that each line of a log follows the lines before it.

The hash of a record covers its own line and the hash of the record before. `Chain` tells whole
lines from damaged ones and says what is wrong with the latter. `reader` uses it to load and follow
a log, `verify` to report everything that is not as it was written. Pure: bytes in, values out.
Lines are passed without their newlines.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

import msgspec

from bridle.events import BrokenLine, Repaired
from bridle.protocols.codec import line_hash, to_record
from bridle.protocols.store import Record
from bridle.stores.log_format import HASH, HASH_FIELD, MIN_LINE, NUMBER, TAIL, stated_hash

_MAX_CANDIDATES = 8
_MAX_JUMP = 1 << 20  # a number that is further ahead is damage, and was never used
UNREADABLE = "it is not a record"
BODY_PROVEN = "only its hash is damaged: the line behind it proves the rest, which was kept"

Problem = Literal["", "altered", "unreadable", "missing number", "duplicate number"]


class LongLine(bytes):
    """A line that is too long for memory: it has no bytes, only its size, ends and hashes.

    `hashes`: for each possible hash of the line before, the hash that the line should state.
    """

    size: int
    fingerprint: str
    start: bytes
    tail: bytes
    hashes: dict[str, str]


class LongLineHasher:
    """Make a `LongLine` from its pieces."""

    def __init__(self, previous_hashes: Iterable[str] = ()) -> None:
        self._size = 0
        self._start = self._tail = b""
        self._fingerprint = blake2b(digest_size=16)
        self._digests = {
            previous: blake2b(digest_size=16, key=previous.encode()[:64])
            for previous in previous_hashes
        }

    def update(self, piece: bytes) -> None:
        self._size += len(piece)
        self._start = self._start or piece[:256]
        self._fingerprint.update(piece)
        data = self._tail + piece
        body, self._tail = data[:-TAIL], data[-TAIL:]
        for digest in self._digests.values():
            digest.update(body)

    def line(self) -> LongLine:
        line = LongLine()
        line.size, line.start, line.tail = self._size, self._start, self._tail
        line.fingerprint = self._fingerprint.hexdigest()
        line.hashes = {previous: digest.hexdigest() for previous, digest in self._digests.items()}
        return line


class Examination(NamedTuple):
    """The result of `Chain.examine` for one line.

    `records`: the whole records in it, and the damaged one before it if this line proves that.
    `broken`: what a repair has to report. `problem`: what is wrong with this line. `accepted`: the
    line is a whole record, which follows the one whose hash is `previous`.
    """

    records: list[Record]
    broken: BrokenLine | None = None
    problem: Problem = ""
    accepted: bool = False
    previous: str = ""


class Chain:
    """The number and the hash that the next line has to continue.

    After a damaged line there are several hashes that the next one may continue: the one before the
    damaged line, the one that line states, and the one it should have stated. So exactly the
    damaged lines are skipped, and no whole one.
    """

    def __init__(self, last: int = 0, head: str = "") -> None:
        self.last = last  # the number of the newest whole record
        self.head = head  # its hash
        self.top = last  # the largest number that may have been used
        self._highest = last  # the largest number that stood in a line, damaged or not
        self._has_hashes = bool(head)
        self._candidates = [head]  # the hashes that the next line may continue
        self._damaged = False  # whether a line since the newest whole record is damaged
        # The only damaged line since the newest whole record, and the hash that it should state.
        self._damaged_line: tuple[bytes, str] | None = None

    def candidates(self) -> list[str]:
        """The hashes that the next line may continue."""
        return self._candidates

    def follow(self, lines: Sequence[bytes], start: int) -> int:
        """Accept lines from `start` on; return the index of the first one to be examined.

        A line is accepted here only if it is exactly what has to come next, as nearly every line
        is. Large logs are read by this loop, so it calls as little as possible.
        """
        seq, key, index = self.last, self.head.encode()[:64], start
        if self._damaged:
            return start
        for index in range(start, len(lines)):
            line = lines[index]
            if not line.startswith(b'{"seq":%d,' % (seq + 1)):
                break
            digest = blake2b(line[:-TAIL], digest_size=16, key=key).hexdigest().encode()
            if not line.endswith(b',"hash":"%b"}' % digest):
                break
            seq, key = seq + 1, digest
        else:
            index = len(lines)
        if seq > self.last:
            self._accept(seq, key.decode())
        return index

    def examine(self, line: bytes) -> Examination:
        """Examine any line: which records it holds, and what is wrong with it."""
        if isinstance(line, LongLine):
            return self._examine_long(line)
        after, explained = self.last, self._damaged
        record = try_decode(line)
        previous = self._find_previous(line)
        problem, reason = self._problem(line, record, previous)
        if record is not None and not problem:
            restored, broken = self._restore(line, record.seq)
            first, last = after + 1, record.seq - 1
            if first <= last and not explained and not isinstance(record.event, Repaired):
                # Nothing explains the missing numbers. They are noticed at the line behind them.
                problem = "missing number"
                missing = f"{_numbers(first, last)} missing"
                broken = broken or BrokenLine(after, 0, fingerprint(line), missing)
            record = self._take(line, record)
            return Examination([*restored, record], broken, problem, True, previous or "")
        records = self._take_joined(line)
        if records:
            reason = "there are several records in one line; the whole ones were kept"
        else:
            self._doubt(line)
        broken = BrokenLine(after, len(line), fingerprint(line), reason)
        return Examination(records, broken, problem)

    def _find_previous(self, line: bytes) -> str | None:
        """The hash that a line continues, of those that it may continue."""
        return next((digest for digest in self._candidates if is_proven(line, digest)), None)

    def _problem(
        self, line: bytes, record: Record | None, previous: str | None
    ) -> tuple[Problem, str]:
        """What is wrong with a line, and why; two empty strings if nothing is."""
        if record is None:
            return "unreadable", UNREADABLE
        if 0 < record.seq <= self.last:
            return "duplicate number", "its number was used before"
        if not _has_hash(line) and not (record.seq and record.hash):
            return ("altered", "it has no hash") if self._has_hashes else ("", "")
        if previous is not None:
            return "", ""
        problem: Problem = "missing number" if record.seq > self._highest + 1 else "altered"
        if record.seq > self.top + 1 and not self._damaged:
            return (
                problem,
                f"{_numbers(self.top + 1, record.seq - 1)} missing, so nothing proves it",
            )
        return problem, "its hash does not fit"

    def _examine_long(self, line: LongLine) -> Examination:
        """Accept a line that is too long to be decoded if its hashes prove it."""
        after, explained = self.last, self._damaged
        stated, seq = stated_hash(line.tail), _number_of(line.start)
        previous = next(
            (digest for digest in self._candidates if line.hashes.get(digest) == stated), None
        )
        if previous is not None and stated and seq > self.last:
            problem: Problem = "missing number" if seq > after + 1 and not explained else ""
            missing = f"{_numbers(after + 1, seq - 1)} missing"
            broken = BrokenLine(after, 0, line.fingerprint, missing) if problem else None
            self._accept(seq, stated)
            return Examination([], broken, problem, True, previous)
        if 0 < seq <= self.last:
            problem = "duplicate number"
        else:
            problem = "missing number" if seq > self._highest + 1 else "altered"
        self._doubt(line)
        broken = BrokenLine(after, line.size, line.fingerprint, "it is too long")
        return Examination([], broken, problem)

    def _restore(self, line: bytes, seq: int) -> tuple[list[Record], BrokenLine | None]:
        """The damaged line before, if this one continues the hash that it should have stated."""
        if self._damaged_line is None or not is_proven(line, self._damaged_line[1]):
            return [], None
        damaged, digest = self._damaged_line
        record = try_decode(b'%b%b%b"}' % (damaged[:-TAIL], HASH_FIELD, digest.encode()))
        if record is None or not self.last < record.seq < seq:
            return [], None
        return [record], BrokenLine(self.last, len(damaged), fingerprint(damaged), BODY_PROVEN)

    def _take(self, line: bytes, record: Record) -> Record:
        if not record.seq:  # another program's records have no numbers, so they are counted
            record = msgspec.structs.replace(record, seq=self.last + 1)
        self._accept(record.seq, record.hash if _has_hash(line) else "")
        return record

    def _accept(self, seq: int, digest: str) -> None:
        self.last = self.top = self._highest = seq
        self.head, self._candidates = digest, [digest]
        self._has_hashes = self._has_hashes or bool(digest)
        self._damaged, self._damaged_line = False, None

    def _take_joined(self, line: bytes) -> list[Record]:
        """Whole records that share a line with something else. Their hashes prove them."""
        starts = [match.start() for match in NUMBER.finditer(line)]
        if not starts or starts == [0]:
            return []
        records, known = [], (self.top, self._highest, self._candidates, self._damaged)
        for start, end in zip(starts, [*starts[1:], len(line)], strict=True):
            piece = line[start:end]
            piece = piece[: piece.rfind(b'"}') + 2]
            record = try_decode(piece)
            previous = self._find_previous(piece)
            if record is None or not _has_hash(piece) or self._problem(piece, record, previous)[0]:
                self._doubt(piece)
            else:
                records.append(self._take(piece, record))
        if not records:
            self.top, self._highest, self._candidates, self._damaged = known
        return records

    def _doubt(self, line: bytes) -> None:
        """Note a damaged line: its number is used, and the next may continue several hashes."""
        start, tail, is_record = line, line, len(line) > MIN_LINE
        if isinstance(line, LongLine):
            expected = list(line.hashes.values())
            if expected:  # else it is longer than any record
                start, tail, is_record = line.start, line.tail, True
        else:
            expected = [line_hash(line[:-TAIL], previous) for previous in self._candidates]
        number = _number_of(start)
        self._highest = max(self._highest, number)
        used = number if number <= self.last + _MAX_JUMP else 0
        self.top = max(self.top + is_record, used)
        stated = [tail[-34:-2].decode()] if HASH.fullmatch(tail[-34:-2]) else []
        candidates = dict.fromkeys([self.head, *stated, *self._candidates, *expected])
        self._candidates = list(candidates)[:_MAX_CANDIDATES]
        is_first = not self._damaged and is_record and not isinstance(line, LongLine)
        self._damaged_line = (line, expected[0]) if is_first else None
        self._damaged = True


def is_proven(line: bytes, previous: str) -> bool:
    """Whether this is a whole line of ours that continues this hash."""
    well_formed = line[-TAIL:-34] == HASH_FIELD and line.endswith(b'"}')
    return well_formed and line_hash(line[:-TAIL], previous).encode() == line[-34:-2]


def try_decode(line: bytes) -> Record | None:
    """The record in a line; None if it holds none."""
    try:
        return to_record(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def fingerprint(line: bytes) -> str:
    """The hash by which a repair record names a damaged line."""
    return blake2b(line, digest_size=16).hexdigest()


def _number_of(line: bytes) -> int:
    number = NUMBER.match(line)
    return int(number[1]) if number else 0


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"the records {first} to {last} are"


def _has_hash(line: bytes) -> bool:
    """Whether a line says that it has a hash of ours, even if one byte of it is damaged."""
    return line[-TAIL:-34] == HASH_FIELD or HASH.fullmatch(line[-34:-2]) is not None
