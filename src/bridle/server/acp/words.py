"""What happens in a session, as an editor is told it. Pure: records in, updates out.

The words that both directions of the protocol share are in agents/acp/updates.py; here are those of
the agent's side: whole paths, output as it comes, and what a call would change, shown beforehand.
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
    """What a file holds now (None: there is none), and what it would hold."""

    path: str
    before: str | None
    after: str


class Calls:
    """The calls that are under way, as the editor knows them."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._outputs: dict[str, str] = {}
        self._changing: set[str] = set()  # calls that show what they change

    def begun(self, call: ToolCall, changes: Sequence[Change]) -> schema.ToolCallStart:
        """A call is there, and nothing has happened yet."""
        found = tool_call_start(call)
        content = self._shown(call, changes)
        return found.model_copy(
            update={"locations": self._places(call, changes), "content": content or None}
        )

    def again(self, call: ToolCall, changes: Sequence[Change]) -> schema.ToolCallProgress:
        """The same call, as it would be now."""
        fields = {name: getattr(self.begun(call, changes), name) for name in _REPEATED}
        return schema.ToolCallProgress(session_update="tool_call_update", **fields)

    def update(self, event: Event) -> BaseModel | None:
        """What is to be told of this, where it is about a call that has begun, or plain words."""
        if isinstance(event, ToolOutputDelta):
            text = self._outputs.get(event.call_id, "") + neutral(event.text)
            self._outputs[event.call_id] = text = text[-_TAIL:]
            if event.call_id in self._changing:
                return None
            return _progress(event.call_id, "in_progress", [_words(text)])
        if isinstance(event, ToolResultEvent):
            return self.ended(event.output)
        return to_update(event)

    def ended(self, output: ToolOutput) -> schema.ToolCallProgress:
        """Its result. What it changed stays to be seen."""
        self._outputs.pop(output.call_id, None)
        shows = output.call_id in self._changing
        self._changing.discard(output.call_id)
        if shows and not output.is_error:
            return _progress(output.call_id, "completed", None)
        said: list[Content] = [_words(shorten(neutral(output.text), _RESULT))]
        said += [_media(one) for one in output.media]
        return _progress(output.call_id, "failed" if output.is_error else "completed", said)

    def _shown(self, call: ToolCall, changes: Sequence[Change]) -> list[Content]:
        if changes:
            self._changing.add(call.id)
            return [
                schema.FileEditToolCallContent(
                    type="diff", path=self._whole(one.path), old_text=one.before, new_text=one.after
                )
                for one in changes
            ]
        words = call.arguments.get("plan") or call.arguments.get("question")
        if isinstance(words, str):
            return [_words(neutral(words))]
        text = call.arguments.get("command") or call.arguments.get("patch")
        return [_words(fenced(text))] if isinstance(text, str) else []  # all of it: titles are cut

    def _places(
        self, call: ToolCall, changes: Sequence[Change]
    ) -> list[schema.ToolCallLocation] | None:
        path = call.arguments.get("path")
        paths = [one.path for one in changes] or ([path] if isinstance(path, str) else [])
        found = [schema.ToolCallLocation(path=self._whole(one)) for one in dict.fromkeys(paths)]
        return found or None

    def _whole(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._root, path))  # noqa: PTH118 - of a path that may be any text


_REPEATED = ("tool_call_id", "title", "kind", "status", "raw_input", "locations", "content")


def _progress(
    call_id: str, status: schema.ToolCallStatus, content: list[Content] | None
) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(
        session_update="tool_call_update", tool_call_id=call_id, status=status, content=content
    )


def _words(text: str) -> schema.ContentToolCallContent:
    return schema.ContentToolCallContent(type="content", content=text_block(text))


def _media(one: Image | File) -> schema.ContentToolCallContent:
    return schema.ContentToolCallContent(type="content", content=block_of(one))


def fenced(text: str) -> str:
    """Text as it is, between marks that do not occur in it."""
    marks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{marks}\n{neutral(text)}\n{marks}"


def text_block(text: str) -> schema.TextContentBlock:
    """Words."""
    return schema.TextContentBlock(type="text", text=text)


def block_of(part: Part) -> schema.TextContentBlock | schema.ImageContentBlock:
    """A part of a message, as a block; what is neither words nor a picture is named."""
    if isinstance(part, Text):
        return text_block(part.text)
    if isinstance(part, Image) and part.data:
        return schema.ImageContentBlock(type="image", data=part.data, mime_type=part.media_type)
    name = getattr(part, "name", "") or getattr(part, "url", "")
    return text_block(f"[{name or getattr(part, 'media_type', '')}]")


def said_by_person(parts: Sequence[Part]) -> list[BaseModel]:
    """A prompt that did not come from this editor, or came long ago."""
    return [
        schema.UserMessageChunk(session_update="user_message_chunk", content=block_of(one))
        for one in parts
    ]


def message(text: str) -> BaseModel:
    """Words of ours."""
    return schema.AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text))


def used(metrics: ExecutionMetrics, window: int | None) -> BaseModel | None:
    """How full the window is, and what the session has cost, where that is known."""
    if not window:
        return None
    cost = schema.Cost(amount=metrics.cost, currency="USD") if not metrics.unpriced else None
    return schema.UsageUpdate(
        session_update="usage_update", used=metrics.context_tokens, size=window, cost=cost
    )


def turn_usage(metrics: ExecutionMetrics) -> schema.Usage:
    """What a turn has used."""
    return schema.Usage(
        input_tokens=metrics.total_input_tokens,
        output_tokens=metrics.total_output_tokens,
        total_tokens=metrics.tokens,
        cached_read_tokens=metrics.cache_read_tokens or None,
        cached_write_tokens=metrics.cache_write_tokens or None,
    )


def notification(session_id: str, update: BaseModel) -> dict[str, object]:
    """An update as it is sent."""
    return {"sessionId": session_id, "update": to_wire(update)}
