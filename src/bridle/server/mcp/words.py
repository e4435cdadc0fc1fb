"""What happens in a turn, in a few words for whoever watches from afar. Pure."""

from functools import singledispatch
from typing import Any

import msgspec

from bridle.events import (
    AgentActivity,
    ApprovalAnswered,
    ApprovalAsked,
    ChildStarted,
    Event,
    ResponseCompleted,
    ToolCallReady,
    ToolResultEvent,
    TurnParked,
)
from bridle.messages import ToolCall
from bridle.workspace.text import one_line

_SUBJECTS = ("command", "path", "pattern", "query", "url", "question", "description", "prompt")
_LONGEST = 160


@singledispatch
def doing(event: Event) -> str:
    """The words; none for what is of no interest."""
    return ""


def subject(call: ToolCall) -> str:
    """A call on one line: its tool, and what it is about."""
    arguments = call.arguments
    for name in _SUBJECTS:
        if isinstance(found := arguments.get(name), str) and found:
            return one_line(f"{call.name}: {found}", _LONGEST)
    return one_line(f"{call.name} {_json(arguments)}" if arguments else call.name, _LONGEST)


@doing.register
def _(event: ToolCallReady) -> str:
    return subject(event.call)


@doing.register
def _(event: AgentActivity) -> str:
    return one_line(f"{event.tool_name}: {event.description}", _LONGEST) if event.tool_name else ""


@doing.register
def _(event: ApprovalAsked) -> str:
    return one_line(f"waits for approval of {subject(event.call)}", _LONGEST)


@doing.register
def _(event: ApprovalAnswered) -> str:
    return one_line(f"{'allowed' if event.allowed else 'refused'} by {event.by}", _LONGEST)


@doing.register
def _(event: ToolResultEvent) -> str:
    how = "failed" if event.output.is_error else "done"
    return one_line(f"{event.output.name or 'the call'} {how}", _LONGEST)


@doing.register
def _(event: ResponseCompleted) -> str:
    said = event.message.content if event.message is not None else ""
    return one_line(said, _LONGEST)


@doing.register
def _(event: ChildStarted) -> str:
    return one_line(f"hands on: {event.prompt}", _LONGEST)


@doing.register
def _(event: TurnParked) -> str:
    return "the turn is parked: it waits for answers"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
