"""What is shown of a session: from the session that is open here, or from its log alone.

Both give the same values.
"""

import os
from difflib import unified_diff
from typing import Any

import msgspec

from bridle.engine.grants import has_ended, with_end
from bridle.engine.history import History
from bridle.engine.session import Session
from bridle.errors import AgentError
from bridle.events import ApprovalAsked, Grant, SessionStarted, SettingsChanged, TurnEnded
from bridle.messages import ToolCall
from bridle.protocols.codec import encode_data
from bridle.protocols.session_catalog import PendingApproval, SessionCatalog, SessionHead
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
from bridle.workspace.change import change_lines, changed_content
from bridle.workspace.fs import READ
from bridle.workspace.text import one_line
from bridle.workspace.workspace import Workspace

HERE = "here"
_TURN_END = b'"data":{"type":"turn_end"'
_LARGEST = 1 << 20  # bytes of a file for which a diff is made
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class LogSummary:
    """The state that a log adds up to. `reason` is how the newest turn ended."""

    def __init__(self) -> None:
        self.history = History()
        self.seq = 0
        self.reason = ""
        self.model = ""
        self.workspace = ""  # where it last worked
        self.has_start = False  # whether the records that were read say what it runs with

    @property
    def agent(self) -> str:
        """The agent that runs its turns."""
        newest = next(reversed(self.history.attached), "")
        return newest or (self.model if is_agent(self.model) else LOOP)

    def apply(self, record: Record) -> None:
        """Add one record."""
        self.history.apply(record)
        event = record.event
        if isinstance(event, TurnEnded):
            self.reason = event.reason
        elif isinstance(event, SessionStarted):
            self.has_start, self.model, self.workspace = True, event.model, event.workspace
        elif isinstance(event, SettingsChanged):
            self.model = event.model or self.model


def read_summary(catalog: SessionCatalog, session_id: str) -> LogSummary:
    """Read what a session's log adds up to now. Raise `UnknownSession`, `StoreFailed`."""
    summary = LogSummary()
    summary.seq = catalog.fold(session_id, summary.apply)
    if not summary.has_start:  # it was read from a checkpoint on
        last = catalog.last_run(session_id)
        summary.model, summary.workspace = summary.model or last.model, last.workspace
    if not summary.reason and summary.history.turn:
        summary.reason = last_reason(catalog, session_id)
    return summary


def last_reason(catalog: SessionCatalog, session_id: str) -> str:
    """Return how its newest turn ended; empty if none has."""
    try:
        for record in catalog.find(session_id, _TURN_END):
            if isinstance(record.event, TurnEnded):
                return record.event.reason
    except AgentError:
        return ""
    return ""


def state_of(history: History, reason: str, *, is_owned: bool) -> tuple[State, str]:
    """Return what a session does, and how its newest turn ended.

    If a turn is running but no process owns the session, it was cut off.
    """
    if history.pending:
        return "waiting", reason
    if history.running and not history.parked:
        return ("running", "") if is_owned else ("failed", "interrupted")
    if history.waiting and is_owned:
        return "running", ""
    if not reason or not history.turn:
        return "idle", ""
    return ("done" if reason == "done" else "failed"), reason


def info_of_session(session: Session, head: SessionHead, reason: str) -> SessionInfo:
    """Describe a session that is open here."""
    history = session.history
    state, reason = state_of(history, reason, is_owned=True)
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
        **_from_history(history, head),
        holder=HERE,
    )


def info_of_log(summary: LogSummary, head: SessionHead, owner: str) -> SessionInfo:
    """Describe a session from its log."""
    history = summary.history
    state, reason = state_of(history, summary.reason, is_owned=bool(owner))
    is_lasting = owner or history.mode != "auto"  # auto ends with its process
    return SessionInfo(
        id=head.id,
        title=history.title or head.title,
        workspace=summary.workspace or head.workspace,
        model=summary.model or head.model,
        agent=summary.agent,
        mode=history.mode if is_lasting else "",
        state=state,
        reason=reason,
        seq=summary.seq,
        **_from_history(history, head),
        holder=owner,
    )


def _from_history(history: History, head: SessionHead) -> dict[str, Any]:
    used = history.metrics
    return {
        "waiting": len(history.pending),
        "turn": history.turn,
        "cost": used.cost,
        "unpriced": used.unpriced,
        "tokens": used.tokens,
        "created_at": head.created_at,
        "updated_at": utc_timestamp(head.changed),
        "tags": history.tags,
        "parent": history.parent,
    }


def info_of_head(head: SessionHead, owner: str) -> SessionInfo:
    """Describe a session whose log cannot be read."""
    return SessionInfo(
        id=head.id,
        title=head.title,
        workspace=head.workspace,
        model=head.model,
        created_at=head.created_at,
        updated_at=utc_timestamp(head.changed),
        tags=head.tags,
        parent=head.parent,
        holder=owner,
    )


def queued_prompts(history: History) -> tuple[QueuedPrompt, ...]:
    """Return the prompts that wait for their turns."""
    return tuple(
        QueuedPrompt(seq, prompt.content, prompt.by, prompt.turn)
        for seq, prompt in history.waiting.items()
    )


def context_usage(history: History, window: int | None) -> ContextUsage:
    """Return how full the model's context window is."""
    return ContextUsage(history.metrics.context_tokens, window or 0)


def valid_grants(history: History, seconds: float) -> tuple[Grant, ...]:
    """Return the grants that have not ended; one without an end lasts for `seconds`."""
    grants = history.grants.values()
    return tuple(with_end(grant, seconds) for grant in grants if not has_ended(grant, seconds))


def approval_request(pending: PendingApproval, info: SessionInfo) -> ApprovalRequest:
    """Return a pending approval with the session that it belongs to."""
    asked = pending.asked
    return ApprovalRequest(
        session_id=info.id,
        call_id=asked.call.id,
        shown=asked.shown,
        seq=pending.seq,
        asked=approval_data(asked),
        session_title=info.title,
        parent=info.parent,
        diff=diff_of(asked.call, info.workspace),
        expires=asked.expires,
        posted=pending.posted,
    )


def approval_data(asked: ApprovalAsked) -> dict[str, Any]:
    """Return an approval request as the log has it."""
    return _decode(encode_data(asked))


def diff_of(call: ToolCall, workspace: str) -> str:
    """Return what a call would change in a file, as a unified diff; "" if it changes no file.

    If the file cannot be read, the change is shown as the call states it.
    """
    path = call.arguments.get("path")
    before = _content(path, workspace) if isinstance(path, str) else None
    after = changed_content(call.arguments, before) if before is not None else None
    if before is None or after is None:
        change = change_lines(call.arguments, before)
        return "\n".join(change[0]) if change is not None else ""
    name = one_line(str(path), 500)
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines)


def _content(path: str, workspace: str) -> str | None:
    """Return what the file contains now, "" if there is none, None if it is no small text."""
    try:
        resolved = Workspace(workspace).resolve_path(path)
        if resolved is None:
            return None
        handle = os.open(resolved, READ)
    except FileNotFoundError:
        return ""
    except (AgentError, OSError, ValueError):
        return None
    try:
        data = os.read(handle, _LARGEST + 1)
        return data.decode() if len(data) <= _LARGEST else None
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(handle)
