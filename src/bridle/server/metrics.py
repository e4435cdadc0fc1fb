"""What the server does, in numbers: Prometheus' text, written without its library.

Looks at sessions and streams when somebody asks; what adds up is counted as sessions say that they
have changed. No label has values that a client, a model or a session could choose.
"""

import os
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bridle import __version__

if TYPE_CHECKING:
    from bridle.engine.session import Session

MEDIA = "text/plain; version=0.0.4"  # the charset is said by whoever sends it
_PAGE = os.sysconf("SC_PAGE_SIZE")


class MetricsSource(Protocol):
    """As much of the server's sessions as is counted."""

    def get_open(self, session_id: str) -> "Session | None": ...
    def open_sessions(self) -> "tuple[Session, ...]": ...
    def on_changed(
        self, tell: Callable[[str, str], None], *, others: bool = True
    ) -> Callable[[], None]: ...


class StreamCounter(Protocol):
    """As much of the streams."""

    def __len__(self) -> int: ...
    @property
    def told(self) -> int: ...


class SessionUsage(NamedTuple):
    """What a session had used when it was last looked at."""

    prompts: float = 0
    read: float = 0
    written: float = 0
    cost: float = 0
    unpriced: float = 0


class Metrics:
    """Counts, from when it is made. Call it for the text."""

    def __init__(
        self,
        sessions: MetricsSource,
        streams: StreamCounter,
        errors: Mapping[str, int] | None = None,
    ) -> None:
        self._sessions = sessions
        self._streams = streams
        self._errors: Mapping[str, int] = errors if errors is not None else {}
        self._since = time.time()
        self._sum = SessionUsage()
        self._open: dict[
            str, tuple[Session, SessionUsage]
        ] = {}  # and what they had used when counted
        for session in sessions.open_sessions():
            self._open[session.id] = session, session_usage(session)
        self._deaf = sessions.on_changed(self._changed, others=False)

    def close(self) -> None:
        """Count no more."""
        self._deaf()

    def __call__(self) -> bytes:
        """All of it, as Prometheus reads it."""
        sessions = self._sessions.open_sessions()
        for session_id in list(self._open):
            self._count(session_id)
        lines = [*self._gauges(sessions), *self._counters(), *_process(), ""]
        return "\n".join(lines).encode()

    def _changed(self, session_id: str, how: str) -> None:
        if how == "changed":
            return  # it is counted when somebody asks, or when it is closed
        self._count(session_id)
        session = self._sessions.get_open(session_id)
        if session is None:
            self._open.pop(session_id, None)
        elif session_id not in self._open or self._open[session_id][0] is not session:
            self._open[session_id] = (
                session,
                session_usage(session),
            )  # what it used before was counted

    def _count(self, session_id: str) -> None:
        if (found := self._open.get(session_id)) is None:
            return
        session, before = found
        if (now := session_usage(session)) != before:
            self._open[session_id] = session, now
            grown = (max(0, new - old) for new, old in zip(now, before, strict=True))
            self._sum = SessionUsage(*(a + b for a, b in zip(self._sum, grown, strict=True)))

    def _gauges(self, sessions: "tuple[Session, ...]") -> Iterable[str]:
        running = sum(one.is_busy and not one.history.pending for one in sessions)
        waiting = sum(len(one.history.pending) for one in sessions)
        yield from _one("info", "gauge", "Which bridle this is.", {f'version="{__version__}"': 1})
        yield from _one("sessions_open", "gauge", "Sessions that are open here.", len(sessions))
        yield from _one(
            "turns_running",
            "gauge",
            "Turns that are running and not waiting for a person.",
            running,
        )
        yield from _one("questions_waiting", "gauge", "Questions nobody has answered.", waiting)
        yield from _one("streams_open", "gauge", "Live streams.", len(self._streams))
        yield from _one("uptime_seconds", "gauge", "Since the start.", time.time() - self._since)

    def _counters(self) -> Iterable[str]:
        used = self._sum
        tokens = {'direction="read"': used.read, 'direction="written"': used.written}
        errors = {f'code="{code}"': count for code, count in sorted(self._errors.items())}
        told = self._streams.told
        yield from _one("records_told_total", "counter", "Records made ready for streams.", told)
        yield from _one("prompts_total", "counter", "Prompts that got a turn.", used.prompts)
        yield from _one("tokens_total", "counter", "Tokens that models have used.", tokens)
        yield from _one("cost_dollars_total", "counter", "What could be priced.", used.cost)
        yield from _one("unpriced_total", "counter", "Replies without a price.", used.unpriced)
        yield from _one("errors_total", "counter", "Answers that were a no.", errors)


def session_usage(session: "Session") -> SessionUsage:
    """What a session has used so far."""
    used = session.metrics
    written = used.total_output_tokens
    read = used.tokens - written
    return SessionUsage(session.history.turn, read, written, used.cost, used.unpriced)


def _one(
    name: str, kind: str, words: str, value: float | Mapping[str, float], prefix: str = "bridle_"
) -> Iterable[str]:
    """One metric: what it is, and its value, or its values by label."""
    yield f"# HELP {prefix}{name} {words}"
    yield f"# TYPE {prefix}{name} {kind}"
    values = value if isinstance(value, Mapping) else {"": value}
    for label, one in values.items():
        yield f"{prefix}{name}{f'{{{label}}}' if label else ''} {one:.12g}"


def _process() -> Iterable[str]:
    """Memory and CPU of this process, under the names that everybody uses."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    yield from _one("cpu_seconds_total", "counter", "CPU, user and system.", seconds, "process_")
    held = resident_bytes()
    yield from _one("resident_memory_bytes", "gauge", "Resident memory.", held, "process_")


def resident_bytes() -> int:
    """Bytes of memory that this process holds; where the system does not say, the most it had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
