"""`@tool`: a typed function becomes a tool.

The JSON Schema comes from the signature, the description from the docstring. A plain function runs
in a thread, an async one as it is. Knows nothing of the loop: what goes wrong in a function is
raised, except `ToolError`, which is an answer.
"""

import inspect
import re
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

import msgspec

from bridle.errors import ConfigError, ToolError
from bridle.policy import Risk, ToolPolicy
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.tools.signature import Signature, read_signature
from bridle.tools.threads import in_thread

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PROMISE = ("name", "description", "parameters", "policy", "execute")


class Options(TypedDict, total=False):
    """What can be said of a tool beside its function. The flags refine `policy`."""

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
        whole = function.func if isinstance(function, partial) else function
        self.name = checked_name(options.get("name") or getattr(whole, "__name__", ""))
        self.description = options.get("description", self._signature.description)
        self.parameters: dict[str, Any] = self._signature.parameters
        self.policy = _policy(options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Convert the arguments, call the function, wrap what it gives."""
        try:
            args, kwargs = self._signature.bind(arguments, context)
            call = cast("Callable[[], Any]", partial(self._function, *args, **kwargs))
            value = call() if self._signature.is_async else await in_thread(call)
            if inspect.isawaitable(value):
                value = await value
        except ToolError as refused:
            return ToolResult.failure(" ".join(filter(None, (refused.message, refused.hint))))
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
            f"@tool stands before a function, not before {type(function).__name__}.",
            hint="Options are given by name: @tool(name='add').",
        )
    return FunctionTool(function, options)


def as_tool(found: Any) -> Tool:
    """A tool as it is, or a typed function as a tool. Raise `ConfigError` for anything else."""
    missing = [name for name in _PROMISE if not hasattr(found, name)]
    if not missing and not inspect.isclass(found):
        checked_name(found.name)
        return cast("Tool", found)
    if inspect.isroutine(found) or isinstance(found, partial):
        return FunctionTool(found, Options())
    if inspect.isclass(found):
        raise ConfigError(
            f"{found.__name__} is a class, not a tool.", hint=f"Hand in {found.__name__}()."
        )
    raise ConfigError(
        f"{found!r} is not a tool: it has no {', '.join(missing)}.",
        hint="A tool is a typed function, or an object with " + ", ".join(_PROMISE) + ".",
    )


def checked_name(name: object) -> str:
    """The name, when vendors accept it."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise ConfigError(
        f"{name!r} cannot be a tool's name.",
        hint="Use 1 to 64 letters, digits, `_` and `-`: @tool(name='look_up').",
    )


def _policy(options: Options) -> ToolPolicy:
    flags = {
        name: value
        for name, value in options.items()
        if name in ("read_only", "requires_approval", "edits", "risk")
    }
    return msgspec.structs.replace(options.get("policy", ToolPolicy()), **flags)
