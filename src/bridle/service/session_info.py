"""A session as its log tells it, without taking it. Pure folds of what stands on the disk.

What a session that is open here says of itself is newer; how both are shown is not known here.
"""

from typing import Any

import msgspec

from bridle.engine.grants import has_ended, with_end
from bridle.engine.history import History
from bridle.engine.session import Session
from bridle.errors import AgentError
from bridle.events import ApprovalAsked, Grant, SessionStarted, SettingsChanged, TurnEnded
from bridle.protocols.codec import encode_data
from bridle.protocols.session_values import (
    ApprovalRequest,
    ContextUsage,
    QueuedPrompt,
    SessionInfo,
    State,
)
from bridle.protocols.store import Record
from bridle.runtime.agents import LOOP, is_agent
from bridle.stores.log_format import utc_timestamp
from bridle.stores.reader import SessionFolder, find_records, replay
from bridle.stores.session_index import LogEntry, SessionEntry, last_run

_END = b'"data":{"type":"turn_end"'


class LogSummary:
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


def summarize_log(folder: SessionFolder, session_id: str) -> LogSummary:
    """What that session's log adds up to now. Raise `UnknownSession`, `StoreFailed`."""
    seen = LogSummary()
    seen.seq = replay(folder, session_id, seen.apply)
    if not seen.begun:  # it was read from a checkpoint on
        last = last_run(folder.path(session_id))
        seen.model, seen.workspace = seen.model or last.model, last.workspace
    if not seen.reason and seen.history.turn:
        seen.reason = last_reason(folder, session_id)
    return seen


def last_reason(folder: SessionFolder, session_id: str) -> str:
    """How its newest turn ended; empty where none has."""
    try:
        for record in find_records(folder, session_id, _END):
            if isinstance(record.event, TurnEnded):
                return record.event.reason
    except AgentError:
        return ""
    return ""


HERE = "here"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def state_of(history: History, reason: str, *, held: bool) -> tuple[State, str]:
    """What a session does, and how its newest turn ended.

    A turn that runs nowhere was cut off, which whoever takes the session up will say.
    """
    if history.pending:
        return "waiting", reason
    if history.running and not history.parked:
        return ("running", "") if held else ("failed", "interrupted")
    if history.waiting and held:
        return "running", ""
    if not reason or not history.turn:
        return "idle", ""
    return ("done" if reason == "done" else "failed"), reason


def of_open(session: Session, place: LogEntry, head: SessionEntry, reason: str) -> SessionInfo:
    """A session that is open here."""
    history = session.history
    state, reason = state_of(history, reason, held=True)
    return SessionInfo(
        id=session.id,
        title=session.title,
        workspace=session.workspace,
        model=session.model,
        agent=session.agent or LOOP,
        mode=session.mode,
        state=state,
        reason=reason,
        seq=session.seq,
        **_folded(history, place, head),
        holder=HERE,
    )


def of_log(seen: LogSummary, place: LogEntry, head: SessionEntry, holder: str) -> SessionInfo:
    """A session as its log tells it."""
    history = seen.history
    state, reason = state_of(history, seen.reason, held=bool(holder))
    return SessionInfo(
        id=place.id,
        title=history.title or head.title,
        workspace=seen.workspace or head.workspace,
        model=seen.model or head.model,
        agent=seen.agent,
        mode=history.mode if holder or history.mode != "auto" else "",  # it ended with its process
        state=state,
        reason=reason,
        seq=seen.seq,
        **_folded(history, place, head),
        holder=holder,
    )


def _folded(history: History, place: LogEntry, head: SessionEntry) -> dict[str, Any]:
    """What is the same of a session, whoever holds it."""
    used = history.metrics
    return {
        "waiting": len(history.pending),
        "turn": history.turn,
        "cost": used.cost,
        "unpriced": used.unpriced,
        "tokens": used.tokens,
        "created_at": head.created_at,
        "updated_at": utc_timestamp(place.changed),
        "tags": history.tags,
        "parent": history.parent,
    }


def of_head(place: LogEntry, head: SessionEntry) -> SessionInfo:
    """A session whose log cannot be read, or not wholly: what there is to say of it."""
    return SessionInfo(
        id=place.id,
        title=head.title,
        workspace=head.workspace,
        model=head.model,
        created_at=head.created_at,
        updated_at=utc_timestamp(place.changed),
        tags=head.tags,
        parent=head.parent,
    )


def queued(history: History) -> tuple[QueuedPrompt, ...]:
    """The prompts that wait."""
    found = history.waiting.items()
    return tuple(QueuedPrompt(seq, one.content, one.by, one.turn) for seq, one in found)


def context(history: History, window: int | None) -> ContextUsage:
    """How full the model's window is."""
    return ContextUsage(history.metrics.context_tokens, window or 0)


def granted(history: History, seconds: float) -> tuple[Grant, ...]:
    """What was allowed for the session and has not ended."""
    found = history.grants.values()
    return tuple(with_end(one, seconds) for one in found if not has_ended(one, seconds))


def asked_data(asked: ApprovalAsked) -> dict[str, Any]:
    """A question as the log has it."""
    return _decode(encode_data(asked))


def pending_view(
    asked: ApprovalAsked, seq: int, view: SessionInfo, *, posted: bool
) -> ApprovalRequest:
    """A question, with whose it is."""
    from bridle.service.pending_diff import diff_of

    return ApprovalRequest(
        session_id=view.id,
        call_id=asked.call.id,
        shown=asked.shown,
        seq=seq,
        asked=asked_data(asked),
        session_title=view.title,
        parent=view.parent,
        diff=diff_of(asked.call, view.workspace),
        expires=asked.expires,
        posted=posted,
    )
