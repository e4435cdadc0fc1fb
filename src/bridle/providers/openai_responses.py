"""OpenAI's Responses API, as a provider: an encoder of requests and a reader of streams."""

from collections.abc import AsyncGenerator, Mapping, Sequence
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
from bridle.protocols.provider import ProviderInfo, Request, RequestConfig, known_limit
from bridle.providers.encoding_cache import (
    EncodedMessage,
    RequestHead,
    cache_of,
    fit_name,
    strict_schema,
)
from bridle.providers.http_errors import DecodeErrors, error_from_event
from bridle.providers.reply_reader import ReplyReader, finish_call, setting_left_out, unknown_event
from bridle.providers.sse import ServerEvent
from bridle.providers.wire import Timeouts, Transport, Wire, exchange
from bridle.usage import Usage

_NO_STOP = "the Responses API has no stop sequences; Chat Completions (openai-chat/…) has"
BASE_URL = "https://api.openai.com/v1"


class OpenAIResponses:
    """OpenAI's models, over their own API. It has no `stop`: a trace says that it was left out."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = BASE_URL,
        info: ProviderInfo | None = None,
        transport: Transport | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.info = info or ProviderInfo(API, model, native_schema=True)
        self._model = model
        self._transport = transport or bearer_wire(base_url, api_key, timeouts)
        self._script = ResponsesScript(model)
        self._head = RequestHead(partial(head, model, self.info))

    def __repr__(self) -> str:
        return f"OpenAIResponses({self._model!r})"

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and yield what comes."""
        encode = partial(self.encode, request)
        remarks = [setting_left_out("stop", _NO_STOP)] if request.config.stop else []
        return exchange(
            self._transport, "/responses", encode, ResponsesReader(self._model, remarks)
        )

    def encode(self, request: Request) -> bytes:
        """Return the request's body; only messages that are new since the last one are encoded."""
        messages = Transcript.of(request.messages)
        return cache_of(messages, self._script).join(messages, self._head.of(request), b"]}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._transport.close()


def bearer_wire(base_url: str, api_key: str, timeouts: Timeouts | None) -> Wire:
    """Return the wire to a server that takes its key, if any, as a bearer token."""
    headers = {"content-type": "application/json", "user-agent": "bridle"}
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    return Wire(base_url, headers, secret=api_key, timeouts=timeouts)


# How OpenAI's Responses API is written to: messages as input items, requests as bytes.
#
# Pure: values in, bytes out. The API has no stop sequences, so `stop` is not sent.

API = "openai"
_LONGEST = 64  # characters of an id, and of a name
encode = msgspec.json.Encoder(enc_hook=str).encode
_ROLES = {"user": "user", "system": "developer", "assistant": "assistant", "tool": "user"}


class ResponsesScript:
    """Writes messages for one model: only its own reasoning can go back to it."""

    closing = b""
    forewords: Mapping[bytes, bytes] = {}

    def __init__(self, model: str) -> None:
        self.key = f"{API}/{model}"
        self._model = model

    def write(self, message: Message, thinking: bool) -> EncodedMessage:
        """Return the message as input items, in the order of its parts."""
        items: list[dict[str, Any]] = []
        said: list[Part] = []
        thinks = False
        thinking = thinking and has_content(message)  # a thought alone leads to nothing
        for part in message.parts:
            if isinstance(part, Text | Image | File):
                said.append(part)
                continue
            item = _item(part) or (self._reasoning_item(part) if thinking else None)
            if item is not None:
                thinks = thinks or isinstance(part, Thinking)
                items += [*_text_items(message.role, said), item]
                said = []
        items += _text_items(message.role, said)
        return EncodedMessage(b"", b",".join(map(encode, items)), thinks)

    def _reasoning_item(self, part: Part) -> dict[str, Any] | None:
        if not isinstance(part, Thinking):
            return None
        meta = part.meta
        if meta.get("api") != API or meta.get("model") != self._model:
            return None
        if "encrypted_content" not in meta:
            return None
        return {
            "type": "reasoning",
            "id": meta.get("id", ""),
            "summary": [{"type": "summary_text", "text": part.text}] if part.text else [],
            "encrypted_content": meta["encrypted_content"],
        }


def _item(part: Part) -> dict[str, Any] | None:
    if isinstance(part, ToolCall):
        arguments = encode(part.arguments).decode()
        named = {"call_id": fit_name(part.id, _LONGEST), "name": fit_name(part.name, _LONGEST)}
        return {"type": "function_call", **named, "arguments": arguments}
    if isinstance(part, ToolOutput):
        output: Any = part.text
        if part.media:
            output = [_content(Text(part.text)), *map(_content, part.media)]
        call_id = fit_name(part.call_id, _LONGEST)
        return {"type": "function_call_output", "call_id": call_id, "output": output}
    return None


def _text_items(role: str, parts: list[Part]) -> list[dict[str, Any]]:
    """Return the text between calls, as at most one item."""
    if role == "assistant":
        text = "".join(part.text for part in parts if isinstance(part, Text))
        return [{"role": "assistant", "content": text}] if text else []
    content = [_content(part) for part in parts if not (isinstance(part, Text) and not part.text)]
    return [{"role": _ROLES[role], "content": content}] if content else []


def _content(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "detail": "auto", "image_url": data_url(part)}
    if isinstance(part, File):
        name = part.name or "file"
        return {"type": "input_file", "filename": name, "file_data": data_url(part)}
    return {"type": "input_text", "text": part.text if isinstance(part, Text) else ""}


def data_url(part: Image | File) -> str:
    """Return the picture or document as one URL."""
    if isinstance(part, Image) and part.url:
        return part.url
    return f"data:{part.media_type};base64,{part.data}"


def head(model: str, info: ProviderInfo, request: Request) -> bytes:
    """Everything of a request but its messages: an object that is left open in their array."""
    fields: dict[str, Any] = {
        "model": model,
        "stream": True,
        # The conversation stays here, so reasoning comes back to us, encrypted. It does so by
        # itself: asking for it (`include`) is refused by models that do not reason.
        "store": False,
        **_settings(request.config, known_limit(request.config, info)),
    }
    if request.system:
        fields["instructions"] = request.system
    if request.tools:
        fields["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
    return encode(fields)[:-1] + b',"input":['


def _settings(config: RequestConfig, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if limit:
        fields["max_output_tokens"] = limit
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.effort:
        summary = {} if config.effort == "none" else {"summary": "auto"}
        fields["reasoning"] = {"effort": config.effort, **summary}
    if config.tool_choice in ("auto", "none", "required"):
        fields["tool_choice"] = config.tool_choice
    elif config.tool_choice:
        fields["tool_choice"] = {"type": "function", "name": config.tool_choice}
    if config.output_schema is not None and (schema := reply_schema(config.output_schema)):
        fields["text"] = {"format": {"type": "json_schema", **schema}}
    return fields


def reply_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return a schema as both of OpenAI's APIs take it; strict if the strict mode can express it.

    None where they would refuse it: the reply has to be an object.
    """
    if schema.get("type") != "object":
        return None
    found = strict_schema(schema)
    return {"name": "reply", "schema": found or schema, "strict": found is not None}


# Makes events of an OpenAI Responses stream. Pure: it can be fed from a socket or from a file.
#
# As with every reader, a call whose arguments do not parse is told as a `parse_error` and stands in
# the message as broken; so does one in whose middle the reply reached its token limit.

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
                self._skip_unknown(data, out)
                continue
            if type(event) is _Text:
                text = event.delta
                self._item(event.output_index).grow(text)
                out.append(TextDelta(text))
            else:
                self._update(event, data, out)
                if self.over:
                    break
        return out

    def _item(self, index: int) -> _Open:
        found = self._items.get(index)
        if found is None:
            found = self._items[index] = _Open()
        return found

    def _skip_unknown(self, data: bytes, out: list[ModelEvent]) -> None:
        trace = unknown_event(data)
        if trace.kind not in _SILENT and data != b"[DONE]":
            out.append(trace)

    def _update(self, event: _Tagged, data: bytes, out: list[ModelEvent]) -> None:
        """Handle every event but text."""
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
            self._finish_item(event, data, out)
        else:
            self._turn(event, out)

    def _turn(self, event: _Tagged, out: list[ModelEvent]) -> None:
        """Handle the start or the end of the whole response."""
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

    def _finish_item(self, event: _Done, data: bytes, out: list[ModelEvent]) -> None:
        """Finish an item, and emit what its deltas left out."""
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
        out.append(self._completion(reason, parts, usage, word))

    def _part(self, found: _Open) -> Part | None:
        """Return the item's part; also the text of an item that was never finished."""
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
