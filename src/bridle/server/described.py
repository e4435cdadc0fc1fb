"""The events of the streams, described: every record's shape, and every name that an event has.

JSON Schemas for the description of the API. Made from the values themselves, so that what is
described is what is sent; no routes here.
"""

from typing import Any

import msgspec
from msgspec import Struct

from bridle.protocols.codec import data_types
from bridle.protocols.session_values import ApprovalRequest, SessionPage
from bridle.server.frames import NAMES, OTHER
from bridle.server.notices import ApprovalSettled, SessionChanged

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
_PLACE = {"type": "string", "pattern": "^[0-9]+$", "description": "The record's number."}
_STREAMED, _RECORDED, _MESSAGE = data_types()


def values() -> list[Any]:
    """The values that streams carry, beside those of the routes."""
    return [*_STREAMED, *_RECORDED, _MESSAGE, ApprovalRequest, SessionChanged, ApprovalSettled]


def adjusted(components: dict[str, Schema]) -> dict[str, Schema]:
    """The same, with what a line of the log adds to its values, and the shapes of events."""
    found = dict(components)
    for kind in _STREAMED:
        found[kind.__name__] = _marked(found[kind.__name__])
    found["MessageLine"] = {**found.pop(_MESSAGE.__name__), "title": "MessageLine"}
    found["MessageResult"] = {**found.pop("_Result"), "title": "MessageResult"}
    found["SilentReply"] = _silent()
    found["UnknownRecord"] = _unknown()
    names = [kind.__name__ for kind in (*_STREAMED, *_RECORDED)]
    data = [*names, "MessageLine", "SilentReply", "UnknownRecord"]
    found["RecordData"] = {"oneOf": [_ref(name) for name in data]}
    found["Record"] = _record(_ref("RecordData"))
    found["RecordEvent"] = {"oneOf": _record_events()}
    found["ServerEvent"] = {"oneOf": _server_events()}
    return _renamed(found)


def _ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


def _marked(schema: Schema) -> Schema:
    """An event that was said while something was under way: its line says `event`."""
    properties = {"type": {"const": "event"}, **schema["properties"]}
    return {**schema, "properties": properties, "required": ["type", *schema["required"]]}


def _silent() -> Schema:
    return {
        "title": "SilentReply",
        "description": "One reply of the model is over, and there is no message.",
        "type": "object",
        "properties": {
            "type": {"const": "event"},
            "eventType": {"const": "ResponseCompleted"},
            "stopReason": {"type": "string"},
        },
        "required": ["type", "eventType", "stopReason"],
    }


def _unknown() -> Schema:
    known = [_tag(kind) for kind in _RECORDED] + ["message", "event"]
    said = [_tag(kind) for kind in _STREAMED] + ["ResponseCompleted"]
    return {
        "title": "UnknownRecord",
        "description": "A record of a kind that this version does not know, as it stands.",
        "type": "object",
        "anyOf": [
            {"properties": {"type": {"not": {"enum": known}}}},
            {"properties": {"type": {"const": "event"}, "eventType": {"not": {"enum": said}}}},
        ],
    }


def _tag(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _record(data: Schema) -> Schema:
    return {
        "title": "Record",
        "description": "A line of the log, without its hash.",
        "type": "object",
        "properties": {
            "seq": {"type": "integer", "minimum": 0},
            "timestamp": {"type": "string"},
            "data": data,
        },
        "required": ["seq", "timestamp", "data"],
        "additionalProperties": False,
    }


def _record_events() -> list[Schema]:
    """Each name, with what it may carry. What has no name of its own is a trace."""
    own = {_key(kind): kind.__name__ for kind in (*_STREAMED, *_RECORDED)}
    carried = {name: own.get(key.decode(), "MessageLine") for key, name in NAMES.items()}
    carried |= {"completed": "TurnEnded", "error": "TurnEnded"}
    named = [_event(name, _record(_ref(kind)), _PLACE) for name, kind in carried.items()]
    trace = _event(OTHER, _ref("Record"), _PLACE)
    after = {"type": "object", "properties": {"after": {"type": "integer"}}, "required": ["after"]}
    return [*named, trace, _event("resync", after, _PLACE), _event("stopping", _EMPTY)]


def _key(kind: type[Struct]) -> str:
    return f"event/{_tag(kind)}" if kind in _STREAMED else f"{_tag(kind)}/"


_EMPTY: Schema = {"type": "object"}


def _server_events() -> list[Schema]:
    return [
        _event("sessions", _ref(SessionPage.__name__)),
        _event("session", _ref(SessionChanged.__name__)),
        _event("approval_required", _ref(ApprovalRequest.__name__)),
        _event("approval_answered", _ref(ApprovalSettled.__name__)),
        _event("resync", _EMPTY),
        _event("stopping", _EMPTY),
    ]


def _event(name: str, data: Schema, place: Schema | None = None) -> Schema:
    """A server-sent event: its data is JSON in a string, as the text of a stream has it."""
    said = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    properties: Schema = {"event": {"const": name}, "data": said}
    if place is not None:
        properties["id"] = place
    return {"type": "object", "properties": properties, "required": ["event", "data"]}


def _renamed(found: dict[str, Schema]) -> dict[str, Schema]:
    """References to what lost its underscore."""
    text = msgspec.json.encode(found).decode()
    for old, new in ((_MESSAGE.__name__, "MessageLine"), ("_Result", "MessageResult")):
        text = text.replace(f'"{REF.format(name=old)}"', f'"{REF.format(name=new)}"')
    return msgspec.json.decode(text, type=dict[str, Schema])
