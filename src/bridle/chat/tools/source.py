"""The protocol of a source of tools, and the values that go in and out of it.

A call returns a typed result, whatever happens: `{"success": true, "data": …}` or
`{"success": false, "error": {"code", "message"}}`. This module knows neither MCP nor a database.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bridle.chat.tools.identity import Binding

Code = Literal["invalid_input", "invalid_priority", "invalid_date", "not_found", "processing_error"]
CODES: tuple[Code, ...] = (
    "invalid_input",
    "invalid_priority",
    "invalid_date",
    "not_found",
    "processing_error",
)
TROUBLE = "I'm having a bit of trouble right now. Please try again."

_OWNERS = frozenset(
    {"user", "userid", "useruuid", "uid", "username", "owner", "ownerid", "owneruserid"}
    | {"asuser", "foruser", "onbehalfof", "actas", "impersonate", "runas", "currentuser"}
    | {"targetuser", "appuserid", "tenant", "tenantid", "principal", "principalid"}
    | {"meta", "binding", "bridlebinding", "conversationid"}
)
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool as the model sees it. `parameters` is a JSON Schema without a user."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=dict)
    reads: bool = False  # changes nothing
    deletes: bool = False  # takes something away for good


class ToolSource(Protocol):
    """Where the tools of a chat come from. `call` does not raise errors of a tool or its server."""

    async def list(self) -> tuple[ToolInfo, ...]:
        """Return the tools in order. Raise `ToolError` if they cannot be reached."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Call a tool for the user of the binding. Return a typed result."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


def success(data: Any) -> dict[str, Any]:
    """Return a typed result of success."""
    return {"success": True, "data": data}


def failure(code: Code, message: str, **more: Any) -> dict[str, Any]:
    """Return a typed result of failure. The message is a sentence for a person."""
    return {"success": False, "error": {"code": code, "message": message, **more}}


def is_result(value: object) -> bool:
    """Is it a typed result?"""
    if not isinstance(value, dict):
        return False
    if value.get("success") is True:
        return "data" in value
    error = value.get("error")
    named = isinstance(error, dict) and error.get("code") in CODES
    return value.get("success") is False and named


def is_owner_word(name: str) -> bool:
    """Would an argument of that name name a user, however it is written?"""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(character for character in plain if character.isalnum()) in _OWNERS


def owner_words(arguments: object) -> list[str]:
    """Return the argument names, at any depth, that would name a user."""
    return list(_owner_words(arguments, 0))


def _owner_words(value: object, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield "…"  # nobody honest nests so deep
    elif isinstance(value, dict):
        for name, inner in value.items():
            if is_owner_word(str(name)):
                yield str(name)
            yield from _owner_words(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _owner_words(inner, depth + 1)
