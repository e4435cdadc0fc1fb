"""Check that a log is what was written: every byte is covered by the chain of hashes.

The file is read once, in bounded memory, and not changed. This finds accidents, and changes by
somebody who did not compute all hashes anew. A log that was cut off between two lines or written
anew is found if a `Head` from earlier is passed in.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from bridle.errors import StoreFailed, UnknownSession
from bridle.events import Checkpoint, Repaired
from bridle.protocols.codec import to_record
from bridle.protocols.store import Record
from bridle.stores.hash_chain import Chain, LongLine, fingerprint
from bridle.stores.log_format import NUMBER, record_types, stated_hash
from bridle.stores.reader import LineReader
from bridle.workspace.fs import open_file

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

MAX_FINDINGS = 1000  # the others are counted
_LONGEST = 1 << 20  # bytes of a line in memory; of a longer one only the hashes are kept
_PROGRESS = 64 << 20  # bytes between two calls of `progress`
_CHECKED = record_types("checkpoint", "repair")


class Head(msgspec.Struct, frozen=True):
    """The newest record of a log. Kept elsewhere, it proves that nothing before it changed."""

    seq: int
    hash: str


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is not as it was written.

    `after`: the newest whole record before it. `offset`: where it begins in the file. `known`: a
    later `repair` record lists it, so it was reported when the session was resumed.
    """

    after: int
    offset: int
    what: What
    detail: str = ""
    known: bool = False


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a check.

    `records` counts the lines that are as they were written, and those of other programs, which no
    hash protects. `more` counts findings beyond the first thousand.
    """

    records: int
    size: int
    head: Head | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    more: int = 0

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


def verify(
    path: str | os.PathLike[str],
    head: Head | None = None,
    progress: Progress | None = None,
) -> Report:
    """Check a log, line by line. Raise `UnknownSession`, `StoreFailed`."""
    try:
        handle = open_file(path)
    except FileNotFoundError:
        raise UnknownSession(f"there is no log at {os.fspath(path)}") from None
    except OSError as error:
        raise StoreFailed(f"the log cannot be read: {error.strerror or error}", error) from error
    try:
        return _Verification(handle, head).run(progress)
    except OSError as error:
        raise StoreFailed(f"the log cannot be read: {error.strerror or error}", error) from error
    finally:
        os.close(handle)


class _Verification:
    """One log that is being checked, line by line."""

    def __init__(self, handle: int, head: Head | None) -> None:
        self._handle = handle
        self._chain = Chain()
        self._offset = 0  # of the next line
        self._records = self._foreign = self._more = 0
        self._expected_head = head
        self._has_head = head is None
        # Each finding with the hashes by which a repair record may name its line.
        self._findings: list[tuple[Finding, set[str]]] = []

    def run(self, progress: Progress | None) -> Report:
        size, reported = os.fstat(self._handle).st_size, 0
        read = partial(os.pread, self._handle)
        candidates = self._chain.candidates
        reader = LineReader(read, longest=_LONGEST, previous_hashes=candidates)
        while lines := reader.read_lines():
            self._check(lines)
            if progress is not None and self._offset >= reported + _PROGRESS:
                reported = self._offset
                progress(reported, max(size, reported))
        if reader.unfinished:
            detail = f"{reader.unfinished} bytes at the end are not a whole line"
            self._find("torn tail", detail)
            self._offset += reader.unfinished
        if progress is not None:
            progress(self._offset, self._offset)
        return self._report()

    def _check(self, lines: Sequence[bytes]) -> None:
        index = 0
        while index < len(lines):
            head = self._chain.head
            until = self._chain.follow(lines, index)
            if until > index:
                self._check_sequence(lines[index:until], head)
            if until < len(lines):
                self._examine(lines[until])
            index = until + 1

    def _check_sequence(self, lines: Sequence[bytes], previous: str) -> None:
        """Check what a chain does not know in lines that follow each other."""
        expected = self._expected_head
        seq = self._chain.last - len(lines)
        for line in lines:
            seq += 1
            if line.startswith(_CHECKED, line.find(b'"data":', 20, 100)):
                self._check_record(to_record(line), previous, seq - 1)
            previous = line[-34:-2].decode()
            self._offset += len(line) + 1
            if expected is not None and seq == expected.seq:
                self._has_head = previous == expected.hash
        self._records += len(lines)

    def _examine(self, line: bytes) -> None:
        """Check a line that does not simply follow the one before."""
        size = line.size if isinstance(line, LongLine) else len(line)
        start, tail = (line.start, line.tail) if isinstance(line, LongLine) else (line, line)
        stated, expected = stated_hash(tail), self._expected_head
        after = self._chain.last
        examination = self._chain.examine(line)
        if examination.accepted and not stated:
            if NUMBER.match(start):  # our own, without its hash
                self._find("altered", "the line does not agree with its hash", line, after)
            else:
                self._records += 1
                self._foreign += 1
        elif examination.accepted:
            self._records += 1
            self._check_record(
                examination.records[-1] if examination.records else None,
                examination.previous,
                after,
            )
            if expected is not None and self._chain.last == expected.seq:
                self._has_head = stated == expected.hash
        elif expected is not None and stated == expected.hash:
            self._has_head = True  # it is there; that it was altered is another finding
        if examination.problem == "altered":
            self._find("altered", "the line does not agree with its hash", line, after)
        elif examination.problem == "unreadable":
            self._find("unreadable", f"a line of {size} bytes is not a record", line, after)
        elif examination.problem and examination.broken is not None:
            self._find(examination.problem, examination.broken.why, line, after)
        self._offset += size + 1

    def _check_record(self, record: Record | None, previous: str, after: int | None = None) -> None:
        match record:
            case Record(event=Checkpoint() as checkpoint) if checkpoint.previous != previous:
                self._find("checkpoint differs", "it was made for another log", after=after)
            case Record(event=Repaired(broken=broken)):
                self._mark_known({line.hash for line in broken})

    def _find(
        self, what: What, detail: str, line: bytes | None = None, after: int | None = None
    ) -> None:
        if len(self._findings) >= MAX_FINDINGS:
            self._more += 1
            return
        after = self._chain.last if after is None else after
        if isinstance(line, LongLine):
            hashes = {line.fingerprint}
        else:
            hashes = set() if line is None else {fingerprint(line), fingerprint(line + b"\n")}
        self._findings.append((Finding(after, self._offset, what, detail), hashes))

    def _mark_known(self, repaired: set[str]) -> None:
        """Mark findings in lines that a repair record lists."""
        self._findings = [
            (replace(finding, known=True) if repaired & hashes else finding, hashes)
            for finding, hashes in self._findings
        ]

    def _report(self) -> Report:
        chain, expected = self._chain, self._expected_head
        if expected is not None and not self._has_head:
            if chain.last < expected.seq:
                detail = f"the log ends with record {chain.last}, before record {expected.seq}"
            else:
                detail = f"record {expected.seq} is not the one that was noted"
            self._find("head differs", detail)
        notes: tuple[str, ...] = ()
        if self._foreign:
            notes = (f"{self._foreign} lines of another program are not protected by hashes",)
        return Report(
            records=self._records,
            size=self._offset,
            head=Head(chain.last, chain.head) if self._records else None,
            findings=tuple(finding for finding, _ in self._findings),
            notes=notes,
            more=self._more,
        )
