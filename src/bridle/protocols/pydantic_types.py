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


def _uses(hint: Any, seen: set[int]) -> bool:
    if id(hint) in seen:
        return False
    seen.add(id(hint))
    if hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__get_pydantic_core_schema__"):
        return True
    for meta in getattr(hint, "__metadata__", ()):
        kind = meta if isinstance(meta, type) else type(meta)
        if kind.__module__.partition(".")[0] in _ANNOTATIONS:
            return True
    held = [*get_args(hint), *_fields(hint)]
    if hasattr(hint, "__value__"):  # of `type Name = …`
        held.append(hint.__value__)
    return any(_uses(one, seen) for one in held)


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
            raise _undescribed(hint, error) from error

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the type; shared parts are in its `$defs`."""
        schemas, parts = json_schemas({"": self})
        return {**schemas[""], "$defs": parts} if parts else schemas[""]

    def parse(self, data: bytes | str) -> Any:
        """The value that a JSON text stands for. Raise `ValueError` with all that is wrong."""
        from pydantic import ValidationError

        try:
            return self.adapter.validate_json(data)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise ValueError(
                "; ".join(_sentence(one["loc"], one["msg"]) for one in found)
            ) from error


def json_schemas(
    types: Mapping[str, PydanticType],
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each type, and the parts that they share. Raise `ConfigError`."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    mode: Literal["validation"] = "validation"
    try:
        found, shared = TypeAdapter.json_schemas(
            [(name, mode, one.adapter) for name, one in types.items()], ref_template=_REF
        )
    except PydanticUserError as error:
        raise _undescribed(", ".join(types), error) from error
    schemas = {name: dict(found[name, mode]) for name in types}
    return schemas, dict(shared.get("$defs", {}))


def _sentence(place: tuple[int | str, ...], words: str) -> str:
    return f"`{'.'.join(map(str, place))}`: {words}" if place else words


def _undescribed(what: object, error: Exception) -> ConfigError:
    return ConfigError(f"pydantic cannot describe {what}: {error}", error)
