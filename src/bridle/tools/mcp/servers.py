"""The servers of one engine, as a source of tools that come and go.

Without starting any of them it offers what is known about each from before, and the small tool
`mcp`, which finds the rest. Of a server with very many tools only those are offered that the model
has looked for.
"""

import asyncio
from collections.abc import Iterable

from bridle.protocols.tool import Tool
from bridle.tools.mcp.mcp_tool import McpTool
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.tool import RemoteTool, ToolDefinition, describe_change, tool_names
from bridle.workspace.text import one_line

# If a server has more, only those are offered that the model has looked for.
_MAX_TOOLS, _MAX_CHARACTERS = 60, 100_000
_MAX_TOOLS_IN_ALL, _MAX_CHARACTERS_IN_ALL = 150, 250_000


class Servers:
    """A `ToolSource`. `elicits`: servers may ask the person, through the context of a call."""

    def __init__(self, servers: Iterable[Server], *, elicits: bool = False) -> None:
        self.servers = {server.name: server for server in servers}
        self._version = 1
        self._tools: tuple[Tool, ...] | None = None
        for server in self.servers.values():
            server.on_change = self._note_change
            server.elicits = elicits

    @property
    def version(self) -> int:
        """A number that changes whenever `tools` does."""
        return self._version

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that are offered now. Starts nothing, and waits for nothing."""
        if not self.servers:
            return ()
        if self._tools is None:
            tools: list[RemoteTool] = []
            for server in self.servers.values():
                offered = self.offered_tools(server)
                if _fits(tools + offered, _MAX_TOOLS_IN_ALL, _MAX_CHARACTERS_IN_ALL):
                    tools += offered
            self._tools = (McpTool(self), *tools)
        return self._tools

    def offered_tools(self, server: Server) -> list[RemoteTool]:
        """Return the tools of a server that the model is told about."""
        tools = self.usable_tools(server)
        if _fits(tools, _MAX_TOOLS, _MAX_CHARACTERS):
            return tools
        by_name = {tool.definition.name: tool for tool in tools}
        offered: list[RemoteTool] = []
        for name in reversed(server.wanted):  # the latest first
            tool = by_name.get(name)
            if tool is not None and _fits([*offered, tool], _MAX_TOOLS, _MAX_CHARACTERS):
                offered.append(tool)
        return offered[::-1]

    def usable_tools(self, server: Server) -> list[RemoteTool]:
        """Return every tool of a server that can be used."""
        definitions = server.definitions
        names = tool_names(server.name, definitions)
        return [
            RemoteTool(names[definition.name], definition, server, _warning(server, definition))
            for definition in definitions.values()
            if not definition.problem
        ]

    def _note_change(self) -> None:
        self._version += 1
        self._tools = None

    async def close(self) -> None:
        """Stop all servers."""
        await asyncio.gather(*(server.close() for server in self.servers.values()))


def _fits(tools: list[RemoteTool], max_tools: int, max_characters: int) -> bool:
    """Return whether a model can be told about all of them."""
    size = sum(tool.definition.size + len(tool.name) for tool in tools)
    return len(tools) <= max_tools and size <= max_characters


def _warning(server: Server, definition: ToolDefinition) -> str:
    """Say why a person has to look at a tool first; empty if it is as it was accepted."""
    accepted = server.pinned.get(definition.name)
    if accepted is not None and accepted.digest == definition.digest:
        return ""
    name = one_line(definition.name)
    if accepted is None:
        return f"{server.name} did not have {name} when its tools were accepted"
    change = describe_change(accepted, definition)
    return f"what {server.name} says about {name} has changed: {change}"
