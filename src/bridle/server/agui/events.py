"""Records as events of AG-UI. Pure: a fold that knows what was begun, and ends it.

Every message, thought and call that is started is ended, in order, whatever comes between; what
the protocol has no word for is a CUSTOM event with the data that the log has.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from ag_ui import core
from ag_ui.core import EventType as Kind

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ChildEnded,
    ChildStarted,
    Event,
    FilesChanged,
    ModeChanged,
    ReplyDiscarded,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    TitleChanged,
    TodosChanged,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
    ToolResultEvent,
    UsageReported,
)
from bridle.messages import Message, ToolCall
from bridle.presentation.approvals import NETWORK_NOTE, approval_title
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics, Usage

VERSION = "1.0"  # of the protocol
Events = list[core.BaseEvent]
_CUSTOM = (ApprovalAsked, ApprovalAnswered, ChildStarted, ChildEnded, FilesChanged)


class RunEvents:
    """What a run has told so far, and not ended yet."""

    def __init__(self, session_id: str, metrics: ExecutionMetrics | None = None) -> None:
        self._session_id = session_id
        self._text = ""  # the message that is being written
        self._thought = ""
        self._parent = ""  # the message of this reply, which its calls belong to
        self._calls: dict[str, bool] = {}  # being written: have arguments come?
        self._known: set[str] = set()  # calls that were begun
        self._spoke = False  # has this reply said something?
        self._metrics = metrics or ExecutionMetrics()
        self._usage: dict[str, Usage] = {}  # of this run, by model

    def events(self, record: Record) -> Events:
        """What is to be told of one record."""
        event, name = record.event, f"{self._session_id}-{record.seq}"
        match event:
            case TextDelta(text=text):
                return [*self._think_no_more(), *self._said(text, name)]
            case ThinkingDelta(text=text):
                return [*self._say_no_more(), *self._thought_of(text, name)]
            case ToolCallStarted() | ToolCallArgsDelta() | ToolCallReady():
                return self._call(event)
            case ReplyDiscarded(reason=reason):  # what was said of it is ended; another follows
                ends, self._parent, self._spoke = self.close(), "", False
                return [*ends, core.CustomEvent(name="reply_discarded", value={"reason": reason})]
            case ResponseCompleted(message=message):
                return self._replied(message, name)
            case ToolResultEvent(output=output):
                result = core.ToolCallResultEvent(
                    message_id=name, tool_call_id=output.call_id, content=output.text, role="tool"
                )
                return [*self._end_call(output.call_id), result]
        return self._state(event) or _custom(event)

    def close(self) -> Events:
        """The ends of everything that has none yet."""
        ends = [*self._think_no_more(), *self._say_no_more()]
        for call_id in list(self._calls):
            ends += self._end_call(call_id)
        return ends

    def usage(self) -> list[core.TokenUsage] | None:
        """What this run has used, by model."""
        return [_tokens(model, used) for model, used in self._usage.items()] or None

    def _said(self, text: str, name: str) -> Events:
        found: Events = []
        if not self._text:
            self._text = self._parent = name
            self._spoke = True
            found.append(core.TextMessageStartEvent(message_id=name, role="assistant"))
        return [*found, core.TextMessageContentEvent(message_id=self._text, delta=text)]

    def _say_no_more(self) -> Events:
        name, self._text = self._text, ""
        return [core.TextMessageEndEvent(message_id=name)] if name else []

    def _thought_of(self, text: str, name: str) -> Events:
        found: Events = []
        if not self._thought:
            self._thought = name
            found.append(core.ReasoningStartEvent(message_id=name))
            found.append(core.ReasoningMessageStartEvent(message_id=name, role="reasoning"))
        return [*found, core.ReasoningMessageContentEvent(message_id=self._thought, delta=text)]

    def _think_no_more(self) -> Events:
        name, self._thought = self._thought, ""
        if not name:
            return []
        end = core.ReasoningMessageEndEvent(message_id=name)
        return [end, core.ReasoningEndEvent(message_id=name)]

    def _call(self, event: ToolCallStarted | ToolCallArgsDelta | ToolCallReady) -> Events:
        """A call that is being written, or is whole."""
        if isinstance(event, ToolCallReady):
            return self._whole(event.call)
        if isinstance(event, ToolCallStarted):
            return self._begin_call(event.call_id, event.name)
        if event.call_id not in self._calls:
            return []
        self._calls[event.call_id] = True
        return [core.ToolCallArgsEvent(tool_call_id=event.call_id, delta=event.text)]

    def _begin_call(self, call_id: str, name: str) -> Events:
        if call_id in self._calls:
            return []
        self._calls[call_id] = False
        self._known.add(call_id)
        start = core.ToolCallStartEvent(
            tool_call_id=call_id, tool_call_name=name, parent_message_id=self._parent or None
        )
        return [*self._think_no_more(), *self._say_no_more(), start]

    def _whole(self, call: ToolCall) -> Events:
        found = self._begin_call(call.id, call.name)
        if not self._calls[call.id]:
            text = msgspec.json.encode(call.arguments, enc_hook=str).decode(errors="replace")
            found.append(core.ToolCallArgsEvent(tool_call_id=call.id, delta=text))
        return [*found, *self._end_call(call.id)]

    def _end_call(self, call_id: str) -> Events:
        if self._calls.pop(call_id, None) is None:
            return []
        return [core.ToolCallEndEvent(tool_call_id=call_id)]

    def _replied(self, message: Message | None, name: str) -> Events:
        """A reply is whole; what of it was not streamed is told now."""
        found: Events = []
        if message is not None:
            if message.content and not self._spoke:
                found += self._said(message.content, name)
            for call in message.tool_calls:
                found += self._whole(call) if call.id not in self._known else []
        found += self.close()
        self._parent, self._spoke = "", False
        self._known.clear()
        return found

    def _state(self, event: Event) -> Events:
        match event:
            case TodosChanged(todos=todos):
                return [_changed("todos", msgspec.to_builtins(todos))]
            case ModeChanged(mode=mode):
                return [_changed("mode", mode)]
            case TitleChanged(title=title):
                return [_changed("title", title)]
            case UsageReported(usage=usage, model=model):
                self._usage[model] = _sum(self._usage.get(model, Usage()), usage)
                self._metrics = self._metrics.plus(usage, event.cost)
                return [_changed("usage", usage_meters(self._metrics))]
        return []


def _custom(event: Event) -> Events:
    """What the protocol has no word for, as the log has it."""
    if isinstance(event, ToolOutputDelta):
        value = {"toolCallId": event.call_id, "text": event.text}
        return [core.CustomEvent(name="tool_output", value=value)]
    if isinstance(event, _CUSTOM):
        data: dict[str, Any] = msgspec.to_builtins(event, enc_hook=str)
        return [core.CustomEvent(name=str(data.pop("type")), value=data)]
    return []


def _changed(name: str, value: Any) -> core.BaseEvent:
    return core.StateDeltaEvent(delta=[{"op": "replace", "path": f"/{name}", "value": value}])  # type: ignore[list-item]  # the model reads it


def usage_meters(metrics: ExecutionMetrics) -> dict[str, Any]:
    """What a session has used. A cost that is not known of all of it is null."""
    return {
        "tokens": metrics.tokens,
        "context": metrics.context_tokens,
        "cost": None if metrics.unpriced else metrics.cost,
    }


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.context_tokens + other.context_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.thinking_tokens + other.thinking_tokens,
        input_has_cache=True,
    )


def _tokens(model: str, used: Usage) -> core.TokenUsage:
    return core.TokenUsage(
        model=model or None,
        input_tokens=used.context_tokens,
        output_tokens=used.output_tokens,
        total_tokens=used.total_tokens,
        reasoning_tokens=used.thinking_tokens or None,
        cached_input_tokens=used.cache_read_tokens or None,
        cache_write_input_tokens=used.cache_write_tokens or None,
    )


ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "allowed": {"type": "boolean"},
        "scope": {
            "enum": ["once", "session", "rule"],
            "description": "once: this call alone. session: the same call for this session; if "
            "the question `covers` builds, all tests and builds in the folder. rule: a rule.",
        },
        "word": {"type": "string", "description": "A word to the model, or the answer."},
        "rule": {"type": "string"},
    },
    "required": ["allowed"],
}


def to_interrupt(name: str, asked: ApprovalAsked) -> core.Interrupt:
    """A question that the run waits for; `name` is how its answer names it."""
    about = asked.call.arguments.get("question") or asked.reason or approval_title(asked.call)
    about = f"{about}; {NETWORK_NOTE}" if asked.network else about
    return core.Interrupt(
        id=name,
        reason="approval",
        message=str(about),
        tool_call_id=asked.call.id,
        response_schema=ANSWER,
        expires_at=asked.expires or None,
        metadata={"asked": msgspec.to_builtins(asked, enc_hook=str)},
    )


def run_started(thread: str, run: str, state: dict[str, Any]) -> Events:
    """A run begins, and this is how the session stands."""
    begun = core.RunStartedEvent(thread_id=thread, run_id=run, protocol_version=VERSION)
    return [begun, core.StateSnapshotEvent(snapshot=state)]


def run_interrupted(
    thread: str, run: str, interrupts: Sequence[core.Interrupt], told: RunEvents
) -> core.BaseEvent:
    """The run waits for a person."""
    outcome = core.RunFinishedInterruptOutcome(interrupts=list(interrupts))
    return core.RunFinishedEvent(thread_id=thread, run_id=run, outcome=outcome, usage=told.usage())


__all__ = [
    "Events",
    "Kind",
    "RunEvents",
    "run_interrupted",
    "run_started",
    "to_interrupt",
    "usage_meters",
]
