"""Validate values against JSON Schema, with problems that a model can read and act on.

The library jsonschema-rs validates; this module turns its errors into sentences. Schemas and
values come from models and MCP servers, so no reference is ever fetched, patterns are matched in
bounded time, and a value that is nested too deeply is refused: the library recurses without a limit
of its own.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bridle.errors import ConfigError

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

Validator = Callable[[Any], list[str]]

MOST_SHOWN = 20  # problems; beyond that their number is enough
_DEEPEST = 200  # levels of a value
_ALTERNATIVES = 6  # of `anyOf` and `oneOf` that are explained
_VALUE_SHOWN = 60  # characters of a value in a problem
_TYPES = {
    "string": "a string",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
    "integer": "an integer",
    "number": "a number",
}
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "greater than",
    "exclusiveMaximum": "less than",
}
_SIZES = {
    "minLength": ("least", "characters"),
    "maxLength": ("most", "characters"),
    "minItems": ("least", "items"),
    "maxItems": ("most", "items"),
    "minProperties": ("least", "properties"),
    "maxProperties": ("most", "properties"),
}


def compile_schema(schema: dict[str, Any] | bool) -> Validator:
    """Return a function that lists what is wrong with a value.

    The draft is the one that `$schema` names, else 2020-12, else draft 7, in which many servers
    write without saying so. Raise `ConfigError` for a schema that is broken in each of them.
    """
    import jsonschema_rs as library  # it takes 5 MB of memory, and many a process needs none

    failure: ValueError | TypeError | None = None
    for make in (library.validator_for, library.Draft202012Validator, library.Draft7Validator):
        try:
            validator = make(schema, offline=True, validate_formats=False)
            break
        except (ValueError, TypeError) as error:
            failure = failure or error
    else:
        raise _schema_error(failure) from None

    def problems(value: Any) -> list[str]:
        if _is_too_deep(value):
            return ["the value is nested too deeply to be checked"]
        if validator.is_valid(value):
            return []
        lines: list[str] = []
        for error in validator.iter_errors(value):
            lines += _problem_lines(error, schema)
        if len(lines) > MOST_SHOWN:
            return [*lines[:MOST_SHOWN], f"and {len(lines) - MOST_SHOWN} more problems"]
        return lines

    return problems


def _schema_error(error: ValueError | TypeError | None) -> ConfigError:
    place = "/".join(map(str, ("#", *getattr(error, "instance_path", ()))))
    return ConfigError(
        f"The JSON Schema is broken at {place}: {getattr(error, 'message', error)}.",
        hint="Correct the tool's parameters; they are JSON Schema, draft 2020-12.",
    )


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        holders = [holder for holder in level if isinstance(holder, dict | list)]
        if not holders:
            return False
        level = []
        for holder in holders:
            level += holder.values() if isinstance(holder, dict) else holder
    return True


def _problem_lines(error: "ValidationError", schema: Any) -> list[str]:
    path = _path(error.instance_path)
    return [f"`{path}`: {text}" if path else text for text in _describe(error, schema)]


def _path(steps: list[str | int]) -> str:
    """Return a path such as `todos[1].title`."""
    shown = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(shown).removeprefix(".")


def _describe(error: "ValidationError", schema: Any) -> list[str]:
    """Describe a problem: one sentence, or one for each unknown name."""
    kind: Any = error.kind
    value: Any = error.instance
    name = kind.name
    if name == "type":
        types = " or ".join(_TYPES[kind_name] for kind_name in kind.types)
        return [f"expected {types}, got {_display(value)}"]
    if name in ("enum", "const"):
        allowed = kind.options if name == "enum" else [kind.expected_value]
        choices = f"{'one of ' if len(allowed) > 1 else ''}{', '.join(map(_json, allowed))}"
        return [f"must be {choices}; got {_display(value)}"]
    if name in _BOUNDS:
        description = _sibling(error, schema, "description")
        about = (
            f" ({description.rstrip('.')})" if isinstance(description, str) and description else ""
        )
        return [f"must be {_BOUNDS[name]} {kind.limit}, got {_display(value)}{about}"]
    if name in _SIZES:
        end, things = _SIZES[name]
        return [f"must have at {end} {kind.limit} {things}, has {len(value)}"]
    if name == "multipleOf":
        return [f"must be a multiple of {kind.multiple_of}, got {_display(value)}"]
    if name == "pattern":
        pattern = _sibling(error, schema, "pattern")
        if not hasattr(kind, "pattern"):
            return [f"is too hard to be checked against the pattern {pattern}"]
        return [f"must match the pattern {kind.pattern}, got {_display(value)}"]
    if name == "required":
        return [f"missing `{kind.property}`"]
    if name == "additionalProperties":
        known = ", ".join(f"`{key}`" for key in _sibling(error, schema, "properties") or ())
        names = f"known are {known}" if known else "nothing is known"
        return [f"unknown `{key}`; {names}" for key in kind.unexpected]
    if name == "propertyNames":
        return [f"the name `{kind.error.instance}` {kind.error.message}"]
    if name in ("anyOf", "oneOf"):
        return [_alternatives(error, schema)]
    if name == "uniqueItems":
        return ["no item may stand in the list twice"]
    if name == "not":
        return ["has a shape that is not allowed here"]
    if name == "falseSchema":
        return ["nothing is allowed here"]
    return [str(error.message)]


def _alternatives(error: "ValidationError", schema: Any) -> str:
    """Describe in one sentence what is wrong for each of the alternatives."""
    kind: Any = error.kind
    branches = [branch[0] for branch in kind.context if branch]
    if not branches:
        return "fits several of the shapes that exclude each other; exactly one is asked"
    reasons: dict[str, None] = {}
    for branch in branches[:_ALTERNATIVES]:
        is_nested = branch.kind.name in ("anyOf", "oneOf")  # explained no further
        text = "fits none of the allowed shapes" if is_nested else _describe(branch, schema)[0]
        path = _path(branch.instance_path[len(error.instance_path) :])
        reasons[f"`{path}`: {text}" if path else text] = None
    if len(reasons) == 1:
        return next(iter(reasons))
    return f"fits none of the allowed shapes ({'; or '.join(reasons)})"


def _sibling(error: "ValidationError", schema: Any, keyword: str) -> Any:
    """Return another keyword of the schema that the failed keyword is in, if it can be found."""
    place = schema
    for step in error.schema_path[:-1]:
        try:
            place = place[step]
        except (KeyError, IndexError, TypeError):
            return None
    return place.get(keyword) if isinstance(place, dict) else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _display(value: Any) -> str:
    """Return the value, shortened if it is long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = _json(value[: _VALUE_SHOWN * 2] if isinstance(value, str) else value)
    if len(text) > _VALUE_SHOWN:
        text = f"{text[: _VALUE_SHOWN - 2]}…"
    return f"the text {text}" if isinstance(value, str) else text
