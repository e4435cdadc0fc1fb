"""What sessions are doing right now, for lists: running, open in a process, parked or idle.

The system's table of locks is read only if a session is open, and the end of each log without the
codec.
"""

import re
from typing import NamedTuple

from bridle.stores.locks import lock_owners
from bridle.stores.log_format import find_headers, line_at, record_types
from bridle.stores.session_index import SessionEntry, is_running

_RECORDS = record_types("turn_parked", "turn_end", "rewind", "fork", "intent", "approval_answered")
_CALLS = re.compile(rb'"calls":\[([^\]]*)\]')


class SessionState(NamedTuple):
    """The process that has the session open, if any, and what its newest turn is doing."""

    owner: str = ""
    is_parked: bool = False
    pending: int = 0  # approvals that a parked turn needs
    is_running: bool = False

    @property
    def label(self) -> str:
        """A word or two; empty if the session is idle."""
        if self.pending:
            return f"needs {self.pending} approvals" if self.pending > 1 else "needs approval"
        if self.is_parked:
            return "parked"
        return "running" if self.is_running else "open" if self.owner else ""


def session_states(entries: list[SessionEntry]) -> dict[str, SessionState]:
    """Return the state of each of these sessions, by id."""
    locks = lock_owners() if any(entry.is_owned for entry in entries) else {}
    return {entry.id: _state_of(entry, locks) for entry in entries}


def _state_of(entry: SessionEntry, locks: dict[tuple[int, int], int]) -> SessionState:
    pending, pid = _pending(entry.end), locks.get(entry.file)
    owner = "" if pid is None else f"process {pid}" if pid > 0 else "another process"
    running = bool(owner) and pending is None and is_running(entry.end, entry.size)
    return SessionState(owner, pending is not None, pending or 0, running)


def _pending(end: bytes) -> int | None:
    """Return how many approvals a parked turn still needs; None if no turn is parked."""
    if b'"turn_parked"' not in end:  # as in nearly every log
        return None
    pending: int | None = None
    for header in find_headers(end, _RECORDS):
        kind, line = header[3], line_at(end, header.start())
        if not line.endswith(b"\n"):
            break
        if kind == b"turn_parked":
            calls = _CALLS.search(line)
            pending = calls[1].count(b",") + 1 if calls and calls[1] else 1
        elif kind == b"approval_answered":
            pending = None if pending is None else max(0, pending - 1)
        else:
            pending = None
    return pending
