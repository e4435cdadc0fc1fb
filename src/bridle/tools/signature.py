"""What a function's signature and docstring say: JSON Schema, descriptions, how to call it.

Pure, but for the function's own annotations. msgspec knows the types; this knows parameters.
"""

import copy
import inspect
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError, ToolError
from bridle.promises.tool import ToolContext, ToolResult

_Parameter = inspect.Parameter
_SECTION = re.compile(r"^(\w[\w ]*):\s*$")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


class Signature(Struct, frozen=True):
    """How a function is described to a model, and called with what the model wrote."""

    description: str
    parameters: dict[str, Any]
    shape: type[Struct]
    positional: tuple[str, ...]
    takes_context: bool
    is_async: bool

    def bind(
        self, arguments: dict[str, Any], context: ToolContext[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments in the annotated types; what was left out keeps the function's default."""
        try:
            found = msgspec.convert(arguments, self.shape, strict=False)
        except msgspec.ValidationError as error:
            raise ToolError(f"The arguments do not fit: {error}.", error) from error
        named = {name: getattr(found, name) for name in arguments}
        first: list[Any] = [context] if self.takes_context else []
        first += [named.pop(name) for name in self.positional if name in named]
        return first, named


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read a function once. Raise `ConfigError` where a parameter cannot be described."""
    parameters = list(inspect.signature(function).parameters.values())
    hints = _hints(function)
    takes_context = bool(parameters) and _is_context(hints.get(parameters[0].name))
    if takes_context:
        parameters = parameters[1:]
    description, entries = split_docstring(inspect.getdoc(function) or "")
    for parameter in parameters:
        _refuse_unclear(function, parameter, hints)
    shape = _shape(function, parameters, hints, entries)
    return Signature(
        description=description,
        parameters=_schema(function, shape),
        shape=shape,
        positional=tuple(p.name for p in parameters if p.kind is _Parameter.POSITIONAL_ONLY),
        takes_context=takes_context,
        is_async=inspect.iscoroutinefunction(function),
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters, also where they are postponed."""
    bare = inspect.unwrap(getattr(function, "func", function))  # func: a partial's
    annotations = dict(getattr(bare, "__annotations__", {}))
    annotations.pop("return", None)  # it may name what exists for type checkers only
    known = {"ToolContext": ToolContext, "ToolResult": ToolResult}
    names = {**known, **getattr(bare, "__globals__", {})}
    try:
        holder = SimpleNamespace(__annotations__=annotations)
        return get_type_hints(holder, names, include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"The annotations of {_name(function)} cannot be read: {error}.",
            error,
            hint="Define the type at the top of its module, where the annotation can find it.",
        ) from error


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or get_origin(hint) is ToolContext


def _refuse_unclear(
    function: Callable[..., Any], parameter: _Parameter, hints: dict[str, Any]
) -> None:
    where = f"Parameter `{parameter.name}` of {_name(function)}"
    if parameter.kind in (_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD):
        raise ConfigError(
            f"{where} takes any number of values, which a model cannot be told.",
            hint="Name each parameter, or take one of type list[…] or dict[str, …].",
        )
    if parameter.name not in hints:
        raise ConfigError(
            f"{where} has no annotation.", hint=f"Say its type: `{parameter.name}: str`."
        )
    if _is_context(hints[parameter.name]):
        raise ConfigError(
            f"{where} is a ToolContext, but not the first.", hint="Make it the first parameter."
        )


def _shape(
    function: Callable[..., Any],
    parameters: list[_Parameter],
    hints: dict[str, Any],
    entries: dict[str, str],
) -> type[Struct]:
    """A Struct with a field for each parameter."""
    fields: list[Any] = []
    for parameter in parameters:
        hint = hints[parameter.name]
        if (words := entries.get(parameter.name)) and not _described(hint):
            hint = Annotated[hint, msgspec.Meta(description=words)]
        if parameter.default is _Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    return msgspec.defstruct(
        f"{_name(function)}_arguments", fields, kw_only=True, forbid_unknown_fields=True
    )


def _described(hint: Any) -> bool:
    metadata = getattr(hint, "__metadata__", ())
    return any(isinstance(meta, msgspec.Meta) and meta.description for meta in metadata)


def _default(value: Any) -> Any:
    """A default that msgspec takes. What JSON cannot say is left out of the schema."""
    try:
        plain = msgspec.to_builtins(value)
    except TypeError:
        return msgspec.field(default_factory=lambda: value)
    if isinstance(plain, list | dict) and plain:
        return msgspec.field(default_factory=lambda: copy.deepcopy(value))
    return value


def _schema(function: Callable[..., Any], shape: type[Struct]) -> dict[str, Any]:
    try:
        schema = msgspec.json.schema(shape)
    except TypeError as error:
        raise ConfigError(
            f"The parameters of {_name(function)} cannot be described: {error}.",
            error,
            hint="Use plain types, Literal, dataclasses, TypedDicts or msgspec Structs.",
        ) from error
    shared = schema.pop("$defs")
    own: dict[str, Any] = shared.pop(schema["$ref"].rpartition("/")[2])
    own.pop("title", None)
    return {**own, "$defs": shared} if shared else own


def split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The docstring without its Args section, and that section by parameter."""
    kept: list[str] = []
    entries: dict[str, str] = {}
    inside, indent, name = False, -1, ""
    for line in text.splitlines():
        if section := _SECTION.match(line):
            inside, indent = section[1].lower() in ("args", "arguments", "parameters"), -1
        elif inside and line.strip() and not line.startswith((" ", "\t")):
            inside = False
        if not inside:
            kept.append(line)
        elif not section and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = depth if indent < 0 else indent
            entry = _ENTRY.match(line.strip()) if depth <= indent else None
            name = entry[1] if entry else name
            words = entry[2] if entry else line.strip()
            entries[name] = f"{entries[name]} {words}" if name in entries else words
    return "\n".join(kept).strip(), entries


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__
