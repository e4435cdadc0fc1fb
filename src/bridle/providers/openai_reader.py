"""Makes events of an OpenAI Responses stream. Pure: it can be fed from a socket or from a file.

As with every reader, a call whose arguments do not parse is told as a `parse_error` and stands in
the message as broken; so does one in whose middle the reply reached its token limit.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bridle.events import (
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallStarted,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Part, Text, Thinking, ToolCall
from bridle.providers.http_errors import DecodeErrors, error_from_event
from bridle.providers.openai_encoder import API
from bridle.providers.reply_reader import ReplyReader, finish_call, unknown_event
from bridle.providers.sse import ServerEvent
from bridle.usage import Usage

# Said again by what comes with them or after them.
_SILENT = frozenset(
    f"response.{name}"
    for name in (
        "queued",
        "content_part.added",
        "content_part.done",
        "output_text.done",
        "refusal.done",
        "function_call_arguments.done",
        "reasoning_summary_part.done",
        "reasoning_summary_text.done",
        "reasoning_text.done",
    )
)
_INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "max_tokens",
    "content_filter": "refusal",
}


class _Tagged(Struct, tag_field="type"):
    """Anything that says its own type."""


class _Text(_Tagged, tag="response.output_text.delta"):
    delta: str
    output_index: int = 0


class _Refusal(_Tagged, tag="response.refusal.delta"):
    delta: str
    output_index: int = 0


class _Summary(_Tagged, tag="response.reasoning_summary_text.delta"):
    delta: str
    output_index: int = 0


class _Reasoning(_Tagged, tag="response.reasoning_text.delta"):
    delta: str
    output_index: int = 0


class _SummaryPart(_Tagged, tag="response.reasoning_summary_part.added"):
    output_index: int = 0
    summary_index: int = 0


class _Arguments(_Tagged, tag="response.function_call_arguments.delta"):
    delta: str
    output_index: int = 0


class _Piece(Struct):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Item(Struct):
    type: str
    id: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    encrypted_content: str | None = None
    summary: list[_Piece] | None = None
    content: list[_Piece] | None = None


class _Added(_Tagged, tag="response.output_item.added"):
    item: _Item
    output_index: int = 0


class _Done(_Tagged, tag="response.output_item.done"):
    item: _Item
    output_index: int = 0


class _InputDetails(Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Reason(Struct):
    reason: str | None = None


class _Response(Struct):
    model: str = ""
    status: str | None = None
    usage: _Usage | None = None
    error: Any = None
    incomplete_details: _Reason | None = None


class _Created(_Tagged, tag="response.created"):
    response: _Response


class _InProgress(_Tagged, tag="response.in_progress"):
    response: _Response


class _Completed(_Tagged, tag="response.completed"):
    response: _Response


class _Incomplete(_Tagged, tag="response.incomplete"):
    response: _Response


class _Failed(_Tagged, tag="response.failed"):
    response: _Response


class _Error(_Tagged, tag="error"):
    code: str | None = None
    message: str = ""
    error: Any = None


_Deltas = _Text | _Refusal | _Summary | _Reasoning | _Arguments
_Ends = _Completed | _Incomplete | _Failed
_decode = msgspec.json.Decoder(
    _Deltas | _SummaryPart | _Added | _Done | _Created | _InProgress | _Ends | _Error
).decode


class _Open:
    """An output item that is still growing."""

    __slots__ = ("call_id", "grow", "name", "part", "pieces", "started")

    def __init__(self, call_id: str = "", name: str = "") -> None:
        self.call_id = call_id
        self.name = name
        self.pieces: list[str] = []
        self.grow = self.pieces.append
        self.started = False
        self.part: Part | None = None


class ResponsesReader(ReplyReader):
    """Reads one reply. `remarks` are told at its beginning."""

    def __init__(self, model: str, remarks: Sequence[ModelEvent] = ()) -> None:
        super().__init__(model, remarks)
        self._items: dict[int, _Open] = {}
        self._refused = False

    def feed(self, events: list[ServerEvent]) -> list[ModelEvent]:
        """What these events say."""
        out: list[ModelEvent] = []
        for _, data in events:
            try:
                event = _decode(data)
            except DecodeErrors:
                self._puzzle(data, out)
                continue
            if type(event) is _Text:
                text = event.delta
                self._item(event.output_index).grow(text)
                out.append(TextDelta(text))
            else:
                self._advance(event, data, out)
                if self.over:
                    break
        return out

    def _item(self, index: int) -> _Open:
        found = self._items.get(index)
        if found is None:
            found = self._items[index] = _Open()
        return found

    def _puzzle(self, data: bytes, out: list[ModelEvent]) -> None:
        trace = unknown_event(data)
        if trace.kind not in _SILENT and data != b"[DONE]":
            out.append(trace)

    def _advance(self, event: _Tagged, data: bytes, out: list[ModelEvent]) -> None:
        """Everything but text."""
        if isinstance(event, _Summary | _Reasoning | _SummaryPart):
            self._think(event, out)
        elif isinstance(event, _Arguments):
            found = self._item(event.output_index)
            found.grow(event.delta)
            out.append(ToolCallArgsDelta(found.call_id, event.delta))
        elif isinstance(event, _Refusal):
            self._refused = True
            self._item(event.output_index).grow(event.delta)
            out.append(TextDelta(event.delta))
        elif isinstance(event, _Added):
            self._add(event, out)
        elif isinstance(event, _Done):
            self._settle(event, data, out)
        else:
            self._turn(event, out)

    def _turn(self, event: _Tagged, out: list[ModelEvent]) -> None:
        """The response as a whole began, or is over."""
        if isinstance(event, _Error):
            told = event.error or {"code": event.code, "message": event.message}
            self._fail(error_from_event(told, self._request_id))
        elif isinstance(event, _Created | _InProgress):
            out += self._remarks
            self._remarks = ()
            self._model = event.response.model or self._asked
        elif isinstance(event, _Completed | _Incomplete | _Failed):
            self.over = True
            self._model = event.response.model or self._model
            usage = _usage(event.response.usage)
            if event.response.usage is not None:
                out.append(UsageReported(usage, self._model))
            if isinstance(event, _Failed):
                self._fail(error_from_event(event.response.error, self._request_id))
            else:
                self._complete(event.response, usage, out)

    def _think(self, event: _Summary | _Reasoning | _SummaryPart, out: list[ModelEvent]) -> None:
        if not isinstance(event, _SummaryPart):
            text = event.delta
        elif event.summary_index > 0:
            text = "\n\n"  # parts of a summary are paragraphs
        else:
            return
        self._item(event.output_index).grow(text)
        out.append(ThinkingDelta(text))

    def _add(self, event: _Added, out: list[ModelEvent]) -> None:
        item = event.item
        found = self._items[event.output_index] = _Open(item.call_id, item.name)
        if item.type == "function_call":
            found.started = True
            out.append(ToolCallStarted(item.call_id, item.name))

    def _settle(self, event: _Done, data: bytes, out: list[ModelEvent]) -> None:
        """An item is whole. What its deltas left out is said now."""
        item, found = event.item, self._item(event.output_index)
        if item.type == "message":
            said = "".join(piece.text or piece.refusal for piece in item.content or ())
            if not found.pieces and said:
                found.grow(said)
                out.append(TextDelta(said))
            found.part = Text("".join(found.pieces))
        elif item.type == "reasoning":
            thought = "\n\n".join(piece.text for piece in item.summary or item.content or ())
            if not found.pieces and thought:
                found.grow(thought)
                out.append(ThinkingDelta(thought))
            found.part = Thinking("".join(found.pieces), self._meta(item))
        elif item.type == "function_call":
            self._call(item, found, out)
        else:
            trace = unknown_event(data, "item")
            out.append(TraceEvent(item.type, trace.detail))

    def _meta(self, item: _Item) -> dict[str, str]:
        meta = {"api": API, "model": self._asked}
        if item.id:
            meta["id"] = item.id
        if item.encrypted_content:
            meta["encrypted_content"] = item.encrypted_content
        return meta

    def _call(self, item: _Item, found: _Open, out: list[ModelEvent]) -> None:
        if not found.started:
            out.append(ToolCallStarted(item.call_id, item.name))
        text = item.arguments or "".join(found.pieces)
        found.part = finish_call(item.call_id, item.name, text, out)

    def _complete(self, response: _Response, usage: Usage, out: list[ModelEvent]) -> None:
        why = response.incomplete_details
        word = (why and why.reason) or response.status or ""
        items = [item for _, item in sorted(self._items.items())]
        if items and items[-1].started and items[-1].part is None:
            last = items[-1]  # the reply was cut off in the middle of this call
            last.part = finish_call(last.call_id, last.name, "".join(last.pieces), out)
        found = [self._part(item) for item in items]
        parts = [part for part in found if part is not None]
        if word in _INCOMPLETE:
            reason: StopReason = _INCOMPLETE[word]
        elif self._refused:
            reason = "refusal"
        else:
            calls = any(isinstance(part, ToolCall) for part in parts)
            reason = "tool_use" if calls else "complete"
        out.append(self._whole(reason, parts, usage, word))

    def _part(self, found: _Open) -> Part | None:
        """The item's part; text of an item that was never settled counts too."""
        if found.part is None and found.pieces and not found.started:
            return Text("".join(found.pieces))
        return None if found.part == Text("") else found.part


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage(input_has_cache=True)
    read = usage.input_tokens_details or _InputDetails()
    wrote = usage.output_tokens_details or _OutputDetails()
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        read.cached_tokens or 0,
        read.cache_write_tokens or 0,
        wrote.reasoning_tokens or 0,
        True,
    )
