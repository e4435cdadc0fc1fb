"""ACP in our words, and our words in ACP. Pure, in both directions.

`events_of` and `Calls` read what an agent says (the client's side, agents/acp.py); `update_of` and
`started` say what we do to an editor (the agent's side; the rest of it is in server/acp). What a
tool call would do, as a call of our own tools, is in acp_calls.py. Knows no process, no session and
no gate.
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
from bridle.usage import Usage
from bridle.workspace.text import one_line, shorten

Update = schema.SessionNotification
Kind = schema.ToolKind
TEXT = 200_000  # characters of a result that are kept
MOST_ENTRIES = 1000  # of a plan, of the commands, of what a call shows: nobody reads more
_WORDS = 2000  # characters of one of them
_TRACED = 20_000  # characters of anything else that is only noted

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


class Money(Struct, frozen=True):
    """What a conversation has cost so far, as the agent says."""

    amount: float
    currency: str = "USD"


def wire(model: BaseModel) -> dict[str, Any]:
    """A value of the protocol as it is written."""
    found: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


# --- what an agent says, in our words -----------------------------------------------------------


def read_update(params: Any) -> Update | TraceEvent:
    """A notification, or what is to be recorded of one that cannot be read."""
    update = params.get("update") if isinstance(params, dict) else None
    try:
        if isinstance(update, dict) and (long := _too_long(update)):
            return TraceEvent("acp", {"unread": one_line(f"{long} entries", 200)})
        return Update.model_validate(params)
    except ValidationError:
        kind = update.get("sessionUpdate") if isinstance(update, dict) else None
        return TraceEvent("acp", {"unread": one_line(str(kind or params), 200)})


def _too_long(update: dict[str, Any]) -> int:
    """How long a list in it is, where it is longer than anybody reads.

    Looked at before every entry is made a value of the library's: that takes seconds in which
    nobody else has a turn.
    """
    longest = max((len(one) for one in update.values() if isinstance(one, list)), default=0)
    return longest if longest > MOST_ENTRIES else 0


def events_of(update: Any) -> tuple[Event, ...]:
    """What an update says, but for tool calls and money."""
    match update:
        case schema.AgentMessageChunk():
            return _said(TextDelta, update.content)
        case schema.AgentThoughtChunk():
            return _said(ThinkingDelta, update.content)
        case schema.AgentPlanUpdate():
            todos = (Todo(shorten(one.content, _WORDS), one.status) for one in update.entries)
            return (TodosChanged(tuple(todos)),)
        case schema.ToolCallStart() | schema.ToolCallProgress() | schema.UserMessageChunk():
            return ()
    return _traces(update)


def _traces(update: Any) -> tuple[TraceEvent, ...]:
    """What is only for those who look closely."""
    match update:
        case schema.CurrentModeUpdate():
            return (TraceEvent("acp_mode", {"mode": one_line(update.current_mode_id, 200)}),)
        case schema.AvailableCommandsUpdate():
            names = [one_line(one.name, 200) for one in update.available_commands]
            return (TraceEvent("acp_commands", {"commands": names}),)
        case schema.SessionInfoUpdate():
            title = one_line(update.title or "", 200)
            return (TraceEvent("acp_title", {"title": title}),) if title else ()
        case schema.UsageUpdate():
            return (TraceEvent("acp_context", {"used": update.used, "size": update.size}),)
    said = wire(update)
    if len(json.dumps(said)) > _TRACED:
        said = {"sessionUpdate": update.session_update, "cut": True}
    return (TraceEvent("acp", said),)


def _said(kind: type[TextDelta] | type[ThinkingDelta], content: Any) -> tuple[Event, ...]:
    text = text_of(content)
    return (kind(text),) if text else ()


def text_of(content: Any) -> str:
    """A block of content as text; what is no text is named."""
    match content:
        case schema.TextContentBlock():
            return content.text
        case schema.ResourceContentBlock():
            return f"[{content.name}]({content.uri})"
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as found):
            return found.text
        case schema.ImageContentBlock() | schema.AudioContentBlock():
            return f"[{content.mime_type}]"
    return ""


def money_of(update: Any) -> Money | None:
    """What the conversation has cost so far, where an update says so."""
    if isinstance(update, schema.UsageUpdate) and update.cost is not None:
        return Money(update.cost.amount, update.cost.currency)
    return None


def usage_of(response: schema.PromptResponse) -> Usage | None:
    """What the prompt used, where the agent says so."""
    found = response.usage
    if found is None:
        return None
    return Usage(
        found.input_tokens,
        found.output_tokens,
        found.cached_read_tokens or 0,
        found.cached_write_tokens or 0,
        found.thought_tokens or 0,
    )


class Calls:
    """The tool calls of a conversation, each as what was said of it so far adds up."""

    def __init__(self) -> None:
        self._calls: dict[str, schema.ToolCallUpdate] = {}

    def fold(self, update: schema.ToolCall | schema.ToolCallUpdate) -> schema.ToolCallUpdate:
        """The call with what is said now: a field that is given replaces what was there."""
        said = {name: getattr(update, name) for name in update.model_fields_set}
        said = {name: value for name, value in said.items() if value is not None}
        known = self._calls.get(update.tool_call_id)
        before = {name: getattr(known, name) for name in known.model_fields_set} if known else {}
        fields = {**before, **said}
        fields.pop("session_update", None)
        found = schema.ToolCallUpdate.model_construct(**fields)
        self._calls[update.tool_call_id] = found
        return found

    def get(self, call_id: str) -> schema.ToolCallUpdate | None:
        """What is known of a call."""
        return self._calls.get(call_id)

    def forget(self, call_id: str) -> None:
        """It is over."""
        self._calls.pop(call_id, None)


def output_of(call: schema.ToolCallUpdate) -> str:
    """What a call has said so far."""
    found = [
        text_of(one.content)
        for one in call.content or ()
        if isinstance(one, schema.ContentToolCallContent)
    ]
    return shorten("\n".join(one for one in found if one), TEXT)


def result_of(call: schema.ToolCallUpdate) -> str:
    """What came of a call, as text."""
    text = output_of(call)
    changed = [f"[changed {one_line(one.path, 200)}]" for one in changes_of(call)]
    if not text and not changed and call.raw_output is not None:
        raw = call.raw_output
        text = shorten(raw if isinstance(raw, str) else json.dumps(raw, default=str), TEXT)
    return "\n".join([text, *changed] if text else changed)


def changes_of(call: schema.ToolCallUpdate) -> list[schema.FileEditToolCallContent]:
    """The differences that a call shows."""
    return [one for one in call.content or () if isinstance(one, schema.FileEditToolCallContent)]


def pick(options: Sequence[schema.PermissionOption], *, allowed: bool) -> str | None:
    """The option for this once. What would hold for longer is not ours to promise."""
    wanted = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return option.option_id
    return None


def blocks_of(parts: Sequence[Part], *, images: bool) -> list[dict[str, Any]]:
    """A prompt as the agent reads it; a picture that it cannot take is named."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            picture = {"type": "image", "data": part.data, "mimeType": part.media_type}
            words = f"[a picture, {part.media_type}, that this agent cannot see]"
            blocks.append(picture if images else {"type": "text", "text": words})
    return blocks


# --- what we say to an editor -------------------------------------------------------------------


def update_of(event: Event) -> BaseModel | None:
    """The update that tells an editor of this, where there is one."""
    match event:
        case TextDelta():
            return schema.AgentMessageChunk(
                session_update="agent_message_chunk", content=_text(event.text)
            )
        case ReplyDiscarded():
            words = "\n\n[The reply above broke off and is discarded. It is asked for again.]\n\n"
            return schema.AgentMessageChunk(
                session_update="agent_message_chunk", content=_text(words)
            )
        case ThinkingDelta():
            return schema.AgentThoughtChunk(
                session_update="agent_thought_chunk", content=_text(event.text)
            )
        case ToolCallReady():
            return started(event.call)
        case CallIntended():
            return _progress(event.call_id, "in_progress")
        case ToolResultEvent():
            return _finished(event.output)
        case TodosChanged():
            return schema.AgentPlanUpdate(session_update="plan", entries=_entries(event))
    return None


def _text(text: str) -> schema.TextContentBlock:
    return schema.TextContentBlock(type="text", text=text)


def _entries(event: TodosChanged) -> list[schema.PlanEntry]:
    return [
        schema.PlanEntry(content=one.content, priority="medium", status=one.status)
        for one in event.todos
    ]


def started(call: ToolCall) -> schema.ToolCallStart:
    """A call of ours as an editor is shown it."""
    shown = call.arguments.get("command") or call.arguments.get("path") or ""
    path = call.arguments.get("path")
    return schema.ToolCallStart(
        session_update="tool_call",
        tool_call_id=call.id,
        title=one_line(f"{call.name} {shown}".strip(), 200),
        kind=KINDS.get(call.name, "other"),
        status="pending",
        raw_input=call.arguments,
        locations=[schema.ToolCallLocation(path=path)] if isinstance(path, str) else None,
        content=[*diffs_of(call)] or None,
    )


def diffs_of(call: ToolCall) -> list[schema.FileEditToolCallContent]:
    """What a call of `write` or `edit` would change."""
    path, given = call.arguments.get("path"), call.arguments
    if not isinstance(path, str):
        return []
    if call.name == "write":
        return [_diff(path, None, given.get("content"))]
    if call.name != "edit":
        return []
    several = given.get("edits")  # a model may write anything there
    changes = several if isinstance(several, list) and several else [given]
    return [_diff(path, one.get("old"), one.get("new")) for one in changes if isinstance(one, dict)]


def _diff(path: str, old: Any, new: Any) -> schema.FileEditToolCallContent:
    before = None if old is None else str(old)
    return schema.FileEditToolCallContent(
        type="diff", path=path, old_text=before, new_text=str(new or "")
    )


def _progress(call_id: str, status: schema.ToolCallStatus, **rest: Any) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(
        session_update="tool_call_update", tool_call_id=call_id, status=status, **rest
    )


def _finished(output: ToolOutput) -> schema.ToolCallProgress:
    content = schema.ContentToolCallContent(type="content", content=_text(output.text))
    status: Literal["failed", "completed"] = "failed" if output.is_error else "completed"
    return _progress(output.call_id, status, content=[content])


def stop_reason_of(reason: Reason) -> schema.StopReason:
    """How a turn ended, in the words of the protocol."""
    return _STOPS.get(reason, "end_turn")


_STOPS: dict[Reason, schema.StopReason] = {
    "interrupted": "cancelled",
    "budget": "max_turn_requests",
    "stuck": "max_turn_requests",
    "failed": "refusal",
    "timeout": "max_turn_requests",
    "max_tokens": "max_tokens",
}
