"""What every reader of a reply needs: traces for what is not understood, arguments that parse.

Knows JSON and our events, and no vendor.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from bridle.errors import Origin, StreamCutShort
from bridle.events import ModelEvent, StopReason, ToolCallReady, TraceEvent
from bridle.messages import Part, ToolCall

RAW_LIMIT = 2000
NO_ARGUMENTS = "(the reply was cut off before its arguments)"
Unreadable = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What decoding a vendor's event can raise: broken, of another shape, or nested beyond reason."""

_decode = msgspec.json.decode


def parse_error(data: bytes | str, why: str = "") -> TraceEvent:
    """Something did not parse: what it was, as far as it can be shown."""
    raw = data if isinstance(data, str) else data[: RAW_LIMIT * 4].decode(errors="replace")
    detail = {"raw": raw[:RAW_LIMIT]}
    return TraceEvent("parse_error", {**detail, "why": why} if why else detail)


def trace_of(data: bytes, inner: str = "") -> TraceEvent:
    """An event that is not known, kept as data; `inner` is the key of what names it better."""
    try:
        found = _decode(data)
    except Unreadable:
        return parse_error(data)
    kind = None
    if isinstance(found, Mapping):
        within = found.get(inner)
        kind = within.get("type") if isinstance(within, Mapping) else None
        kind = kind or found.get("type")
    return TraceEvent(kind if isinstance(kind, str) else "unknown", found)


def cut_short(request_id: str) -> StreamCutShort:
    """The stream is at its end, and the reply is not."""
    origin = Origin(request_id=request_id or None)
    return StreamCutShort("the stream ended before the reply did", origin=origin)


def left_out(setting: str, why: str) -> TraceEvent:
    """A setting of the request that this model or API cannot be told."""
    return TraceEvent("setting_left_out", {"setting": setting, "why": why})


def parse_arguments(text: str) -> dict[str, Any] | None:
    """A call's arguments, when they are whole: a JSON object. No text at all is an empty one."""
    if not text.strip():
        return {}
    try:
        found = _decode(text)
    except Unreadable:
        return None
    return found if isinstance(found, dict) else None


def call_of(call_id: str, name: str, text: str, out: list[ModelEvent]) -> ToolCall:
    """A call whose text is whole: ready, or traced and marked as broken. No tool runs on a guess,
    and the model is to hear of it."""
    arguments = parse_arguments(text)
    if arguments is None:
        why = f"the arguments of {name} ({call_id}) are not a JSON object"
        out.append(parse_error(text, why))
        return ToolCall(call_id, name, {}, text[:RAW_LIMIT])
    call = ToolCall(call_id, name, arguments)
    out.append(ToolCallReady(call))
    return call


def cut_marked(parts: Sequence[Part], reason: StopReason) -> tuple[Part, ...]:
    """The parts of a reply that may have ended in the middle of its last call.

    At its token limit the call stays, marked as broken, so that the model can be told to send it
    again; no arguments at all are arguments that did not come. A reply that the vendor stopped
    loses such a call.
    """
    last = parts[-1] if parts else None
    if isinstance(last, ToolCall):
        if reason == "refusal" and last.broken:
            return tuple(parts[:-1])
        if reason == "max_tokens" and not (last.arguments or last.broken):
            return (*parts[:-1], replace(last, broken=NO_ARGUMENTS))
    return tuple(parts)
