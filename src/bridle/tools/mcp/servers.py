"""The MCP servers of one engine as a source of tools, and the tool `mcp`, which finds more of them.

Without starting any server, it offers the tools that are known from before. Of a server with very
many tools, only those are offered that the model has looked for with `mcp`.

To list what there is changes nothing; it starts a server if need be. To read a resource or get a
prompt sends words of the model's choice to the server, and what that does there is unknown: it
asks.
"""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bridle.errors import AgentError, ToolError
from bridle.policy import Act, Does, Facts, ToolPolicy
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.tool import (
    RemoteTool,
    ToolDefinition,
    describe_change,
    limit_text,
    parse_picture,
    resource_text,
    tool_names,
)
from bridle.workspace.text import one_line

# If a server has more, only those are offered that the model has looked for.
_MAX_TOOLS, _MAX_CHARACTERS = 60, 100_000
_MAX_TOOLS_IN_ALL, _MAX_CHARACTERS_IN_ALL = 150, 250_000
_LIST_ACTIONS = ("servers", "tools", "resources", "prompts")
_GET_ACTIONS = ("read", "prompt")
_ARGUMENT = {"read": "uri", "prompt": "name"}  # what each of these needs
_MAX_SERVERS = 40  # that the description names
_MAX_LISTED = 60  # tools
_MAX_MATCHES = 15  # tools that a query finds and that are offered from then on
_TEXT = {"type": "string", "minLength": 1}
_WORD = re.compile(r"[^\W_]+")


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
        for name in reversed(server.requested_tools):  # the latest first
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


class McpTool:
    """Lists what servers have, reads resources and gets prompts."""

    name = "mcp"
    policy = ToolPolicy()
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": [*_LIST_ACTIONS, *_GET_ACTIONS]},
            "server": {**_TEXT, "description": "The name of a server."},
            "query": {**_TEXT, "description": "Words that describe a tool."},
            "uri": {**_TEXT, "description": "The resource to read."},
            "name": {**_TEXT, "description": "The prompt to get."},
            "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["action"],
        "additionalProperties": False,
    }
    _introduction = Path(__file__).with_name("mcp.md").read_text(encoding="utf-8").strip()

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.description = f"{self._introduction}\n\nServers:\n{_overview(servers)}"

    def facts(self, arguments: dict[str, Any]) -> Facts:
        """Return what a call would do: listing reads, everything else asks."""
        action, server = str(arguments.get("action")), str(arguments.get("server", ""))
        does: Does = "reads" if action in _LIST_ACTIONS else "changes"
        unused = sorted({"uri", "name"} & arguments.keys() - {_ARGUMENT.get(action)})
        if unused and does != "reads":  # what is judged has to be what is requested
            return Facts(self.policy, floor=f"`{action}` takes no `{unused[0]}`")
        argument = arguments.get(_ARGUMENT.get(action, ""), "")
        subject = " ".join(filter(None, (action, server, str(argument))))
        reason = "" if does == "reads" else f"what {server} does with it is not known here"
        return Facts(self.policy, acts=(Act((self.name,), subject, does, reason),))

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Do what `action` says. Raise `ToolError`."""
        action = arguments["action"]
        if action == "servers":
            return ToolResult.success(text=_overview(self._servers))
        if action == "tools":
            return await self._list_tools(arguments)
        server = self._server(arguments)
        if action == "resources":
            return await _list_resources(server, context)
        if action == "prompts":
            return await _list_prompts(server, context)
        argument = arguments.get(_ARGUMENT[action])
        if not isinstance(argument, str):
            raise ToolError(f"{action} needs `{_ARGUMENT[action]}`.")
        if action == "read":
            return await _read_resource(server, argument, context)
        return await _get_prompt(server, argument, arguments.get("arguments"), context)

    def _server(self, arguments: dict[str, Any]) -> Server:
        server = self._servers.servers.get(arguments.get("server", ""))
        if server is None:
            raise ToolError(f"Name one of these servers: {', '.join(self._servers.servers)}.")
        return server

    async def _list_tools(self, arguments: dict[str, Any]) -> ToolResult:
        """List the tools of one server, or those of all that match the query."""
        query = arguments.get("query", "")
        if "server" in arguments:
            servers = [self._server(arguments)]
            problems = await _connect(servers)
            if problems:
                raise ToolError(problems[0])
        else:
            if not query:
                raise ToolError("Name a server, or describe the tool in `query`.")
            servers = list(self._servers.servers.values())
            problems = await _connect([server for server in servers if not server.is_known])
        tools = [tool for server in servers for tool in self._servers.usable_tools(server)]
        if query:
            tools = _best_matches(tools, query)
            for server in servers:
                if names := [tool.definition.name for tool in tools if tool.server is server]:
                    server.add_requested_tools(names)
        offered = {tool.name for tool in self._servers.tools()}
        lines = []
        for tool in tools[:_MAX_LISTED]:
            note = (
                ""
                if tool.name in offered
                else "  (search for it with `query` to be able to call it)"
            )
            lines.append(f"{tool.name}: {one_line(tool.description, 160)}{note}")
        if len(tools) > _MAX_LISTED:
            lines.append(f"… and {len(tools) - _MAX_LISTED} more; use `query` to find them.")
        return ToolResult.success(
            text="\n".join([*(lines or ["There is no such tool."]), *problems])
        )


def _overview(servers: Servers) -> str:
    """Return a line about each server: what is known about it."""
    lines = []
    for server in list(servers.servers.values())[:_MAX_SERVERS]:
        usable = [tool for tool in server.definitions.values() if not tool.problem]
        offered = len(servers.offered_tools(server))
        if server.problem:
            state = f"cannot be used: {one_line(server.problem, 120)}"
        elif not server.is_known:
            state = "its tools are not known yet"
        elif offered < len(usable):
            state = f"{len(usable)} tools, of which {offered} are offered; search for others"
        else:
            state = f"{len(usable)} tools, all offered"
        lines.append(f"- {server.name}: {state}")
    return "\n".join(lines)


async def _connect(servers: list[Server]) -> list[str]:
    """Connect to them in parallel. Return what went wrong."""

    async def connect(server: Server) -> str:
        try:
            await server.connect()
        except AgentError as error:
            return str(error)  # with what to install, if that is the problem
        return ""

    return [problem for problem in await asyncio.gather(*map(connect, servers)) if problem]


def _best_matches(tools: list[RemoteTool], query: str) -> list[RemoteTool]:
    """Return the tools that have most of the words; those in names count more."""
    words = {word.lower() for word in _WORD.findall(query)}

    def score(tool: RemoteTool) -> int:
        name, description = tool.name.lower(), tool.description.lower()
        return sum(4 * (word in name) + (word in description) for word in words)

    scores = [(score(tool), tool) for tool in tools]
    matches = sorted((pair for pair in scores if pair[0]), key=lambda pair: -pair[0])
    return [tool for _, tool in matches[:_MAX_MATCHES]]


async def _list_resources(server: Server, context: ToolContext[Any]) -> ToolResult:
    resources = await server.ask(lambda connection: connection.resources())
    lines = []
    for resource in resources:
        uri = one_line(
            str(getattr(resource, "uri", None) or getattr(resource, "uri_template", "")), 400
        )
        lines.append(f"{uri}: {one_line(resource.description or resource.name, 160)}")
    return await _text_result(lines or ["It has no resources."], context)


async def _list_prompts(server: Server, context: ToolContext[Any]) -> ToolResult:
    prompts = await server.ask(lambda connection: connection.prompts())
    lines = []
    for prompt in prompts:
        parameters = ", ".join(one_line(argument.name) for argument in prompt.arguments or ())
        description = one_line(prompt.description or "", 160)
        lines.append(f"{one_line(prompt.name)}({parameters}): {description}")
    return await _text_result(lines or ["It has no prompts."], context)


async def _read_resource(server: Server, uri: str, context: ToolContext[Any]) -> ToolResult:
    result = await server.ask(lambda connection: connection.client.read_resource(uri), context.ask)
    blobs = [getattr(content, "blob", "") for content in result.contents]
    pictures = tuple(filter(None, map(parse_picture, filter(None, blobs[:8]))))
    text = await limit_text("\n".join(map(resource_text, result.contents)), context)
    return ToolResult(True, text or "It is empty.", media=pictures)


async def _get_prompt(
    server: Server, name: str, arguments: dict[str, str] | None, context: ToolContext[Any]
) -> ToolResult:
    result = await server.ask(
        lambda connection: connection.client.get_prompt(name, arguments), context.ask
    )
    lines = []
    for message in result.messages:
        content = message.content
        text = getattr(content, "text", None) or f"[{one_line(content.type)}]"
        lines.append(f"{message.role}: {text}")
    return await _text_result(lines or ["It is empty."], context)


async def _text_result(lines: list[str], context: ToolContext[Any]) -> ToolResult:
    return ToolResult.success(text=await limit_text("\n".join(lines), context))
