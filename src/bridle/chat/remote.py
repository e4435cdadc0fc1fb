"""Tools of another process: a program spoken to by its input and output, or an address by HTTP.

Every call carries its binding, signed for that call. A server that dies is reached anew; what was
under way is asked again only where that can do nothing twice (an operation is applied once, and
a tool that reads changes nothing). Whatever happens, the answer is a typed result.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bridle.chat.binding import KEY, Binding, Seal
from bridle.chat.link import Life, Link
from bridle.chat.tools import TROUBLE, ToolInfo, failed
from bridle.errors import AgentError, ConfigError, ToolError
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from mcp import Client

log = logging.getLogger(__name__)
SECRET = "BRIDLE_CHAT_SECRET"  # in the environment of both sides
_PAGES = 50
_LARGEST = 1 << 18  # bytes of a call


class _Lost(Exception):
    """The connection is gone; what was under way may have happened."""


class RemoteTools:
    """Keeps the promise `ToolSource` over a transport.

    `where` is an address (`http://127.0.0.1:8400/mcp`) or a command as a list of words. A program
    that is started here gets a secret of its own, unless one is given; an address needs one.
    """

    def __init__(
        self,
        where: str | Sequence[str],
        secret: str = "",
        *,
        environ: Mapping[str, str] | None = None,
        timeout: float = 15.0,
    ) -> None:
        if isinstance(where, str) and not secret:
            raise ConfigError(
                "Tools at an address need the secret that signs their calls.",
                hint=f"Give both sides the same {SECRET}.",
            )
        self._where = where if isinstance(where, str) else tuple(where)
        self._secret = secret or secrets.token_hex(32)
        self._seal = Seal(self._secret)
        self._environ = dict(environ or {})
        self._timeout = timeout
        self._link = Link(self._client)
        self._listed: tuple[Life, dict[str, ToolInfo]] | None = None

    async def warm(self) -> None:
        """Connect, so that the first message need not wait for it. A failure shows with a call."""
        try:
            await self._known(self._link.life())
        except _Lost as error:
            log.warning("the tool server cannot be reached yet: %s", error)

    async def list(self) -> tuple[ToolInfo, ...]:
        """The tools. Raise `ToolError` while the server cannot be reached."""
        for again in (True, False):
            life = self._link.life()
            try:
                return tuple((await self._known(life)).values())
            except _Lost as error:
                life.end()
                log.warning("the tool server did not list its tools: %s", error)
                if not again:
                    raise ToolError("the tool server cannot be reached", error) from error
        raise AssertionError("it was asked twice")

    async def call(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Call one of them for the user of the binding; a typed result."""
        if not _can_be_sent(name, arguments):
            return failed("invalid_input", "The arguments cannot be read, or are too long.")
        for again in (True, False):
            life = self._link.life()
            try:
                return await self._once(life, name, arguments, binding)
            except _Lost as error:
                life.end()
                log.warning("the tool server was lost during %s: %s", one_line(name, 60), error)
                if not (again and (binding.operation or self._reads(name))):
                    break
        return failed("processing_error", TROUBLE)

    async def close(self) -> None:
        """Leave nothing running."""
        await self._link.close()

    async def _once(
        self, life: Life, name: str, arguments: dict[str, Any], binding: Binding
    ) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS, REQUEST_TIMEOUT

        from bridle.chat.wire import read_result

        meta = cast("Any", {KEY: self._seal.sign(binding, name, arguments)})
        client = await self._opened(life)
        try:
            calling = client.call_tool(
                name, arguments, read_timeout_seconds=self._timeout, meta=meta
            )
            return read_result(await calling)
        except MCPError as error:
            if error.code == INVALID_PARAMS:
                return failed("invalid_input", "There is no such tool.")
            if error.code != REQUEST_TIMEOUT and _is_gone(error.code):
                raise _Lost(one_line(error.message, 200)) from error
            log.warning("the tool server answered: %s", one_line(error.message, 200))
            return failed("processing_error", TROUBLE)
        except Exception as error:  # whatever a transport raises: the connection is of no use now
            raise _Lost(type(error).__name__) from error

    async def _opened(self, life: Life) -> "Client":
        try:
            async with asyncio.timeout(self._timeout):
                return await life.client()
        except (AgentError, TimeoutError) as error:
            raise _Lost(type(error.__cause__ or error).__name__) from error

    async def _known(self, life: Life) -> dict[str, ToolInfo]:
        """The tools by name, asked for once a connection."""
        if self._listed is not None and self._listed[0] is life:
            return self._listed[1]
        from bridle.chat.wire import told

        client = await self._opened(life)
        found: dict[str, ToolInfo] = {}
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    found |= {one.name: told(one) for one in page.tools}
                    if (cursor := page.next_cursor) is None:
                        break
        except Exception as error:  # as above
            raise _Lost(type(error).__name__) from error
        self._listed = (life, found)
        return found

    def _reads(self, name: str) -> bool:
        known = self._listed[1].get(name) if self._listed else None
        return known is not None and known.reads

    def _client(self) -> "Client":
        from bridle.chat.remote_ways import over_http, over_pipes

        if isinstance(self._where, str):
            return over_http(self._where, self._seal.token)
        return over_pipes(self._where, {**self._environ, SECRET: self._secret})


def _is_gone(code: int) -> bool:
    """Codes that say that nobody is there, not that somebody said no."""
    from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

    return code in (CONNECTION_CLOSED, INTERNAL_ERROR)


def _can_be_sent(name: str, arguments: dict[str, Any]) -> bool:
    """Half a character, or what is no JSON, would take the connection with it."""
    try:
        text = json.dumps([name, arguments], ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return len(text) <= _LARGEST
