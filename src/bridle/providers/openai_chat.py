"""OpenAI's Chat Completions API, as a provider: also Ollama, vLLM, llama.cpp, LM Studio,
OpenRouter and whoever else speaks it, by base URL.

An encoder of requests and a reader of streams. Some models write calls as text: these are parsed.
"""

from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any, TypedDict, Unpack
from urllib.parse import urlsplit

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
)
from bridle.protocols.provider import ProviderInfo, Request, RequestConfig, known_limit
from bridle.providers.encoding_cache import EncodedMessage, RequestHead, cache_of, fit_name
from bridle.providers.http_errors import DecodeErrors, error_from_event
from bridle.providers.openai_responses import BASE_URL, bearer_wire, data_url, reply_schema
from bridle.providers.reply_reader import (
    ReplyReader,
    finish_call,
    parse_arguments,
    parse_error,
    unknown_event,
)
from bridle.providers.sse import ServerEvent
from bridle.providers.text_tool_calls import TextCalls, new_call_id
from bridle.providers.wire import Timeouts, Transport, exchange
from bridle.usage import Usage


class ConnectionOptions(TypedDict, total=False):
    """How to connect: with a transport, or with these timeouts of our own."""

    transport: Transport | None
    timeouts: Timeouts | None


class OpenAIChat:
    """Any server that speaks Chat Completions.

    `calls_in_text` reads calls that the model wrote into its text; it is on for local servers.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = BASE_URL,
        info: ProviderInfo | None = None,
        calls_in_text: bool | None = None,
        **way: Unpack[ConnectionOptions],
    ) -> None:
        self.info = info or ProviderInfo(API, model, native_schema=True)
        self.calls_in_text = self.info.local if calls_in_text is None else calls_in_text
        self._model = model
        wire = way.get("transport") or bearer_wire(base_url, api_key, way.get("timeouts"))
        self._transport: Transport = wire
        self._script = ChatScript(model)
        self._head = RequestHead(partial(head, model, self.info, _max_tokens_field(base_url)))

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r})"

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and yield what comes."""
        named = request.tools if self.calls_in_text else ()
        reader = ChatReader(self._model, frozenset(tool.name for tool in named))
        encode = partial(self.encode, request)
        return exchange(self._transport, "/chat/completions", encode, reader)

    def encode(self, request: Request) -> bytes:
        """Return the request's body; only messages that are new since the last one are encoded."""
        messages = Transcript.of(request.messages)
        return cache_of(messages, self._script).join(messages, self._head.of(request), b"]}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._transport.close()


def _max_tokens_field(base_url: str) -> str:
    """OpenAI renamed `max_tokens`; most compatible servers did not."""
    host = urlsplit(base_url).hostname or ""
    ours = host == "api.openai.com" or host.endswith(".openai.azure.com")
    return "max_completion_tokens" if ours else "max_tokens"


# How the Chat Completions API is written to, by OpenAI and by everybody who copied it.
#
# Pure: values in, bytes out. A tool's pictures cannot be said in this API; the text says so.

API = "openai-chat"
_LONGEST_ID = 40
_LONGEST_NAME = 64
encode = msgspec.json.Encoder(enc_hook=str).encode


class ChatScript:
    """Writes messages for one model.

    Reasoning goes back under the name it came with (`reasoning_content`, `reasoning`), inside the
    turn in progress: some servers demand it there, and those that never send it never get it.
    """

    closing = b""
    forewords: Mapping[bytes, bytes] = {}

    def __init__(self, model: str) -> None:
        self.key = f"{API}/{model}"
        self._model = model

    def write(self, message: Message, thinking: bool) -> EncodedMessage:
        """Return the message as one entry, or as one for each tool's output."""
        if message.role == "assistant":
            thoughts = self._thoughts(message) if thinking else {}
            said = _answer(message)
            return EncodedMessage(
                b"", encode({**said, **thoughts}) if said else b"", bool(thoughts)
            )
        entries = [_tool(part) for part in message.parts if isinstance(part, ToolOutput)]
        content = _content([part for part in message.parts if not isinstance(part, ToolOutput)])
        if content:
            role = "system" if message.role == "system" else "user"
            entries.append({"role": role, "content": content})
        return EncodedMessage(b"", b",".join(map(encode, entries)))

    def _thoughts(self, message: Message) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in message.parts:
            if not isinstance(part, Thinking):
                continue
            meta = part.meta
            if meta.get("api") == API and meta.get("model") == self._model and "field" in meta:
                found[meta["field"]] = found.get(meta["field"], "") + part.text
        return found


def _answer(message: Message) -> dict[str, Any]:
    calls = [
        {"id": fit_name(part.id, _LONGEST_ID), "type": "function", "function": _function(part)}
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    text = message.content
    if not text and not calls:
        return {}
    said = {"role": "assistant", "content": text or None}
    return {**said, "tool_calls": calls} if calls else said


def _function(call: ToolCall) -> dict[str, str]:
    name = fit_name(call.name, _LONGEST_NAME)
    return {"name": name, "arguments": encode(call.arguments).decode()}


def _tool(output: ToolOutput) -> dict[str, Any]:
    text = output.text
    if output.media:
        kinds = ", ".join(part.media_type or "a link" for part in output.media)
        text += f"\n[left out, because this API takes none here: {kinds}]"
    return {"role": "tool", "tool_call_id": fit_name(output.call_id, _LONGEST_ID), "content": text}


def _content(parts: list[Part]) -> str | list[dict[str, Any]]:
    """One text as it is, which every server takes; anything more as a list."""
    parts = [part for part in parts if not isinstance(part, Thinking) and part != Text("")]
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [found for part in parts if (found := _piece(part))]


def _piece(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    if isinstance(part, File):
        if part.media_type.startswith("text/") or part.media_type == "application/json":
            words = b64decode(part.data).decode(errors="replace")
            return {"type": "text", "text": f"{part.name}\n\n{words}" if part.name else words}
        named = {"filename": part.name or "file", "file_data": data_url(part)}
        return {"type": "file", "file": named}
    return None


def head(model: str, info: ProviderInfo, ceiling: str, request: Request) -> bytes:
    """Everything of a request but its messages. `ceiling` is this server's name for max_tokens."""
    fields: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        **_settings(request.config, ceiling, known_limit(request.config, info)),
    }
    if request.tools:
        fields["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
        if request.config.tool_choice:
            fields["tool_choice"] = _choice(request.config.tool_choice)
    opened = encode(fields)[:-1] + b',"messages":['
    if not request.system:
        return opened
    return opened + encode({"role": "system", "content": request.system})


def _settings(config: RequestConfig, ceiling: str, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if limit:
        fields[ceiling] = limit
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.effort:
        fields["reasoning_effort"] = config.effort
    if config.stop:
        fields["stop"] = config.stop
    if config.output_schema is not None and (schema := reply_schema(config.output_schema)):
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def _choice(choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


# Makes events of a Chat Completions stream, OpenAI's or a compatible server's.
#
# Pure: it can be fed from a socket or from a file. Tolerant, because the copies differ: fields may
# be missing, ids may never come, usage and `[DONE]` are optional once a finish reason was given.
# Calls are ready when the reply is over: nothing in this API says that one is whole before.

_STOPS: dict[str, StopReason] = {
    "stop": "complete",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _CallDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(Struct):
    index: int | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _ReadDetails(Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _WroteDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _ReadDetails | None = None
    completion_tokens_details: _WroteDetails | None = None
    prompt_cache_hit_tokens: int | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class _OpenCall:
    """A call whose arguments are not complete yet."""

    __slots__ = ("id", "name", "pieces", "told")

    def __init__(self, given: str | None) -> None:
        self.id = given or new_call_id()
        self.name = ""
        self.pieces: list[str] = []
        self.told = 0  # pieces that were yielded; none are before the name has come


class ChatReader(ReplyReader):
    """Reads one reply. `tools` are the names that a call in the text may have."""

    def __init__(self, model: str, tools: frozenset[str] = frozenset()) -> None:
        super().__init__(model)
        self._text: list[str] = []
        self._thoughts: dict[str, list[str]] = {}
        self._calls: list[_OpenCall] = []
        self._places: dict[int, _OpenCall] = {}
        self._watch = TextCalls(tools) if tools else None
        self._index: int | None = None  # of the reply that is read
        self._usage: Usage | None = None
        self._finish = ""
        self._refused = False

    def feed(self, events: list[ServerEvent]) -> list[ModelEvent]:
        """What these events say."""
        out: list[ModelEvent] = []
        for _, data in events:
            try:
                chunk = _decode(data)
            except DecodeErrors:
                if data.strip() == b"[DONE]":
                    self._complete(out)
                    break
                out.append(unknown_event(data))
                continue
            self._read(chunk, data, out)
            if self.over:
                break
        return out

    def finish(self) -> list[ModelEvent]:
        """End the reply. Without `[DONE]` it is complete if a finish reason came."""
        out: list[ModelEvent] = []
        if self._finish:
            self._complete(out)
        else:
            out += super().finish()
        return out

    def _read(self, chunk: _Chunk, data: bytes, out: list[ModelEvent]) -> None:
        self._model = chunk.model or self._model
        if chunk.error is not None:
            self._fail(error_from_event(chunk.error, self._request_id))
        elif chunk.choices:
            for choice in chunk.choices:
                if (choice.index or 0) != self._index:
                    if self._index is not None:
                        continue  # another reply to the same request: nobody asked for it
                    self._index = choice.index or 0
                if choice.delta is not None:
                    self._grow(choice.delta, out)
                if choice.finish_reason:
                    self._finish = choice.finish_reason
        elif chunk.usage is None:
            out.append(unknown_event(data))
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)

    def _grow(self, delta: _Delta, out: list[ModelEvent]) -> None:
        if thought := delta.reasoning_content:
            self._add_thinking("reasoning_content", thought, out)
        elif thought := delta.reasoning:
            self._add_thinking("reasoning", thought, out)
        elif delta.reasoning_details:
            self._add_thinking("", _thoughts(delta.reasoning_details, "text", "summary"), out)
        if content := delta.content:
            if isinstance(content, str):
                text = content
            else:
                text = _joined_text(content)
                self._add_thinking("", _thoughts(content, "thinking"), out)
            self._add_text(text if self._watch is None else self._watch.feed(text), out)
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._call(call, out)
        if delta.refusal:
            self._refused = True
            self._add_text(delta.refusal, out)

    def _add_thinking(self, field: str, thought: str, out: list[ModelEvent]) -> None:
        """Add thinking; without a `field` it cannot be sent back."""
        if not thought:
            return
        self._thoughts.setdefault(field, []).append(thought)
        out.append(ThinkingDelta(thought))

    def _add_text(self, text: str, out: list[ModelEvent]) -> None:
        if text:
            self._text.append(text)
            out.append(TextDelta(text))

    def _call(self, delta: _CallDelta, out: list[ModelEvent]) -> None:
        """A fragment of a call. It belongs where its index says; a new id begins a new call."""
        function = delta.function or _Function()
        place = len(self._calls) - 1 if delta.index is None else delta.index
        found = self._places.get(place)
        if found is None or _is_another(delta, function, found):
            found = _OpenCall(delta.id)
            self._calls.append(found)
            self._places[len(self._calls) - 1 if delta.index is None else delta.index] = found
        if not found.name and function.name:
            found.name = function.name
            found.id = delta.id or found.id
            out.append(ToolCallStarted(found.id, found.name))
        if function.arguments:
            found.pieces.append(_arguments_text(function.arguments))
        if found.name:
            out += [ToolCallArgsDelta(found.id, text) for text in found.pieces[found.told :]]
            found.told = len(found.pieces)

    def _complete(self, out: list[ModelEvent]) -> None:
        self.over = True
        calls = [call for found in self._calls if (call := _complete_call(found, out)) is not None]
        if self._watch is not None:
            calls += self._finish_text(self._watch, out)
        if self._usage is not None:
            out.append(UsageReported(self._usage, self._model))
        reason = self._reason(bool(calls))
        usage = self._usage or Usage(input_has_cache=True)
        out.append(self._completion(reason, [*self._message_parts(), *calls], usage, self._finish))

    def _finish_text(self, watch: TextCalls, out: list[ModelEvent]) -> tuple[ToolCall, ...]:
        """End the text: show it, or return the calls that it contains if there are no others."""
        text, calls = watch.finish(take=not self._calls)
        self._add_text(text, out)
        out += [ToolCallStarted(call.id, call.name) for call in calls]
        out += [ToolCallReady(call) for call in calls]
        return calls

    def _reason(self, calls: bool) -> StopReason:
        if self._refused:
            return "refusal"
        reason = _STOPS.get(self._finish, "complete")
        if reason in ("complete", "tool_use"):  # servers disagree about the word: the calls decide
            return "tool_use" if calls else "complete"
        return reason

    def _message_parts(self) -> list[Part]:
        meta = {"api": API, "model": self._asked}
        parts: list[Part] = [
            Thinking("".join(pieces), {**meta, "field": field} if field else meta)
            for field, pieces in self._thoughts.items()
        ]
        return [*parts, Text("".join(self._text))] if self._text else parts


def _joined_text(parts: list[Any]) -> str:
    """Return the text of content that is a list of parts."""
    found = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in found if isinstance(text, str))


def _thoughts(parts: list[Any], *keys: str) -> str:
    """Return the thinking in a list of parts, each with a text or a list of texts."""
    said: list[str] = []
    for part in parts:
        found = [part.get(key) for key in keys] if isinstance(part, dict) else []
        said += [text for text in found if isinstance(text, str)]
        said += [_joined_text(inner) for inner in found if isinstance(inner, list)]
    return "".join(said)


def _is_another(delta: _CallDelta, function: _Function, found: _OpenCall) -> bool:
    """Does this fragment, which has a name, begin another call than the last one in its place?"""
    if not function.name or not found.name:
        return False
    if delta.id:
        return delta.id != found.id
    if delta.index is not None:
        return False
    # Neither id nor index: another name, or the same one after arguments that are whole.
    text = "".join(found.pieces)
    return function.name != found.name or (bool(text) and parse_arguments(text) is not None)


def _arguments_text(arguments: Any) -> str:
    """Return arguments as JSON text; some servers send the object itself."""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _complete_call(found: _OpenCall, out: list[ModelEvent]) -> ToolCall | None:
    text = "".join(found.pieces)
    if not found.name:
        if not text:
            out.append(parse_error(text, f"the call {found.id} has no name and no arguments"))
            return None
        out.append(ToolCallStarted(found.id, ""))
    return finish_call(found.id, found.name, text, out)


def _usage(usage: _Usage) -> Usage:
    read = usage.prompt_tokens_details or _ReadDetails()
    wrote = usage.completion_tokens_details or _WroteDetails()
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        read.cached_tokens or usage.prompt_cache_hit_tokens or 0,
        read.cache_write_tokens or 0,
        wrote.reasoning_tokens or 0,
        True,
    )
