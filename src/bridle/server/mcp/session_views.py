"""Sessions, their last messages and the open questions of one workspace, as plain values.

Reads the folder of sessions and changes nothing. What models, tools and files said is shown with
its invisible characters written out, and cut to a size that somebody's context can hold.
"""

import os
from itertools import islice
from typing import Any

import msgspec

from bridle.engine.history import History
from bridle.errors import SessionError, UnknownSession
from bridle.events import ApprovalAsked, SessionStarted
from bridle.messages import Message
from bridle.presentation.calls import call_line
from bridle.protocols.session_catalog import PendingApproval
from bridle.protocols.store import SessionSummary
from bridle.server.mcp.tasks import TaskOutcome
from bridle.stores.pending_approvals import pending_approvals
from bridle.stores.reader import SessionFolder
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import neutral, one_line, shorten

FACE = "mcp"  # in a log's first record: who began the session
_FIRST = 10  # records among which that one is
_MESSAGE = 4_000  # characters shown of one message
_TAIL = 40_000  # ... and of all messages of a session
WHOLE = 100_000  # characters of a question: beyond that it is not shown whole, nor answered here


class SessionViews:
    """What there is to see of the sessions of one workspace; those of others are not there."""

    def __init__(self, folder: SessionFolder, workspace: str | os.PathLike[str]) -> None:
        self.folder = folder
        self.workspace = os.path.realpath(workspace)

    def summaries(self) -> list[SessionSummary]:
        """The sessions that were begun in this workspace, the newest first."""
        return [one for one in self.folder.sessions() if self._is_mine(one)]

    def find(self, session_id: str) -> SessionSummary:
        """One of them. Raise `UnknownSession`."""
        found = [one for one in self.summaries() if one.id == session_id]
        if not found:
            raise UnknownSession(
                f"this workspace has no session {one_line(session_id)!r}",
                hint="`list_sessions` shows those that there are.",
            )
        return found[0]

    def own(self, session_id: str) -> SessionSummary:
        """One that was begun here: others are a person's, with what they have allowed there."""
        found = self.find(session_id)
        first = islice(self.folder.read(session_id), _FIRST)
        begun = (one.event.mode for one in first if isinstance(one.event, SessionStarted))
        if next(begun, "") != FACE:
            raise SessionError(
                f"session {session_id} was begun by a person, and what they allowed there is for "
                "them",
                hint="Begin one of your own: run_task without a session.",
            )
        return found

    def questions(self, session_id: str = "") -> list[PendingApproval]:
        """The open questions of this workspace, or of one session."""
        mine = {one.id for one in self.summaries()}
        found = [one for one in pending_approvals(self.folder) if one.session_id in mine]
        return [one for one in found if session_id in ("", one.session_id)]

    def session(self, session_id: str, last: int) -> dict[str, Any]:
        """A session: where it stands, and its last messages."""
        summary = self.find(session_id)
        history = History()
        for record in self.folder.read(session_id):
            history.apply(record)
        return {
            **session_row(summary),
            "state": _state(history),
            "turns": history.turn,
            "cost": known_cost(history.metrics),
            "todos": msgspec.to_builtins(history.todos),
            "pending_approvals": len(history.pending),
            "messages": _tail(list(history.transcript)[-last:]),
        }

    def _is_mine(self, one: SessionSummary) -> bool:
        return bool(one.workspace) and os.path.realpath(one.workspace) == self.workspace


def session_row(one: SessionSummary) -> dict[str, Any]:
    """A session as a list shows it."""
    return {
        "session": one.id,
        "title": one_line(one.title),
        "created": one.created_at,
        "updated": one.updated_at,
        "model": one.model,
        "tags": list(one.tags),
    }


def _state(history: History) -> str:
    if not history.running:
        return "idle"
    return "parked" if history.parked or history.pending else "running, or its process ended"


def _tail(messages: list[Message]) -> list[dict[str, Any]]:
    """As many of the last messages as there is room for, in order."""
    shown: list[dict[str, Any]] = []
    room = _TAIL
    for message in reversed(messages):
        one = _message(message)
        room -= len(str(one))
        if room < 0 and shown:
            break
        shown.append(one)
    return shown[::-1]


def _message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role}
    if message.content:
        found["text"] = neutral(shorten(message.content, _MESSAGE))
    if message.tool_calls:
        found["calls"] = [one_line(call_line(call), 160) for call in message.tool_calls[:20]]
    if message.tool_results:
        found["results"] = [
            {
                "tool": one.name,
                "ok": not one.is_error,
                "text": neutral(shorten(one.text, _MESSAGE // 4)),
            }
            for one in message.tool_results[:20]
        ]
    return found


def approval_row(session_id: str, asked: ApprovalAsked, **more: Any) -> dict[str, Any]:
    """A question with everything that it takes to decide it, and the hash that an answer names."""
    whole: dict[str, Any] = msgspec.to_builtins(asked, enc_hook=str)
    for left_out in ("type", "call"):
        whole.pop(left_out, None)
    found = {
        "session": session_id,
        "call_id": asked.call.id,
        "tool": asked.call.name,
        "arguments": asked.call.arguments,
        **whole,
        **more,
    }
    answer = f"bridle approvals answer {session_id.rpartition('-')[2]}/{asked.call.id} yes"
    found |= {"answer_with": f"{answer} (or no)", "whole": is_whole(asked)}
    if not found["whole"]:
        found["arguments"] = {"cut": shorten(_text(asked.call.arguments), WHOLE // 4)}
    shown: dict[str, Any] = _neutral(found)
    return shown


def is_whole(asked: ApprovalAsked) -> bool:
    """Is it small enough to be shown as it is?"""
    return len(_text(msgspec.to_builtins(asked, enc_hook=str))) <= WHOLE


def outcome_row(found: TaskOutcome) -> dict[str, Any]:
    """What came of a task, beside its text."""
    result = found.result
    files = [msgspec.to_builtins(one) | {"how": one.how} for one in found.files]
    said: dict[str, Any] = {
        "session": result.session_id,
        "reason": result.reason,
        "detail": result.detail,
        "hint": result.error.hint if result.error is not None else "",
        "cost": known_cost(result.metrics),
        "tokens": result.metrics.tokens,
        "tool_calls": result.metrics.tool_calls,
        "files_changed": files,
        "pending_approvals": [approval_row(result.session_id, one) for one in found.pending],
    }
    return said


def known_cost(used: ExecutionMetrics) -> float | None:
    """What was spent, in dollars; None if the price of a reply is not known."""
    return None if used.unpriced else used.cost


def outcome_text(facts: dict[str, Any]) -> str:
    """The same in lines, for those who read text alone."""
    lines = [f"session: {facts['session']}", f"reason: {facts['reason']}"]
    lines += [f"{key}: {facts[key]}" for key in ("detail", "hint") if facts[key]]
    lines += [f"cost: {format_cost(facts['cost'])}"] if facts["cost"] is not None else []
    lines += ["cost unknown"] if facts["cost"] is None else []
    lines += [f"{one['how']}: {one['path']}" for one in facts["files_changed"]]
    for one in facts["pending_approvals"]:
        about = one_line(f"{one['tool']} {_text(one['arguments'])}", 300)
        lines.append(f"needs approval: {about} ({one['reason'] or 'it always needs approval'})")
        lines.append(f"  a person answers: {one['answer_with']}")
    return "\n".join(lines)


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode(errors="replace")


def _neutral(value: Any) -> Any:
    """The same with invisible characters written out, wherever there is text."""
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, dict):
        return {neutral(str(key)): _neutral(one) for key, one in value.items()}
    return [_neutral(one) for one in value] if isinstance(value, list | tuple) else value
