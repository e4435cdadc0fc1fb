"""Is a log what was written? Every byte is covered by a hash that covers the hash before.

Reads the file once, in bounded memory, and changes nothing. It finds accidents, and changes by
somebody who did not compute all the hashes anew. A clean cut of the end, and a log written anew,
are found where a `Head` from earlier is handed in. What the records mean is not known here.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import BinaryIO, Literal

import msgspec
from msgspec.structs import replace

from bridle.errors import StoreFailed, UnknownSession
from bridle.events import Repaired
from bridle.promises.codec import to_record
from bridle.promises.store import Record
from bridle.stores.placing import opened

What = Literal[
    "altered",
    "unreadable",
    "missing number",
    "duplicate number",
    "torn tail",
    "head differs",
    "checkpoint differs",
]
Progress = Callable[[int, int], None]

MOST = 1000  # findings that are told one by one
_PIECE = 1 << 20  # bytes that are looked at together; a longer line comes in pieces
_TOLD = 64 * _PIECE
_MANY = 10_000  # lines between two looks at the clock
_SEQ = re.compile(rb'\{"seq":(\d{1,18}),"timestamp":"')
_TAIL = re.compile(rb',"hash":"([0-9a-f]{32})"\}\n')
_HEX = re.compile(rb"[0-9a-f]{32}")
_TAIL_SIZE = len(b',"hash":""}\n') + 32
_BEGINNING = rb'\{"seq":\d{1,18},"timestamp":"[^"]{0,40}","data":\{"type":'
_CHECKPOINT = re.compile(_BEGINNING + rb'"checkpoint","previous":"([0-9a-f]*)"')
_START = re.compile(
    rb'\{"seq":(\d{1,18}),"timestamp":"[^"]{0,40}","data":\{"type":"((?:checkpoint|repair)")?'
)


class Head(msgspec.Struct, frozen=True):
    """The newest record of a log: kept elsewhere, it shows later that nothing before it changed."""

    seq: int
    hash: str


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is not as it was written.

    `after` is the newest record before it that is whole, `offset` where in the file it begins.
    `known`: a later `repair` record tells of it, so whoever took the log up was told.
    """

    after: int
    offset: int
    what: What
    detail: str = ""
    known: bool = False


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was found. `records` counts the lines that are as they were written, or unprotected.

    `more` counts findings beyond the first thousand.
    """

    records: int
    size: int
    head: Head | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    more: int = 0

    @property
    def ok(self) -> bool:
        """Is there nothing to say against it?"""
        return not self.findings


def verify(
    path: str | os.PathLike[str],
    head: Head | None = None,
    progress: Progress | None = None,
) -> Report:
    """Check a log, line by line. Raise `UnknownSession`, `StoreFailed`."""
    try:
        with os.fdopen(opened(path), "rb", buffering=_PIECE) as file:
            return _checked(file, head, progress)
    except FileNotFoundError:
        raise UnknownSession(f"there is no log at {os.fspath(path)}") from None
    except OSError as error:
        raise StoreFailed(f"the log cannot be read: {error.strerror or error}", error) from error


def _checked(file: BinaryIO, head: Head | None, progress: Progress | None) -> Report:
    size, told = os.fstat(file.fileno()).st_size, 0
    chain = _Chain(head)
    while (line := chain.run(file.readline)) != b"":
        if line is not None:
            chain.look(_Seen(line, file, chain.before()))
        if progress is not None and chain.offset >= told + _TOLD:
            told = chain.offset
            progress(told, max(size, told))
    if progress is not None:
        progress(chain.offset, chain.offset)
    return chain.report()


class _Seen:
    """A line that needs a closer look: how it hashes after each record that may stand before it."""

    def __init__(self, line: bytes, file: BinaryIO, before: Iterable[str]) -> None:
        self.start = line
        self.size = 0
        chained = {one: blake2b(digest_size=16, key=one.encode()[:64]) for one in before}
        plain, bare, kept = blake2b(digest_size=16), blake2b(digest_size=16), b""
        for piece in _pieces(line, file):
            self.size += len(piece)
            plain.update(piece)
            bare.update(piece.removesuffix(b"\n"))
            body, kept = (kept + piece)[:-_TAIL_SIZE], (kept + piece)[-_TAIL_SIZE:]
            for one in chained.values():
                one.update(body)
        found = _TAIL.fullmatch(kept)
        self.whole = kept.endswith(b"\n")
        self.stated = found[1].decode() if found else ""
        hinted = _HEX.fullmatch(kept, max(0, len(kept) - 35), max(0, len(kept) - 3))
        self.hinted = hinted[0].decode() if hinted else ""  # its hash, though not in its place
        self.digests = {one: made.hexdigest() for one, made in chained.items()}
        self.fingerprints = {plain.hexdigest(), bare.hexdigest()}
        number = _SEQ.match(line)
        self.seq = int(number[1]) if number else 0
        self.record = self._decoded()

    def _decoded(self) -> Record | None:
        if self.size > len(self.start):  # longer than a piece: not worth the memory
            return None
        try:
            return to_record(self.start)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    @property
    def readable(self) -> bool:
        """A record, or too long to say."""
        return self.record is not None or (self.whole and self.size > len(self.start))


def _pieces(line: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield line
    while len(line) == _PIECE and not line.endswith(b"\n"):
        line = file.readline(_PIECE)
        yield line


class _Chain:
    """The state between two lines."""

    def __init__(self, head: Head | None) -> None:
        self.offset = self.records = self.seq = self.more = 0
        self._hash = ""  # of the newest line that is whole
        self._key = b""
        self._doubtful: dict[str, int] = {}  # what damaged lines since then say, and should say
        self._protected = False
        self._foreign = 0
        self._wanted = head
        self._met = head is None
        self._findings: list[tuple[Finding, set[str]]] = []

    def before(self) -> dict[str, int]:
        """The hashes that the next line may go on from, and the number that each belongs to.

        One, as long as nothing is wrong. After a damaged line it may be what that line says, what
        it should have said, or the whole record before it, where somebody skipped it and went on.
        """
        return {**self._doubtful, self._hash: self.seq}

    def run(self, readline: Callable[[int], bytes]) -> bytes | None:
        """Go on as long as each line is exactly what has to come next.

        Returns the first one that needs a closer look, and None after a good many that do not.
        One loop without calls: most of the time that `verify` takes is spent here.
        """
        if self._doubtful:
            return readline(_PIECE)
        seq, key, size = self.seq, self._key, 0
        wanted = self._wanted.seq if self._wanted is not None else 0
        for _ in range(_MANY):
            line = readline(_PIECE)
            known = _START.match(line)
            if known is None or known[2] or int(known[1]) != seq + 1 or seq + 1 == wanted:
                break
            digest = blake2b(line[:-_TAIL_SIZE], digest_size=16, key=key).hexdigest().encode()
            if line[-_TAIL_SIZE:] != b',"hash":"%b"}\n' % digest:
                break
            seq, key, size = seq + 1, digest, size + len(line)
        else:
            self._ran(seq, key, size)
            return None
        self._ran(seq, key, size)
        return line

    def _ran(self, seq: int, key: bytes, size: int) -> None:
        if seq > self.seq:
            self.records += seq - self.seq
            self.offset += size
            self.seq, self._hash, self._key = seq, key.decode(), key
            self._protected = True

    def _accept(self, seq: int, digest: str) -> None:
        self.records += 1
        self.seq, self._hash, self._key = seq, digest, digest.encode()[:64]
        self._doubtful = {}
        self._protected = True
        if self._wanted is not None and seq == self._wanted.seq:
            self._met = digest == self._wanted.hash

    def look(self, seen: _Seen) -> None:
        """Take any other line into account."""
        source = next((one for one, made in seen.digests.items() if made == seen.stated), None)
        if source is not None and seen.seq:
            self._verified(seen, source)
        elif self._is_foreign(seen):
            self._foreign += 1
            self.records += 1
            self.seq += 1
            self._hash = seen.record.hash if seen.record else ""
            self._key = self._hash.encode()[:64]
        else:
            self._damaged(seen)
        self.offset += seen.size

    def _is_foreign(self, seen: _Seen) -> bool:
        """Of a program that knows no numbers and no hashes; none follows a line of ours."""
        ours = self._protected or self._doubtful or seen.seq or seen.stated
        return seen.whole and seen.readable and not ours

    def _verified(self, seen: _Seen, source: str) -> None:
        event = seen.record.event if seen.record is not None else None
        expected = self.before()[source] + 1
        if 0 < seen.seq <= self.seq:
            self._find("duplicate number", seen, f"{seen.seq} stands after {self.seq}")
        elif seen.seq > expected > 0 and not self._doubtful and not isinstance(event, Repaired):
            self._find("missing number", seen, f"{seen.seq} stands where {expected} should")
        point = _CHECKPOINT.match(seen.start)
        if point is not None and point[1].decode() != source:
            self._find("checkpoint differs", seen, "it was made for another log")
        if isinstance(event, Repaired):  # it skips the numbers of what was damaged or torn off
            self._know({one.hash for one in event.broken})
        self._accept(seen.seq, seen.stated)

    def _damaged(self, seen: _Seen) -> None:
        self._find(*self._named(seen))
        if not seen.whole:
            return
        number = seen.seq or -1
        self._doubtful = dict([*self._doubtful.items()][-3:])
        for one in (*list(seen.digests.values())[-2:], seen.hinted):
            if one:
                self._doubtful.setdefault(one, number)
        if self._wanted is not None and seen.stated == self._wanted.hash:
            self._met = True  # it is there, and that it was altered is said already

    def _named(self, seen: _Seen) -> tuple[What, _Seen, str]:
        newest = max(self.before().values())
        if not seen.whole:
            return "torn tail", seen, f"{seen.size} bytes at the end are no whole line"
        if not seen.readable:
            return "unreadable", seen, f"a line of {seen.size} bytes is no record"
        if seen.seq > newest + 1:
            return "missing number", seen, f"record {seen.seq} follows record {newest}"
        if 0 < seen.seq <= self.seq:
            return "duplicate number", seen, f"record {seen.seq} stands after record {self.seq}"
        return "altered", seen, "the line does not agree with its hash"

    def _find(self, what: What, seen: _Seen | None, detail: str) -> None:
        if len(self._findings) >= MOST:
            self.more += 1
            return
        found = Finding(self.seq, self.offset, what, detail)
        self._findings.append((found, seen.fingerprints if seen is not None else set()))

    def _know(self, hashes: set[str]) -> None:
        """A repair record tells of lines with these bytes."""
        self._findings = [
            (replace(found, known=True) if hashes & prints else found, prints)
            for found, prints in self._findings
        ]

    def report(self) -> Report:
        """Everything that was found, once the last line has been seen."""
        if self._wanted is not None and not self._met:
            if self.seq < self._wanted.seq:
                detail = f"the log ends with record {self.seq}, before record {self._wanted.seq}"
            else:
                detail = f"record {self._wanted.seq} is not the one that was noted"
            self._find("head differs", None, detail)
        head = Head(self.seq, self._hash) if self.records else None
        notes = (
            (f"{self._foreign} lines of another program are not protected by hashes",)
            if self._foreign
            else ()
        )
        findings = tuple(found for found, _ in self._findings)
        return Report(self.records, self.offset, head, findings, notes, self.more)
