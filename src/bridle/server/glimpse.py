"""A session as its log tells it, without taking it. Pure folds of what stands on the disk.

What a session that is open here says of itself is newer; how both are shown is not known here.
"""

from bridle.engine.history import History
from bridle.errors import AgentError
from bridle.events import SessionStarted, SettingsChanged, TurnEnded
from bridle.protocols.store import Record
from bridle.runtime.agents import LOOP, is_agent
from bridle.stores.reader import SessionFolder, find_records, replay
from bridle.stores.session_index import last_run

_END = b'"data":{"type":"turn_end"'


class Glimpse:
    """What a log adds up to. `reason` is how the newest turn ended."""

    def __init__(self) -> None:
        self.history = History()
        self.seq = 0
        self.reason = ""
        self.model = ""
        self.workspace = ""  # where it worked last
        self.begun = False  # did the records that were read say who carries it?

    @property
    def agent(self) -> str:
        """Who carries its turns."""
        spoke = next(reversed(self.history.attached), "")
        return spoke or (self.model if is_agent(self.model) else LOOP)

    def apply(self, record: Record) -> None:
        """Take one record into account."""
        self.history.apply(record)
        event = record.event
        if isinstance(event, TurnEnded):
            self.reason = event.reason
        elif isinstance(event, SessionStarted):
            self.begun, self.model, self.workspace = True, event.model, event.workspace
        elif isinstance(event, SettingsChanged):
            self.model = event.model or self.model


def glimpse(folder: SessionFolder, session_id: str) -> Glimpse:
    """What that session's log adds up to now. Raise `UnknownSession`, `StoreFailed`."""
    seen = Glimpse()
    seen.seq = replay(folder, session_id, seen.apply)
    if not seen.begun:  # it was read from a checkpoint on
        last = last_run(folder.path(session_id))
        seen.model, seen.workspace = seen.model or last.model, last.workspace
    if not seen.reason and seen.history.turn:
        seen.reason = reason_of(folder, session_id)
    return seen


def reason_of(folder: SessionFolder, session_id: str) -> str:
    """How its newest turn ended; empty where none has."""
    try:
        for record in find_records(folder, session_id, _END):
            if isinstance(record.event, TurnEnded):
                return record.event.reason
    except AgentError:
        return ""
    return ""
