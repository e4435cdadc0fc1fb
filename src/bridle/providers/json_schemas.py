"""A reply's JSON Schema as the vendors' schema modes take it. Pure.

Every object is closed; what the modes do not know (bounds, lengths, patterns, defaults …) is said
in the description, where the model reads it. The reply is checked against the original elsewhere.
"""

from typing import Any

from bridle.protocols.schema import Schema, can_be_closed, literal_key

_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
)
_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def closed(schema: Schema) -> Schema:
    """With all objects closed, and in words what cannot be said otherwise (Anthropic)."""
    rest = dict(schema)
    parts = {name: closed(each) for name, each in (rest.pop("$defs", None) or {}).items()}
    out: Schema = {"$defs": parts} if parts else {}
    if "$ref" in rest:
        return {**out, "$ref": rest["$ref"]}
    out |= _choices(rest) or _literals(rest) or _typed(rest)
    for name in ("description", "title"):
        if name in rest:
            out[name] = rest.pop(name)
    if rest:
        said = ", ".join(f"{name}: {value}" for name, value in rest.items())
        before = f"{out['description']}\n\n" if "description" in out else ""
        out["description"] = f"{before}{{{said}}}"
    return out


def _choices(rest: Schema) -> Schema:
    """One of several, or all of them; takes what it uses out of `rest`."""
    kinds = rest.get("type")
    if isinstance(kinds, list | tuple):
        each = {name: rest.pop(name) for name in list(rest) if name not in ("description", "title")}
        return {"anyOf": [closed(_alone(kind, each)) for kind in kinds]}
    found = [(name, rest.pop(name)) for name in ("anyOf", "oneOf", "allOf") if name in rest]
    if not found:
        return {}
    rest.pop("type", None)
    name, schemas = found[0]
    return {"allOf" if name == "allOf" else "anyOf": [closed(each) for each in schemas]}


def _alone(kind: Any, schema: Schema) -> Schema:
    """One of several types, with what is said of it."""
    return {"type": kind} if kind == "null" else {**schema, "type": kind}


def _literals(rest: Schema) -> Schema:
    key = literal_key(rest)
    if not key:
        return {}
    rest.pop("type", None)
    return {key: rest.pop(key)}


def _typed(rest: Schema) -> Schema:
    kind = rest.pop("type")
    out: Schema = {"type": kind}
    if kind == "object":
        keys = rest.pop("properties", {})
        out["properties"] = {name: closed(each) for name, each in keys.items()}
        rest.pop("additionalProperties", None)
        out["additionalProperties"] = False
        if "required" in rest:
            out["required"] = rest.pop("required")
    elif kind == "array":
        out["items"] = closed(rest.pop("items"))
        if rest.get("minItems") in (0, 1):
            out["minItems"] = rest.pop("minItems")
    elif kind == "string" and rest.get("format") in _FORMATS:
        out["format"] = rest.pop("format")
    return out


def strict(schema: Schema) -> Schema | None:
    """As OpenAI's strict mode wants it: closed, every key required, every value with its type.

    None where that cannot be said.
    """
    if not can_be_closed(schema):
        return None
    found = closed(schema)
    return _complete(found) if not _has(found, "allOf") else None


def _complete(schema: Schema) -> Schema:
    out = dict(schema)
    for key in ("properties", "$defs"):
        if key in out:
            out[key] = {name: _complete(each) for name, each in out[key].items()}
    if "properties" in out:
        out["required"] = list(out["properties"])
    if "items" in out:
        out["items"] = _complete(out["items"])
    if "anyOf" in out:
        out["anyOf"] = [_complete(each) for each in out["anyOf"]]
    if out.get("format") == "uri":
        del out["format"]
    if values := out.get("enum") or ([out["const"]] if "const" in out else []):
        kinds = sorted({_NAMES[type(value)] for value in values})
        out["type"] = kinds[0] if len(kinds) == 1 else kinds
    return out


def _has(value: Any, key: str) -> bool:
    """Does any schema in it use this keyword? A property of that name counts too: rather safe."""
    if isinstance(value, dict):
        return key in value or any(_has(each, key) for each in value.values())
    return isinstance(value, list) and any(_has(each, key) for each in value)
