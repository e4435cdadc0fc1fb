"""Write a record as a line of JSON, and read it again. Pure: bytes in, values out.

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
    escape_surrogates,
)
from bridle.protocols.store import Record
from bridle.usage import Usage


class _MessageLine(
    Struct, gc=False, tag_field="type", tag="message", rename="camel", omit_defaults=True
):
    """A message in the log. It has `parts` if `content` and `toolCalls` do not say it all."""

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


_EMPTY_REPLY = Message("assistant")


class _DataType(Struct):
    type: str = ""
    eventType: str = ""  # noqa: N815 - the key in the log


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
    message = event.message or _EMPTY_REPLY
    text, calls = "", message.parts
    if calls and type(first := calls[0]) is Text:
        text, calls = first.text, calls[1:]
    is_whole = text or calls is message.parts  # empty text is a part all the same
    if is_whole and not [part for part in calls if type(part) is not ToolCall]:
        line = _MessageLine(message.role, text, cast("tuple[ToolCall, ...]", calls))
    else:  # `content` and `toolCalls` cannot say what came in which order
        line = _MessageLine(message.role, message.content, message.tool_calls, message.parts)
    if isinstance(event, ResponseCompleted):
        line.stop_reason, line.usage = event.stop_reason, event.usage
        line.model, line.request_id = event.model, event.request_id
        line.stop_detail, line.grows = event.stop_detail, event.grows
    else:
        line.prompt, line.turn, line.by = event.prompt, event.turn, event.by
    return line


def _from_line(line: _MessageLine) -> Event:
    if line.result is not None:
        result = line.result
        output = ToolOutput(
            call_id=line.call_id,
            text=result.text,
            is_error=not result.ok,
            name=result.name,
            data=result.data,
            media=result.media,
            outcome=result.outcome,
        )
        return ToolResultEvent(output, line.foreign)
    parts = line.parts or ((Text(line.content),) if line.content else ()) + line.tool_calls
    message = Message(line.role, parts)
    if line.role != "assistant" or line.stop_reason is None:
        return MessageAdded(message, line.prompt, line.turn, line.by)
    return ResponseCompleted(
        stop_reason=line.stop_reason,
        message=message,
        usage=line.usage,
        model=line.model,
        request_id=line.request_id,
        stop_detail=line.stop_detail,
        grows=line.grows,
    )


_encode = msgspec.json.Encoder(enc_hook=str).encode
_decode_type = msgspec.json.Decoder(_DataType).decode
_decode_line = msgspec.json.Decoder(_MessageLine).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


_EVENT_TYPES = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type)
    and issubclass(kind, Streamed | Recorded)
    and kind not in (Streamed, Recorded, UnknownEvent)
    and not issubclass(kind, StateTrace)  # they are written as traces
]
_DECODERS: dict[type[Struct], dict[str, Callable[[bytes], Any]]] = {
    family: {
        str(kind.__struct_config__.tag): msgspec.json.Decoder(kind).decode
        for kind in _EVENT_TYPES
        if issubclass(kind, family)
    }
    for family in (Streamed, Recorded)
}
_STREAMED = _DECODERS[Streamed]
_RECORDED = _DECODERS[Recorded]

_STREAMED_KINDS = frozenset(
    {*(kind for kind in _EVENT_TYPES if issubclass(kind, Streamed)), *STATE_TRACES.values()}
)
_MESSAGE_KINDS = frozenset({MessageAdded, ResponseCompleted, ToolResultEvent})


def data_types() -> tuple[tuple[type[Struct], ...], tuple[type[Struct], ...], type[Struct]]:
    """What `data` can be: events with the type `event`, records with their own, a message."""
    streamed = tuple(kind for kind in _EVENT_TYPES if issubclass(kind, Streamed))
    recorded = tuple(
        kind for kind in _EVENT_TYPES if issubclass(kind, Recorded) and kind not in _MESSAGE_KINDS
    )
    return streamed, recorded, _MessageLine


def encode_data(event: Event) -> bytes:
    """Return an event as the `data` of a line."""
    kind = type(event)
    if kind in _STREAMED_KINDS:
        return b'{"type":"event",' + _encode(event)[1:]
    if kind in _MESSAGE_KINDS:
        if isinstance(event, ResponseCompleted) and event.message is None:
            rest = msgspec.to_builtins(event)
            return _encode({**rest, "type": "event", "eventType": "ResponseCompleted"})
        return _encode(_to_line(event))  # type: ignore[arg-type]
    return _encode(event.data if isinstance(event, UnknownEvent) else event)


def escape_event(event: Event) -> Event:
    """The event with text that UTF-8 can hold, so that log, watchers and model see the same."""
    value = _escape(msgspec.to_builtins(event, enc_hook=str, str_keys=True))
    return msgspec.convert(value, type(event))


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, dict):
        return {_escape(key): _escape(item) for key, item in value.items()}
    return [_escape(item) for item in value] if isinstance(value, list | tuple) else value


def decode_data(data: bytes) -> Event:
    """The `data` of a line as an event; `UnknownEvent` for what this version does not know."""
    try:
        head = _decode_type(data)
        if head.type == "message":
            return _from_line(_decode_line(data))
        if head.type == "event" and head.eventType == "ResponseCompleted":
            fields = {**_decode_any(data), "type": "message:assistant"}
            return msgspec.convert(fields, ResponseCompleted)
        decode = _STREAMED.get(head.eventType) if head.type == "event" else _RECORDED.get(head.type)
        if decode is not None:
            event: Event = decode(data)
            if type(event) is TraceEvent and (kind := STATE_TRACES.get(event.kind)) is not None:
                return kind(event.kind, event.detail)
            return event
    except msgspec.ValidationError:
        pass  # a known type with unknown fields or values
    return UnknownEvent(_decode_any(data))


class Line(Struct):
    """A line of a log. The reader numbers one that has no number."""

    timestamp: str
    data: Raw
    seq: int = 0
    hash: str = ""


decode_line = msgspec.json.Decoder(Line).decode


def encode_line(seq: int, timestamp: str, data: bytes, previous: str) -> tuple[bytes, str]:
    """Return a record as a line, and its hash, which covers the hash of the record before."""
    body = b'{"seq":%d,"timestamp":"%b","data":%b' % (seq, timestamp.encode(), data)
    digest = blake2b(body, digest_size=16, key=previous.encode()[:64]).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body, digest.encode()), digest


def line_hash(body: bytes, previous: str) -> str:
    """The hash of a line: of its bytes before the hash, and of the hash of the line before."""
    key = previous.encode()[:64]  # other programs may write hashes of any length
    return blake2b(body, digest_size=16, key=key).hexdigest()


def to_record(line: bytes) -> Record:
    """Return a line as a record. Raise `msgspec.DecodeError` if it is not one."""
    fields = decode_line(line)
    return Record(fields.seq, fields.timestamp, decode_data(bytes(fields.data)), fields.hash)
