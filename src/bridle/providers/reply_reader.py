"""What the readers of all APIs share: the reply that is being read, and its parts.

Events that are not known become traces, arguments have to parse, and a reply that was cut off says
so. Knows JSON and our events, and no vendor.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from bridle.errors import AgentError, Origin, StreamCutShort
from bridle.events import ModelEvent, ResponseCompleted, StopReason, ToolCallReady, TraceEvent
from bridle.messages import Message, Part, ToolCall
from bridle.providers.http_errors import DecodeErrors, Headers, request_id_in
from bridle.usage import Usage

RAW_LIMIT = 2000
NO_ARGUMENTS = "(the reply was cut off before its arguments)"

_decode = msgspec.json.decode


def parse_error(data: bytes | str, why: str = "") -> TraceEvent:
    """Return a trace of something that did not parse."""
    raw = data if isinstance(data, str) else data[: RAW_LIMIT * 4].decode(errors="replace")
    detail = {"raw": raw[:RAW_LIMIT]}
    return TraceEvent("parse_error", {**detail, "why": why} if why else detail)


def unknown_event(data: bytes, inner: str = "") -> TraceEvent:
    """Return a trace of an unknown event; `inner` is the key of a part with a better name."""
    try:
        found = _decode(data)
    except DecodeErrors:
        return parse_error(data)
    kind = None
    if isinstance(found, Mapping):
        within = found.get(inner)
        kind = within.get("type") if isinstance(within, Mapping) else None
        kind = kind or found.get("type")
    return TraceEvent(kind if isinstance(kind, str) else "unknown", found)


def cut_short(request_id: str) -> StreamCutShort:
    """Return the error for a stream that ended before its reply."""
    origin = Origin(request_id=request_id or None)
    return StreamCutShort("the stream ended before the reply did", origin=origin)


def setting_left_out(setting: str, why: str) -> TraceEvent:
    """Return a trace of a setting that this model or API does not have."""
    return TraceEvent("setting_left_out", {"setting": setting, "why": why})


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Return a call's arguments if they are a JSON object. No text at all is an empty one."""
    if not text.strip():
        return {}
    try:
        found = _decode(text)
    except DecodeErrors:
        return None
    return found if isinstance(found, dict) else None


def finish_call(call_id: str, name: str, text: str, out: list[ModelEvent]) -> ToolCall:
    """Return a call whose text has ended, marked as broken if its arguments do not parse.

    No tool runs on a guess, and the model is told.
    """
    arguments = parse_arguments(text)
    if arguments is None:
        why = f"the arguments of {name} ({call_id}) are not a JSON object"
        out.append(parse_error(text, why))
        return ToolCall(call_id, name, {}, text[:RAW_LIMIT])
    call = ToolCall(call_id, name, arguments)
    out.append(ToolCallReady(call))
    return call


def mark_cut_call(parts: Sequence[Part], reason: StopReason) -> tuple[Part, ...]:
    """Return the parts of a reply that may have ended in the middle of its last call.

    At the token limit the call stays, marked as broken, so that the model can be told to send it
    again; a call without any arguments was cut off, too. A reply that the vendor stopped loses such
    a call.
    """
    last = parts[-1] if parts else None
    if isinstance(last, ToolCall):
        if reason == "refusal" and last.broken:
            return tuple(parts[:-1])
        if reason == "max_tokens" and not (last.arguments or last.broken):
            return (*parts[:-1], replace(last, broken=NO_ARGUMENTS))
    return tuple(parts)


class ReplyReader:
    """A reply that is being read: its model, whether it is over, and what went wrong."""

    def __init__(self, model: str, remarks: Sequence[ModelEvent] = ()) -> None:
        self.over = False
        self.failure: AgentError | None = None
        self._remarks = remarks  # events to yield at its beginning
        self._asked = model
        self._model = model
        self._request_id = ""

    def begin(self, headers: Headers) -> None:
        """Keep the vendor's id of the request."""
        self._request_id = request_id_in(headers) or ""

    def finish(self) -> list[ModelEvent]:
        """End a reply whose stream ended without a last event."""
        self._fail(cut_short(self._request_id))
        return []

    def _fail(self, failure: AgentError) -> None:
        self.over, self.failure = True, failure

    def _completion(
        self, reason: StopReason, parts: Sequence[Part], usage: Usage, word: str
    ) -> ResponseCompleted:
        message = Message("assistant", mark_cut_call(parts, reason))
        return ResponseCompleted(reason, message, usage, self._model, self._request_id, word)
