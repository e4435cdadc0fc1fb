"""The servers of one engine, as a source of tools that come and go.

Offered without starting anything: what is known of each server from before, and one small tool,
`mcp`, which finds the rest. Of a server with very many tools only those that were looked for.
"""

import asyncio
from collections.abc import Iterable

from bridle.promises.tool import Tool
from bridle.tools.mcp.definition import Definition, difference
from bridle.tools.mcp.finder import Finder
from bridle.tools.mcp.naming import spelled
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.tool import RemoteTool
from bridle.workspace.text import one_line

MOST = 60  # tools of one server that are all offered
MOST_IN_ALL = 150


class Servers:
    """A `ToolSource`. `elicits`: calls bring somebody along whom a server may ask."""

    def __init__(self, servers: Iterable[Server], *, elicits: bool = False) -> None:
        self.servers = {server.name: server for server in servers}
        self._version = 1
        self._offered: tuple[Tool, ...] | None = None
        self._finder = 0
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
            found: list[Tool] = [Finder(self)]
            for server in self.servers.values():
                mine = self.offered(server)
                if len(found) + len(mine) <= MOST_IN_ALL:
                    found += mine
            self._offered = tuple(found)
        return self._offered

    def offered(self, server: Server) -> list[RemoteTool]:
        """The tools of a server that the model is told of."""
        tools = self.all_of(server)
        if len(tools) <= MOST:
            return tools
        wanted = set(server.wanted[-MOST:])
        return [tool for tool in tools if tool.definition.name in wanted]

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


def _care(server: Server, one: Definition) -> str:
    """Why a person has to look at it first; empty where it is what was accepted."""
    old = server.pinned.get(one.name)
    if old is not None and old.digest == one.digest:
        return ""
    name = one_line(one.name)
    if old is None:
        return f"{server.name} did not have {name} when its tools were accepted"
    return f"what {server.name} says of {name} has changed: {difference(old, one)}"
