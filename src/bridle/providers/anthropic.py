"""Anthropic's Messages API, as a provider: an encoder of requests and a reader of streams."""

from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
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
from bridle.messages import (
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    Transcript,
    has_content,
)
from bridle.protocols.json_schema import can_be_closed
from bridle.protocols.provider import (
    ProviderInfo,
    Request,
    RequestConfig,
    Thinks,
    reply_limit,
)
from bridle.providers.encoding_cache import (
    EncodedMessage,
    RequestHead,
    cache_of,
    closed_schema,
    fit_name,
)
from bridle.providers.http_errors import DecodeErrors, error_from_event
from bridle.providers.reply_reader import ReplyReader, finish_call, setting_left_out, unknown_event
from bridle.providers.sse import ServerEvent
from bridle.providers.wire import Timeouts, Transport, Wire, exchange
from bridle.usage import Usage

VERSION = "2023-06-01"


class Anthropic:
    """Claude, over Anthropic's own API.

    `effort` is left out, and a trace says so, where the model is known not to think or
    `max_tokens` leaves no room for it.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = "https://api.anthropic.com",
        info: ProviderInfo | None = None,
        transport: Transport | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.info = info or ProviderInfo(API, model, native_schema=True)
        self._model = model
        self._transport = transport or _wire(base_url, api_key, timeouts)
        self._script = MessagesScript(model)
        self._head = RequestHead(partial(head, model, self.info))

    def __repr__(self) -> str:
        return f"Anthropic({self._model!r})"

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and yield what comes."""
        encode = partial(self.encode, request)
        remarks: list[ModelEvent] = []
        if why := effort_problem(request.config, self.info):
            remarks.append(setting_left_out("effort", why))
        reader = MessagesReader(self._model, remarks)
        return exchange(self._transport, "/v1/messages", encode, reader)

    def encode(self, request: Request) -> bytes:
        """Return the request's body; only messages that are new since the last one are encoded."""
        messages = Transcript.of(request.messages)
        return cache_of(messages, self._script).join(messages, self._head.of(request), b"]}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._transport.close()


def without_version(base_url: str) -> str:
    """The paths of this API begin with /v1 themselves; many people's base URLs end with it."""
    return base_url.rstrip("/").removesuffix("/v1")


def _wire(base_url: str, api_key: str, timeouts: Timeouts | None) -> Wire:
    headers = {
        "anthropic-version": VERSION,
        "content-type": "application/json",
        "user-agent": "bridle",
    }
    if api_key:
        headers["x-api-key"] = api_key
    return Wire(without_version(base_url), headers, secret=api_key, timeouts=timeouts)


# Writes requests for Anthropic's Messages API: messages, tools and thinking.
#
# How long Claude thinks is one word, `effort`. Newer models take the word itself (adaptive), older
# ones a number of tokens (budget), and the oldest do not think (none). A model that is not listed
# counts as new.

_LEAST = 1024  # the smallest budget that the API takes
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576}
_LARGEST = 32768


def thinking_fields(config: RequestConfig, thinks: Thinks | None, limit: int) -> dict[str, Any]:
    """Return the `thinking` of a request, and `effort` if the model has it as a field."""
    if not config.effort or thinks == "none":
        return {}
    if config.effort == "none":
        return {"thinking": {"type": "disabled"}}
    if thinks != "budget":
        shown = {"type": "adaptive", "display": "summarized"}
        return {"thinking": shown, "effort": config.effort}
    # The budget is part of the limit: a quarter stays for the words, where that much is left.
    budget = max(_LEAST, min(_thinking_budget(config.effort), limit * 3 // 4))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget < limit else {}


def effort_problem(config: RequestConfig, info: ProviderInfo) -> str:
    """Return why the configured effort cannot be used; empty if it can, or if none is set."""
    if config.effort in ("", "none"):
        return ""
    limit = reply_limit(config, info)
    if thinking_fields(config, info.thinks, limit):
        return ""
    if info.thinks == "none":
        return f"{info.model} does not think before it answers"
    return f"{info.model} needs max_tokens over {_LEAST} to think"


def _thinking_budget(effort: str) -> int:
    return 0 if effort in ("", "none") else _BUDGETS.get(effort, _LARGEST)


API = "anthropic"
_LONGEST_ID = 64
_LONGEST_NAME = 128

encode = msgspec.json.Encoder(enc_hook=str).encode
_CACHED = {"type": "ephemeral"}
_OPENINGS = {
    "assistant": b'{"role":"assistant","content":[',
    "system": b'{"role":"system","content":[',
    "user": b'{"role":"user","content":[',
    "tool": b'{"role":"user","content":[',
}
# The API wants a user's message first; a conversation from elsewhere may begin with a greeting.
_BEGINS = b'{"role":"user","content":[{"type":"text","text":"(The conversation begins.)"}]},'
_FOREWORDS = {_OPENINGS["assistant"]: _BEGINS, _OPENINGS["system"]: _BEGINS}


class MessagesScript:
    """Writes messages for one model: only its own thinking can go back to it."""

    closing = b"]}"
    forewords: Mapping[bytes, bytes] = _FOREWORDS

    def __init__(self, model: str) -> None:
        self.key = f"{API}/{model}"
        self._model = model

    def write(self, message: Message, thinking: bool) -> EncodedMessage:
        """Return the message as content blocks, with the opening of its role."""
        blocks: list[bytes] = []
        thinks = False
        thinking = thinking and has_content(message)  # a thought alone is no message
        for part in message.parts:
            if isinstance(part, Thinking):
                block = self._thinking_block(part) if thinking else None
                thinks = thinks or block is not None
            else:
                block = _block(part)
            if block is not None:
                blocks.append(encode(block))
        return EncodedMessage(_OPENINGS[message.role], b",".join(blocks), thinks)

    def _thinking_block(self, part: Thinking) -> dict[str, Any] | None:
        meta = part.meta
        if meta.get("api") != API or meta.get("model") != self._model:
            return None
        if "redacted" in meta:
            return {"type": "redacted_thinking", "data": meta["redacted"]}
        if "signature" in meta:
            return {"type": "thinking", "thinking": part.text, "signature": meta["signature"]}
        return None


def _block(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Text):
        # The API refuses text that is empty or blank.
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, ToolCall):
        named = {"id": fit_name(part.id, _LONGEST_ID), "name": fit_name(part.name, _LONGEST_NAME)}
        return {"type": "tool_use", **named, "input": part.arguments}
    if isinstance(part, ToolOutput):
        return _tool_result(part)
    if isinstance(part, Image | File):
        return _media(part)
    return None


def _tool_result(output: ToolOutput) -> dict[str, Any]:
    call_id = fit_name(output.call_id, _LONGEST_ID)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if output.media:
        said = [{"type": "text", "text": output.text}] if output.text.strip() else []
        block["content"] = [*said, *map(_media, output.media)]
    elif output.text:
        block["content"] = output.text
    if output.is_error:
        block["is_error"] = True
    return block


def _media(part: Image | File) -> dict[str, Any]:
    if isinstance(part, Image):
        if part.url:
            return {"type": "image", "source": {"type": "url", "url": part.url}}
        return {"type": "image", "source": _base64(part)}
    named = {"title": part.name} if part.name else {}
    if part.media_type == "application/pdf":
        return {"type": "document", "source": _base64(part), **named}
    if part.media_type.startswith("text/") or part.media_type == "application/json":
        words = b64decode(part.data).decode(errors="replace")
        source = {"type": "text", "media_type": "text/plain", "data": words}
        return {"type": "document", "source": source, **named}
    said = f"[A file was left out: {part.name or 'unnamed'}, {part.media_type}]"
    return {"type": "text", "text": said}


def _base64(part: Image | File) -> dict[str, str]:
    return {"type": "base64", "media_type": part.media_type, "data": part.data}


def head(model: str, info: ProviderInfo, request: Request) -> bytes:
    """Everything of a request but its messages: an object that is left open in their array."""
    limit = reply_limit(request.config, info)
    fields: dict[str, Any] = {
        "model": model,
        "max_tokens": limit,
        "stream": True,
        "cache_control": _CACHED,  # the last block that can be cached: the conversation so far
        **_settings(request.config, info.thinks, limit),
    }
    if request.tools:
        fields["tools"] = _tools(request)
    if request.system:
        said = {"type": "text", "text": request.system, "cache_control": _CACHED}
        fields["system"] = [said]
    return encode(fields)[:-1] + b',"messages":['


def _settings(config: RequestConfig, thinks: Thinks | None, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.stop:
        fields["stop_sequences"] = config.stop
    if config.tool_choice:
        fields["tool_choice"] = _choice(config.tool_choice)
    fields |= thinking_fields(config, thinks, limit)
    output: dict[str, Any] = {}
    if "effort" in fields:
        output["effort"] = fields.pop("effort")
    if config.output_schema is not None and can_be_closed(config.output_schema):
        output["format"] = {"type": "json_schema", "schema": closed_schema(config.output_schema)}
    if output:
        fields["output_config"] = output
    return fields


def _choice(choice: str) -> dict[str, str]:
    if choice == "required":
        return {"type": "any"}
    if choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "tool", "name": choice}


def _tools(request: Request) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]
    tools[-1]["cache_control"] = _CACHED
    return tools


# Makes events of an Anthropic Messages stream. Pure: it can be fed from a socket or from a file.
#
# A call whose arguments do not parse is told as a `parse_error` and stands in the message as
# broken: no tool ever runs on a guess, and the model is told. So does one in whose middle the reply
# reached its token limit.

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


class _StartedMessage(Struct, gc=False):
    model: str = ""
    usage: _Usage | None = None


class _MessageStart(_Tagged, tag="message_start"):
    message: _StartedMessage


class _StopDetails(Struct, frozen=True):
    explanation: str | None = None


class _MessageEnd(Struct, frozen=True):
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None


class _MessageDelta(_Tagged, tag="message_delta"):
    delta: _MessageEnd = _MessageEnd()
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


class _OpenBlock:
    """A content block that is not complete yet."""

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
        self._blocks: dict[int, _OpenBlock] = {}
        self._usage = Usage()
        self._ending = _MessageEnd()

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
            found = self._blocks[event.index] = _OpenBlock(_Block(kind))
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

    def _update_message(self, event: _MessageDelta, data: bytes, out: list[ModelEvent]) -> None:
        self._ending = event.delta if event.delta.stop_reason else self._ending
        self._count(event.usage, out)

    def _break(self, event: _Error, data: bytes, out: list[ModelEvent]) -> None:
        self._fail(error_from_event(event.error, self._request_id))

    def _start(self, event: _Start, data: bytes, out: list[ModelEvent]) -> None:
        block = event.content_block
        self._blocks[event.index] = found = _OpenBlock(block)
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

    def _close(self, found: _OpenBlock, out: list[ModelEvent]) -> None:
        found.stopped = True
        kind = found.block.type
        if kind == "tool_use":
            found.part = _call(found, out)
        elif kind == "text":
            found.part = Text("".join(found.pieces))
        elif kind in ("thinking", "redacted_thinking"):
            found.part = self._thinking_block(found)
        elif found.pieces:  # what the vendor's own tool was asked
            told = {"id": found.block.id, "input": "".join(found.pieces)}
            out.append(TraceEvent(kind, told))

    def _thinking_block(self, found: _OpenBlock) -> Thinking:
        meta = {"api": API, "model": self._asked}
        if found.block.type == "redacted_thinking":
            return Thinking("", {**meta, "redacted": found.block.data})
        if found.signature:
            meta["signature"] = found.signature
        return Thinking("".join(found.pieces), meta)

    def _count(self, usage: _Usage | None, out: list[ModelEvent]) -> None:
        """Record the usage so far. Figures are cumulative; omitted ones stay as they were."""
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
        out.append(self._completion(reason, parts, self._usage, word))


_ADVANCES: dict[type, Callable[[MessagesReader, Any, bytes, list[ModelEvent]], None]] = {
    _Start: MessagesReader._start,
    _Stop: MessagesReader._stop,
    _MessageStart: MessagesReader._begin,
    _MessageDelta: MessagesReader._update_message,
    _MessageStop: MessagesReader._complete,
    _Error: MessagesReader._break,
}
"""Everything but a delta, and a ping, which says nothing."""


def _call(found: _OpenBlock, out: list[ModelEvent]) -> ToolCall:
    """Return a call, made of its pieces, or of the block itself if it came whole."""
    block = found.block
    text = "".join(found.pieces)
    if not text and isinstance(block.input, dict) and block.input:
        call = ToolCall(block.id, block.name, block.input)
        out.append(ToolCallReady(call))
        return call
    return finish_call(block.id, block.name, text, out)
