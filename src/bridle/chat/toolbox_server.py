"""A toolbox as an MCP server: in this process for the runner, and for others over a transport.

In process it is the official SDK's server and client, connected once and kept. `protocol` gives
the server of the SDK for a transport; there a call has to be signed, or everything is one user's.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from bridle.chat.binding import KEY, Binding, Seal
from bridle.chat.link import Link
from bridle.chat.toolbox import Toolbox
from bridle.chat.tools import TROUBLE, ToolInfo, failed
from bridle.chat.values import check_factory
from bridle.errors import ToolError

if TYPE_CHECKING:
    from mcp import Client
    from mcp.server.lowlevel import Server
    from sqlmodel import Session

    from bridle.chat.toolbox_applied import Applying

log = logging.getLogger(__name__)
_THREADS = 8


class ToolServer:
    """Keeps the promise `ToolSource` in this process. `session_factory` makes sessions."""

    def __init__(self, toolbox: Toolbox, session_factory: "Callable[[], Session]") -> None:
        check_factory(session_factory)
        self.toolbox = toolbox
        self._factory = session_factory
        self._threads: ThreadPoolExecutor | None = None
        self._applying: Applying | None = None
        self._link = Link(self._client)
        self._infos = toolbox.infos()

    async def warm(self) -> None:
        """Load what takes a second, and connect: the first message need not wait for it."""
        await asyncio.to_thread(_load)
        await self._link.life().client()

    async def list(self) -> tuple[ToolInfo, ...]:
        """The tools."""
        return self._infos

    async def call(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Call one of them for the user of the binding; a typed result."""
        if self._applying is None:
            await asyncio.to_thread(_load)
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS
        from pydantic import ValidationError

        from bridle.chat.wire import read_result

        meta = cast("Any", {KEY: binding.to_wire()})
        try:
            client = await self._link.life().client()
            return read_result(await client.call_tool(name, arguments, meta=meta))
        except ValidationError:
            return failed("invalid_input", "The arguments cannot be read.")
        except MCPError as error:
            if error.code == INVALID_PARAMS:
                return failed("invalid_input", "There is no such tool.")
            log.warning("the tools in this process answered: %s", error.message)
            return failed("processing_error", TROUBLE)
        except ToolError as error:
            log.warning("%s", error.message)
            return failed("processing_error", TROUBLE)

    async def close(self) -> None:
        """Leave nothing running."""
        await self._link.close()
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)

    def protocol(self, *, seal: Seal | None = None, bound: Binding | None = None) -> "Server[Any]":
        """The server of the SDK for a transport: calls are signed, or all of them one user's."""
        from bridle.chat.wire import bound_to, sealed, serving

        if (seal is None) == (bound is None):
            raise ValueError("either calls are signed, or they are all one user's")
        admit = sealed(seal) if seal is not None else bound_to(cast("Binding", bound))
        return serving(self.toolbox, self.apply, admit)

    async def apply(self, name: str, arguments: dict[str, Any], binding: Binding) -> dict[str, Any]:
        """Apply a call that was admitted, in a worker thread."""
        if self._applying is None:
            from bridle.chat.toolbox_applied import Applying

            self._applying = Applying(self.toolbox, self._factory)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="chat-tools")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._applying, name, arguments, binding)

    def _client(self) -> "Client":
        from mcp import Client

        from bridle.chat.wire import serving, trusting

        return Client(serving(self.toolbox, self.apply, trusting), cache=None)


def _load() -> None:
    """The SDK and the database's library take a second: in a thread, nobody else waits for it."""
    from importlib import import_module

    for name in ("bridle.chat.wire", "bridle.chat.toolbox_applied", "mcp"):
        import_module(name)
