"""A tool of a server, as the engine sees it. Its effect is unknown, whatever its server says.

Where its definition is not the one that was accepted, `care` says what differs: no rule allows it
then, and a person is asked.
"""

from typing import TYPE_CHECKING, Any

from bridle.policy import Facts, ToolPolicy
from bridle.protocols.spoken import unknown
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.mcp.definition import Definition

if TYPE_CHECKING:
    from bridle.tools.mcp.server import Server

POLICY = ToolPolicy()  # unknown effect: it asks


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
        """What is known of a call: its words, and that it takes care where it changed."""
        reason = f"what {self.definition.name} of {self.server.name} does is not known here"
        return unknown(self.name, arguments, reason=reason, guard=self.care)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Have the server do it."""
        return await self.server.call(self.definition, arguments, context)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"
