"""Tools of your own over tables of your own: functions with typed arguments and a user's session.

```python
toolbox = Toolbox("expenses")

@toolbox.tool
def add_expense(call: Call, what: str, amount: float) -> dict:
    "Note an expense."
    row = Expense(what=what, amount=amount)      # the session knows whose it is
    call.session.add(row)
    call.session.flush()
    return {"id": row.id, "what": what, "amount": amount}
```

A function is called in a worker thread, within one transaction of the user that the call is bound
to. It returns a JSON value, or raises `ToolFailed`. If it has many arguments, it can take one
msgspec Struct with them as its fields. No argument can name a user: such a tool is rejected.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec
from msgspec import Struct

from bridle.chat.tools.identity import Binding
from bridle.chat.tools.source import Code, ToolInfo, is_owner_word
from bridle.errors import AgentError, ConfigError, ToolError
from bridle.tools.function import Signature, read_signature

if TYPE_CHECKING:
    from bridle.chat.db import OwnedSession


Function = TypeVar("Function", bound=Callable[..., Any])


class ToolFailed(AgentError):
    """Raised by a tool that cannot do its work: a code, and a sentence for a person.

    Its changes are rolled back. `field` is the argument that is wrong, if it is one. `hint` is what
    the person can write instead.
    """

    def __init__(self, code: Code, message: str, *, field: str = "", hint: str = "") -> None:
        super().__init__("tool", message, hint=hint)
        self.code: Code = code
        self.field = field


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool gets besides its arguments: the user's session, time and language."""

    session: "OwnedSession"
    binding: Binding

    @property
    def now(self) -> datetime:
        """Now, in the user's time zone."""
        return self.binding.moment

    @property
    def language(self) -> str:
        """The user's language."""
        return self.binding.language


@dataclass(frozen=True, slots=True)
class Tool:
    """A function, its description and its signature."""

    info: ToolInfo
    function: Callable[..., Any]
    signature: Signature
    whole: type[Struct] | None = None  # the arguments are one struct

    def run(self, arguments: dict[str, Any], call: Call) -> Any:
        """Call it with the model's arguments. Raise `ToolFailed` or `ToolError` (bad arguments)."""
        if self.whole is not None:
            return self.function(call, _fill_struct(self.whole, arguments))
        first, named = self.signature.bind(arguments, None)  # type: ignore[arg-type]
        return self.function(call, *first, **named)


class Toolbox:
    """Tools by name, in the order in which they were added."""

    def __init__(self, name: str, instructions: str = "") -> None:
        self.name = name
        self.instructions = instructions
        self._tools: dict[str, Tool] = {}

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name."""
        return self._tools.get(name)

    def infos(self) -> tuple[ToolInfo, ...]:
        """Return the tools as the model sees them."""
        return tuple(one.info for one in self)

    @overload
    def tool(self, function: Function, /) -> Function: ...
    @overload
    def tool(
        self, /, *, name: str = "", reads: bool = False, deletes: bool = False
    ) -> Callable[[Function], Function]: ...
    def tool(
        self,
        function: Any = None,
        /,
        *,
        name: str = "",
        reads: bool = False,
        deletes: bool = False,
    ) -> Any:
        """Add a function. The model reads its docstring. Raise `ConfigError`."""
        if function is None:
            return partial(self._put, name=name, reads=reads, deletes=deletes)
        return self._put(function, name=name, reads=reads, deletes=deletes)

    def _put(self, function: Function, *, name: str, reads: bool, deletes: bool) -> Function:
        known = name or function.__name__
        if known in self._tools:
            raise ConfigError(f"There are two tools called {known}.")
        signature = _signature(function, known)
        for word in _property_names(signature.parameters):
            if is_owner_word(word):
                raise ConfigError(
                    f"The tool {known} has a parameter `{word}`, but no model may name a user.",
                    hint="Remove it: `call.session` only contains the rows of the right user.",
                )
        whole = _struct_argument(signature)
        schema = _closed_schema(signature.parameters, whole)
        info = ToolInfo(known, signature.description, schema, reads, deletes)
        self._tools[known] = Tool(info, function, signature, whole)
        return function


def _signature(function: Callable[..., Any], name: str) -> Signature:
    """Read the function's parameters, without the first one, which is the call."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount + code.co_posonlyargcount < 1:
        raise ConfigError(
            f"The tool {name} has no parameter for the call.", hint="Make it the first parameter."
        )
    if code.co_flags & 0x80:  # a coroutine function
        raise ConfigError(
            f"The tool {name} is async, but tools run in a worker thread.",
            hint="Write `def` instead of `async def`.",
        )
    bound = partial(function, None)
    bound.__doc__ = function.__doc__
    bound.__name__ = name  # type: ignore[attr-defined]
    return read_signature(bound)


def _struct_argument(signature: Signature) -> type[Struct] | None:
    """Return the struct if it is the function's only argument."""
    fields = msgspec.structs.fields(signature.struct)
    kind = fields[0].type if len(fields) == 1 else None
    return kind if isinstance(kind, type) and issubclass(kind, Struct) else None


def _closed_schema(parameters: dict[str, Any], whole: type[Struct] | None) -> dict[str, Any]:
    """Return the schema, accepting no other arguments."""
    if whole is None:
        return {**parameters, "additionalProperties": False}
    shared = dict(parameters["$defs"])
    own = {name: value for name, value in shared.pop(whole.__name__).items() if name != "title"}
    own.pop("description", None)
    return {**own, "additionalProperties": False} | ({"$defs": shared} if shared else {})


def _fill_struct(whole: type[Struct], arguments: dict[str, Any]) -> Struct:
    known = {one.encode_name for one in msgspec.structs.fields(whole)}
    if unknown := sorted(set(arguments) - known):
        raise ToolError(f"The arguments do not fit: there is no `{unknown[0]}`.")
    try:
        return msgspec.convert(arguments, whole, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"The arguments do not fit: {error}.", error) from error


def _property_names(schema: Any) -> Iterator[str]:
    """Yield every property name of a schema, at any depth."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for inner in schema.values():
            yield from _property_names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _property_names(inner)
