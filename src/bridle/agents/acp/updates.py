"""Translation between the Agent Client Protocol and our events. Pure, in both directions.

`to_events` and `CallTracker` read what an agent says when bridle is the client. `to_update` and
`tool_call_start` tell an editor what we do when bridle is the agent; the rest of that is in
`server/acp`. What a tool call would do, as a call of our own tools, is in `tool_mapping`.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from acp import schema
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from bridle.events import (
    CallIntended,
    Event,
    Reason,
    ReplyDiscarded,
    TextDelta,
    ThinkingDelta,
    Todo,
    TodosChanged,
    ToolCallReady,
    ToolResultEvent,
    TraceEvent,
)
from bridle.messages import Image, Part, Text, ToolCall, ToolOutput
from bridle.presentation.calls import call_subject
from bridle.usage import Usage
from bridle.workspace.text import one_line, shorten

Update = schema.SessionNotification
Kind = schema.ToolKind
MAX_RESULT = 200_000  # characters of a result that are kept
MAX_ENTRIES = 1000  # of a plan, of the commands, of what a call shows: nobody reads more
_MAX_ENTRY = 2000  # characters of one of them
_MAX_TRACE = 20_000  # characters of anything else that is only noted

KINDS: dict[str, Kind] = {
    "read": "read",
    "list": "read",
    "glob": "search",
    "grep": "search",
    "write": "edit",
    "edit": "edit",
    "apply_patch": "edit",
    "shell": "execute",
    "shell_output": "execute",
    "shell_stop": "execute",
    "web_fetch": "fetch",
    "todo_write": "think",
    "ask_user": "other",
    "exit_plan_mode": "switch_mode",
}


class Cost(Struct, frozen=True):
    """What a conversation has cost so far, as the agent reports it."""

    amount: float
    currency: str = "USD"


def to_wire(model: BaseModel) -> dict[str, Any]:
    """Return a value of the protocol as the JSON that is sent."""
    json_value: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json_value


# --- from an agent to bridle ---------------------------------------------------------------------


def parse_update(params: Any) -> Update | TraceEvent:
    """Return the update of a notification, or what to record of one that cannot be read."""
    update = params.get("update") if isinstance(params, dict) else None
    try:
        if isinstance(update, dict) and (count := _longest_list(update)) > MAX_ENTRIES:
            return TraceEvent("acp", {"unread": one_line(f"{count} entries", 200)})
        return Update.model_validate(params)
    except ValidationError:
        kind = update.get("sessionUpdate") if isinstance(update, dict) else None
        return TraceEvent("acp", {"unread": one_line(str(kind or params), 200)})


def _longest_list(update: dict[str, Any]) -> int:
    """Return the length of the longest list in an update.

    It is looked at before the library validates every entry: that could take seconds, in which no
    other task runs.
    """
    return max((len(value) for value in update.values() if isinstance(value, list)), default=0)


def to_events(update: Any) -> tuple[Event, ...]:
    """Return the events of an update, except for tool calls and costs."""
    match update:
        case schema.AgentMessageChunk():
            return _delta(TextDelta, update.content)
        case schema.AgentThoughtChunk():
            return _delta(ThinkingDelta, update.content)
        case schema.AgentPlanUpdate():
            todos = (
                Todo(shorten(entry.content, _MAX_ENTRY), entry.status) for entry in update.entries
            )
            return (TodosChanged(tuple(todos)),)
        case schema.ToolCallStart() | schema.ToolCallProgress() | schema.UserMessageChunk():
            return ()
    return _traces(update)


def _traces(update: Any) -> tuple[TraceEvent, ...]:
    """Return what is recorded of other updates, as traces."""
    match update:
        case schema.CurrentModeUpdate():
            return (TraceEvent("acp_mode", {"mode": one_line(update.current_mode_id, 200)}),)
        case schema.AvailableCommandsUpdate():
            names = [one_line(command.name, 200) for command in update.available_commands]
            return (TraceEvent("acp_commands", {"commands": names}),)
        case schema.SessionInfoUpdate():
            title = one_line(update.title or "", 200)
            return (TraceEvent("acp_title", {"title": title}),) if title else ()
        case schema.UsageUpdate():
            return (TraceEvent("acp_context", {"used": update.used, "size": update.size}),)
    detail = to_wire(update)
    if len(json.dumps(detail)) > _MAX_TRACE:
        detail = {"sessionUpdate": update.session_update, "cut": True}
    return (TraceEvent("acp", detail),)


def _delta(kind: type[TextDelta] | type[ThinkingDelta], content: Any) -> tuple[Event, ...]:
    text = content_text(content)
    return (kind(text),) if text else ()


def content_text(content: Any) -> str:
    """Return a block of content as text; of pictures and sounds, the type."""
    match content:
        case schema.TextContentBlock():
            return content.text
        case schema.ResourceContentBlock():
            return f"[{content.name}]({content.uri})"
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as text):
            return text.text
        case schema.ImageContentBlock() | schema.AudioContentBlock():
            return f"[{content.mime_type}]"
    return ""


def session_cost(update: Any) -> Cost | None:
    """Return what the conversation has cost so far, if an update says so."""
    if isinstance(update, schema.UsageUpdate) and update.cost is not None:
        return Cost(update.cost.amount, update.cost.currency)
    return None


def to_usage(response: schema.PromptResponse) -> Usage | None:
    """Return the tokens that the prompt used, if the agent says so."""
    usage = response.usage
    if usage is None:
        return None
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_read_tokens or 0,
        cache_write_tokens=usage.cached_write_tokens or 0,
        thinking_tokens=usage.thought_tokens or 0,
    )


class CallTracker:
    """The tool calls of a conversation, each with everything that was said of it so far."""

    def __init__(self) -> None:
        self._calls: dict[str, schema.ToolCallUpdate] = {}

    def merge(self, update: schema.ToolCall | schema.ToolCallUpdate) -> schema.ToolCallUpdate:
        """Add what is said now, and return the call: a given field replaces the known one."""
        changed = {name: getattr(update, name) for name in update.model_fields_set}
        changed = {name: value for name, value in changed.items() if value is not None}
        known = self._calls.get(update.tool_call_id)
        before = {name: getattr(known, name) for name in known.model_fields_set} if known else {}
        fields = {**before, **changed}
        fields.pop("session_update", None)
        call = schema.ToolCallUpdate.model_construct(**fields)
        self._calls[update.tool_call_id] = call
        return call

    def get(self, call_id: str) -> schema.ToolCallUpdate | None:
        """Return what is known of a call."""
        return self._calls.get(call_id)

    def forget(self, call_id: str) -> None:
        """Forget a call that is over."""
        self._calls.pop(call_id, None)


def call_output(call: schema.ToolCallUpdate) -> str:
    """Return the output of a call so far."""
    texts = [
        content_text(content.content)
        for content in call.content or ()
        if isinstance(content, schema.ContentToolCallContent)
    ]
    return shorten("\n".join(text for text in texts if text), MAX_RESULT)


def call_result(call: schema.ToolCallUpdate) -> str:
    """Return the result of a call as text."""
    text = call_output(call)
    changed = [f"[changed {one_line(change.path, 200)}]" for change in file_changes(call)]
    if not text and not changed and call.raw_output is not None:
        raw = call.raw_output
        text = shorten(raw if isinstance(raw, str) else json.dumps(raw, default=str), MAX_RESULT)
    return "\n".join([text, *changed] if text else changed)


def file_changes(call: schema.ToolCallUpdate) -> list[schema.FileEditToolCallContent]:
    """Return the differences that a call shows."""
    return [item for item in call.content or () if isinstance(item, schema.FileEditToolCallContent)]


def choose_option(options: Sequence[schema.PermissionOption], *, allowed: bool) -> str | None:
    """Return the option that holds once. One that holds for longer is not ours to choose."""
    kinds = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.kind == kind:
                return option.option_id
    return None


def to_blocks(parts: Sequence[Part], *, images: bool) -> list[dict[str, Any]]:
    """Return a prompt as blocks of content. A picture that the agent cannot take is named."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            picture = {"type": "image", "data": part.data, "mimeType": part.media_type}
            text = f"[a picture, {part.media_type}, that this agent cannot see]"
            blocks.append(picture if images else {"type": "text", "text": text})
    return blocks


# --- from bridle to an editor --------------------------------------------------------------------


def to_update(event: Event) -> BaseModel | None:
    """Return the update that shows an event in an editor; None if it has none."""
    match event:
        case TextDelta():
            return schema.AgentMessageChunk(
                session_update="agent_message_chunk", content=_text(event.text)
            )
        case ReplyDiscarded():
            text = "\n\n[The reply above broke off and is discarded. It is asked for again.]\n\n"
            return schema.AgentMessageChunk(
                session_update="agent_message_chunk", content=_text(text)
            )
        case ThinkingDelta():
            return schema.AgentThoughtChunk(
                session_update="agent_thought_chunk", content=_text(event.text)
            )
        case ToolCallReady():
            return tool_call_start(event.call)
        case CallIntended():
            return _progress_update(event.call_id, "in_progress")
        case ToolResultEvent():
            return _result_update(event.output)
        case TodosChanged():
            return schema.AgentPlanUpdate(session_update="plan", entries=_entries(event))
    return None


def _text(text: str) -> schema.TextContentBlock:
    return schema.TextContentBlock(type="text", text=text)


def _entries(event: TodosChanged) -> list[schema.PlanEntry]:
    return [
        schema.PlanEntry(content=todo.content, priority="medium", status=todo.status)
        for todo in event.todos
    ]


def tool_call_start(call: ToolCall) -> schema.ToolCallStart:
    """Return a call of ours as an editor shows it."""
    path = call.arguments.get("path")
    return schema.ToolCallStart(
        session_update="tool_call",
        tool_call_id=call.id,
        title=one_line(f"{call.name} {call_subject(call)}".strip(), 200),
        kind=KINDS.get(call.name, "other"),
        status="pending",
        raw_input=call.arguments,
        locations=[schema.ToolCallLocation(path=path)] if isinstance(path, str) else None,
        content=[*call_diffs(call)] or None,
    )


def call_diffs(call: ToolCall) -> list[schema.FileEditToolCallContent]:
    """Return what a call of `write` or `edit` would change."""
    path, arguments = call.arguments.get("path"), call.arguments
    if not isinstance(path, str):
        return []
    if call.name == "write":
        return [_diff(path, None, arguments.get("content"))]
    if call.name != "edit":
        return []
    value = arguments.get("edits")  # a model may write anything there
    edits = value if isinstance(value, list) and value else [arguments]
    return [
        _diff(path, edit.get("old"), edit.get("new")) for edit in edits if isinstance(edit, dict)
    ]


def _diff(path: str, old: Any, new: Any) -> schema.FileEditToolCallContent:
    before = None if old is None else str(old)
    return schema.FileEditToolCallContent(
        type="diff", path=path, old_text=before, new_text=str(new or "")
    )


def _progress_update(
    call_id: str, status: schema.ToolCallStatus, **rest: Any
) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(
        session_update="tool_call_update", tool_call_id=call_id, status=status, **rest
    )


def _result_update(output: ToolOutput) -> schema.ToolCallProgress:
    content = schema.ContentToolCallContent(type="content", content=_text(output.text))
    status: Literal["failed", "completed"] = "failed" if output.is_error else "completed"
    return _progress_update(output.call_id, status, content=[content])


def to_stop_reason(reason: Reason) -> schema.StopReason:
    """Return how a turn ended, in the protocol's terms."""
    return _STOP_REASONS.get(reason, "end_turn")


_STOP_REASONS: dict[Reason, schema.StopReason] = {
    "interrupted": "cancelled",
    "budget": "max_turn_requests",
    "stuck": "max_turn_requests",
    "failed": "refusal",
    "timeout": "max_turn_requests",
    "max_tokens": "max_tokens",
}
