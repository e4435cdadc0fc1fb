"""Read logs: follow one forward, search one from its end, load one from its newest checkpoint.

No lock is taken, no event loop is needed and nothing is changed. Another process may be writing.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

import msgspec

from bridle.errors import StoreFailed, UnknownSession
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
from bridle.protocols.codec import to_record
from bridle.protocols.store import Record, SessionSummary
from bridle.stores.disk import Disk, NewerFormat, to_store_failed
from bridle.stores.hash_chain import (
    UNREADABLE,
    Chain,
    LongLine,
    LongLineHasher,
    fingerprint,
    is_proven,
    try_decode,
)
from bridle.stores.log_format import (
    FORMAT,
    HEADER,
    LOG_NAME,
    MAX_LINE,
    NUMBER,
    SESSION_ID,
    Read,
    iter_blocks_backward,
    iter_lines_backward,
    line_at,
    record_types,
    stated_hash,
)
from bridle.stores.session_index import list_sessions
from bridle.workspace.fs import FOLDER, open_file

_LOG = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_BLOCK = 1 << 20
_LARGE_BLOCK = 1 << 22
_NO_RECORD = 1 << 62  # a number that no record has
_NEAR = 1 << 17  # bytes; a stretch this short is read and not divided any more
_MAX_BROKEN = 1000  # damaged lines that are reported one by one

HASHES_REMOVED = "its hashes were taken away, so nothing shows whether it was altered; it was kept"
NEWLINE_MISSING = "only its end was missing; it was kept"

# Events that streamed while something was running. The messages that follow repeat their content.
_STREAMED = (
    TextDelta,
    ThinkingDelta,
    ToolCallStarted,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolOutputDelta,
)
_STREAMED_DATA = tuple(
    b'"data":{"type":"event","eventType":"%b"' % event.__name__.encode() for event in _STREAMED
)
_CHECKPOINT = record_types("checkpoint")
_PREVIOUS = re.compile(HEADER.pattern + rb',"previous":"([0-9a-f]{0,64})"')


# The lines of a file, forwards and backwards


class LineReader:
    """Read lines forward, a block at a time. At the end of the file it can be asked again.

    A line of more than `longest` bytes (`MAX_LINE`) becomes a `LongLine`. `previous_hashes` returns
    the hashes that such a line may continue.
    """

    def __init__(
        self,
        read: Read,
        offset: int = 0,
        *,
        longest: int | None = None,
        previous_hashes: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.offset = offset  # of the next byte to be read
        self.unfinished = 0  # bytes of a line whose end has not been read
        self._read = read
        self._longest = longest or MAX_LINE
        self._previous_hashes = previous_hashes
        self._pieces: list[bytes] = []  # of the unfinished line
        self._hasher: LongLineHasher | None = None  # if the unfinished line is too long

    def read_lines(self) -> list[bytes]:
        """The lines that end in the next blocks, without newlines; none at the end of the file."""
        while block := self._read(_BLOCK, self.offset):
            self.offset += len(block)
            end = block.rfind(b"\n")
            if end >= 0:
                return self._split(block, end)
            self._keep(block)
        return []

    def rewind(self, count: int = 0) -> None:
        """Read the unfinished line again, and `count` bytes before it: they may change."""
        self.offset -= self.unfinished + count
        self._forget()

    def _split(self, block: bytes, end: int) -> list[bytes]:
        lines = block[:end].split(b"\n")
        if self.unfinished:
            self._keep(lines[0])
            lines[0] = self._hasher.line() if self._hasher else b"".join(self._pieces)
        self._forget()
        self._keep(block[end + 1 :])
        return lines

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self.unfinished += len(piece)
        self._pieces.append(piece)
        if self.unfinished > self._longest:
            if self._hasher is None:
                self._hasher = LongLineHasher(self._previous_hashes())
            for part in self._pieces:
                self._hasher.update(part)
            self._pieces = []

    def _forget(self) -> None:
        self._pieces, self.unfinished, self._hasher = [], 0, None


class NumberedLine(NamedTuple):
    """A line with its newline, and where it begins. `seq` is 0 if it is not a record."""

    line: bytes
    offset: int
    seq: int
    hash: str


def iter_lines(file: BinaryIO) -> Iterator[NumberedLine]:
    """Number all whole lines as every reader does. Most of them are not decoded."""
    offset = last = 0
    for line in file:
        if not line.endswith(b"\n"):
            return
        number, digest = NUMBER.match(line), stated_hash(line[:-1])
        if number is not None and digest:
            seq = int(number[1])
        else:
            record = decode_line(line, last)
            seq, digest = (record.seq, record.hash) if record is not None else (0, "")
        yield NumberedLine(line, offset, seq, digest)
        last = seq or last
        offset += len(line)


def iter_blocks(handle: int, offset: int = 0) -> Iterator[bytes]:
    """Blocks of whole lines from `offset` on. An unfinished last line is left out."""
    rest: list[bytes] = []
    while block := os.pread(handle, _LARGE_BLOCK, offset):
        offset += len(block)
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, block[:end]))
            rest = []
        rest.append(block[end:])


def decode_line(line: bytes, last: int = 0) -> Record | None:
    """The record in a line, or None. A record without a number gets the one after `last`."""
    record = try_decode(line)
    if record is None or record.seq:
        return record
    return msgspec.structs.replace(record, seq=last + 1)


# The sessions of a state folder


class SessionFolder:
    """The sessions of a state folder, for reading."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def reader(self, session_id: str, after: int | None = 0, block: int = MAX_LINE) -> "LogReader":
        """Follow a log from the record after `after` on; None: only what is written from now on.

        At most `block` bytes are read at a time. Raise `UnknownSession`, `StoreFailed`.
        """
        try:
            folder, handle = open_log(str(self.path(session_id).parent), os.O_RDONLY)
            os.close(folder)
            with ExitStack() as opening:
                opening.callback(os.close, handle)
                reader = LogReader(handle, session_id, after, block)
                opening.pop_all()
        except FileNotFoundError:
            raise UnknownSession(f"there is no session {session_id}") from None
        except OSError as error:
            raise to_store_failed(session_id, error, "read") from error
        return reader

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The whole records that have been written."""
        with self.reader(session_id, after) as reader:
            while records := reader.read_new():
                yield from records

    def sessions(self) -> list[SessionSummary]:
        """All sessions, the newest first."""
        try:
            return [SessionSummary(*entry[:8]) for entry in list_sessions(self.folder)]
        except OSError as error:
            raise StoreFailed(f"cannot list the sessions: {error.strerror}", error) from error

    def path(self, session_id: str) -> Path:
        """Where the log of a session is."""
        self.check(session_id)
        return self.folder.joinpath("sessions", session_id, LOG_NAME)

    def check(self, session_id: str) -> None:
        """Raise `UnknownSession` for anything that cannot be the id of a session, as `../x`."""
        if not SESSION_ID.fullmatch(session_id):
            raise UnknownSession(f"{session_id[:60]!r} is not the id of a session")


def open_log(folder_path: str, flags: int) -> tuple[int, int]:
    """Open a session's folder and its log. No link is followed and nothing blocks."""
    folder = os.open(folder_path, FOLDER)
    try:
        handle = os.open(LOG_NAME, flags | _LOG, dir_fd=folder)
    except BaseException:
        os.close(folder)
        raise
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return folder, handle
    os.close(handle)
    os.close(folder)
    raise OSError(errno.EINVAL, "it is not a file")


@contextmanager
def _log_of(folder: SessionFolder, session_id: str) -> Iterator[int]:
    """The handle of a session's log. Raise `UnknownSession`, `StoreFailed`."""
    try:
        handle = open_file(folder.path(session_id))
    except FileNotFoundError:
        raise UnknownSession(f"there is no session {session_id}") from None
    except OSError as error:
        raise to_store_failed(session_id, error, "read") from error
    try:
        yield handle
    except OSError as error:
        raise to_store_failed(session_id, error, "read") from error
    finally:
        os.close(handle)


def find_records(folder: SessionFolder, session_id: str, content: bytes) -> Iterator[Record]:
    """The records whose lines contain these bytes, the newest first.

    The bytes may be part of somebody's text, so check what you get. Raise `UnknownSession`,
    `StoreFailed`.
    """
    with _log_of(folder, session_id) as handle:
        size = os.fstat(handle).st_size
        for _, block in iter_blocks_backward(partial(os.pread, handle), size):
            offset = block.rfind(content)
            while offset >= 0:
                start = block.rfind(b"\n", 0, offset) + 1
                record = decode_line(line_at(block, offset))
                if record is not None:
                    yield record
                offset = block.rfind(content, 0, start)


def replay(folder: SessionFolder, session_id: str, apply: Callable[[Record], None]) -> int:
    """Pass `apply` all records that make up a session's state; return the newest number.

    These are the newest `Checkpoint` and the records after it, or else all records, in both cases
    without those that only streamed. Raise `UnknownSession`, `StoreFailed`.
    """
    with _log_of(folder, session_id) as handle:
        loader = LogLoader(Disk(), handle)
        for batch in loader.records():
            for record in batch:
                apply(record)
        return loader.chain.top


# Following a log


class LogReader:
    """The records of one log while another process may be writing it: no gap, none twice."""

    def __init__(
        self, handle: int, session_id: str, after: int | None = 0, block: int = MAX_LINE
    ) -> None:
        self._handle, self._session_id = handle, session_id
        self._after = _NO_RECORD if after is None else after
        read = partial(os.pread, handle)
        self._chain = Chain()
        self._lines = LineReader(lambda count, offset: read(min(count, block), offset))
        if self._after:
            size = os.fstat(handle).st_size
            self._lines.offset, self._chain = _start_near(read, size, self._after)
        if after is None:
            while self.read_new_lines():
                pass
            self._after = self._chain.last

    @property
    def last(self) -> int:
        """The number of the newest record that was read or skipped."""
        return self._chain.last

    def read_new(self) -> list[Record]:
        """Records that were added since the last call; none if there are none at the moment."""
        return [
            to_record(line) if isinstance(line, bytes) else line for line in self.read_new_lines()
        ]

    def read_new_lines(self) -> list[bytes | Record]:
        """Like `read_new`, but our own lines stay undecoded."""
        try:
            while lines := self._lines.read_lines():
                self._lines.rewind()  # an unfinished line may be cut off and replaced
                stays = self._leave_damaged_end(lines)
                if new := self._check(lines):
                    return new
                if stays:
                    return []
            self._lines.rewind()
            info = os.fstat(self._handle)
        except OSError as error:
            raise to_store_failed(self._session_id, error, "read") from error
        if info.st_nlink == 0:
            raise UnknownSession(f"session {self._session_id} was deleted")
        return []

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __enter__(self) -> "LogReader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _leave_damaged_end(self, lines: list[bytes]) -> bool:
        """Leave a damaged last line for later: the process that resumes the session cuts it off."""
        last = lines[-1]
        if os.fstat(self._handle).st_size > self._lines.offset or isinstance(last, LongLine):
            return False
        if try_decode(last) is not None:
            return False
        self._lines.rewind(len(lines.pop()) + 1)
        return True

    def _check(self, lines: list[bytes]) -> list[bytes | Record]:
        new: list[bytes | Record] = []
        index, chain = 0, self._chain
        while index < len(lines):
            until = chain.follow(lines, index)
            skip = max(index, until - max(0, chain.last - self._after))  # these are known
            new += lines[skip:until]
            index = until + 1
            if until < len(lines):
                records = chain.examine(lines[until]).records
                new += [record for record in records if record.seq > self._after]
        return new


def _start_near(read: Read, size: int, after: int) -> tuple[int, Chain]:
    """Find an offset not far before a record, by bisection, and the chain at that offset.

    Only two lines that prove each other count, so a damaged number cannot mislead. If there are
    none, reading starts further ahead.
    """
    start, chain, high = 0, Chain(), size
    while high - start > _NEAR:
        middle = (start + high) // 2
        offset, proven = _proven_offset(read(_NEAR, middle), middle)
        if proven is None or proven.last > after:
            high = middle
        else:
            start, chain = offset, proven
    return start, chain


def _proven_offset(block: bytes, offset: int) -> tuple[int, Chain | None]:
    """The offset behind the first two lines that prove each other, and the chain there."""
    first, *lines = block.split(b"\n")[:-1] or [b""]
    offset += len(first) + 1
    for before, line in pairwise(lines):
        offset += len(before) + 1
        number = NUMBER.match(line)
        if number is not None and is_proven(line, before[-34:-2].decode("latin-1")):
            return offset + len(line) + 1, Chain(int(number[1]), line[-34:-2].decode())
    return 0, None


# Loading a log


class DamageReport:
    """Damaged lines, at most as many as a record can list, and those that are reported already.

    A damaged line is identified by the record before it and by its hash.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[int, str], BrokenLine] = {}
        self._reported: set[tuple[int, str]] = set()
        self._more = self._more_size = self._more_after = 0
        self._more_hash = blake2b(digest_size=16)

    def add(self, line: BrokenLine) -> None:
        """Add a line. Those beyond a limit are reported as one."""
        if len(self._lines) < _MAX_BROKEN:
            self._lines[line.after, line.hash] = line
            return
        self._more_after = self._more_after or line.after
        self._more, self._more_size = self._more + 1, self._more_size + line.size
        self._more_hash.update(line.hash.encode())

    def mark_reported(self, lines: Iterable[BrokenLine]) -> None:
        """Leave out lines that a repair record in the log lists."""
        self._reported.update((line.after, line.hash) for line in lines)

    @property
    def unreported(self) -> tuple[BrokenLine, ...]:
        """The damaged lines that the log does not list yet."""
        lines = list(self._lines.values())
        if self._more:
            reason = f"{self._more} more lines were damaged"
            digest = self._more_hash.hexdigest()
            lines.append(BrokenLine(self._more_after, self._more_size, digest, reason))
        return tuple(line for line in lines if (line.after, line.hash) not in self._reported)


class LogLoader:
    """Read a log to resume its session: from its newest checkpoint on, or else from its beginning.

    Blocks are read and their records passed on, so a log may be of any size. Damage is reported,
    not repaired. Run it in a thread.
    """

    def __init__(self, disk: Disk, handle: int) -> None:
        info = disk.look(handle)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        self.size = info.st_size
        self.torn = 0  # bytes at the end that are to be cut off
        self.missing_newline = b""  # the newline to be added to the last line
        self.checkpoint_end = 0  # where the line of the checkpoint ends; 0: there is none
        self._disk, self._handle = disk, handle
        self._damage = DamageReport()
        self._count = 0  # records
        self._unproven = False  # whether a line is a record, but does not agree with its hash
        self._hashes_removed = False
        self._broken_last: BrokenLine | None = None  # if the newest line is not a record
        self._top_before_broken = 0  # the largest number before that line

    def records(self) -> Iterator[list[Record]]:
        """The records that make up the session's state, in batches."""
        self._check_format(self._read(1 << 16, 0).partition(b"\n")[0])
        start, self.chain = self._find_start()
        lines = LineReader(self._read, start)
        while batch := lines.read_lines():
            yield list(self._take(batch))
        yield list(self._take_unfinished(lines))
        self._finish(lines)

    @property
    def end(self) -> int:
        """Where the undamaged part ends."""
        return self.size - self.torn

    @property
    def repair(self) -> Repaired | None:
        """The damage that the log does not report yet."""
        broken = self._damage.unreported
        return Repaired(self.torn, broken) if self.torn or broken else None

    def _read(self, count: int, offset: int) -> bytes:
        """Read no more than there was when the log was opened."""
        return self._disk.read(self._handle, min(count, max(0, self.size - offset)), offset)

    def _find_start(self) -> tuple[int, Chain]:
        """The newest checkpoint that its own hash proves, or the beginning of the file."""
        for record in iter_lines_backward(self._read, self.size, _CHECKPOINT):
            checkpoint = _PREVIOUS.match(record.line)
            if checkpoint is None:
                continue
            previous = checkpoint[4].decode()
            if is_proven(record.line[:-1], previous):
                self.checkpoint_end = record.offset + len(record.line)
                return record.offset, Chain(int(checkpoint[1]) - 1, previous)
        return 0, Chain()

    def _take(self, lines: list[bytes]) -> Iterator[Record]:
        chain, index = self.chain, 0
        while index < len(lines):
            until = chain.follow(lines, index)
            self._count += until - index
            for line in lines[index:until]:
                if not line.startswith(_STREAMED_DATA, line.find(b'"data":', 20, 80)):
                    yield self._note(to_record(line))
            if until > index:
                self._add_broken_last()
            index = until
            if index < len(lines):
                yield from self._examine(lines[index])
                index += 1

    def _examine(self, line: bytes) -> Iterator[Record]:
        top = self.chain.top
        records, broken, *_ = self.chain.examine(line)
        self._add_broken_last()
        if broken is not None:
            self._unproven = self._unproven or broken.why != UNREADABLE
            if not records and broken.why == UNREADABLE:
                self._broken_last, self._top_before_broken = broken, top
            else:
                self._damage.add(broken)
        self._count += len(records)
        for record in records:
            if not isinstance(record.event, _STREAMED):
                self._check_hashes(record, line)
                yield self._note(record)

    def _add_broken_last(self) -> None:
        """Another line follows the broken one, so it is not cut off as a torn end."""
        if self._broken_last is not None:
            self._damage.add(self._broken_last)
            self._broken_last = None

    def _check_hashes(self, record: Record, line: bytes) -> None:
        """Report that a log of ours lost its hashes. Other programs' logs name no format."""
        ours = isinstance(record.event, SessionStarted) and b'"format":' in line
        if ours and not record.hash and not self._hashes_removed:
            self._hashes_removed = True
            self._damage.add(BrokenLine(record.seq - 1, 0, fingerprint(line), HASHES_REMOVED))

    def _take_unfinished(self, lines: LineReader) -> Iterator[Record]:
        """A last line that lacks only its newline: its hash says that it is whole."""
        if not 0 < lines.unfinished <= MAX_LINE or self._broken_last is not None:
            return
        line, after = self._read(lines.unfinished, self.size - lines.unfinished), self.chain.last
        if is_proven(line, self.chain.head):
            yield from self._take([line])
        if self.chain.last > after:
            self.missing_newline = b"\n"
            self._damage.add(BrokenLine(after, len(line), fingerprint(line), NEWLINE_MISSING))

    def _note(self, record: Record) -> Record:
        event = record.event
        if isinstance(event, Repaired):
            self._damage.mark_reported(event.broken)
        elif isinstance(event, SessionStarted) and event.format > FORMAT:
            raise NewerFormat(errno.EINVAL, f"a newer bridle wrote it (format {event.format})")
        return record

    def _check_format(self, first_line: bytes) -> None:
        """Check the first line by itself: reading may start far behind it."""
        if (record := try_decode(first_line)) is not None:
            self._note(record)

    def _finish(self, lines: LineReader) -> None:
        """Decide what is cut off: an unfinished line, or else a last one that is damaged."""
        if self.size and not self._count and self._unproven:
            raise OSError(errno.EBADMSG, "no line in it agrees with its hash")
        if self.size and not self._count:
            raise OSError(errno.EINVAL, "it holds no log")
        self.torn = 0 if self.missing_newline else lines.unfinished
        if self._broken_last is None:
            return
        if self.torn:
            self._damage.add(self._broken_last)
        else:
            self.torn, self.chain.top = self._broken_last.size + 1, self._top_before_broken
