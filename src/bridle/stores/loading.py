"""Taking up a log: from its newest checkpoint on, or from the beginning; whole lines are kept.

Reads in blocks and hands on records as it goes, so that a log of any size fits. Runs in a thread.
Nothing is changed here; what was found damaged is said, and where the whole part ends.
"""

import errno
import re
import stat
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from bridle.events import (
    BrokenLine,
    Repaired,
    SessionStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
)
from bridle.promises.codec import to_record
from bridle.promises.store import Record
from bridle.stores.chain import UNREADABLE, Chain, fingerprint, proven, to_readable
from bridle.stores.disk import Disk
from bridle.stores.failure import NewerFormat
from bridle.stores.lines import LONGEST, Lines, Overlong

FORMAT = 1
BARE = "its hashes were taken away, so nothing shows whether it was altered; it was kept"
UNENDED = "only its end was missing; it was kept"
_BLOCK = 1 << 20
_CHECKPOINT = re.compile(
    rb'\{"seq":(\d{1,18}),"timestamp":"[^"]{0,40}","data":'
    rb'\{"type":"checkpoint","previous":"([0-9a-f]{0,64})"'
)
_MARK = b'"data":{"type":"checkpoint","previous":"'
_HEAD = 1 << 16
_MOST = 1000  # damaged lines that are told one by one
_START = 128  # bytes; the mark of a checkpoint lies within them
# What was only said while something was under way adds nothing to a session that is taken up.
_PASSING = (
    TextDelta,
    ThinkingDelta,
    ToolCallStarted,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolOutputDelta,
)
_PASSED = tuple(b'"data":{"type":"event","eventType":"%b"' % k.__name__.encode() for k in _PASSING)


class Damage:
    """Damaged lines, as many as a record can tell of; and which of them the log tells of already.

    One is known by what stands before it and by its hash.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], BrokenLine] = {}
        self._known: set[tuple[int, str]] = set()
        self._more = self._size = self._after = 0
        self._hash = blake2b(digest_size=16)

    def add(self, line: BrokenLine) -> None:
        """One more; when there are too many they are told as one."""
        if len(self._found) < _MOST:
            self._found[line.after, line.hash] = line
            return
        self._after = self._after or line.after
        self._more, self._size = self._more + 1, self._size + line.size
        self._hash.update(line.hash.encode())

    def forget(self, lines: Iterable[BrokenLine]) -> None:
        """The log tells of these."""
        self._known.update((line.after, line.hash) for line in lines)

    @property
    def new(self) -> tuple[BrokenLine, ...]:
        """Those of which the log does not tell."""
        lines = list(self._found.values())
        if self._more:
            why = f"{self._more} more lines were damaged"
            lines.append(BrokenLine(self._after, self._size, self._hash.hexdigest(), why))
        return tuple(one for one in lines if (one.after, one.hash) not in self._known)


class Loading:
    """One log that is being read by the one who takes it up."""

    def __init__(self, disk: Disk, handle: int) -> None:
        info = disk.look(handle)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        self.size = info.st_size
        self.torn = 0
        self.missing = b""  # of a last line that is kept
        self._damage = Damage()
        self.checkpoint = 0  # where the line of the checkpoint ends; 0: there is none
        self._disk, self._handle = disk, handle
        self._count = 0
        self._unproven = self._bare = False
        self._last: BrokenLine | None = None  # if the newest line is no record
        self._top = 0  # the largest number before that line

    def records(self) -> Iterator[list[Record]]:
        """The records that tell all of it, in batches."""
        self._check_format(self._read(_HEAD, 0).partition(b"\n")[0])
        start, self.chain = self._begin()
        lines = Lines(self._read, start)
        while batch := lines.more():
            yield list(self._sift(batch))
        yield list(self._unended(lines))
        self._finish(lines)

    def _read(self, count: int, offset: int) -> bytes:
        """What was there when the lock was taken."""
        return self._disk.read(self._handle, min(count, max(0, self.size - offset)), offset)

    @property
    def end(self) -> int:
        """Where the part that is whole ends."""
        return self.size - self.torn

    @property
    def repair(self) -> Repaired | None:
        """What was found and has not been said in the log."""
        new = self._damage.new
        return Repaired(self.torn, new) if self.torn or new else None

    def _sift(self, lines: list[bytes]) -> Iterator[Record]:
        chain, index = self.chain, 0
        while index < len(lines):
            until = chain.follow(lines, index)
            self._count += until - index
            for line in lines[index:until]:
                if not line.startswith(_PASSED, line.find(b'"data":', 20, 80)):
                    yield self._noted(to_record(line))
            if until > index and self._last is not None:
                self._damage.add(self._last)
                self._last = None
            index = until
            if index < len(lines):
                yield from self._look(lines[index])
                index += 1

    def _look(self, line: bytes) -> Iterator[Record]:
        top = self.chain.top
        records, broken = self.chain.look(line)
        if self._last is not None:  # it was not the last line after all
            self._damage.add(self._last)
            self._last = None
        if broken is not None:
            self._unproven = self._unproven or broken.why != UNREADABLE
            if not records and broken.why == UNREADABLE:
                self._last, self._top = broken, top
            else:
                self._damage.add(broken)
        self._count += len(records)
        for record in records:
            if not isinstance(record.event, _PASSING):
                self._check_protection(record, line)
                yield self._noted(record)

    def _check_protection(self, record: Record, line: bytes) -> None:
        """A log of ours has hashes; one of another program has none, and says no format."""
        ours = isinstance(record.event, SessionStarted) and b'"format":' in line
        if ours and not record.hash and not self._bare:
            self._bare = True
            self._damage.add(BrokenLine(record.seq - 1, 0, fingerprint(line), BARE))

    def _unended(self, lines: Lines) -> Iterator[Record]:
        """A last line that lacks only its end: its hash says that it is whole."""
        if not 0 < lines.open <= LONGEST or self._last is not None:
            return
        line, after = self._read(lines.open, self.size - lines.open), self.chain.last
        if proven(line, self.chain.head):
            yield from self._sift([line])
        if self.chain.last > after:
            self.missing = b"\n"
            self._damage.add(BrokenLine(after, len(line), fingerprint(line), UNENDED))

    def _noted(self, record: Record) -> Record:
        event = record.event
        if isinstance(event, Repaired):
            self._damage.forget(event.broken)
        elif isinstance(event, SessionStarted) and event.format > FORMAT:
            raise NewerFormat(errno.EINVAL, f"a newer bridle wrote it (format {event.format})")
        return record

    def _check_format(self, line: bytes) -> None:
        """Of the first line: the reading may begin far behind it."""
        if (record := to_readable(line)) is not None:
            self._noted(record)

    def _finish(self, lines: Lines) -> None:
        """The end of the file: a line without its end is cut, or else one that is no record."""
        if self.size and not self._count and self._unproven:
            raise OSError(errno.EBADMSG, "no line in it agrees with its hash")
        if self.size and not self._count:
            raise OSError(errno.EINVAL, "it holds no log")
        self.torn = 0 if self.missing else lines.open
        if self._last is None:
            return
        if self.torn:
            self._damage.add(self._last)
        else:
            self.torn, self.chain.top = self._last.size + 1, self._top

    def _begin(self) -> tuple[int, Chain]:
        """Where to begin: at the newest checkpoint that its own hash proves, or at the start."""
        for offset in self._marks():
            line = self._line_at(offset)
            found = _CHECKPOINT.match(line)
            if found is not None and proven(line, found[2].decode()):
                self.checkpoint = offset + len(line) + 1
                return offset, Chain(int(found[1]) - 1, found[2].decode())
        return 0, Chain()

    def _marks(self) -> Iterator[int]:
        """Where lines begin that may be checkpoints, from the end of the file backwards."""
        end = self.size
        while end > 0:
            start = max(0, end - _BLOCK)
            block = self._read(end - start + len(_MARK), start)
            found = block.rfind(_MARK)
            while found >= 0:
                if (offset := self._line_before(start + found)) >= 0:
                    yield offset
                found = block.rfind(_MARK, 0, found)
            end = start

    def _line_before(self, mark: int) -> int:
        """Where the line of this mark begins; -1: too far away."""
        start = max(0, mark - _START)
        block = self._read(mark - start, start)
        found = block.rfind(b"\n")
        return start + found + 1 if found >= 0 else (0 if start == 0 else -1)

    def _line_at(self, offset: int) -> bytes:
        lines = Lines(self._read, offset)
        batch = lines.more()
        return batch[0] if batch and not isinstance(batch[0], Overlong) else b""
