"""Translate events into the updates that an editor is sent. Pure.

What both directions of the protocol share is in `agents/acp/updates.py`; here is the agent's side:
absolute paths, output as it arrives, and what a call would change, before it runs.
"""

import os
import re
from collections.abc import Sequence

from acp import schema
from msgspec import Struct
from pydantic import BaseModel

from bridle.agents.acp.updates import to_update, to_wire, tool_call_start
from bridle.events import Event, ToolOutputDelta, ToolResultEvent
from bridle.messages import File, Image, Part, Text, ToolCall, ToolOutput
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import neutral, shorten

_TAIL = 8_000  # characters of a running call's output: each update says them anew
_RESULT = 50_000  # characters of a result

Content = (
    schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
)


class Change(Struct, frozen=True):
    """The content of a file now (None: it does not exist), and afterwards."""

    path: str
    before: str | None
    after: str


class Calls:
    """The calls in progress, as the editor knows them."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._outputs: dict[str, str] = {}
        self._changing: set[str] = set()  # calls that show what they change

    def start(self, call: ToolCall, changes: Sequence[Change]) -> schema.ToolCallStart:
        """Return the update for a new call."""
        found = tool_call_start(call)
        content = self._content(call, changes)
        return found.model_copy(
            update={"locations": self._locations(call, changes), "content": content or None}
        )

    def refresh(self, call: ToolCall, changes: Sequence[Change]) -> schema.ToolCallProgress:
        """Return the update for a call whose changes would be others now."""
        fields = {name: getattr(self.start(call, changes), name) for name in _REPEATED}
        return schema.ToolCallProgress(session_update="tool_call_update", **fields)

    def update(self, event: Event) -> BaseModel | None:
        """Return the update for an event; None if it has none."""
        if isinstance(event, ToolOutputDelta):
            text = self._outputs.get(event.call_id, "") + neutral(event.text)
            self._outputs[event.call_id] = text = text[-_TAIL:]
            if event.call_id in self._changing:
                return None
            return _progress(event.call_id, "in_progress", [_text_content(text)])
        if isinstance(event, ToolResultEvent):
            return self.end(event.output)
        return to_update(event)

    def end(self, output: ToolOutput) -> schema.ToolCallProgress:
        """Return the update for a result. The changes that were shown stay."""
        self._outputs.pop(output.call_id, None)
        shows = output.call_id in self._changing
        self._changing.discard(output.call_id)
        if shows and not output.is_error:
            return _progress(output.call_id, "completed", None)
        said: list[Content] = [_text_content(shorten(neutral(output.text), _RESULT))]
        said += [_media(one) for one in output.media]
        return _progress(output.call_id, "failed" if output.is_error else "completed", said)

    def _content(self, call: ToolCall, changes: Sequence[Change]) -> list[Content]:
        if changes:
            self._changing.add(call.id)
            return [
                schema.FileEditToolCallContent(
                    type="diff",
                    path=self._absolute(one.path),
                    old_text=one.before,
                    new_text=one.after,
                )
                for one in changes
            ]
        words = call.arguments.get("plan") or call.arguments.get("question")
        if isinstance(words, str):
            return [_text_content(neutral(words))]
        text = call.arguments.get("command") or call.arguments.get("patch")
        return (
            [_text_content(fenced(text))] if isinstance(text, str) else []
        )  # all of it: titles are cut

    def _locations(
        self, call: ToolCall, changes: Sequence[Change]
    ) -> list[schema.ToolCallLocation] | None:
        path = call.arguments.get("path")
        paths = [one.path for one in changes] or ([path] if isinstance(path, str) else [])
        found = [schema.ToolCallLocation(path=self._absolute(one)) for one in dict.fromkeys(paths)]
        return found or None

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._root, path))  # noqa: PTH118 - of a path that may be any text


_REPEATED = ("tool_call_id", "title", "kind", "status", "raw_input", "locations", "content")


def _progress(
    call_id: str, status: schema.ToolCallStatus, content: list[Content] | None
) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(
        session_update="tool_call_update", tool_call_id=call_id, status=status, content=content
    )


def _text_content(text: str) -> schema.ContentToolCallContent:
    return schema.ContentToolCallContent(type="content", content=text_block(text))


def _media(one: Image | File) -> schema.ContentToolCallContent:
    return schema.ContentToolCallContent(type="content", content=part_block(one))


def fenced(text: str) -> str:
    """Return text in a fence that it cannot close."""
    marks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{marks}\n{neutral(text)}\n{marks}"


def text_block(text: str) -> schema.TextContentBlock:
    """Return text as a block."""
    return schema.TextContentBlock(type="text", text=text)


def part_block(part: Part) -> schema.TextContentBlock | schema.ImageContentBlock:
    """Return a part of a message as a block; what is neither text nor a picture is named."""
    if isinstance(part, Text):
        return text_block(part.text)
    if isinstance(part, Image) and part.data:
        return schema.ImageContentBlock(type="image", data=part.data, mime_type=part.media_type)
    name = getattr(part, "name", "") or getattr(part, "url", "")
    return text_block(f"[{name or getattr(part, 'media_type', '')}]")


def prompt_updates(parts: Sequence[Part]) -> list[BaseModel]:
    """Return the updates for a prompt that was not sent by this editor just now."""
    return [
        schema.UserMessageChunk(session_update="user_message_chunk", content=part_block(one))
        for one in parts
    ]


def message_update(text: str) -> BaseModel:
    """Return a message of bridle itself."""
    return schema.AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text))


def usage_update(metrics: ExecutionMetrics, window: int | None) -> BaseModel | None:
    """Return how full the context is and what the session has cost; None if it is not known."""
    if not window:
        return None
    cost = schema.Cost(amount=metrics.cost, currency="USD") if not metrics.unpriced else None
    return schema.UsageUpdate(
        session_update="usage_update", used=metrics.context_tokens, size=window, cost=cost
    )


def turn_usage(metrics: ExecutionMetrics) -> schema.Usage:
    """Return what a turn has used."""
    return schema.Usage(
        input_tokens=metrics.total_input_tokens,
        output_tokens=metrics.total_output_tokens,
        total_tokens=metrics.tokens,
        cached_read_tokens=metrics.cache_read_tokens or None,
        cached_write_tokens=metrics.cache_write_tokens or None,
    )


def notification(session_id: str, update: BaseModel) -> dict[str, object]:
    """Return an update as it is sent."""
    return {"sessionId": session_id, "update": to_wire(update)}
