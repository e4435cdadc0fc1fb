"""Sessions kept in this process and nowhere else: for tests, and for runs that leave no trace."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from bridle.errors import SessionLocked, UnknownSession
from bridle.events import Event, PromptReceived, SessionStarted, TitleChanged
from bridle.promises.store import Letter, Record, SessionSummary
from bridle.stores.clock import stamp


class MemoryLog:
    """A list of records with the promise of a log."""

    head = ""  # nothing is chained here: nobody else can reach it
    size = weight = 0  # and nothing has to be read again

    def __init__(self, session_id: str, records: list[Record], inbox: list[Letter]) -> None:
        self.session_id = session_id
        self.records = records
        self.inbox = inbox
        self.held = True
        self._tell: Callable[[Sequence[Record]], None] | None = None

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return len(self.records)

    @property
    def durable(self) -> int:
        """Memory is always as durable as it gets."""
        return len(self.records)

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Number it and tell it."""
        record = Record(len(self.records) + 1, stamp(), event)
        self.records.append(record)
        if self._tell is not None:
            self._tell((record,))
        return record

    async def settled(self) -> None:
        """Memory is always as durable as it gets."""

    def on_written(self, tell: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `tell` with each record."""
        self._tell = tell

    async def label(self, title: str, tags: Sequence[str]) -> None:
        """A list of sessions looks at the records."""

    def letters(self) -> list[Letter]:
        """What others have put into the session's inbox, in order."""
        return list(self.inbox)

    def discard(self, letter: Letter) -> None:
        """That letter is done."""
        with suppress(ValueError):
            self.inbox.remove(letter)

    async def close(self) -> None:
        """Let somebody else take the log."""
        self.held = False


class MemoryStore:
    """All sessions of one process."""

    def __init__(self) -> None:
        self._logs: dict[str, MemoryLog] = {}
        self._bell: tuple[asyncio.AbstractEventLoop, Callable[[], None]] | None = None

    def create(self, session_id: str) -> MemoryLog:
        """A new, empty log."""
        if session_id in self._logs:
            raise SessionLocked(f"session {session_id} exists already")
        log = self._logs[session_id] = MemoryLog(session_id, [], [])
        return log

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> MemoryLog:
        """Take a log up again."""
        old = self._find(session_id)
        if old.held:
            raise SessionLocked(f"session {session_id} is open already")
        for record in old.records:
            apply(record)
        log = self._logs[session_id] = MemoryLog(session_id, old.records, old.inbox)
        return log

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The records after that number."""
        return iter(self._find(session_id).records[after:])

    def sessions(self) -> list[SessionSummary]:
        """All of them, the newest first."""
        return [_summary(log.session_id, log.records) for log in reversed(self._logs.values())]

    def post(self, session_id: str, letter: Letter) -> None:
        """Put a verb into a session's inbox."""
        self._find(session_id).inbox.append(letter)
        if self._bell is not None:
            loop, ring = self._bell
            with suppress(RuntimeError):  # that loop is over: nobody listens any more
                loop.call_soon_threadsafe(ring)

    def delete(self, session_id: str) -> None:
        """Remove a session that nobody holds."""
        if self._find(session_id).held:
            raise SessionLocked(f"session {session_id} is open")
        del self._logs[session_id]

    def listen(self, ring: Callable[[], None] | None) -> None:
        """Call `ring` after each letter; None: no longer."""
        self._bell = (asyncio.get_running_loop(), ring) if ring is not None else None

    def close(self) -> None:
        """Nobody listens any more."""
        self._bell = None

    def _find(self, session_id: str) -> MemoryLog:
        try:
            return self._logs[session_id]
        except KeyError:
            raise UnknownSession(f"there is no session {session_id}") from None


def _summary(session_id: str, records: Sequence[Record]) -> SessionSummary:
    """What the first records, and the newest, say of a session."""
    workspace = model = title = first = ""
    for record in records:
        match record.event:
            case SessionStarted() as start:
                workspace, model = workspace or start.workspace, start.model or model
            case PromptReceived(content=content) if not first:
                first = content
            case TitleChanged(title=title):
                pass
    times = (records[0].timestamp, records[-1].timestamp) if records else ("", "")
    return SessionSummary(session_id, *times, title or first[:200], workspace, model)
