"""`@tool`: a typed function becomes a tool.

The JSON Schema comes from the signature, the descriptions from docstring and annotations. A plain
function runs in a thread, an async one as it is. If it raises `ToolError`, that is its result; any
other exception is raised.

msgspec converts arguments and describes their types; pydantic does so for its own types.
"""

import copy
import inspect
import re
from collections.abc import Callable
from functools import partial, update_wrapper
from types import SimpleNamespace
from typing import (
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError, ToolError
from bridle.policy import Risk, ToolPolicy
from bridle.protocols.json_schema import PydanticType, json_schemas, uses_pydantic
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.tools.thread_pool import in_thread

P = ParamSpec("P")
R = TypeVar("R")

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TOOL_ATTRIBUTES = ("name", "description", "parameters", "policy", "execute")
_SECTION = re.compile(r"^(\w[\w ]*):\s*$")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")

_Parameter = inspect.Parameter


class Options(TypedDict, total=False):
    """What `@tool` takes beside the function. The flags refine `policy`."""

    name: str
    description: str
    policy: ToolPolicy
    read_only: bool
    requires_approval: bool
    edits: bool
    risk: Risk


class FunctionTool(Generic[P, R]):
    """A tool that is a function, and can still be called as one."""

    def __init__(self, function: Callable[P, R], options: Options) -> None:
        update_wrapper(self, function)
        self._function = function
        self._signature: Signature = read_signature(function)
        name = options.get("name") or getattr(_without_partial(function), "__name__", "")
        self.name = _checked_name(name)
        self.description = options.get("description", self._signature.description)
        self.parameters: dict[str, Any] = self._signature.parameters
        flags = {
            name: value
            for name, value in options.items()
            if name in ("read_only", "requires_approval", "edits", "risk")
        }
        policy = options.get("policy", ToolPolicy())
        self.policy: ToolPolicy = msgspec.structs.replace(policy, **flags)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Convert the arguments, call the function, and return its value as a result."""
        try:
            args, kwargs = self._signature.bind(arguments, context)
            call = cast("Callable[[], Any]", partial(self._function, *args, **kwargs))
            value = call() if self._signature.is_async else await in_thread(call)
            if inspect.isawaitable(value):
                value = await value
        except ToolError as error:
            return ToolResult.failure(" ".join(filter(None, (error.message, error.hint))))
        return value if isinstance(value, ToolResult) else ToolResult.success(value)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[Options]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Unpack[Options]) -> Any:
    """Make a tool of a typed function: `@tool`, or `@tool(name=…, read_only=True, …)`."""
    if function is None:
        return lambda decorated: FunctionTool(decorated, options)
    if not callable(function):
        raise ConfigError(
            f"@tool is for functions, not for {type(function).__name__}.",
            hint="Options are given by name: @tool(name='add').",
        )
    return FunctionTool(function, options)


def as_tool(value: Any) -> Tool:
    """Return a tool as it is, a typed function as a tool. Raise `ConfigError` for anything else."""
    missing = [name for name in _TOOL_ATTRIBUTES if not hasattr(value, name)]
    if not missing and not inspect.isclass(value):
        _checked_name(value.name)
        return cast("Tool", value)
    if inspect.isroutine(value) or isinstance(value, partial):
        return FunctionTool(value, Options())
    if inspect.isclass(value):
        raise ConfigError(
            f"{value.__name__} is a class, not a tool.", hint=f"Pass {value.__name__}()."
        )
    raise ConfigError(
        f"{value!r} is not a tool: it has no {', '.join(missing)}.",
        hint="A tool is a typed function, or an object with " + ", ".join(_TOOL_ATTRIBUTES) + ".",
    )


def _checked_name(name: object) -> str:
    """Return the name of a tool. Raise `ConfigError` if vendors do not accept it."""
    if isinstance(name, str) and _TOOL_NAME.fullmatch(name):
        return name
    raise ConfigError(
        f"{name!r} cannot be a tool's name.",
        hint="Use 1 to 64 letters, digits, `_` and `-`: @tool(name='look_up').",
    )


class Signature(Struct, frozen=True):
    """How a function is described to a model, and called with the model's arguments."""

    description: str
    parameters: dict[str, Any]  # a JSON Schema
    struct: type[Struct]  # has a field for each parameter
    positional: tuple[str, ...]
    takes_context: bool
    is_async: bool
    pydantic: dict[str, PydanticType] = {}  # parameters whose types are pydantic's

    def bind(
        self, arguments: dict[str, Any], context: ToolContext[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Convert the arguments to the annotated types. Raise `ToolError` if they do not fit.

        Those that are missing keep the function's default.
        """
        try:
            converted = msgspec.convert(arguments, self.struct, strict=False)
        except msgspec.ValidationError as error:
            raise ToolError(f"The arguments do not fit: {error}.", error) from error
        named = {name: getattr(converted, name) for name in arguments}
        problems: list[str] = []
        for name in self.pydantic.keys() & named.keys():
            try:
                named[name] = self.pydantic[name].parse(msgspec.json.encode(named[name]))
            except ValueError as error:
                problems.append(f"`{name}`: {error}")
        if problems:
            raise ToolError(f"The arguments do not fit: {'; '.join(sorted(problems))}.")
        positional: list[Any] = [context] if self.takes_context else []
        positional += [named.pop(name) for name in self.positional if name in named]
        return positional, named


def read_signature(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function. Raise `ConfigError` if it cannot be described."""
    bound = function.keywords if isinstance(function, partial) else {}  # a model cannot change them
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in bound
    ]
    hints = _type_hints(function)
    takes_context = bool(parameters) and _is_context(hints.get(parameters[0].name))
    if takes_context:
        parameters = parameters[1:]
    docstring = inspect.getdoc(_without_partial(function)) or ""
    description, entries = _split_docstring(docstring)
    for parameter in parameters:
        _check_parameter(function, parameter, hints)
    descriptions = {
        name: text for name in hints if (text := _description(hints[name], entries.get(name)))
    }
    pydantic = {
        parameter.name: PydanticType(hints[parameter.name])
        for parameter in parameters
        if _has_pydantic_type(parameter, hints)
    }
    struct = _struct(function, parameters, hints | dict.fromkeys(pydantic, Any), descriptions)
    return Signature(
        description=description,
        parameters=_add_pydantic_schemas(_schema(function, struct), pydantic, descriptions),
        struct=struct,
        positional=tuple(p.name for p in parameters if p.kind is _Parameter.POSITIONAL_ONLY),
        takes_context=takes_context,
        is_async=inspect.iscoroutinefunction(function),
        pydantic=pydantic,
    )


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the parameters, even if annotations are strings."""
    original = inspect.unwrap(_without_partial(function))
    annotations = dict(getattr(original, "__annotations__", {}))
    annotations.pop("return", None)  # it may name what exists for type checkers only
    names = {"ToolContext": ToolContext, "ToolResult": ToolResult}
    names.update(getattr(original, "__globals__", {}))
    try:
        annotated = SimpleNamespace(__annotations__=annotations)
        return get_type_hints(annotated, names, include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"The annotations of {_name(function)} cannot be read: {error}.",
            error,
            hint="Define the type at the top of its module, where the annotation can find it.",
        ) from error


def _without_partial(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.func if isinstance(function, partial) else function


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or get_origin(hint) is ToolContext


def _check_parameter(
    function: Callable[..., Any], parameter: _Parameter, hints: dict[str, Any]
) -> None:
    label = f"Parameter `{parameter.name}` of {_name(function)}"
    if parameter.kind in (_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD):
        raise ConfigError(
            f"{label} takes any number of values, which cannot be described to a model.",
            hint="Name each parameter, or take one of type list[…] or dict[str, …].",
        )
    if parameter.name not in hints and parameter.name in ("self", "cls"):
        raise ConfigError(
            f"{_name(function)} is a method, and @tool does not know its object.",
            hint=f"Make a tool of the bound method: `bridle.tool(an_object.{_name(function)})`.",
        )
    if parameter.name not in hints:
        raise ConfigError(
            f"{label} has no annotation.", hint=f"Give its type: `{parameter.name}: str`."
        )
    if _is_context(hints[parameter.name]):
        raise ConfigError(
            f"{label} is a ToolContext, but not the first.", hint="Make it the first parameter."
        )


def _struct(
    function: Callable[..., Any],
    parameters: list[_Parameter],
    hints: dict[str, Any],
    descriptions: dict[str, str],
) -> type[Struct]:
    """Return a Struct with a field for each parameter."""
    fields: list[Any] = []
    for parameter in parameters:
        hint = hints[parameter.name]
        if description := descriptions.get(parameter.name):
            hint = Annotated[hint, msgspec.Meta(description=description)]
        if parameter.default is _Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    return msgspec.defstruct(
        f"{_name(function)}_arguments", fields, kw_only=True, forbid_unknown_fields=True
    )


def _description(hint: Any, entry: str | None) -> str:
    """Return the description from `Annotated[int, "…"]`, or from the docstring.

    Empty if the type has its own.
    """
    metadata = getattr(hint, "__metadata__", ())
    if any(isinstance(meta, msgspec.Meta) and meta.description for meta in metadata):
        return ""
    return next((meta for meta in metadata if isinstance(meta, str)), entry or "")


def _has_pydantic_type(parameter: _Parameter, hints: dict[str, Any]) -> bool:
    if type(parameter.default).__module__ == "pydantic.fields":
        raise ConfigError(
            f"The default of parameter `{parameter.name}` is a Field of pydantic.",
            hint=f"Write `{parameter.name}: Annotated[…, Field(…)] = default`.",
        )
    return uses_pydantic(hints[parameter.name])


def _add_pydantic_schemas(
    schema: dict[str, Any], types: dict[str, PydanticType], descriptions: dict[str, str]
) -> dict[str, Any]:
    """Return the schema of the parameters with the schemas of pydantic's types."""
    if not types:
        return schema
    schemas, shared = json_schemas(types)
    definitions = schema.get("$defs", {})
    clashes = [name for name in shared if definitions.get(name, shared[name]) != shared[name]]
    if clashes:
        raise ConfigError(
            f"two types are named {clashes[0]}", hint="Give one of them another name."
        )
    for name, own in schemas.items():
        base = schema["properties"][name]
        schema["properties"][name] = base | own
        if name in descriptions and "description" not in own:
            whole = {"allOf": [own]} if "$ref" in own else own
            schema["properties"][name] = base | whole | {"description": descriptions[name]}
    return {**schema, "$defs": definitions | shared} if definitions or shared else schema


def _default(value: Any) -> Any:
    """Return a default that msgspec accepts. If it is not JSON, the schema leaves it out."""
    try:
        plain = msgspec.to_builtins(value)
    except TypeError:
        return msgspec.field(default_factory=lambda: value)
    if isinstance(plain, list | dict) and plain:
        return msgspec.field(default_factory=lambda: copy.deepcopy(value))
    return value


def _schema(function: Callable[..., Any], struct: type[Struct]) -> dict[str, Any]:
    try:
        schema = msgspec.json.schema(struct)
    except TypeError as error:
        raise ConfigError(
            f"The parameters of {_name(function)} cannot be described: {error}.",
            error,
            hint="Use plain types, dataclasses, TypedDicts, msgspec Structs or pydantic models.",
        ) from error
    definitions = schema.pop("$defs")
    own: dict[str, Any] = definitions.pop(schema["$ref"].rpartition("/")[2])
    own.pop("title", None)
    return {**own, "$defs": definitions} if definitions else own


def _split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the docstring without its Args section, and that section by parameter."""
    description_lines: list[str] = []
    entries: dict[str, str] = {}
    is_in_section, indent, name = False, -1, ""
    for line in text.splitlines():
        if section := _SECTION.match(line):
            is_in_section = section[1].lower() in ("args", "arguments", "parameters")
            indent = -1
        elif is_in_section and line.strip() and not line.startswith((" ", "\t")):
            is_in_section = False
        if not is_in_section:
            description_lines.append(line)
        elif not section and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = depth if indent < 0 else indent
            entry = _ENTRY.match(line.strip()) if depth <= indent else None
            name = entry[1] if entry else name
            description = entry[2] if entry else line.strip()
            entries[name] = f"{entries[name]} {description}" if name in entries else description
    return "\n".join(description_lines).strip(), entries


def _name(function: Callable[..., Any]) -> str:
    return getattr(_without_partial(function), "__name__", None) or type(function).__name__
