"""A toolbox as an MCP server: in this process for the runner, or for others over a transport.

In this process it is the official SDK's server and client, connected once. `sdk_server` returns the
SDK's server for a transport; there each call must be signed, or all calls run for one user.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from bridle.chat.errors import TROUBLE
from bridle.chat.tools.identity import BINDING_KEY, Binding, Signer
from bridle.chat.tools.remote import Connector
from bridle.chat.tools.source import ToolInfo, failure
from bridle.chat.tools.toolbox import Toolbox
from bridle.chat.values import check_session_factory
from bridle.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp import Client
    from mcp.server.lowlevel import Server
    from sqlmodel import Session

    from bridle.chat.tools.apply_once import ApplyOnce


_log = logging.getLogger(__name__)
_THREADS = 8


class ToolServer:
    """A `ToolSource` in this process. `session_factory` returns a database session."""

    def __init__(self, toolbox: Toolbox, session_factory: "Callable[[], Session]") -> None:
        check_session_factory(session_factory)
        self.toolbox = toolbox
        self._factory = session_factory
        self._threads: ThreadPoolExecutor | None = None
        self._applying: ApplyOnce | None = None
        self._connector = Connector(self._client)
        self._infos = toolbox.infos()

    async def warm(self) -> None:
        """Import libraries and connect, so that the first message need not wait."""
        await asyncio.to_thread(_import_libraries)
        await self._connector.connection().client()

    async def list(self) -> tuple[ToolInfo, ...]:
        """Return the tools."""
        return self._infos

    async def call(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Call a tool for the user of the binding. Return a typed result."""
        if self._applying is None:
            await asyncio.to_thread(_import_libraries)
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS
        from pydantic import ValidationError

        from bridle.chat.tools.mcp_wire import parse_result

        meta = cast("Any", {BINDING_KEY: binding.to_wire()})
        try:
            client = await self._connector.connection().client()
            return parse_result(await client.call_tool(name, arguments, meta=meta))
        except ValidationError:
            return failure("invalid_input", "The arguments cannot be read.")
        except MCPError as error:
            if error.code == INVALID_PARAMS:
                return failure("invalid_input", "There is no such tool.")
            _log.warning("the tools in this process answered: %s", error.message)
            return failure("processing_error", TROUBLE)
        except ToolError as error:
            _log.warning("%s", error.message)
            return failure("processing_error", TROUBLE)

    async def close(self) -> None:
        """Close the connection and stop the threads."""
        await self._connector.close()
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)

    def sdk_server(
        self, *, signer: Signer | None = None, binding: Binding | None = None
    ) -> "Server[Any]":
        """Return the SDK's server for a transport: calls are signed, or all run for one user."""
        from bridle.chat.tools.mcp_wire import admit_signed, admit_user, build_server

        if (signer is None) == (binding is None):
            raise ValueError("give either a signer or a binding")
        admit = admit_signed(signer) if signer is not None else admit_user(cast("Binding", binding))
        return build_server(self.toolbox, self.apply, admit)

    async def apply(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Apply an admitted call in a worker thread."""
        if self._applying is None:
            from bridle.chat.tools.apply_once import ApplyOnce

            self._applying = ApplyOnce(self.toolbox, self._factory)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="chat-tools")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._applying, name, arguments, binding)

    def _client(self) -> "Client":
        from mcp import Client

        from bridle.chat.tools.mcp_wire import admit_in_process, build_server

        return Client(build_server(self.toolbox, self.apply, admit_in_process), cache=None)


def _import_libraries() -> None:
    """Import the SDK and the database library, which takes a second."""
    from importlib import import_module

    for name in ("bridle.chat.tools.mcp_wire", "bridle.chat.tools.apply_once", "mcp"):
        import_module(name)
