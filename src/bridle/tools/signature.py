"""What a function's signature and docstring say: JSON Schema, descriptions, how to call it.

Pure, but for the function's own annotations. msgspec knows the types, and pydantic those that are
its own; this knows parameters.
"""

import copy
import inspect
import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError, ToolError
from bridle.protocols.pydantic_types import PydanticType, json_schemas, uses_pydantic
from bridle.protocols.tool import ToolContext, ToolResult

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
    pydantic: dict[str, PydanticType] = {}  # the parameters whose types are pydantic's

    def bind(
        self, arguments: dict[str, Any], context: ToolContext[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments in the annotated types; what was left out keeps the function's default."""
        try:
            found = msgspec.convert(arguments, self.shape, strict=False)
        except msgspec.ValidationError as error:
            raise ToolError(f"The arguments do not fit: {error}.", error) from error
        named = {name: getattr(found, name) for name in arguments}
        problems: list[str] = []
        for name in self.pydantic.keys() & named.keys():
            try:
                named[name] = self.pydantic[name].parse(msgspec.json.encode(named[name]))
            except ValueError as error:
                problems.append(f"`{name}`: {error}")
        if problems:
            raise ToolError(f"The arguments do not fit: {'; '.join(sorted(problems))}.")
        first: list[Any] = [context] if self.takes_context else []
        first += [named.pop(name) for name in self.positional if name in named]
        return first, named


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read a function once. Raise `ConfigError` where a parameter cannot be described."""
    bound = function.keywords if isinstance(function, partial) else {}  # a model cannot change them
    parameters = [
        one for one in inspect.signature(function).parameters.values() if one.name not in bound
    ]
    hints = _hints(function)
    takes_context = bool(parameters) and _is_context(hints.get(parameters[0].name))
    if takes_context:
        parameters = parameters[1:]
    description, entries = split_docstring(inspect.getdoc(_bare(function)) or "")
    for parameter in parameters:
        _refuse_unclear(function, parameter, hints)
    described = {name: words for name in hints if (words := _words(hints[name], entries.get(name)))}
    theirs = {
        one.name: PydanticType(hints[one.name]) for one in parameters if _is_pydantic(one, hints)
    }
    shape = _shape(function, parameters, hints | dict.fromkeys(theirs, Any), described)
    return Signature(
        description=description,
        parameters=_with_pydantic(_schema(function, shape), theirs, described),
        shape=shape,
        positional=tuple(p.name for p in parameters if p.kind is _Parameter.POSITIONAL_ONLY),
        takes_context=takes_context,
        is_async=inspect.iscoroutinefunction(function),
        pydantic=theirs,
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters, also where they are postponed."""
    bare = inspect.unwrap(_bare(function))
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


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, where it is part of a `functools.partial`."""
    return function.func if isinstance(function, partial) else function


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
    if parameter.name not in hints and parameter.name in ("self", "cls"):
        raise ConfigError(
            f"{_name(function)} is a method, and @tool does not know its object.",
            hint=f"Make a tool of the bound method: `bridle.tool(an_object.{_name(function)})`.",
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
    described: dict[str, str],
) -> type[Struct]:
    """A Struct with a field for each parameter."""
    fields: list[Any] = []
    for parameter in parameters:
        hint = hints[parameter.name]
        if words := described.get(parameter.name):
            hint = Annotated[hint, msgspec.Meta(description=words)]
        if parameter.default is _Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    return msgspec.defstruct(
        f"{_name(function)}_arguments", fields, kw_only=True, forbid_unknown_fields=True
    )


def _words(hint: Any, entry: str | None) -> str:
    """What describes a parameter beside its type: `Annotated[int, "…"]`, or the docstring."""
    metadata = getattr(hint, "__metadata__", ())
    if any(isinstance(meta, msgspec.Meta) and meta.description for meta in metadata):
        return ""
    return next((meta for meta in metadata if isinstance(meta, str)), entry or "")


def _is_pydantic(parameter: _Parameter, hints: dict[str, Any]) -> bool:
    if type(parameter.default).__module__ == "pydantic.fields":
        raise ConfigError(
            f"The default of parameter `{parameter.name}` is a Field of pydantic.",
            hint=f"Write `{parameter.name}: Annotated[…, Field(…)] = default`.",
        )
    return uses_pydantic(hints[parameter.name])


def _with_pydantic(
    schema: dict[str, Any], types: dict[str, PydanticType], described: dict[str, str]
) -> dict[str, Any]:
    """The schema of the parameters, with what pydantic says of its own."""
    if not types:
        return schema
    schemas, shared = json_schemas(types)
    parts = schema.get("$defs", {})
    if twice := [name for name in shared if parts.get(name, shared[name]) != shared[name]]:
        raise ConfigError(f"two types are named {twice[0]}", hint="Give one of them another name.")
    for name, found in schemas.items():
        before = schema["properties"][name]
        schema["properties"][name] = before | found
        if name in described and "description" not in found:
            whole = {"allOf": [found]} if "$ref" in found else found
            schema["properties"][name] = before | whole | {"description": described[name]}
    return {**schema, "$defs": parts | shared} if parts or shared else schema


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
            hint="Use plain types, dataclasses, TypedDicts, msgspec Structs or pydantic models.",
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
    return getattr(_bare(function), "__name__", None) or type(function).__name__
