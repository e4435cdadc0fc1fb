"""What a session does at this moment, for a list: held by a process, parked, or neither.

The system's table of locks is read only if one of them is open, and each log's end without the
codec. What the end does not tell is left unsaid.
"""

import re
from typing import NamedTuple

from bridle.stores.locks import lock_owners
from bridle.stores.log_format import find_headers, line_at, record_types
from bridle.stores.session_index import SessionEntry, is_running

_RECORDS = record_types("turn_parked", "turn_end", "rewind", "fork", "intent", "approval_answered")
_CALLS = re.compile(rb'"calls":\[([^\]]*)\]')


class Doing(NamedTuple):
    """`holder` has it open now (empty: nobody), and a turn is `running`; so many questions are
    `waiting` for an answer."""

    holder: str = ""
    parked: bool = False
    waiting: int = 0
    running: bool = False

    @property
    def words(self) -> str:
        """In a word or two; empty where it rests."""
        if self.waiting:
            return f"asks {self.waiting}"
        if self.parked:
            return "parked"
        return "busy" if self.running else "open" if self.holder else ""


def doing(found: list[SessionEntry]) -> dict[str, Doing]:
    """What each of these sessions does, by id."""
    locks = lock_owners() if any(one.is_owned for one in found) else {}
    return {one.id: _look(one, locks) for one in found}


def _look(one: SessionEntry, locks: dict[tuple[int, int], int]) -> Doing:
    waiting, pid = _waiting(one.end), locks.get(one.file)
    holder = "" if pid is None else f"process {pid}" if pid > 0 else "another process"
    running = bool(holder) and waiting is None and is_running(one.end, one.size)
    return Doing(holder, waiting is not None, waiting or 0, running)


def _waiting(end: bytes) -> int | None:
    """How many questions a parked turn has that nobody has answered; None: none is parked."""
    if b'"turn_parked"' not in end:  # as in nearly every log
        return None
    waiting: int | None = None
    for header in find_headers(end, _RECORDS):
        kind, line = header[3], line_at(end, header.start())
        if not line.endswith(b"\n"):
            break
        if kind == b"turn_parked":
            calls = _CALLS.search(line)
            waiting = calls[1].count(b",") + 1 if calls and calls[1] else 1
        elif kind == b"approval_answered":
            waiting = None if waiting is None else max(0, waiting - 1)
        else:
            waiting = None
    return waiting
