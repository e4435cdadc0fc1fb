"""Reading a folder of sessions: no lock, no event loop, nothing is changed.

Kept apart from the writing so that a list of sessions is there at once.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import TracebackType

from bridle.errors import StoreFailed, UnknownSession
from bridle.promises.codec import to_record
from bridle.promises.store import Record, SessionSummary
from bridle.stores.chain import Chain, proven, to_readable
from bridle.stores.failure import typed
from bridle.stores.lines import LONGEST, Lines, Overlong
from bridle.stores.naming import ID

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READING = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NUMBER = re.compile(rb'\{"seq":(\d{1,18}),"timestamp":"')
_NEVER = 1 << 62
_NEAR = 1 << 17  # bytes; a stretch of that length is read, and not divided any more


class SessionFolder:
    """A folder of sessions, for reading."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def reader(self, session_id: str, after: int | None = 0, block: int = LONGEST) -> "Reader":
        """What is written after that number, and what will be; None: only what will be.

        `block` bounds the bytes that are read at a time. Raise `UnknownSession`, `StoreFailed`.
        """
        try:
            folder, handle = log_handles(str(self.path(session_id).parent), os.O_RDONLY)
            os.close(folder)
            with ExitStack() as opening:
                opening.callback(os.close, handle)
                reader = Reader(handle, session_id, after, block)
                opening.pop_all()
        except FileNotFoundError:
            raise UnknownSession(f"there is no session {session_id}") from None
        except OSError as error:
            raise typed(session_id, error, "read") from error
        return reader

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The records that have been written, as far as they are whole."""
        with self.reader(session_id, after) as reader:
            while records := reader.more():
                yield from records

    def sessions(self) -> list[SessionSummary]:
        """All of them, the newest first."""
        from bridle.stores.glance import glance  # a session that runs never looks at a list

        try:
            return [SessionSummary(*one[:8]) for one in glance(self.folder)]
        except OSError as error:
            raise StoreFailed(f"cannot list the sessions: {error.strerror}", error) from error

    def path(self, session_id: str) -> Path:
        """Where a session's log lies."""
        self.check(session_id)
        return self.folder.joinpath("sessions", session_id, "log.jsonl")

    def check(self, session_id: str) -> None:
        """See that it can be the id of a session, and leads nowhere else."""
        if not ID.fullmatch(session_id):
            raise UnknownSession(f"{session_id[:60]!r} is not the id of a session")


def log_handles(path: str, flags: int) -> tuple[int, int]:
    """The handles of a session's folder and of its log; no link is followed, nothing blocks."""
    folder = os.open(path, _FOLDER)
    try:
        handle = os.open("log.jsonl", flags | _READING, dir_fd=folder)
    except BaseException:
        os.close(folder)
        raise
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return folder, handle
    os.close(handle)
    os.close(folder)
    raise OSError(errno.EINVAL, "it is not a file")


class Reader:
    """The records of one log, while somebody else may be writing it. No gap, no repeat."""

    def __init__(
        self, handle: int, session_id: str, after: int | None = 0, block: int = LONGEST
    ) -> None:
        self._handle, self._session_id = handle, session_id
        self._after = _NEVER if after is None else after
        read = partial(os.pread, handle)
        self._chain = Chain()
        self._lines = Lines(lambda count, offset: read(min(count, block), offset))
        if self._after:
            size = os.fstat(handle).st_size
            self._lines.offset, self._chain = _near(read, size, self._after)
        if after is None:
            while self.raw():
                pass
            self._after = self._chain.last

    @property
    def last(self) -> int:
        """The number of the newest record that was read, or passed over."""
        return self._chain.last

    def more(self) -> list[Record]:
        """Records that were added since the last time; none: there are none at the moment."""
        return [to_record(one) if isinstance(one, bytes) else one for one in self.raw()]

    def raw(self) -> list[bytes | Record]:
        """The same, and our own lines as they stand, for one who need not know what they say."""
        try:
            while lines := self._lines.more():
                self._lines.back()  # what has no end yet may be cut, and something else be there
                stays = self._stays(lines)
                if found := self._sift(lines):
                    return found
                if stays:
                    return []
            self._lines.back()
            info = os.fstat(self._handle)
        except OSError as error:
            raise typed(self._session_id, error, "read") from error
        if info.st_nlink == 0:
            raise UnknownSession(f"session {self._session_id} was deleted")
        return []

    def close(self) -> None:
        """Let the file go."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _stays(self, lines: list[bytes]) -> bool:
        """Leave a last line that is no record where it is: whoever takes the log up cuts it."""
        last = lines[-1]
        if os.fstat(self._handle).st_size > self._lines.offset or isinstance(last, Overlong):
            return False
        if to_readable(last) is not None:
            return False
        self._lines.back(len(lines.pop()) + 1)
        return True

    def _sift(self, lines: list[bytes]) -> list[bytes | Record]:
        found: list[bytes | Record] = []
        index, chain = 0, self._chain
        while index < len(lines):
            until = chain.follow(lines, index)
            skip = max(index, until - max(0, chain.last - self._after))  # seen already
            found += lines[skip:until]
            index = until + 1
            if until < len(lines):
                records, _ = chain.look(lines[until])
                found += [record for record in records if record.seq > self._after]
        return found


def _near(read: Callable[[int, int], bytes], size: int, after: int) -> tuple[int, Chain]:
    """Where to begin, not far before a number, and what stands there.

    The file is halved on numbers. Only two lines that prove each other count, so that no damaged
    number leads astray; where there are none, the reading begins further ahead.
    """
    start, chain, high = 0, Chain(), size
    while high - start > _NEAR:
        middle = (start + high) // 2
        offset, found = _anchor(read(_NEAR, middle), middle)
        if found is None or found.last > after:
            high = middle
        else:
            start, chain = offset, found
    return start, chain


def _anchor(block: bytes, offset: int) -> tuple[int, Chain | None]:
    """Behind the first two lines of a block that prove each other: the place, and the chain."""
    first, *lines = block.split(b"\n")[:-1] or [b""]
    offset += len(first) + 1
    for before, line in pairwise(lines):
        offset += len(before) + 1
        number = _NUMBER.match(line)
        if number is not None and proven(line, before[-34:-2].decode("latin-1")):
            return offset + len(line) + 1, Chain(int(number[1]), line[-34:-2].decode())
    return 0, None
