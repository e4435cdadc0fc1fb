"""The description of the API: every route, value, event and problem, as OpenAPI 3.2 has it.

Made from the routes themselves: their parameters, bodies, answers, and what they declare. Nothing
is written down twice, and a test compares it with what goes over the wire.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute

from bridle import __version__
from bridle.protocols import session_values as views
from bridle.protocols.codec import data_types
from bridle.protocols.session_values import ApprovalRequest, SessionPage
from bridle.server.problems import CODES, MEDIA, Problem
from bridle.server.routing import ApiRoute, Declaration
from bridle.server.server_events import ApprovalSettled, SessionChanged
from bridle.server.sse import NAMES, OTHER

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
_PLACE = {"type": "string", "pattern": "^[0-9]+$", "description": "The record's number."}
_STREAMED, _RECORDED, _MESSAGE = data_types()
_STREAM = "text/event-stream"
_BINARY = {"type": "string"}
_TURNED = {"session_id": "id", "call_id": "callId"}  # as clients call what is in a path
_ALWAYS = (  # what the guard, the limits and the connection say before a route is reached
    "invalid_request",
    "wrong_host",
    "wrong_origin",
    "rate_limited",
    "too_large",
    "too_slow",
    "internal",
    "unavailable",
)
_BODY = ("invalid_json", "unsupported_media")
_SESSION = ("unknown_session", "store_failed")
_SECURITY: list[Schema] = [{"token": []}, {"cookie": [], "key": []}]
_SCHEMES: Schema = {
    "token": {"type": "http", "scheme": "bearer"},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "bridle_8420",
        "description": "The number is the server's port. It counts together with the key alone.",
    },
    "key": {"type": "apiKey", "in": "header", "name": "X-Bridle-Key"},
}


class Book(Struct, frozen=True, kw_only=True):
    """What one API says of itself beside its routes.

    `codes` are its problems, `values` what its streams carry, `adjusted` the last word on all
    shapes, `who` whom a route answers, in words.
    """

    about: str
    codes: dict[str, tuple[int, str]]
    schemes: Schema
    security: list[Schema]
    values: Callable[[], list[Any]]
    adjusted: Callable[[dict[str, Schema]], dict[str, Schema]]
    who: Callable[[Declaration], str]
    title: str = "bridle"


def description(routes: Iterable[BaseRoute], book: "Book | None" = None) -> bytes:
    """The whole description, as JSON; that of the sessions, unless it is another book."""
    book = book or SESSIONS
    found = [one for one in routes if isinstance(one, ApiRoute) and not one.declaration.hidden]
    paths: dict[str, Schema] = {}
    for route in found:
        place = paths.setdefault(_path(route.path), {})
        place[route.method.lower()] = _operation(route, book)
    info = {"title": book.title, "version": __version__, "description": book.about}
    components = {"schemas": _components(found, book), "securitySchemes": book.schemes}
    return msgspec.json.encode(
        {"openapi": "3.2.0", "info": info, "paths": paths, "components": components}
    )


def _operation(route: ApiRoute, book: Book) -> Schema:
    summary, _, more = (route.handler.__doc__ or "").strip().partition("\n")
    found: Schema = {
        "operationId": _camel(route.handler.__name__),
        "summary": summary,
        "description": " ".join([book.who(route.declaration), *more.split()]),
        "parameters": _parameters(route),
        "responses": _responses(route, book),
        "security": book.security if route.declaration.role else [],
    }
    if route.body is not None:
        content = {"application/json": {"schema": _ref(route.body)}}
        found["requestBody"] = {"content": content, "required": route.body_required}
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _path(path: str) -> str:
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: "{" + _turned(found[1]) + "}", path)


def _turned(name: str) -> str:
    return _TURNED.get(name, name)


def _parameters(route: ApiRoute) -> list[Schema]:
    found = []
    for name, kind in route.path_types.items():
        schema = {"type": "integer"} if kind is int else {"type": "string", "minLength": 1}
        found.append({"name": _turned(name), "in": "path", "required": True, "schema": schema})
    for where, kind, names in (
        ("query", route.query, route.query_names),
        ("header", route.headers, route.header_names),
    ):
        schemas = _schema_of(kind)["properties"]
        required = {field.name for field in msgspec.structs.fields(kind) if field.required}
        for key, name in names.items():
            said = {"name": key if where == "query" else route.header_titles[name], "in": where}
            found.append(said | {"required": name in required, "schema": schemas[name]})
    return found


def _schema_of(kind: type[Struct]) -> Schema:
    _, found = msgspec.json.schema_components([kind])
    schema: Schema = found[kind.__name__]
    return schema


def _responses(route: ApiRoute, book: Book) -> Schema:
    good = {"description": "OK", **_content(route)}
    found: Schema = {str(route.status): good}
    for status, codes in sorted(_refusals(route, book).items()):
        found[str(status)] = {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(sorted(codes))}",
            "content": {MEDIA: {"schema": _problem(codes)}},
        }
    return found


def _problem(codes: Sequence[str]) -> Schema:
    narrowed = {"type": "object", "properties": {"code": {"enum": sorted(codes)}}}
    return {"allOf": [_ref(Problem), narrowed]}


def _refusals(route: ApiRoute, book: Book) -> dict[int, list[str]]:
    declared = route.declaration
    codes = {*_ALWAYS, *declared.refuses}
    if declared.role is not None:
        codes |= {"no_token", "server_stopping"}
    if declared.role not in (None, "watch"):
        codes.add("forbidden_role")
    if route.body is not None:
        codes |= {*_BODY}
    if "{session_id" in route.path:
        codes |= {*_SESSION}
    found: dict[int, list[str]] = {}
    for code in codes:
        found.setdefault(book.codes[code][0], []).append(code)
    return found


def _content(route: ApiRoute) -> Schema:
    """What a good answer carries; nothing for one without a body."""
    declared = route.declaration
    if route.status == 204:
        return {}
    if declared.shape.endswith("Event"):
        item = {"itemSchema": {"$ref": REF.format(name=declared.shape)}}
        return {"content": {declared.media: item}}
    if declared.shape:
        schema = {"type": "object"} if declared.shape == "any" else _BINARY
        return {"content": {one: {"schema": schema} for one in declared.media.split(", ")}}
    content: Schema = {declared.media: {"schema": _ref(route.answers)}}
    if declared.streams:
        content[_STREAM] = {"itemSchema": {"$ref": REF.format(name=declared.streams)}}
    return {"content": content}


def _ref(kind: Any) -> Schema:
    """A reference to a component, by its type or its name."""
    return {"$ref": REF.format(name=kind if isinstance(kind, str) else kind.__name__)}


def _components(routes: Sequence[ApiRoute], book: Book) -> dict[str, Schema]:
    kinds: dict[Any, None] = {Problem: None}
    for route in routes:
        for kind in (route.body, route.answers):
            if isinstance(kind, type) and issubclass(kind, Struct):
                kinds[kind] = None
    every = dict.fromkeys([*kinds, *book.values()])
    _, found = msgspec.json.schema_components(every, ref_template=REF)
    return book.adjusted(found)


def _sessions_adjusted(found: dict[str, Schema]) -> dict[str, Schema]:
    whole = {name: _whole(name, schema) for name, schema in found.items()}
    whole["RecordPage"]["properties"]["records"]["items"] = {"$ref": REF.format(name="Record")}
    return _with_events(whole)


def _whole(name: str, schema: Schema) -> Schema:
    """What is sent has all of its fields, unless it leaves out what is as ever."""
    kind = getattr(views, name, None)
    if kind is None or kind is views.SessionLimits or not issubclass(kind, Struct):
        return schema  # limits are read, too
    config = kind.__struct_config__
    if config.forbid_unknown_fields or config.omit_defaults:
        return schema
    return {**schema, "required": list(schema["properties"])}


def _event_values() -> list[Any]:
    """The values that streams carry, beside those of the routes."""
    return [*_STREAMED, *_RECORDED, _MESSAGE, ApprovalRequest, SessionChanged, ApprovalSettled]


def _with_events(components: dict[str, Schema]) -> dict[str, Schema]:
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


SESSIONS = Book(
    about="Sessions of agents: prompts in, records out, questions between.",
    codes=CODES,
    schemes=_SCHEMES,
    security=_SECURITY,
    values=_event_values,
    adjusted=_sessions_adjusted,
    who=lambda declared: f"Role: {declared.role or 'anybody'}.",
)
