"""How a record is written as a line of JSON, and read again. Pure: bytes in, values out.

A line is `{"seq":…,"timestamp":"…Z","data":{"type":…},"hash":"…"}`; each hash covers its own line
and the hash before it. Record types and keys are part of the format: old logs always load.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from bridle import events
from bridle.events import (
    STATE_TRACES,
    Event,
    MessageAdded,
    Recorded,
    ResponseCompleted,
    StateTrace,
    StopReason,
    Streamed,
    ToolResultEvent,
    TraceEvent,
    UnknownEvent,
)
from bridle.messages import (
    File,
    Image,
    Message,
    Outcome,
    Part,
    Role,
    Text,
    ToolCall,
    ToolOutput,
    sound,
)
from bridle.protocols.store import Record
from bridle.usage import Usage


class _MessageLine(
    Struct, gc=False, tag_field="type", tag="message", rename="camel", omit_defaults=True
):
    """A message in the log. `parts` is there where `content` and `toolCalls` do not say it all."""

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    parts: tuple[Part, ...] = ()
    call_id: str = ""
    result: "_Result | None" = None
    stop_reason: StopReason | None = None
    usage: Usage = Usage()
    model: str = ""
    request_id: str = ""
    stop_detail: str = ""
    grows: bool = False
    prompt: int = 0
    turn: int = 0
    by: str = ""
    foreign: bool = False


class _Result(Struct, gc=False, rename="camel", omit_defaults=True):
    ok: bool
    text: str = ""
    name: str = ""
    data: Any = None
    media: tuple[Image | File, ...] = ()
    outcome: Outcome = ""


_SILENCE = Message("assistant")


class _Peek(Struct):
    type: str = ""
    eventType: str = ""  # noqa: N815 - the key as it stands in the log


def _said(message: Message) -> _MessageLine:
    """The message; `content` and `toolCalls` say all of text, at most one, and then calls."""
    text, calls = "", message.parts
    if calls and type(first := calls[0]) is Text:
        text, calls = first.text, calls[1:]
    whole = text or calls is message.parts  # empty text is a part all the same
    if whole and not [part for part in calls if type(part) is not ToolCall]:
        return _MessageLine(message.role, text, cast("tuple[ToolCall, ...]", calls))
    return _MessageLine(message.role, message.content, message.tool_calls, message.parts)


def _to_line(event: MessageAdded | ResponseCompleted | ToolResultEvent) -> _MessageLine:
    if isinstance(event, ToolResultEvent):
        out = event.output
        result = _Result(
            ok=not out.is_error,
            text=out.text,
            name=out.name,
            data=out.data,
            media=out.media,
            outcome=out.outcome,
        )
        return _MessageLine("tool", call_id=out.call_id, result=result, foreign=event.foreign)
    line = _said(event.message or _SILENCE)
    if isinstance(event, ResponseCompleted):
        line.stop_reason, line.usage = event.stop_reason, event.usage
        line.model, line.request_id = event.model, event.request_id
        line.stop_detail, line.grows = event.stop_detail, event.grows
    else:
        line.prompt, line.turn, line.by = event.prompt, event.turn, event.by
    return line


def _from_line(line: _MessageLine) -> Event:
    if line.result is not None:
        got = line.result
        output = ToolOutput(
            call_id=line.call_id,
            text=got.text,
            is_error=not got.ok,
            name=got.name,
            data=got.data,
            media=got.media,
            outcome=got.outcome,
        )
        return ToolResultEvent(output, line.foreign)
    parts = line.parts or ((Text(line.content),) if line.content else ()) + line.tool_calls
    message = Message(line.role, parts)
    if line.role != "assistant" or line.stop_reason is None:
        return MessageAdded(message, line.prompt, line.turn, line.by)
    told = line.usage, line.model, line.request_id, line.stop_detail, line.grows
    return ResponseCompleted(line.stop_reason, message, *told)


_encode = msgspec.json.Encoder(enc_hook=str).encode
_peek = msgspec.json.Decoder(_Peek).decode
_decode_line = msgspec.json.Decoder(_MessageLine).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


def _kinds(family: type[Struct]) -> list[type[Struct]]:
    found = [kind for kind in vars(events).values() if isinstance(kind, type)]
    return [
        kind
        for kind in found
        if issubclass(kind, family)
        and kind not in (family, UnknownEvent)
        and not issubclass(kind, StateTrace)  # they are written as what they are: traces
    ]


def _decoders(family: type[Struct]) -> dict[str, Callable[[bytes], Any]]:
    return {
        str(kind.__struct_config__.tag): msgspec.json.Decoder(kind).decode
        for kind in _kinds(family)
    }


_STREAMED = _decoders(Streamed)
_RECORDED = _decoders(Recorded)


_STREAMED_KINDS = frozenset({*_kinds(Streamed), *STATE_TRACES.values()})
_MESSAGE_KINDS = frozenset({MessageAdded, ResponseCompleted, ToolResultEvent})


def shapes() -> tuple[tuple[type[Struct], ...], tuple[type[Struct], ...], type[Struct]]:
    """What `data` can be: events with the type `event`, records by their own types, a message."""
    recorded = [kind for kind in _kinds(Recorded) if kind not in _MESSAGE_KINDS]
    return tuple(_kinds(Streamed)), tuple(recorded), _MessageLine


def encode_data(event: Event) -> bytes:
    """An event as the `data` of a line."""
    kind = type(event)
    if kind in _STREAMED_KINDS:
        return b'{"type":"event",' + _encode(event)[1:]
    if kind in _MESSAGE_KINDS:
        return _encode_message(event)
    return _encode(event.data if isinstance(event, UnknownEvent) else event)


def _encode_message(event: Any) -> bytes:
    if isinstance(event, ResponseCompleted) and event.message is None:
        rest = msgspec.to_builtins(event)
        return _encode({**rest, "type": "event", "eventType": "ResponseCompleted"})
    return _encode(_to_line(event))


def scrubbed(event: Event) -> Event:
    """The event with text that UTF-8 can hold, so that log, watchers and model see the same."""
    plain = _sound(msgspec.to_builtins(event, enc_hook=str, str_keys=True))
    return msgspec.convert(plain, type(event))


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, dict):
        return {_sound(key): _sound(found) for key, found in value.items()}
    return [_sound(found) for found in value] if isinstance(value, list | tuple) else value


def decode_data(data: bytes) -> Event:
    """The `data` of a line as an event; what is not known is kept as it is."""
    try:
        peek = _peek(data)
        if peek.type == "message":
            return _from_line(_decode_line(data))
        if peek.type == "event" and peek.eventType == "ResponseCompleted":
            found = {**_decode_any(data), "type": "message:assistant"}
            return msgspec.convert(found, ResponseCompleted)
        decode = _STREAMED.get(peek.eventType) if peek.type == "event" else _RECORDED.get(peek.type)
        if decode is not None:
            event: Event = decode(data)
            if type(event) is TraceEvent and (kind := STATE_TRACES.get(event.kind)) is not None:
                return kind(event.kind, event.detail)
            return event
    except msgspec.ValidationError:
        pass  # a known type in a shape that is not: keep it as data
    return UnknownEvent(_decode_any(data))


class Line(Struct):
    """A line of a log, taken apart. One without a number is counted by its reader."""

    timestamp: str
    data: Raw
    seq: int = 0
    hash: str = ""


decode_line = msgspec.json.Decoder(Line).decode


def encode_line(seq: int, timestamp: str, data: bytes, previous: str) -> tuple[bytes, str]:
    """A record as a line, and its hash, which covers the hash before."""
    body = b'{"seq":%d,"timestamp":"%b","data":%b' % (seq, timestamp.encode(), data)
    digest = blake2b(body, digest_size=16, key=previous.encode()[:64]).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, digest.encode()), digest


def chained(body: bytes, previous: str) -> str:
    """The hash of a line's bytes up to its own hash."""
    key = previous.encode()[:64]  # a hash that somebody else wrote may be of any length
    return blake2b(body, digest_size=16, key=key).hexdigest()


def to_record(line: bytes) -> Record:
    """A line as a record. Raise `msgspec.DecodeError` for what is not one."""
    found = decode_line(line)
    return Record(found.seq, found.timestamp, decode_data(bytes(found.data)), found.hash)
