"""Keywords of JSON Schema that hand parts of a value, or the whole of it, to other schemas.

Each builder takes the compiler, for those other schemas, and the schema that holds the keyword.
"""

from collections.abc import Callable
from typing import Any, Protocol

from bridle.engine.schema_values import Check, Problem, Schema, broken, compile_pattern


class Compiler(Protocol):
    """What compiles the schemas inside a schema."""

    def compile(self, schema: Any, where: str) -> Check: ...
    def refer(self, pointer: str) -> Check: ...


def _schemas(compiler: Compiler, found: Any, where: str) -> dict[str, Check]:
    if not isinstance(found, dict):
        raise broken(where, "must be an object of schemas")
    return {str(key): compiler.compile(part, f"{where}/{key}") for key, part in found.items()}


def _required(compiler: Compiler, schema: Schema, where: str) -> Check:
    names = schema["required"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise broken(where, "must be a list of names")

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, dict):
            return None
        for name in names:
            if name not in value:
                return [("", f"missing `{name}`") for name in names if name not in value]
        return None

    return check


def _properties(compiler: Compiler, schema: Schema, where: str) -> Check:
    known = _schemas(compiler, schema["properties"], where)

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, dict):
            return None
        problems = None
        for name, item in value.items():
            part = known.get(name)
            if part is not None:
                found = part(item)
                if found is not None:
                    problems = (problems or []) + _under(f".{name}", found)
        return problems

    return check


def _pattern_properties(compiler: Compiler, schema: Schema, where: str) -> Check:
    parts = _schemas(compiler, schema["patternProperties"], where)
    patterns = [(compile_pattern(text, where), part) for text, part in parts.items()]

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, dict):
            return None
        problems: list[Problem] = []
        for name, item in value.items():
            for fits, part in patterns:
                if fits(name) and (found := part(item)) is not None:
                    problems += _under(f".{name}", found)
        return problems or None

    return check


def _additional(compiler: Compiler, schema: Schema, where: str) -> Check:
    allowed = schema["additionalProperties"]
    if allowed is True:
        return anything
    rest = None if allowed is False else compiler.compile(allowed, where)
    known = dict.fromkeys(schema.get("properties", {}))
    patterns = [compile_pattern(text, where) for text in schema.get("patternProperties", {})]

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, dict) or value.keys() <= known.keys():
            return None
        problems: list[Problem] = []
        for name, item in value.items():
            if name in known or (patterns and any(fits(name) for fits in patterns)):
                continue
            if rest is None:
                problems.append(("", f"unknown `{name}`; {_names(known)}"))
            elif (found := rest(item)) is not None:
                problems += _under(f".{name}", found)
        return problems or None

    return check


def _names(known: Any) -> str:
    return f"known are {', '.join(f'`{name}`' for name in known)}" if known else "nothing is known"


def _property_names(compiler: Compiler, schema: Schema, where: str) -> Check:
    part = compiler.compile(schema["propertyNames"], where)

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, dict):
            return None
        found = [(name, part(name)) for name in value]
        return [
            ("", f"the name `{n}` {words}") for n, bad in found for _, words in bad or ()
        ] or None

    return check


def _under(step: str, found: list[Problem]) -> list[Problem]:
    return [(step + path, words) for path, words in found]


# --- lists -------------------------------------------------------------------------------------


def _prefix_items(compiler: Compiler, schema: Schema, where: str) -> Check:
    return _tuple(compiler, schema["prefixItems"], where)


def _tuple(compiler: Compiler, found: Any, where: str) -> Check:
    if not isinstance(found, list):
        raise broken(where, "must be a list of schemas")
    parts = [compiler.compile(part, f"{where}/{index}") for index, part in enumerate(found)]

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, list):
            return None
        problems: list[Problem] = []
        for index, (part, item) in enumerate(zip(parts, value, strict=False)):
            if (bad := part(item)) is not None:
                problems += _under(f"[{index}]", bad)
        return problems or None

    return check


def _items(compiler: Compiler, schema: Schema, where: str) -> Check:
    if isinstance(schema["items"], list):  # how drafts before 2020-12 wrote prefixItems
        return _tuple(compiler, schema["items"], where)
    part = compiler.compile(schema["items"], where)
    start = len(schema["prefixItems"]) if isinstance(schema.get("prefixItems"), list) else 0

    def check(value: Any) -> list[Problem] | None:
        if not isinstance(value, list):
            return None
        problems: list[Problem] = []
        for index in range(start, len(value)):
            if (found := part(value[index])) is not None:
                problems += _under(f"[{index}]", found)
        return problems or None

    return check


# --- the whole value, again --------------------------------------------------------------------


def _branches(compiler: Compiler, schema: Schema, where: str) -> list[Check]:
    found = schema[where.rpartition("/")[2]]
    if not isinstance(found, list) or not found:
        raise broken(where, "must be a list of schemas with at least one in it")
    return [compiler.compile(part, f"{where}/{index}") for index, part in enumerate(found)]


def _any_of(compiler: Compiler, schema: Schema, where: str) -> Check:
    branches = _branches(compiler, schema, where)

    def check(value: Any) -> list[Problem] | None:
        failed = []
        for branch in branches:
            found = branch(value)
            if found is None:
                return None
            failed.append(found)
        return _none_fits(failed)

    return check


def _one_of(compiler: Compiler, schema: Schema, where: str) -> Check:
    branches = _branches(compiler, schema, where)

    def check(value: Any) -> list[Problem] | None:
        failed = [found for branch in branches if (found := branch(value)) is not None]
        fitting = len(branches) - len(failed)
        if fitting == 1:
            return None
        if fitting == 0:
            return _none_fits(failed)
        return [("", f"fits {fitting} of the shapes that exclude each other; exactly one is asked")]

    return check


def _none_fits(failed: list[list[Problem]]) -> list[Problem]:
    """What would have to change for each of the alternatives, in one sentence."""
    reasons = []
    for found in failed:
        path, words = found[0]
        reason = f"`{path.removeprefix('.')}`: {words}" if path else words
        if reason not in reasons:
            reasons.append(reason)
    if len(reasons) == 1:
        return failed[0]
    return [("", f"fits none of the allowed shapes ({'; or '.join(reasons[:6])})")]


def _all_of(compiler: Compiler, schema: Schema, where: str) -> Check:
    return together(_branches(compiler, schema, where))


def together(checks: list[Check]) -> Check:
    """All of the checks as one."""
    checks = [check for check in checks if check is not anything]
    if not checks:
        return anything
    if len(checks) == 1:
        return checks[0]
    first, *rest = checks

    def check(value: Any) -> list[Problem] | None:
        problems = first(value)
        for other in rest:
            found = other(value)
            if found is not None:
                problems = found if problems is None else problems + found
        return problems

    return check


def anything(value: Any) -> None:
    """The check that everything passes."""


def _not(compiler: Compiler, schema: Schema, where: str) -> Check:
    inner = compiler.compile(schema["not"], where)

    def check(value: Any) -> list[Problem] | None:
        return None if inner(value) is not None else [("", "has a shape that is not allowed here")]

    return check


def _if(compiler: Compiler, schema: Schema, where: str) -> Check:
    asked = compiler.compile(schema["if"], where)
    then = compiler.compile(schema.get("then", True), f"{where}/then")
    otherwise = compiler.compile(schema.get("else", True), f"{where}/else")
    return lambda value: then(value) if asked(value) is None else otherwise(value)


def _ref(compiler: Compiler, schema: Schema, where: str) -> Check:
    if not isinstance(schema["$ref"], str):
        raise broken(where, "must be a text such as #/$defs/name")
    return compiler.refer(schema["$ref"])


PART_KEYWORDS: dict[str, Callable[[Compiler, Schema, str], Check]] = {
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "prefixItems": _prefix_items,
    "items": _items,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _ref,
}
