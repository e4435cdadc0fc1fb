"""Toolboxes and connections in terms of the official MCP SDK. Imports the SDK.

`admit` decides from the request's `_meta` alone for whom a call runs; an admitted call is applied
in a worker thread.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import msgspec
from mcp import Client, StdioServerParameters
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from bridle import __version__
from bridle.chat.errors import TROUBLE
from bridle.chat.tools.identity import BINDING_KEY, Binding, BindingRefused, Signer, parse_binding
from bridle.chat.tools.source import ToolInfo, failure, is_result
from bridle.chat.tools.toolbox import Tool, Toolbox

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Apply = Callable[[str, dict[str, Any], Binding], Awaitable[dict[str, Any]]]
Admit = Callable[[Mapping[str, Any], str, dict[str, Any]], Binding]


def build_server(toolbox: Toolbox, apply: Apply, admit: Admit) -> Server[Any]:
    """Build a server of the SDK that offers the tools."""
    listed = [_to_mcp_tool(one) for one in toolbox]

    async def on_list(
        ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def on_call(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if toolbox.get(params.name) is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:80]!r}")
        arguments = params.arguments or {}
        try:
            binding = admit(params.meta or {}, params.name, arguments)
        except BindingRefused as error:
            _log.warning("a call of %s was refused: %s", params.name, error.message)
            raise MCPError(types.INVALID_REQUEST, f"refused: {error.message}") from None
        return _to_mcp_result(await apply(params.name, arguments, binding))

    return Server(
        toolbox.name,
        version=__version__,
        instructions=toolbox.instructions or None,
        get_tool_input_schema=lambda name: _schema(toolbox.get(name)),
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


def admit_in_process(meta: Mapping[str, Any], tool: str, arguments: dict[str, Any]) -> Binding:
    """Trust the binding: within one process nobody else can send it."""
    return parse_binding(meta.get(BINDING_KEY))


def admit_signed(signer: Signer) -> Admit:
    """Require a binding that is signed for exactly this call."""
    return lambda meta, tool, arguments: signer.check(meta.get(BINDING_KEY), tool, arguments)


def admit_user(binding: Binding) -> Admit:
    """Run every call for this user, who started the server."""

    def admit(meta: Mapping[str, Any], tool: str, arguments: dict[str, Any]) -> Binding:
        if BINDING_KEY in meta:
            raise BindingRefused("this server serves a single user, and accepts no bindings")
        return binding

    return admit


def to_tool_info(tool: types.Tool) -> ToolInfo:
    """Convert a tool that a server listed."""
    notes = tool.annotations or types.ToolAnnotations()
    return ToolInfo(
        tool.name,
        tool.description or "",
        dict(tool.input_schema),
        bool(notes.read_only_hint),
        bool(notes.destructive_hint) and not notes.read_only_hint,
    )


def parse_result(found: types.CallToolResult) -> dict[str, Any]:
    """Return the typed result of a server's answer; a failure if it is not one."""
    data = found.structured_content
    if data is None:
        data = _text(found)
    return dict(data) if is_result(data) else failure("processing_error", TROUBLE)


def _text(found: types.CallToolResult) -> Any:
    texts = [one.text for one in found.content if isinstance(one, types.TextContent)]
    try:
        return msgspec.json.decode("".join(texts))
    except msgspec.DecodeError:
        return None


def _schema(tool: Tool | None) -> dict[str, Any] | None:
    return None if tool is None else tool.info.parameters


def _to_mcp_tool(tool: Tool) -> types.Tool:
    info = tool.info
    return types.Tool(
        name=info.name,
        description=info.description,
        input_schema=info.parameters,
        annotations=types.ToolAnnotations(
            read_only_hint=info.reads, destructive_hint=info.deletes, open_world_hint=False
        ),
    )


def _to_mcp_result(found: dict[str, Any]) -> types.CallToolResult:
    text = msgspec.json.encode(found).decode()
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=found,
        is_error=not found["success"],
    )


_CONNECTING = 5.0  # seconds


class _MessageLogFilter(logging.Filter):
    """Drops log lines of the SDK that contain whole messages, and so the user's id."""

    def filter(self, record: logging.LogRecord) -> bool:
        """May this line be logged?"""
        return not str(record.msg).startswith(("Sending client message", "SSE message"))


logging.getLogger("mcp.client.streamable_http").addFilter(_MessageLogFilter())


def connect_program(command: Sequence[str], environ: Mapping[str, str]) -> Client:
    """Return a client for a program, which it starts and stops."""
    started = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(environ))
    return Client(started, cache=None)


def connect_http(url: str, token: str) -> Client:
    """Return a client for an HTTP address."""
    return Client(_http_streams(url, token), cache=None)


@asynccontextmanager
async def _http_streams(url: str, token: str) -> AsyncIterator[TransportStreams]:
    headers = {"Authorization": f"Bearer {token}"}
    timeout = httpx2.Timeout(30.0, connect=_CONNECTING)
    async with (
        create_mcp_http_client(headers=headers, timeout=timeout) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams
