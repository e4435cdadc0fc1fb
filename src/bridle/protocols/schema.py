"""Which JSON Schemas the vendors' own schema modes can say. Pure; knows no vendor.

Those modes want every object closed and every value of a named type. A mapping with free keys, a
tuple, a value of any type and a type that holds itself cannot be said there: a caller then also
asks in words, and an adapter asks for less.
"""

from typing import Any

Schema = dict[str, Any]
_SCALARS = frozenset(("string", "integer", "number", "boolean", "null"))
_CHOICES = ("anyOf", "oneOf", "allOf")


def can_be_closed(schema: Schema) -> bool:
    """Can every object in it be closed without losing values that matter?"""
    return _closable(schema, schema.get("$defs") or {}, {})


def literal_key(schema: Schema) -> str:
    """`enum` or `const`, where the schema names its plain values; else empty."""
    values = schema.get("enum")
    if isinstance(values, list | tuple) and values and all(map(_is_plain, values)):
        return "enum"
    return "const" if "const" in schema and _is_plain(schema["const"]) else ""


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _closable(schema: Any, parts: Schema, known: dict[str, bool]) -> bool:
    if not isinstance(schema, dict):
        return False
    if "$ref" in schema:
        return _target_closable(str(schema["$ref"]), parts, known)
    for key in _CHOICES:
        if isinstance(schema.get(key), list):
            return all(_closable(each, parts, known) for each in schema[key])
    if literal_key(schema):
        return True
    kinds = schema.get("type")
    return bool(kinds) and all(
        _kind_closable(kind, schema, parts, known)
        for kind in (kinds if isinstance(kinds, list | tuple) else (kinds,))
    )


def _target_closable(ref: str, parts: Schema, known: dict[str, bool]) -> bool:
    name = ref.removeprefix("#/$defs/")
    if name not in known:
        known[name] = False  # seen again while it is looked at: it holds itself
        known[name] = _closable(parts.get(name), parts, known)
    return known[name]


def _kind_closable(kind: Any, schema: Schema, parts: Schema, known: dict[str, bool]) -> bool:
    if kind == "object":
        if "properties" not in schema:
            return schema.get("additionalProperties") is False
        return all(_closable(each, parts, known) for each in schema["properties"].values())
    if kind == "array":
        return "prefixItems" not in schema and _closable(schema.get("items"), parts, known)
    return kind in _SCALARS
