"""OpenAPI 3.1 documents, made from the routes: their signatures, docstrings and declarations.

Nothing is written down twice. Tests compare the document with what goes over the wire, and generate
a Python and a TypeScript client from it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute

from bridle import __version__
from bridle.server.problems import MEDIA, Problem
from bridle.server.routing import JSON, ApiRoute, Declaration

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
EVENT_STREAM = "text/event-stream"
_WIRE_NAMES = {"session_id": "id", "call_id": "callId"}  # what clients call a part of a path
_ALWAYS = (  # what the middleware may answer with before a route is reached
    *("invalid_request", "wrong_host", "wrong_origin", "rate_limited", "too_large", "too_slow"),
    *("internal", "unavailable"),
)
_BODY = ("invalid_json", "unsupported_media")
_SESSION = ("unknown_session", "store_failed")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


_EVENT: Schema = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("event", "data", "id")},
}


class ApiInfo(Struct, frozen=True, kw_only=True):
    """What the document of one API says besides its routes.

    `codes` are its problems. `types` are values that no route takes or returns, such as those in
    streams. `adjust` may change the component schemas. `served` says in words whom a route serves.
    `fields` describes fields by their name on the wire, if the docstring of their value does not,
    and parameters (`/name` in a path, `?name` in a query or header).
    `examples` are example values by their type.
    """

    title: str
    description: str
    tags: dict[str, str]
    codes: dict[str, tuple[int, str]]
    schemes: Schema
    security: list[Schema]
    types: Callable[[], list[Any]]
    adjust: Callable[[dict[str, Schema]], dict[str, Schema]]
    served: Callable[[Declaration], str]
    fields: Mapping[str, str]
    examples: Mapping[Any, Any]


def openapi_document(routes: Iterable[BaseRoute], info: ApiInfo) -> bytes:
    """The document as JSON."""
    found = [one for one in routes if isinstance(one, ApiRoute) and not one.declaration.hidden]
    paths: dict[str, Schema] = {}
    for route in found:
        paths.setdefault(_path(route.path), {})[route.method.lower()] = _operation(route, info)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": info.title,
                "version": __version__,
                "description": info.description,
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            "servers": [{"url": "/", "description": "This server"}],
            "tags": [{"name": name, "description": text} for name, text in info.tags.items()],
            "paths": paths,
            "components": {
                "schemas": _components(found, info),
                "securitySchemes": info.schemes,
            },
        }
    )


def reference(kind: Any) -> Schema:
    """A reference to a component, by its type or its name."""
    return {"$ref": REF.format(name=kind if isinstance(kind, str) else kind.__name__)}


def _event_schema(name: str, data: Schema, place: Schema | None = None) -> Schema:
    """The schema of a server-sent event. Its `data` is described as it is after JSON parsing."""
    properties: Schema = {"event": {"type": "string", "const": name}, "data": data}
    if place is not None:
        properties["id"] = place
    return {"type": "object", "properties": properties, "required": ["event", "data"]}


def one_of(title: str, data: dict[str, str], place: Schema | None = None) -> dict[str, Schema]:
    """A component for each event, by the name of the value that it carries, and one for all."""
    found = {
        f"{name.title().replace('_', '')}{title}": _event_schema(name, reference(kind), place)
        for name, kind in data.items()
    }
    return found | {title: {"oneOf": [reference(name) for name in found]}}


def _operation(route: ApiRoute, info: ApiInfo) -> Schema:
    summary, _, more = (route.handler.__doc__ or "").strip().partition("\n")
    found: Schema = {
        "operationId": _camel(route.handler.__name__),
        "tags": [route.declaration.tag],
        "summary": summary.rstrip("."),
        "description": " ".join([summary, *more.split(), info.served(route.declaration)]),
        "parameters": _parameters(route, info),
        "responses": _responses(route, info),
        "security": info.security if route.declaration.role else [],
    }
    if route.body is not None:
        content = _with_examples({"schema": reference(route.body)}, route.body, info)
        found["requestBody"] = {
            "description": _first_sentence(route.body),
            "content": {JSON: content},
            "required": route.body_required,
        }
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _path(path: str) -> str:
    """The path as clients write it, with the version."""
    path = re.sub(
        r"\{(\w+)(:\w+)?\}", lambda one: "{" + _WIRE_NAMES.get(one[1], one[1]) + "}", path
    )
    return path.replace("/api/", "/api/v1/", 1)


def _parameters(route: ApiRoute, info: ApiInfo) -> list[Schema]:
    found = []
    for name, kind in route.path_types.items():
        schema = {"type": "integer"} if kind is int else {"type": "string", "minLength": 1}
        wire = _WIRE_NAMES.get(name, name)
        one = {"name": wire, "in": "path", "required": True, "schema": schema}
        found.append(_described(one, f"/{name}", info))
    for where, kind, names in (
        ("query", route.query, route.query_names),
        ("header", route.headers, route.header_names),
    ):
        schemas = _schema_of(kind)["properties"]
        required = {field.name for field in msgspec.structs.fields(kind) if field.required}
        for key, name in names.items():
            wire = key if where == "query" else route.header_titles[name]
            one = {"name": wire, "in": where, "required": name in required}
            found.append(_described({**one, "schema": schemas[name]}, f"?{key}", info))
    return found


def _described(parameter: Schema, name: str, info: ApiInfo) -> Schema:
    description = info.fields.get(name)
    return {**parameter, "description": description} if description else parameter


def _schema_of(kind: type[Struct]) -> Schema:
    _, found = msgspec.json.schema_components([kind])
    schema: Schema = found[kind.__name__]
    return schema


def _responses(route: ApiRoute, info: ApiInfo) -> Schema:
    found: Schema = {str(route.status): _success(route, info)}
    for status, kind in route.declaration.also.items():
        content = _with_examples({"schema": reference(kind)}, kind, info)
        found[str(status)] = {"description": _first_sentence(kind), "content": {JSON: content}}
    for status, codes in sorted(_refusals(route, info).items()):
        said = "; ".join(f"`{code}`: {info.codes[code][1]}" for code in sorted(codes))
        found[str(status)] = {
            "description": f"{HTTPStatus(status).phrase}. {said}.",
            "content": {MEDIA: {"schema": reference(Problem)}},
            "x-codes": sorted(codes),
        }
    return found


def _success(route: ApiRoute, info: ApiInfo) -> Schema:
    declared = route.declaration
    if route.status == 204:
        return {"description": "Done. There is no content."}
    if declared.shape.endswith("Event"):
        said = f"A stream of server-sent events. Each one is a {declared.shape}."
        return {"description": said, "content": {declared.media: _event_stream(declared.shape)}}
    if declared.shape:
        schema = {"type": "object"} if declared.shape == "any" else {"type": "string"}
        media = declared.media.split(", ")
        return {"description": "OK", "content": {one: {"schema": schema} for one in media}}
    kind = route.answers
    content = {declared.media: _with_examples({"schema": reference(kind)}, kind, info)}
    if declared.streams:
        content[EVENT_STREAM] = _event_stream(declared.streams)
    return {"description": _first_sentence(kind), "content": content}


def _event_stream(name: str) -> Schema:
    """A body that is a stream of events: each as it is sent, and with its data parsed as JSON."""
    return {"schema": _EVENT, "x-event-schema": reference(name)}


def _with_examples(content: Schema, kind: Any, info: ApiInfo) -> Schema:
    if kind not in info.examples:
        return content
    return {**content, "example": msgspec.to_builtins(info.examples[kind])}


def _first_sentence(kind: Any) -> str:
    return _SENTENCE.split(_doc(kind))[0] or "OK"


def _doc(kind: Any) -> str:
    return " ".join((kind.__doc__ or "").split())


def _refusals(route: ApiRoute, info: ApiInfo) -> dict[int, list[str]]:
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
        found.setdefault(info.codes[code][0], []).append(code)
    return found


def _components(routes: Sequence[ApiRoute], info: ApiInfo) -> dict[str, Schema]:
    kinds: dict[Any, None] = {Problem: None}
    for route in routes:
        for kind in (route.body, route.answers, *route.declaration.also.values()):
            if isinstance(kind, type) and issubclass(kind, Struct):
                kinds[kind] = None
    _, found = msgspec.json.schema_components(
        dict.fromkeys([*kinds, *info.types()]), ref_template=REF
    )
    return {
        name: _with_descriptions(_without_false(schema), info.fields)
        for name, schema in info.adjust(found).items()
    }


def _without_false(schema: Any) -> Any:
    """The same without `"items": false`, which generators do not know; `maxItems` says it, too."""
    if isinstance(schema, list):
        return [_without_false(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_false(one)
        for name, one in schema.items()
        if not (name == "items" and one is False)
    }


def _with_descriptions(schema: Schema, fields: Mapping[str, str]) -> Schema:
    """Describe properties: by the docstring of their value, or by what their name usually means."""
    properties = schema.get("properties")
    if not properties:
        return schema
    sentences = _SENTENCE.split(" ".join(schema.get("description", "").split()))
    described = {}
    for name, one in properties.items():
        own = [text for text in sentences if f"`{_snake(name)}`" in text]
        said = " ".join(own) or fields.get(name, "")
        described[name] = {**one, "description": said} if said else one
    return {**schema, "properties": described}


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda one: "_" + one[0].lower(), name)
