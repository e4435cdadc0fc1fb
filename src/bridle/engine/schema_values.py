"""Keywords of JSON Schema that look at a value itself: its type, size, number, text.

Each builder takes the schema that holds the keyword and gives a check. A check gives None for a
fit, and otherwise problems as (path, words).
"""

import operator
from collections.abc import Callable, Sized
from math import isfinite
from typing import TYPE_CHECKING, Any

from bridle.errors import ConfigError
from bridle.workspace.patterns import bounded_search

if TYPE_CHECKING:
    from fractions import Fraction

Problem = tuple[str, str]
Check = Callable[[Any], list[Problem] | None]
Schema = dict[str, Any]

_VALUE_SHOWN = 60  # characters of a value in a problem


def broken(where: str, words: str) -> ConfigError:
    """The schema itself is wrong."""
    return ConfigError(
        f"The JSON Schema is broken at {where}: {words}.",
        hint="Correct the tool's parameters; they are JSON Schema, draft 2020-12.",
    )


def compile_pattern(pattern: Any, where: str) -> Callable[[str], bool]:
    """A search for a pattern of the schema."""
    try:
        return bounded_search(pattern)
    except (TypeError, ValueError) as error:
        raise broken(where, f"the pattern cannot be used: {error}") from error


def _json(value: Any) -> str:
    import json  # here, because only problems are worded

    return json.dumps(value, ensure_ascii=False)


def shown(value: Any) -> str:
    """The value in a few words."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = _json(value[: _VALUE_SHOWN * 2] if isinstance(value, str) else value)
    if len(text) > _VALUE_SHOWN:
        text = f"{text[: _VALUE_SHOWN - 2]}…"
    return f"the text {text}" if isinstance(value, str) else text


_CLASSES: dict[str, tuple[str, type]] = {
    "string": ("a string", str),
    "boolean": ("true or false", bool),
    "object": ("an object", dict),
    "array": ("a list", list),
    "null": ("null", type(None)),
}


def _of_class(expected: str, kind: type) -> Check:
    return lambda value: None if isinstance(value, kind) else [_mistyped(expected, value)]


def _integer(value: Any) -> list[Problem] | None:
    if type(value) is int or (isinstance(value, float) and value.is_integer()):
        return None
    return [_mistyped("an integer", value)]


def is_number(value: Any) -> bool:
    """A number as JSON has them: true and false are none."""
    return type(value) is int or isinstance(value, float)


def _numeric(value: Any) -> list[Problem] | None:
    if is_number(value):
        return None
    return [_mistyped("a number", value)]


_TYPES: dict[str, tuple[str, Check]] = {
    **{name: (words, _of_class(words, kind)) for name, (words, kind) in _CLASSES.items()},
    "integer": ("an integer", _integer),
    "number": ("a number", _numeric),
}


def _type(schema: Schema, where: str) -> Check:
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        raise broken(where, f"must be one of {', '.join(_TYPES)}")
    checks = [_TYPES[name][1] for name in names]
    if len(checks) == 1:
        return checks[0]
    expected = " or ".join(_TYPES[name][0] for name in names)

    def check(value: Any) -> list[Problem] | None:
        if any(one(value) is None for one in checks):
            return None
        return [_mistyped(expected, value)]

    return check


def _mistyped(expected: str, value: Any) -> Problem:
    return "", f"expected {expected}, got {shown(value)}"


def _key(value: Any) -> Any:
    """Something hashable that is equal for equal JSON: 1 is 1.0, and true is not 1."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, list):
        return list, tuple(map(_key, value))
    if isinstance(value, dict):
        return dict, frozenset((name, _key(item)) for name, item in value.items())
    return value


def _enum(schema: Schema, where: str) -> Check:
    if not isinstance(schema["enum"], list):
        raise broken(where, "must be a list")
    return _one_of(schema["enum"])


def _const(schema: Schema, where: str) -> Check:
    return _one_of([schema["const"]])


def _one_of(allowed: list[Any]) -> Check:
    keys = {_key(value) for value in allowed}

    def check(value: Any) -> list[Problem] | None:
        if value in keys if type(value) is str else _key(value) in keys:
            return None
        choices = f"{'one of ' if len(allowed) > 1 else ''}{', '.join(map(_json, allowed))}"
        return [("", f"must be {choices}; got {shown(value)}")]

    return check


def _unique(schema: Schema, where: str) -> Check:
    wanted = schema["uniqueItems"] is True

    def check(value: Any) -> list[Problem] | None:
        if not wanted or not isinstance(value, list):
            return None
        if len({_key(item) for item in value}) == len(value):
            return None
        return [("", "no item may stand in the list twice")]

    return check


# --- numbers -----------------------------------------------------------------------------------


def _number(schema: Schema, where: str) -> int | float:
    found = schema[where.rpartition("/")[2]]
    if not is_number(found):
        raise broken(where, "must be a number")
    number: int | float = found
    return number


def _bound(words: str, fits: Callable[[Any, Any], bool]) -> Callable[[Schema, str], Check]:
    def build(schema: Schema, where: str) -> Check:
        bound = _number(schema, where)
        said = schema.get("description", "")
        about = f" ({said.rstrip('.')})" if isinstance(said, str) and said else ""

        def check(value: Any) -> list[Problem] | None:
            if not is_number(value) or fits(value, bound):
                return None
            return [("", f"must be {words} {bound}, got {shown(value)}{about}")]

        return check

    return build


def _exactly(value: int | float) -> "Fraction":
    """The number as it is written: 0.1 is a tenth, not the float that stands for it."""
    from fractions import Fraction  # here, because few schemas need it and it is slow to load

    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def _multiple(schema: Schema, where: str) -> Check:
    step = _number(schema, where)
    if step <= 0:
        raise broken(where, "must be greater than 0")
    exact = _exactly(step)

    def check(value: Any) -> list[Problem] | None:
        if not is_number(value):
            return None
        if isfinite(value) and (_exactly(value) / exact).denominator == 1:
            return None
        return [("", f"must be a multiple of {step}, got {shown(value)}")]

    return check


# --- sizes and text ----------------------------------------------------------------------------


def _size(kind: type[Sized], least: bool, thing: str) -> Callable[[Schema, str], Check]:
    def build(schema: Schema, where: str) -> Check:
        bound = _number(schema, where)
        if bound < 0 or bound != int(bound):
            raise broken(where, "must be a whole number, 0 or more")
        words = f"must have at {'least' if least else 'most'} {bound} {thing}"

        def check(value: Any) -> list[Problem] | None:
            if not isinstance(value, kind):
                return None
            size = len(value)
            if size >= bound if least else size <= bound:
                return None
            return [("", f"{words}, has {size}")]

        return check

    return build


def _pattern(schema: Schema, where: str) -> Check:
    pattern = schema["pattern"]
    fits = compile_pattern(pattern, where)

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, str):
            return None
        if fits(value):
            return None
        return [("", f"must match the pattern {pattern}, got {shown(value)}")]

    return check


VALUE_KEYWORDS: dict[str, Callable[[Schema, str], Check]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound("at least", operator.ge),
    "maximum": _bound("at most", operator.le),
    "exclusiveMinimum": _bound("greater than", operator.gt),
    "exclusiveMaximum": _bound("less than", operator.lt),
    "multipleOf": _multiple,
    "minLength": _size(str, True, "characters"),
    "maxLength": _size(str, False, "characters"),
    "minItems": _size(list, True, "items"),
    "maxItems": _size(list, False, "items"),
    "minProperties": _size(dict, True, "properties"),
    "maxProperties": _size(dict, False, "properties"),
    "pattern": _pattern,
    "uniqueItems": _unique,
}
