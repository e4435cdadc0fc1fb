"""A tool as it is offered to others: its words, its arguments, what it does. Knows no protocol."""

from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from bridle.errors import AgentError, SessionError

Arguments = TypeVar("Arguments")


class Caller(Struct, frozen=True):
    """Who calls, as the log will say it, and a way to tell them what happens meanwhile."""

    name: str
    tell: Callable[[str], None] = lambda words: None


class Reply(Struct, frozen=True):
    """What comes back: text, or blocks in the words of the protocol; `data` is the same as values.

    Without content the data is written out.
    """

    content: tuple[Any, ...] = ()
    data: dict[str, Any] | None = None
    is_error: bool = False


class ToolOffer(Struct, Generic[Arguments], frozen=True):
    """A tool. `arguments` is a struct: its fields are the schema, and nothing else is accepted.

    A `schema` of its own stands in the place of the struct's, and then it is handed a dict.
    """

    name: str
    description: str
    arguments: type[Arguments]
    call: Callable[[Arguments, Caller], Awaitable[Reply]]
    reads: bool = False
    schema: dict[str, Any] | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return self.schema if self.schema is not None else _schema(self.arguments)

    async def run(self, arguments: dict[str, Any], caller: Caller) -> Reply:
        """Check the arguments, then do it. Raise `AgentError`."""
        try:
            given = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as error:
            raise SessionError(
                f"the arguments of {self.name} do not fit: {error}",
                hint="Look at the tool's schema, and call it again.",
            ) from None
        return await self.call(given, caller)


def error_reply(error: AgentError) -> Reply:
    """An error as whoever called reads it."""
    hint = f" {error.hint}" if error.hint else ""
    end = "" if error.message.endswith((".", "!", "?")) else "."
    said = f"{error.message[:1].upper()}{error.message[1:]}{end}{hint}"
    return Reply((said,), is_error=True)


@cache
def tool_description(name: str) -> str:
    """What a model reads about a tool: the `.md` beside this module."""
    return Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").strip()


def _schema(kind: Any) -> dict[str, Any]:
    _, found = msgspec.json.schema_components([kind])
    whole: dict[str, Any] = found[kind.__name__]
    for left_out in ("title", "description"):  # they are ours, and nobody else's
        whole.pop(left_out, None)
    return {**whole, "additionalProperties": False}
