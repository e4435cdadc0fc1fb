"""A toolbox brought to the official SDK: which tools there are, and a call of one.

Knows the protocol's words. For whom a call runs is decided by `admit`, from the request's `_meta`
alone; what is admitted is applied in a worker thread. Imports the SDK.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from bridle import __version__
from bridle.chat.binding import KEY, Binding, BindingRefused, Seal, read_binding
from bridle.chat.toolbox import Tool, Toolbox
from bridle.chat.tools import TROUBLE, ToolInfo, failed, is_result

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Apply = Callable[[str, dict[str, Any], Binding], Awaitable[dict[str, Any]]]
Admit = Callable[[Mapping[str, Any], str, dict[str, Any]], Binding]


def serving(toolbox: Toolbox, apply: Apply, admit: Admit) -> Server[Any]:
    """A server of the SDK that offers the tools."""
    listed = [_listed(one) for one in toolbox]

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
            log.warning("a call of %s was refused: %s", params.name, error.message)
            raise MCPError(types.INVALID_REQUEST, f"refused: {error.message}") from None
        return _result(await apply(params.name, arguments, binding))

    return Server(
        toolbox.name,
        version=__version__,
        instructions=toolbox.instructions or None,
        get_tool_input_schema=lambda name: _schema(toolbox.get(name)),
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


def trusting(meta: Mapping[str, Any], tool: str, arguments: dict[str, Any]) -> Binding:
    """In the same process the binding is taken as it is: nobody else can speak there."""
    return read_binding(meta.get(KEY))


def sealed(seal: Seal) -> Admit:
    """From anywhere else it has to be signed, for this very call."""
    return lambda meta, tool, arguments: seal.check(meta.get(KEY), tool, arguments)


def bound_to(binding: Binding) -> Admit:
    """Every call is this user's, whatever it says: whoever started the server is that user."""

    def admit(meta: Mapping[str, Any], tool: str, arguments: dict[str, Any]) -> Binding:
        if KEY in meta:
            raise BindingRefused("this server is bound to its own user")
        return binding

    return admit


def told(tool: types.Tool) -> ToolInfo:
    """A tool that a server listed, as a model is told of it."""
    notes = tool.annotations or types.ToolAnnotations()
    return ToolInfo(
        tool.name,
        tool.description or "",
        dict(tool.input_schema),
        bool(notes.read_only_hint),
        bool(notes.destructive_hint) and not notes.read_only_hint,
    )


def read_result(found: types.CallToolResult) -> dict[str, Any]:
    """The typed result in what a server answered; anything else is none."""
    data = found.structured_content
    if data is None:
        data = _text(found)
    return dict(data) if is_result(data) else failed("processing_error", TROUBLE)


def _text(found: types.CallToolResult) -> Any:
    texts = [one.text for one in found.content if isinstance(one, types.TextContent)]
    try:
        return msgspec.json.decode("".join(texts))
    except msgspec.DecodeError:
        return None


def _schema(tool: Tool | None) -> dict[str, Any] | None:
    return None if tool is None else tool.info.parameters


def _listed(tool: Tool) -> types.Tool:
    info = tool.info
    return types.Tool(
        name=info.name,
        description=info.description,
        input_schema=info.parameters,
        annotations=types.ToolAnnotations(
            read_only_hint=info.reads, destructive_hint=info.deletes, open_world_hint=False
        ),
    )


def _result(found: dict[str, Any]) -> types.CallToolResult:
    text = msgspec.json.encode(found).decode()
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=found,
        is_error=not found["success"],
    )
