"""A store that tells spans of what is written to it: the same shape, around any other store.

So no engine, session or face knows of telemetry, and one without it does nothing more. A record is
looked at after it was taken; whatever goes wrong then is telemetry's trouble and not the session's.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bridle.engine.trace import Tracing
from bridle.events import Event
from bridle.promises.store import InboxMessage, Log, Record, SessionSummary, Store
from bridle.runtime.telemetry_spans import Sending, Tracer

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

log = logging.getLogger(__name__)


class TracedStore:
    """Where sessions are kept, and their spans told."""

    def __init__(self, store: Store, provider: "TracerProvider", *, content: bool = False) -> None:
        self._store = store
        self._tracer = Tracer(provider, content=content)

    def create(self, session_id: str) -> "TracedLog":
        """A new log."""
        return TracedLog(self._store.create(session_id), _Watch(self._tracer, session_id))

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> "TracedLog":
        """Take a log up; what stands in it was another process's, and is told by nobody."""
        watch = _Watch(self._tracer, session_id)

        def both(record: Record) -> None:
            apply(record)
            watch.take(record)

        watch.mute()
        inner = await self._store.resume(session_id, both)
        watch.unmute()
        return TracedLog(inner, watch)

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The records that have been written."""
        return self._store.read(session_id, after)

    def sessions(self) -> list[SessionSummary]:
        """All sessions, the newest first."""
        return self._store.sessions()

    def send_message(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into a session's inbox."""
        self._store.send_message(session_id, message)

    def delete(self, session_id: str) -> None:
        """Remove a session that nobody holds."""
        self._store.delete(session_id)

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Call `on_message` when there may be new messages."""
        self._store.listen(on_message)

    def close(self) -> None:
        """Let go of threads and clocks."""
        self._store.close()

    def __getattr__(self, name: str) -> Any:
        """What a store has beyond its promise, such as its folder."""
        return getattr(self._store, name)


class TracedLog:
    """A log whose records are told as spans."""

    def __init__(self, inner: Log, watch: "_Watch") -> None:
        self._log = inner
        self._watch = watch
        self.settled = inner.settled
        self.on_written: Callable[[Callable[[Sequence[Record]], None] | None], None]
        self.on_written = inner.on_written
        self.label = inner.label
        self.inbox_messages = inner.inbox_messages
        self.discard = inner.discard

    @property
    def session_id(self) -> str:
        """Whose log it is."""
        return self._log.session_id

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return self._log.seq

    @property
    def durable(self) -> int:
        """The number up to which everything would survive."""
        return self._log.durable

    @property
    def head(self) -> str:
        """The hash of the newest record."""
        return self._log.head

    @property
    def size(self) -> int:
        """Bytes since the newest checkpoint."""
        return self._log.size

    @property
    def weight(self) -> int:
        """Bytes of the newest checkpoint."""
        return self._log.weight

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Number it, hand it on, look at it."""
        record = self._log.append(event, data)
        self._watch.take(record)
        return record

    async def close(self) -> None:
        """Settle and let go; what is open is over."""
        try:
            await self._log.close()
        finally:
            self._watch.close()

    def __getattr__(self, name: str) -> Any:
        """What a log has beyond its promise, such as its path."""
        return getattr(self._log, name)


class _Watch:
    """The fold of one log and where its spans go. It never raises."""

    def __init__(self, tracer: Tracer, session_id: str) -> None:
        self._sending = Sending(tracer, session_id)
        self._tracing: Tracing | None = Tracing(self._sending.tell)

    def mute(self) -> None:
        """Tell nothing of what comes."""
        self._sending.muted = True

    def unmute(self) -> None:
        """Tell of what comes now, under a session span of its own."""
        self._sending.muted = False
        if self._tracing is not None:
            self._tracing.begin_anew()

    def take(self, record: Record) -> None:
        """One more record."""
        if self._tracing is not None:
            self._guarded(self._tracing.apply, record)

    def close(self) -> None:
        """There will be no more."""
        if self._tracing is not None:
            self._guarded(self._tracing.close)
            self._tracing = None

    def _guarded(self, work: Callable[..., None], *given: Record) -> None:
        try:
            work(*given)
        except Exception:  # somebody's exporter: a session does not end for that
            log.warning("the spans of a session are lost from here on", exc_info=True)
            self._tracing = None
