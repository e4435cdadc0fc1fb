"""JSON Schemas and values of pydantic types. pydantic is imported only if a program uses it."""

import sys
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_type_hints

from bridle.errors import ConfigError

_REF = "#/$defs/{model}"
_ANNOTATIONS = ("pydantic", "pydantic_core", "annotated_types")  # packages


def uses_pydantic(hint: Any) -> bool:
    """Whether a type is pydantic's, or holds one: `list[Model]`, `Annotated[int, Field(…)]`."""
    return "pydantic" in sys.modules and _uses(hint, set())


def _uses(hint: Any, checked: set[int]) -> bool:
    if id(hint) in checked:
        return False
    checked.add(id(hint))
    if hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__get_pydantic_core_schema__"):
        return True
    for meta in getattr(hint, "__metadata__", ()):
        kind = meta if isinstance(meta, type) else type(meta)
        if kind.__module__.partition(".")[0] in _ANNOTATIONS:
            return True
    parts = [*get_args(hint), *_fields(hint)]
    if hasattr(hint, "__value__"):  # of `type Name = …`
        parts.append(hint.__value__)
    return any(_uses(part, checked) for part in parts)


def _fields(hint: Any) -> list[Any]:
    """The types of the fields of a dataclass, a TypedDict or a NamedTuple."""
    marks = ("__dataclass_fields__", "__total__", "_field_defaults")
    if not isinstance(hint, type) or not any(hasattr(hint, mark) for mark in marks):
        return []
    try:
        return list(get_type_hints(hint, include_extras=True).values())
    except NameError:
        return []


class PydanticType:
    """A type of pydantic's: its JSON Schema, and its values from JSON. Raise `ConfigError`."""

    def __init__(self, hint: Any) -> None:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        try:
            self.adapter = TypeAdapter(hint)
        except PydanticUserError as error:
            raise _cannot_describe(hint, error) from error

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the type; shared parts are in its `$defs`."""
        schemas, parts = json_schemas({"": self})
        return {**schemas[""], "$defs": parts} if parts else schemas[""]

    def parse(self, data: bytes | str) -> Any:
        """Parse a JSON text. Raise `ValueError` with everything that is wrong."""
        from pydantic import ValidationError

        try:
            return self.adapter.validate_json(data)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            raise ValueError(
                "; ".join(_sentence(problem["loc"], problem["msg"]) for problem in problems)
            ) from error


def json_schemas(
    types: Mapping[str, PydanticType],
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each type, and the parts that they share. Raise `ConfigError`."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    mode: Literal["validation"] = "validation"
    try:
        schemas, shared = TypeAdapter.json_schemas(
            [(name, mode, value.adapter) for name, value in types.items()], ref_template=_REF
        )
    except PydanticUserError as error:
        raise _cannot_describe(", ".join(types), error) from error
    return {name: dict(schemas[name, mode]) for name in types}, dict(shared.get("$defs", {}))


def _sentence(path: tuple[int | str, ...], message: str) -> str:
    return f"`{'.'.join(map(str, path))}`: {message}" if path else message


def _cannot_describe(what: object, error: Exception) -> ConfigError:
    return ConfigError(f"pydantic cannot describe {what}: {error}", error)


# Which JSON Schemas the vendors' own schema modes support. Pure; knows no vendor.
#
# Those modes want every object closed and every value of a named type. They do not support a
# mapping with free keys, a tuple, a value of any type or a recursive type: a caller then also
# describes the schema in the prompt, and an adapter asks the vendor for less.

Schema = dict[str, Any]
_SCALARS = frozenset(("string", "integer", "number", "boolean", "null"))
_CHOICES = ("anyOf", "oneOf", "allOf")


def can_be_closed(schema: Schema) -> bool:
    """Whether every object in it can be closed without losing values that matter."""
    return _is_closable(schema, schema.get("$defs") or {}, {})


def literal_key(schema: Schema) -> str:
    """`enum` or `const` if the schema lists its plain values; else empty."""
    values = schema.get("enum")
    if isinstance(values, list | tuple) and values and all(map(_is_plain, values)):
        return "enum"
    return "const" if "const" in schema and _is_plain(schema["const"]) else ""


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_closable(schema: Any, parts: Schema, known: dict[str, bool]) -> bool:
    if not isinstance(schema, dict):
        return False
    if "$ref" in schema:
        return _is_target_closable(str(schema["$ref"]), parts, known)
    for key in _CHOICES:
        if isinstance(schema.get(key), list):
            return all(_is_closable(each, parts, known) for each in schema[key])
    if literal_key(schema):
        return True
    kinds = schema.get("type")
    return bool(kinds) and all(
        _is_type_closable(kind, schema, parts, known)
        for kind in (kinds if isinstance(kinds, list | tuple) else (kinds,))
    )


def _is_target_closable(ref: str, parts: Schema, known: dict[str, bool]) -> bool:
    name = ref.removeprefix("#/$defs/")
    if name not in known:
        known[name] = False  # if it comes up again below itself, it is recursive
        known[name] = _is_closable(parts.get(name), parts, known)
    return known[name]


def _is_type_closable(kind: Any, schema: Schema, parts: Schema, known: dict[str, bool]) -> bool:
    if kind == "object":
        if "properties" not in schema:
            return schema.get("additionalProperties") is False
        return all(_is_closable(each, parts, known) for each in schema["properties"].values())
    if kind == "array":
        return "prefixItems" not in schema and _is_closable(schema.get("items"), parts, known)
    return kind in _SCALARS
