"""The servers of one engine, as a source of tools that come and go.

Offered without starting anything: what is known of each server from before, and one small tool,
`mcp`, which finds the rest. Of a server with very many tools only those that were looked for.
"""

import asyncio
from collections.abc import Iterable

from bridle.protocols.tool import Tool
from bridle.tools.mcp.definition import Definition, difference
from bridle.tools.mcp.finder import Finder
from bridle.tools.mcp.naming import spelled
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.tool import RemoteTool
from bridle.workspace.text import one_line

MOST, MOST_CHARACTERS = 60, 100_000  # of one server; above that, those that were looked for
IN_ALL, CHARACTERS_IN_ALL = 150, 250_000


class Servers:
    """A `ToolSource`. `elicits`: calls bring somebody along whom a server may ask."""

    def __init__(self, servers: Iterable[Server], *, elicits: bool = False) -> None:
        self.servers = {server.name: server for server in servers}
        self._version = 1
        self._offered: tuple[Tool, ...] | None = None
        for server in self.servers.values():
            server.changed = self._change
            server.elicits = elicits

    @property
    def version(self) -> int:
        """Another number whenever `tools` gives others."""
        return self._version

    def tools(self) -> tuple[Tool, ...]:
        """Those that are known now. Starts nothing, and waits for nothing."""
        if not self.servers:
            return ()
        if self._offered is None:
            found: list[RemoteTool] = []
            for server in self.servers.values():
                mine = self.offered(server)
                if _fit(found + mine, IN_ALL, CHARACTERS_IN_ALL):
                    found += mine
            self._offered = (Finder(self), *found)
        return self._offered

    def offered(self, server: Server) -> list[RemoteTool]:
        """The tools of a server that the model is told of."""
        tools = self.all_of(server)
        if _fit(tools, MOST, MOST_CHARACTERS):
            return tools
        by_name = {tool.definition.name: tool for tool in tools}
        found: list[RemoteTool] = []
        for name in reversed(server.wanted):  # the latest first
            tool = by_name.get(name)
            if tool is not None and _fit([*found, tool], MOST, MOST_CHARACTERS):
                found.append(tool)
        return found[::-1]

    def all_of(self, server: Server) -> list[RemoteTool]:
        """Every tool of a server that can be used."""
        known = server.definitions
        names = spelled(server.name, known)
        return [
            RemoteTool(names[one.name], one, server, _care(server, one))
            for one in known.values()
            if not one.problem
        ]

    def _change(self) -> None:
        self._version += 1
        self._offered = None

    async def close(self) -> None:
        """Leave nothing running."""
        await asyncio.gather(*(server.close() for server in self.servers.values()))


def _fit(tools: list[RemoteTool], most: int, characters: int) -> bool:
    """Can a model be told of all of them without being swamped?"""
    size = sum(tool.definition.size + len(tool.name) for tool in tools)
    return len(tools) <= most and size <= characters


def _care(server: Server, one: Definition) -> str:
    """Why a person has to look at it first; empty where it is what was accepted."""
    old = server.pinned.get(one.name)
    if old is not None and old.digest == one.digest:
        return ""
    name = one_line(one.name)
    if old is None:
        return f"{server.name} did not have {name} when its tools were accepted"
    return f"what {server.name} says of {name} has changed: {difference(old, one)}"
