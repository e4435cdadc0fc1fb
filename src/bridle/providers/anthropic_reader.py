"""Makes events of an Anthropic Messages stream. Pure: it can be fed from a socket or from a file.

A call whose arguments do not parse is told as a `parse_error` and stands in the message as broken:
no tool ever runs on a guess, and the model is told. So does one in whose middle the reply reached
its token limit.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bridle.events import (
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Part, Text, Thinking, ToolCall
from bridle.providers.anthropic_encoder import API
from bridle.providers.http_errors import DecodeErrors, error_from_event
from bridle.providers.reply_reader import ReplyReader, finish_call, unknown_event
from bridle.providers.sse import ServerEvent
from bridle.usage import Usage

_EMPTY = Text("")
_STOPS: dict[str, StopReason] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "pause_turn": "complete",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


class _Tagged(Struct, tag_field="type", gc=False):
    """Anything that says its own type."""


class _TextDelta(_Tagged, tag="text_delta"):
    text: str


class _ThinkingDelta(_Tagged, tag="thinking_delta"):
    thinking: str


class _SignatureDelta(_Tagged, tag="signature_delta"):
    signature: str


class _JsonDelta(_Tagged, tag="input_json_delta"):
    partial_json: str


class _Delta(_Tagged, tag="content_block_delta"):
    index: int
    delta: _TextDelta | _ThinkingDelta | _SignatureDelta | _JsonDelta


class _Block(Struct, gc=False):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: Any = None


class _Start(_Tagged, tag="content_block_start"):
    index: int
    content_block: _Block


class _Stop(_Tagged, tag="content_block_stop"):
    index: int


class _Details(Struct, gc=False):
    thinking_tokens: int | None = None


_NO_DETAILS = _Details()


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _Details | None = None


class _Opened(Struct, gc=False):
    model: str = ""
    usage: _Usage | None = None


class _MessageStart(_Tagged, tag="message_start"):
    message: _Opened


class _StopDetails(Struct, frozen=True):
    explanation: str | None = None


class _Ending(Struct, frozen=True):
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None


class _MessageDelta(_Tagged, tag="message_delta"):
    delta: _Ending = _Ending()
    usage: _Usage | None = None


class _MessageStop(_Tagged, tag="message_stop"):
    pass


class _Ping(_Tagged, tag="ping"):
    pass


class _Error(_Tagged, tag="error"):
    error: Any = None


_decode = msgspec.json.Decoder(
    _Delta | _Start | _Stop | _MessageStart | _MessageDelta | _MessageStop | _Ping | _Error
).decode


class _Open:
    """A content block that is still growing."""

    __slots__ = ("block", "grow", "part", "pieces", "signature", "stopped")

    def __init__(self, block: _Block) -> None:
        self.block = block
        self.pieces: list[str] = []
        self.grow = self.pieces.append
        self.signature = block.signature
        self.stopped = False
        self.part: Part | None = None


class MessagesReader(ReplyReader):
    """Reads one reply. `remarks` are told at its beginning."""

    def __init__(self, model: str, remarks: Sequence[ModelEvent] = ()) -> None:
        super().__init__(model, remarks)
        self._blocks: dict[int, _Open] = {}
        self._usage = Usage()
        self._ending = _Ending()

    def feed(self, events: list[ServerEvent]) -> list[ModelEvent]:
        """What these events say."""
        out: list[ModelEvent] = []
        for _, data in events:
            try:
                event = _decode(data)
            except DecodeErrors:
                out.append(unknown_event(data, "delta"))
                continue
            kind = type(event)
            if kind is _Delta:
                delta = event.delta
                if type(delta) is _TextDelta and event.index in self._blocks:
                    text = delta.text
                    self._blocks[event.index].grow(text)
                    out.append(TextDelta(text))
                else:
                    self._grow(event, out)
            elif (advance := _ADVANCES.get(kind)) is not None:
                advance(self, event, data, out)
                if self.over:
                    break
        return out

    def _grow(self, event: _Delta, out: list[ModelEvent]) -> None:
        delta = event.delta
        found = self._blocks.get(event.index)
        if found is None:  # a stream that leaves the beginning of a block out
            kind = "thinking" if isinstance(delta, _ThinkingDelta | _SignatureDelta) else "text"
            found = self._blocks[event.index] = _Open(_Block(kind))
        if isinstance(delta, _JsonDelta):
            found.grow(delta.partial_json)
            if delta.partial_json and found.block.type == "tool_use":
                out.append(ToolCallArgsDelta(found.block.id, delta.partial_json))
        elif isinstance(delta, _ThinkingDelta):
            found.grow(delta.thinking)
            out.append(ThinkingDelta(delta.thinking))
        elif isinstance(delta, _SignatureDelta):
            found.signature += delta.signature
        else:
            found.grow(delta.text)
            out.append(TextDelta(delta.text))

    def _begin(self, event: _MessageStart, data: bytes, out: list[ModelEvent]) -> None:
        out += self._remarks
        self._model = event.message.model or self._asked
        self._count(event.message.usage, out)

    def _near_end(self, event: _MessageDelta, data: bytes, out: list[ModelEvent]) -> None:
        self._ending = event.delta if event.delta.stop_reason else self._ending
        self._count(event.usage, out)

    def _break(self, event: _Error, data: bytes, out: list[ModelEvent]) -> None:
        self._fail(error_from_event(event.error, self._request_id))

    def _start(self, event: _Start, data: bytes, out: list[ModelEvent]) -> None:
        block = event.content_block
        self._blocks[event.index] = found = _Open(block)
        if block.type == "tool_use":
            out.append(ToolCallStarted(block.id, block.name))
        elif block.type == "text" and block.text:
            found.grow(block.text)
            out.append(TextDelta(block.text))
        elif block.type == "thinking" and block.thinking:
            found.grow(block.thinking)
            out.append(ThinkingDelta(block.thinking))
        elif block.type not in ("text", "thinking", "redacted_thinking"):
            out.append(unknown_event(data, "content_block"))

    def _stop(self, event: _Stop, data: bytes, out: list[ModelEvent]) -> None:
        found = self._blocks.get(event.index)
        if found is not None and not found.stopped:
            self._close(found, out)

    def _close(self, found: _Open, out: list[ModelEvent]) -> None:
        found.stopped = True
        kind = found.block.type
        if kind == "tool_use":
            found.part = _call(found, out)
        elif kind == "text":
            found.part = Text("".join(found.pieces))
        elif kind in ("thinking", "redacted_thinking"):
            found.part = self._thought(found)
        elif found.pieces:  # what the vendor's own tool was asked
            told = {"id": found.block.id, "input": "".join(found.pieces)}
            out.append(TraceEvent(kind, told))

    def _thought(self, found: _Open) -> Thinking:
        meta = {"api": API, "model": self._asked}
        if found.block.type == "redacted_thinking":
            return Thinking("", {**meta, "redacted": found.block.data})
        if found.signature:
            meta["signature"] = found.signature
        return Thinking("".join(found.pieces), meta)

    def _count(self, usage: _Usage | None, out: list[ModelEvent]) -> None:
        """The vendor's figures are cumulative; those left out stay as they were."""
        if usage is None:
            return
        old = self._usage
        read, written = usage.input_tokens, usage.output_tokens
        cached, kept = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        thought = (usage.output_tokens_details or _NO_DETAILS).thinking_tokens
        self._usage = Usage(
            old.input_tokens if read is None else read,
            old.output_tokens if written is None else written,
            old.cache_read_tokens if cached is None else cached,
            old.cache_write_tokens if kept is None else kept,
            old.thinking_tokens if thought is None else thought,
        )
        out.append(UsageReported(self._usage, self._model))

    def _complete(self, event: _MessageStop, data: bytes, out: list[ModelEvent]) -> None:
        for found in self._blocks.values():
            if not found.stopped:  # it is over now
                self._close(found, out)
        self.over = True
        parts = [
            part
            for _, found in sorted(self._blocks.items())
            if (part := found.part) is not None and part != _EMPTY
        ]
        word = self._ending.stop_reason or ""
        calls = any(isinstance(part, ToolCall) for part in parts)
        reason = _STOPS.get(word, "tool_use" if calls else "complete")
        detail = self._ending.stop_details
        if detail and detail.explanation:
            word = f"{word}: {detail.explanation}"
        out.append(self._whole(reason, parts, self._usage, word))


_ADVANCES: dict[type, Callable[[MessagesReader, Any, bytes, list[ModelEvent]], None]] = {
    _Start: MessagesReader._start,
    _Stop: MessagesReader._stop,
    _MessageStart: MessagesReader._begin,
    _MessageDelta: MessagesReader._near_end,
    _MessageStop: MessagesReader._complete,
    _Error: MessagesReader._break,
}
"""Everything but a delta, and a ping, which says nothing."""


def _call(found: _Open, out: list[ModelEvent]) -> ToolCall:
    """A call, from its pieces, or from the block itself where it came whole."""
    block = found.block
    text = "".join(found.pieces)
    if not text and isinstance(block.input, dict) and block.input:
        call = ToolCall(block.id, block.name, block.input)
        out.append(ToolCallReady(call))
        return call
    return finish_call(block.id, block.name, text, out)
