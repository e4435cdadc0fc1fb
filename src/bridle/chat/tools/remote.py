"""Tools of another process: a program on its standard input and output, or an HTTP address.

Every call carries its binding, signed for that call. If the server dies, it is started or reached
again. A call that was under way is repeated only if that cannot do anything twice (an operation is
applied once, and a reading tool changes nothing). Whatever happens, the answer is a typed result.
"""

import asyncio
import contextlib
import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bridle.chat.errors import TROUBLE
from bridle.chat.tools.identity import BINDING_KEY, Binding, Signer
from bridle.chat.tools.source import ToolInfo, failure
from bridle.errors import AgentError, ConfigError, ToolError
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from mcp import Client

_log = logging.getLogger(__name__)


_CLOSE_SECONDS = 5.0  # seconds for an orderly end


class Connection:
    """One connection to a tool server, held by a task of its own.

    The SDK's client must be opened and closed by the same task, but many tasks call it. It belongs
    to one event loop.
    """

    def __init__(self, make: "Callable[[], Client]") -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False
        self._ready: asyncio.Future[Client] = self.loop.create_future()
        self._ready.add_done_callback(_retrieve_exception)
        self._stop = asyncio.Event()
        self._task = self.loop.create_task(self._hold(make))

    async def client(self) -> "Client":
        """Return the client once it is connected. Raise `ToolError` if it cannot connect."""
        return await asyncio.shield(self._ready)

    def discard(self) -> None:
        """Stop using the connection. Calls that are under way fail."""
        self.closed = True
        self._stop.set()

    async def wait_closed(self) -> None:
        """Close the connection and wait until it is closed."""
        self.discard()
        if not self._ready.done():
            self._task.cancel()  # it is still being opened
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _hold(self, make: "Callable[[], Client]") -> None:
        try:
            async with make() as client:
                self._ready.set_result(client)
                await self._stop.wait()
        except (Exception, BaseExceptionGroup) as error:  # the SDK raises groups of what happened
            if not self._ready.done():
                said = ToolError("the tool server cannot be reached", error)
                self._ready.set_exception(said)
        finally:
            self.closed = True
            if not self._ready.done():
                self._ready.set_exception(ToolError("the tool server was let go"))


class Connector:
    """Opens a connection when it is needed, and a new one if it was lost."""

    def __init__(self, make: "Callable[[], Client]") -> None:
        self._make = make
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Return the open connection, or a new one."""
        connection = self._connection
        if (
            connection is None
            or connection.closed
            or connection.loop is not asyncio.get_running_loop()
        ):
            connection = self._connection = Connection(self._make)
        return connection

    async def close(self) -> None:
        """Close the connection. It is opened again when it is needed."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.loop is asyncio.get_running_loop():
            await connection.wait_closed()


def _retrieve_exception(ready: "asyncio.Future[Client]") -> None:
    """Retrieve the exception, so that the event loop does not log it."""
    with contextlib.suppress(asyncio.CancelledError):
        ready.exception()


SECRET_VARIABLE = "BRIDLE_CHAT_SECRET"  # in the environment of both sides
_PAGES = 50
_LARGEST = 1 << 18  # bytes of a call


class _ConnectionLost(Exception):
    """The connection was lost; a call that was under way may have been applied."""


class RemoteTools:
    """A `ToolSource` over a transport.

    `where` is an address (`http://127.0.0.1:8400/mcp`) or a command as a list of words. An address
    needs a secret; a program gets a new one if none is given.
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
                "Tools at an address need a secret to sign calls with.",
                hint=f"Set the same {SECRET_VARIABLE} on both sides.",
            )
        self._where = where if isinstance(where, str) else tuple(where)
        self._secret = secret or secrets.token_hex(32)
        self._signer = Signer(self._secret)
        self._environ = dict(environ or {})
        self._timeout = timeout
        self._connector = Connector(self._client)
        self._listed: tuple[Connection, dict[str, ToolInfo]] | None = None

    async def warm(self) -> None:
        """Connect, so that the first message need not wait. Only log a failure."""
        try:
            await self._tools_by_name(self._connector.connection())
        except _ConnectionLost as error:
            _log.warning("the tool server cannot be reached yet: %s", error)

    async def list(self) -> tuple[ToolInfo, ...]:
        """Return the tools. Raise `ToolError` if the server cannot be reached."""
        for again in (True, False):
            connection = self._connector.connection()
            try:
                return tuple((await self._tools_by_name(connection)).values())
            except _ConnectionLost as error:
                connection.discard()
                _log.warning("the tool server did not list its tools: %s", error)
                if not again:
                    raise ToolError("the tool server cannot be reached", error) from error
        raise AssertionError("it was asked twice")

    async def call(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Call a tool for the user of the binding. Return a typed result."""
        if not _can_be_sent(name, arguments):
            return failure("invalid_input", "The arguments cannot be read, or are too long.")
        for again in (True, False):
            connection = self._connector.connection()
            try:
                return await self._once(connection, name, arguments, binding)
            except _ConnectionLost as error:
                connection.discard()
                _log.warning("the tool server was lost during %s: %s", one_line(name, 60), error)
                if not (again and (binding.operation or self._reads(name))):
                    break
        return failure("processing_error", TROUBLE)

    async def close(self) -> None:
        """Close the connection."""
        await self._connector.close()

    async def _once(
        self, connection: Connection, name: str, arguments: dict[str, Any], binding: Binding
    ) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS, REQUEST_TIMEOUT

        from bridle.chat.tools.mcp_wire import parse_result

        meta = cast("Any", {BINDING_KEY: self._signer.sign(binding, name, arguments)})
        client = await self._open_client(connection)
        try:
            calling = client.call_tool(
                name, arguments, read_timeout_seconds=self._timeout, meta=meta
            )
            return parse_result(await calling)
        except MCPError as error:
            if error.code == INVALID_PARAMS:
                return failure("invalid_input", "There is no such tool.")
            if error.code != REQUEST_TIMEOUT and _means_lost(error.code):
                raise _ConnectionLost(one_line(error.message, 200)) from error
            _log.warning("the tool server answered: %s", one_line(error.message, 200))
            return failure("processing_error", TROUBLE)
        except Exception as error:  # whatever a transport raises: the connection is of no use now
            raise _ConnectionLost(type(error).__name__) from error

    async def _open_client(self, connection: Connection) -> "Client":
        try:
            async with asyncio.timeout(self._timeout):
                return await connection.client()
        except (AgentError, TimeoutError) as error:
            raise _ConnectionLost(type(error.__cause__ or error).__name__) from error

    async def _tools_by_name(self, connection: Connection) -> dict[str, ToolInfo]:
        """Return the tools by name, listed once per connection."""
        if self._listed is not None and self._listed[0] is connection:
            return self._listed[1]
        from bridle.chat.tools.mcp_wire import to_tool_info

        client = await self._open_client(connection)
        found: dict[str, ToolInfo] = {}
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    found |= {tool.name: to_tool_info(tool) for tool in page.tools}
                    if (cursor := page.next_cursor) is None:
                        break
        except Exception as error:  # as above
            raise _ConnectionLost(type(error).__name__) from error
        self._listed = (connection, found)
        return found

    def _reads(self, name: str) -> bool:
        known = self._listed[1].get(name) if self._listed else None
        return known is not None and known.reads

    def _client(self) -> "Client":
        from bridle.chat.tools.mcp_wire import connect_http, connect_program

        if isinstance(self._where, str):
            return connect_http(self._where, self._signer.token)
        return connect_program(self._where, {**self._environ, SECRET_VARIABLE: self._secret})


def _means_lost(code: int) -> bool:
    """Does this error code mean that the connection is lost, not that a call was refused?"""
    from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

    return code in (CONNECTION_CLOSED, INTERNAL_ERROR)


def _can_be_sent(name: str, arguments: dict[str, Any]) -> bool:
    """Can the call be encoded? Invalid text or values would break the connection."""
    try:
        text = json.dumps([name, arguments], ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return len(text) <= _LARGEST
