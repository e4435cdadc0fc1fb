"""Sessions in the memory of this process: for tests, and for runs that leave nothing behind."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from bridle.errors import SessionLocked, UnknownSession
from bridle.events import Event, PromptReceived, SessionStarted, TitleChanged
from bridle.protocols.store import InboxMessage, Record, SessionSummary
from bridle.stores.log_format import utc_timestamp


class MemoryLog:
    """A list of records with the interface of a log."""

    head = ""  # nothing is chained: no other process can reach it
    size = weight = 0  # nothing has to be read on resuming

    def __init__(self, session_id: str, records: list[Record], inbox: list[InboxMessage]) -> None:
        self.session_id = session_id
        self.records = records
        self.inbox = inbox
        self.is_open = True
        self._on_written: Callable[[Sequence[Record]], None] | None = None

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return len(self.records)

    @property
    def durable(self) -> int:
        """Memory does not become more durable."""
        return len(self.records)

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Number the event, keep it and pass it on."""
        record = Record(len(self.records) + 1, utc_timestamp(), event)
        self.records.append(record)
        if self._on_written is not None:
            self._on_written((record,))
        return record

    async def settled(self) -> None:
        """Memory does not become more durable."""

    def on_written(self, on_written: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `on_written` with each record."""
        self._on_written = on_written

    async def label(self, title: str, tags: Sequence[str]) -> None:
        """Do nothing: a list of sessions reads the records."""

    def inbox_messages(self) -> list[InboxMessage]:
        """The messages in the session's inbox, in order."""
        return list(self.inbox)

    def discard(self, message: InboxMessage) -> None:
        """Remove a message that has been handled."""
        with suppress(ValueError):
            self.inbox.remove(message)

    async def close(self) -> None:
        """Allow the log to be resumed."""
        self.is_open = False


class MemoryStore:
    """All sessions of one process."""

    def __init__(self) -> None:
        self._logs: dict[str, MemoryLog] = {}
        self._listener: tuple[asyncio.AbstractEventLoop, Callable[[], None]] | None = None

    def create(self, session_id: str) -> MemoryLog:
        """Create an empty log."""
        if session_id in self._logs:
            raise SessionLocked(f"session {session_id} exists already")
        log = self._logs[session_id] = MemoryLog(session_id, [], [])
        return log

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> MemoryLog:
        """Resume a log."""
        old = self._find(session_id)
        if old.is_open:
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

    def send_message(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into a session's inbox."""
        self._find(session_id).inbox.append(message)
        if self._listener is not None:
            loop, on_message = self._listener
            with suppress(RuntimeError):  # that loop is closed: nobody listens any more
                loop.call_soon_threadsafe(on_message)

    def delete(self, session_id: str) -> None:
        """Delete a session that nobody has open."""
        if self._find(session_id).is_open:
            raise SessionLocked(f"session {session_id} is open")
        del self._logs[session_id]

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Call `on_message` after each message; None: stop that."""
        self._listener = (
            (asyncio.get_running_loop(), on_message) if on_message is not None else None
        )

    def close(self) -> None:
        """Stop listening."""
        self._listener = None

    def _find(self, session_id: str) -> MemoryLog:
        try:
            return self._logs[session_id]
        except KeyError:
            raise UnknownSession(f"there is no session {session_id}") from None


def _summary(session_id: str, records: Sequence[Record]) -> SessionSummary:
    """What a list shows of a session."""
    workspace = model = title = prompt = ""
    for record in records:
        match record.event:
            case SessionStarted() as start:
                workspace, model = workspace or start.workspace, start.model or model
            case PromptReceived(content=content) if not prompt:
                prompt = content
            case TitleChanged(title=title):
                pass
    times = (records[0].timestamp, records[-1].timestamp) if records else ("", "")
    return SessionSummary(session_id, *times, title or prompt[:200], workspace, model)
