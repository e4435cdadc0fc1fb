"""How the tool `mcp` looks: several servers side by side, each at its own risk."""

import asyncio
import re
from typing import TYPE_CHECKING, Any

from bridle.errors import AgentError, ToolError
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.mcp.result import fit, picture_of, resource_text
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.tools.mcp.server import Server
    from bridle.tools.mcp.servers import Servers
    from bridle.tools.mcp.tool import RemoteTool

_LISTED = 60
_FOUND = 15  # tools that one look has offered
_WORD = re.compile(r"[^\W_]+")


class Looking:
    """One call of the tool."""

    def __init__(
        self, servers: "Servers", arguments: dict[str, Any], context: ToolContext[Any]
    ) -> None:
        self._servers = servers
        self._arguments = arguments
        self._context = context

    async def obey(self) -> ToolResult:
        """Do what was asked for. Raise `ToolError`."""
        action = self._arguments["action"]
        if action == "servers":
            return ToolResult.success(text=self._overview())
        if action == "tools":
            return await self._tools()
        server = self._server()
        if action == "resources":
            return await self._resources(server)
        if action == "prompts":
            return await self._prompts(server)
        return await (self._read(server) if action == "read" else self._prompt(server))

    def _overview(self) -> str:
        tool = self._servers.tools()[0]
        return tool.description.partition("\n\nServers:\n")[2]

    def _server(self) -> "Server":
        name = self._arguments.get("server")
        found = self._servers.servers.get(name) if name else None
        if found is None:
            known = ", ".join(self._servers.servers)
            raise ToolError(f"Name one of these servers: {known}.")
        return found

    def _needed(self, key: str) -> str:
        found = self._arguments.get(key)
        if not isinstance(found, str):
            raise ToolError(f"{self._arguments['action']} needs `{key}`.")
        return found

    async def _tools(self) -> ToolResult:
        one = "server" in self._arguments
        asked = [self._server()] if one else list(self._servers.servers.values())
        query = self._arguments.get("query", "")
        if not one and not query:
            raise ToolError("Name a server, or say what you look for in `query`.")
        troubles = await self._connect(asked if one else [s for s in asked if not s.is_known])
        if one and troubles:
            raise ToolError(troubles[0])
        found = [tool for server in asked for tool in self._servers.all_of(server)]
        chosen = _best(found, query) if query else found
        return ToolResult.success(text="\n".join([*self._offer(chosen, query), *troubles]))

    async def _connect(self, servers: "list[Server]") -> list[str]:
        """Connect them side by side; what went wrong with which."""

        async def connect(server: "Server") -> str:
            try:
                await server.connected()
            except AgentError as error:
                return str(error)  # with what to install, if that is all
            return ""

        return [said for said in await asyncio.gather(*map(connect, servers)) if said]

    def _offer(self, chosen: "list[RemoteTool]", query: str) -> list[str]:
        """Have them offered where they are not, and say what there is."""
        for server in self._servers.servers.values():
            mine = [tool.definition.name for tool in chosen if tool.server is server]
            if mine and query:
                server.want(mine[:_FOUND])
        offered = {tool.name for tool in self._servers.tools()}
        lines = []
        for tool in chosen[:_LISTED]:
            mark = "" if tool.name in offered else "  (look for it by `query` to have it offered)"
            lines.append(f"{tool.name}: {one_line(tool.description, 160)}{mark}")
        if len(chosen) > _LISTED:
            lines.append(f"… and {len(chosen) - _LISTED} more; look for some of them by `query`.")
        return lines or ["There is no such tool."]

    async def _resources(self, server: "Server") -> ToolResult:
        found = await server.ask(lambda connection: connection.resources())
        lines = []
        for one in found:
            uri = getattr(one, "uri", None) or getattr(one, "uri_template", "")
            lines.append(f"{one_line(str(uri), 400)}: {one_line(one.description or one.name, 160)}")
        return await self._listed(lines, "It has no resources.")

    async def _prompts(self, server: "Server") -> ToolResult:
        found = await server.ask(lambda connection: connection.prompts())
        lines = []
        for one in found:
            takes = ", ".join(one_line(arg.name) for arg in one.arguments or ())
            lines.append(f"{one_line(one.name)}({takes}): {one_line(one.description or '', 160)}")
        return await self._listed(lines, "It has no prompts.")

    async def _listed(self, lines: list[str], none: str) -> ToolResult:
        return ToolResult.success(text=await fit("\n".join(lines) or none, self._context))

    async def _read(self, server: "Server") -> ToolResult:
        uri = self._needed("uri")
        found = await server.ask(
            lambda connection: connection.client.read_resource(uri), self._context.ask
        )
        blobs = [getattr(one, "blob", "") for one in found.contents]
        pictures = tuple(filter(None, map(picture_of, filter(None, blobs[:8]))))
        text = await fit("\n".join(map(resource_text, found.contents)), self._context)
        return ToolResult(True, text or "It is empty.", media=pictures)

    async def _prompt(self, server: "Server") -> ToolResult:
        name, given = self._needed("name"), self._arguments.get("arguments")
        found = await server.ask(
            lambda connection: connection.client.get_prompt(name, given), self._context.ask
        )
        lines = []
        for one in found.messages:
            content = one.content
            said = getattr(content, "text", None) or f"[{one_line(content.type)}]"
            lines.append(f"{one.role}: {said}")
        return await self._listed(lines, "It is empty.")


def _best(tools: "list[RemoteTool]", query: str) -> "list[RemoteTool]":
    """Those that have the most of the words, in their names before their descriptions."""
    words = {word.lower() for word in _WORD.findall(query)}
    scored = [(_score(tool, words), tool) for tool in tools]
    found = sorted((one for one in scored if one[0]), key=lambda one: -one[0])
    return [tool for _, tool in found[:_FOUND]]


def _score(tool: "RemoteTool", words: set[str]) -> int:
    name, said = tool.name.lower(), tool.description.lower()
    return sum(4 * (word in name) + (word in said) for word in words)
