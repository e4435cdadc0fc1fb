"""Offers brought to the official SDK: which tools there are, a call of one, progress meanwhile.

Knows the protocol's words and offers; what an offer does is its own business. Imports the SDK.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from bridle import __version__
from bridle.errors import AgentError
from bridle.server.mcp.schemas import Caller, Reply, ToolOffer, error_reply
from bridle.workspace.text import one_line

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
_AHEAD = 64  # words of progress that wait for a slow reader; more are dropped
_PATIENCE = 1.0  # seconds for the last of them


def create_server(offers: Iterable[ToolOffer[Any]], instructions: str = "") -> Server[Any]:
    """A server of the SDK that offers these."""
    table = {offer.name: offer for offer in offers}
    listed = [_listed(offer) for offer in table.values()]

    async def on_list(
        ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def on_call(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        offer = table.get(params.name)
        if offer is None:
            names = ", ".join(table)
            said = f"there is no tool {params.name[:80]!r}; there are {names}"
            raise MCPError(types.INVALID_PARAMS, said)
        return await _called(offer, params.arguments or {}, ctx)

    return Server(
        "bridle",
        version=__version__,
        title="bridle",
        instructions=instructions or None,
        get_tool_input_schema=lambda name: table[name].parameters if name in table else None,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


def _listed(offer: ToolOffer[Any]) -> types.Tool:
    return types.Tool(
        name=offer.name,
        description=offer.description,
        input_schema=offer.parameters,
        annotations=types.ToolAnnotations(read_only_hint=offer.reads, open_world_hint=False),
    )


async def _called(
    offer: ToolOffer[Any], arguments: dict[str, Any], ctx: Context
) -> types.CallToolResult:
    """One call, with its progress sent beside it."""
    words: asyncio.Queue[str] = asyncio.Queue(_AHEAD)

    def tell(text: str) -> None:
        if not words.full():
            words.put_nowait(one_line(text, 200))

    async with anyio.create_task_group() as beside:
        beside.start_soon(_send, words, ctx)
        reply = await _run(offer, arguments, Caller(client_name(ctx), tell))
        with anyio.move_on_after(_PATIENCE):
            await words.join()
        beside.cancel_scope.cancel()
    return _result(reply)


async def _run(offer: ToolOffer[Any], arguments: dict[str, Any], caller: Caller) -> Reply:
    try:
        return await offer.run(arguments, caller)
    except AgentError as error:
        return error_reply(error)
    except Exception:  # the edge: whoever called is told in a sentence, our own people find it here
        log.exception("the tool %s broke", offer.name)
        return Reply(("Something broke inside bridle; its log on stderr says what.",), None, True)


async def _send(words: "asyncio.Queue[str]", ctx: Context) -> None:
    """Progress, in order; a caller who wants none is sent none."""
    count = 0
    while True:
        text = await words.get()
        count += 1
        try:
            await ctx.session.report_progress(count, None, text)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError):
            log.debug("nobody listens to progress any more")
        finally:
            words.task_done()


def _result(reply: Reply) -> types.CallToolResult:
    content: Sequence[Any] = reply.content or (_written(reply.data or {}),)
    blocks = [types.TextContent(text=one) if isinstance(one, str) else one for one in content]
    return types.CallToolResult(
        content=blocks, structured_content=reply.data, is_error=reply.is_error
    )


def _written(data: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def client_name(ctx: Context) -> str:
    """Who calls, in the log's words. They name themselves, so that it can be nobody's login."""
    params = ctx.session.client_params
    said = one_line(params.client_info.name, 60) if params is not None else ""
    return f"mcp:{said or 'client'}"
