"""The description of the API: every route, value, event and problem, as OpenAPI 3.2 has it.

Made from the routes themselves: their parameters, bodies, answers, and what they declare. Nothing
is written down twice, and a test compares it with what goes over the wire.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, get_args, get_origin

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import ParameterKwarg
from litestar.typing import FieldDefinition
from msgspec import Struct

from bridle import __version__
from bridle.protocols import session_values as views
from bridle.server import described
from bridle.server.described import REF, Schema
from bridle.server.problems import CODES, MEDIA, Problem
from bridle.server.routes.declared import HANDED, Declared

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

Route = tuple[str, str, HTTPRouteHandler, Declared]


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
    who: Callable[[Declared], str]
    title: str = "bridle"


def description(routes: Iterable[Route], book: "Book | None" = None) -> bytes:
    """The whole description, as JSON; that of the sessions, unless it is another book."""
    book = book or SESSIONS
    found = [route for route in routes if route[2].resolve_include_in_schema()]
    paths: dict[str, Schema] = {}
    for path, method, handler, declared in found:
        place = paths.setdefault(_path(path), {})
        place[method.lower()] = _operation(path, handler, declared, book)
    info = {"title": book.title, "version": __version__, "description": book.about}
    components = {"schemas": _components(found, book), "securitySchemes": book.schemes}
    return msgspec.json.encode(
        {"openapi": "3.2.0", "info": info, "paths": paths, "components": components}
    )


def _operation(path: str, handler: HTTPRouteHandler, declared: Declared, book: Book) -> Schema:
    parameters = [
        _parameter(path, one)
        for one in handler.parsed_fn_signature.parameters.values()
        if one.name not in HANDED
    ]
    summary, _, more = (handler.fn.__doc__ or "").strip().partition("\n")
    found: Schema = {
        "operationId": handler.handler_name.rpartition(".")[2],
        "summary": summary,
        "description": " ".join([book.who(declared), *more.split()]),
        "parameters": parameters,
        "responses": _responses(path, handler, declared, book),
        "security": book.security if declared.role else [],
    }
    if (data := handler.parsed_data_field) is not None:
        content = {"application/json": {"schema": _ref(data.annotation)}}
        found["requestBody"] = {"content": content, "required": data.is_required}
    return found


def _path(path: str) -> str:
    return re.sub(r"\{(\w+):\w+\}", lambda found: "{" + _turned(found[1]) + "}", path)


def _turned(name: str) -> str:
    return _TURNED.get(name, name)


def _parameter(path: str, one: FieldDefinition) -> Schema:
    known = one.kwarg_definition if isinstance(one.kwarg_definition, ParameterKwarg) else None
    if f"{{{one.name}:" in path:
        schema = {"type": "string", "minLength": 1}
        return {"name": _turned(one.name), "in": "path", "required": True, "schema": schema}
    where = known.param_type.value if known else "query"
    name = (known.name if known else None) or one.name
    schema = msgspec.json.schema(one.annotation) | _bounds(known)
    if not one.is_required:
        schema["default"] = one.default
    return {"name": name, "in": where, "required": one.is_required, "schema": schema}


def _bounds(known: ParameterKwarg | None) -> Schema:
    if known is None:
        return {}
    found = {"minimum": known.ge, "maximum": known.le, "pattern": known.pattern}
    found["maxLength"] = known.max_length
    return {name: value for name, value in found.items() if value is not None}


def _responses(path: str, handler: HTTPRouteHandler, declared: Declared, book: Book) -> Schema:
    good = {"description": "OK", **_content(handler, declared)}
    found: Schema = {str(handler.status_code): good}
    for status, codes in sorted(_refusals(path, handler, declared, book).items()):
        found[str(status)] = {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(sorted(codes))}",
            "content": {MEDIA: {"schema": _problem(codes)}},
        }
    return found


def _problem(codes: Sequence[str]) -> Schema:
    narrowed = {"type": "object", "properties": {"code": {"enum": sorted(codes)}}}
    return {"allOf": [_ref(Problem), narrowed]}


def _refusals(
    path: str, handler: HTTPRouteHandler, declared: Declared, book: Book
) -> dict[int, list[str]]:
    codes = {*_ALWAYS, *declared.refuses}
    if declared.role is not None:
        codes |= {"no_token", "server_stopping"}
    if declared.role not in (None, "watch"):
        codes.add("forbidden_role")
    if handler.parsed_data_field is not None:
        codes |= {*_BODY}
    if "{session_id" in path:
        codes |= {*_SESSION}
    found: dict[int, list[str]] = {}
    for code in codes:
        found.setdefault(book.codes[code][0], []).append(code)
    return found


def _content(handler: HTTPRouteHandler, declared: Declared) -> Schema:
    """What a good answer carries; nothing for one without a body."""
    if handler.status_code == 204:
        return {}
    if declared.shape.endswith("Event"):
        item = {"itemSchema": {"$ref": REF.format(name=declared.shape)}}
        return {"content": {declared.media: item}}
    if declared.shape:
        schema = {"type": "object"} if declared.shape == "any" else _BINARY
        return {"content": {one: {"schema": schema} for one in declared.media.split(", ")}}
    content: Schema = {declared.media: {"schema": _ref(_answer(handler))}}
    if declared.streams:
        content[_STREAM] = {"itemSchema": {"$ref": REF.format(name=declared.streams)}}
    return {"content": content}


def _answer(handler: HTTPRouteHandler) -> Any:
    found = handler.parsed_fn_signature.return_type.annotation
    if get_origin(found) is Response and get_args(found)[0] is not type(None):
        return get_args(found)[0]  # with headers of its own
    return found


def _ref(kind: Any) -> Schema:
    return {"$ref": REF.format(name=kind.__name__)}


def _components(routes: Sequence[Route], book: Book) -> dict[str, Schema]:
    kinds: dict[Any, None] = {Problem: None}
    for _, _, handler, _ in routes:
        data = handler.parsed_data_field
        for kind in (data.annotation if data else None, _answer(handler)):
            if isinstance(kind, type) and issubclass(kind, Struct):
                kinds[kind] = None
    every = dict.fromkeys([*kinds, *book.values()])
    _, found = msgspec.json.schema_components(every, ref_template=REF)
    return book.adjusted(found)


def _sessions_adjusted(found: dict[str, Schema]) -> dict[str, Schema]:
    whole = {name: _whole(name, schema) for name, schema in found.items()}
    whole["RecordPage"]["properties"]["records"]["items"] = {"$ref": REF.format(name="Record")}
    return described.adjusted(whole)


def _whole(name: str, schema: Schema) -> Schema:
    """What is sent has all of its fields, unless it leaves out what is as ever."""
    kind = getattr(views, name, None)
    if kind is None or kind is views.SessionLimits or not issubclass(kind, Struct):
        return schema  # limits are read, too
    config = kind.__struct_config__
    if config.forbid_unknown_fields or config.omit_defaults:
        return schema
    return {**schema, "required": list(schema["properties"])}


SESSIONS = Book(
    about="Sessions of agents: prompts in, records out, questions between.",
    codes=CODES,
    schemes=_SCHEMES,
    security=_SECURITY,
    values=described.values,
    adjusted=_sessions_adjusted,
    who=lambda declared: f"Role: {declared.role or 'anybody'}.",
)
