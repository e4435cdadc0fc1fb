"""What every reader of a reply needs: traces for what is not understood, arguments that parse.

Knows JSON and our events, and no vendor.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from bridle.errors import BadReply, Origin
from bridle.events import TraceEvent

RAW_LIMIT = 2000
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


def parse_arguments(text: str) -> dict[str, Any] | None:
    """A call's arguments, when they are whole: a JSON object. No text at all is an empty one."""
    if not text.strip():
        return {}
    try:
        found = _decode(text)
    except Unreadable:
        return None
    return found if isinstance(found, dict) else None


def no_call_left(request_id: str) -> BadReply:
    """The model stopped for a tool, and no call of it can be read."""
    error = BadReply(
        "the model asked for a tool with arguments that are not valid JSON",
        hint="Send the prompt again, or use another model.",
        origin=Origin(request_id=request_id or None),
    )
    error.retryable = True
    return error
