"""Which JSON Schemas for a reply the vendors refuse, and the words in which they do.

Looks at one schema. Knows no server.
"""

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Place = tuple[str, ...]
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_UNKNOWN = {
    "integer": _BOUNDS,
    "number": _BOUNDS,
    "string": ("minLength", "maxLength"),
    "array": ("maxItems", "uniqueItems", "prefixItems"),
    "object": ("minProperties", "maxProperties", "patternProperties"),
}
_FORBIDDEN = ("default", "oneOf", "allOf", "discriminator", "prefixItems", "minLength", "maxLength")


def refused_by_anthropic(schema: Any) -> Iterator[str]:
    """What Anthropic says against `output_config.format.schema`."""
    where = "output_config.format.schema"
    for _, found in _walk(schema):
        kind = found.get("type")
        if kind == "object" and found.get("additionalProperties") is not False:
            wanted = "'additionalProperties' must be explicitly set to false"
            yield f"{where}: For 'object' type, {wanted}"
        names = _UNKNOWN.get(kind, ()) if isinstance(kind, str) else ()
        if unknown := [name for name in names if name in found]:
            yield f"{where}: For '{kind}' type, properties {', '.join(unknown)} are not supported"
        if not {"type", "anyOf", "oneOf", "allOf", "enum", "const", "$ref"} & set(found):
            yield f"{where}: Schema must have a 'type', 'anyOf', 'enum', 'const' or '$ref'"


def refused_by_openai(asked: Json) -> Iterator[str]:
    """What OpenAI says against a schema in either of its APIs."""
    start = f"Invalid schema for response_format '{asked['name']}':"
    schema = asked["schema"]
    if (kind := schema.get("type")) != "object":
        wanted = "schema must be a JSON Schema of 'type: \"object\"'"
        yield f"{start} {wanted}, got 'type: \"{kind or 'None'}\"'."
    if not asked.get("strict"):
        return
    for place, found in _walk(schema):
        for problem in _against_strict(found):
            yield f"{start} In context={place!r}, {problem}"


def _against_strict(found: Json) -> Iterator[str]:
    if found.get("type") == "object":
        if found.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false."
        missing = set(found.get("properties", {})) - set(found.get("required", ()))
        if missing:
            yield (
                "'required' is required to be supplied and to be an array including every key in "
                f"properties. Missing '{min(missing)}'."
            )
    if not {"type", "anyOf", "$ref"} & set(found):
        yield "schema must have a 'type' key."
    yield from (f"'{name}' is not permitted." for name in _FORBIDDEN if name in found)


def _walk(schema: Any, place: Place = ()) -> Iterator[tuple[Place, Json]]:
    """Every schema in a schema, and where it stands."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for key in ("properties", "$defs"):
        for name, each in (schema.get(key) or {}).items():
            yield from _walk(each, (*place, key, name))
    yield from _walk(schema.get("items"), (*place, "items"))
    for key in ("anyOf", "oneOf", "allOf"):
        for index, each in enumerate(schema.get(key) or ()):
            yield from _walk(each, (*place, key, str(index)))
