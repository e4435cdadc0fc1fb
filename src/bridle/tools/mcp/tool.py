"""A tool of a server, as the engine sees it. Its effect is unknown, whatever its server says.

Where its definition is not the one that was accepted, `care` says what differs: no rule allows it
then, and a person is asked.
"""

from typing import TYPE_CHECKING, Any

from bridle.policy import Act, Facts, ToolPolicy
from bridle.promises.tool import ToolContext, ToolResult
from bridle.tools.mcp.definition import Definition

if TYPE_CHECKING:
    from bridle.tools.mcp.server import Server

POLICY = ToolPolicy()  # unknown effect: it asks
_MOST, _LONGEST = 100, 4_000  # words of a call, and characters of one, that rules are held against


class RemoteTool:
    """One tool of one server."""

    policy = POLICY

    def __init__(self, name: str, definition: Definition, server: "Server", care: str = "") -> None:
        self.name = name
        self.definition = definition
        self.care = care
        self.server = server

    @property
    def description(self) -> str:
        """What the server says of it, made harmless."""
        return self.definition.description or f"{self.definition.name} of {self.server.name}"

    @property
    def parameters(self) -> dict[str, Any]:
        """What it takes."""
        return self.definition.parameters

    def facts(self, arguments: dict[str, Any]) -> Facts:
        """What is known of a call: hardly anything, and that it takes care where it changed.

        What a rule's pattern is held against are the words of the call, each by itself, and only
        to forbid or to ask: how the server reads them, as a path or otherwise, nobody knows.
        """
        reason = f"what {self.definition.name} of {self.server.name} does is not known here"
        act = Act((self.name,), reason=reason, also=_words(arguments))
        return Facts(POLICY, acts=(act,), guard=self.care)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Have the server do it."""
        return await self.server.call(self.definition, arguments, context)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"


def _words(arguments: dict[str, Any]) -> tuple[str, ...]:
    """The texts among the arguments, however deep they lie."""
    found: list[str] = []
    waiting: list[Any] = [arguments]
    while waiting and len(found) < _MOST:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one[:_LONGEST])
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return tuple(dict.fromkeys(found))
