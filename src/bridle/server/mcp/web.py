"""MCP over streamable HTTP, on loopback alone, behind the guard."""

import asyncio
import socket
from typing import Any

from mcp.server.lowlevel import Server

from bridle.server import hosting
from bridle.server.asgi import App
from bridle.server.limits import Limits
from bridle.server.mcp.guard import guarded

PATH = "/mcp"
_PATIENCE = 2  # seconds that open streams have to end


def application(server: Server[Any], port: int, token: str) -> App:
    """The whole application for that port."""
    return guarded(server.streamable_http_app(streamable_http_path=PATH), port, token)


def bound(port: int) -> socket.socket:
    """A socket of this machine's own programs; port 0 is any. Raise `ConfigError`."""
    return hosting.bound("127.0.0.1", port)


class Web:
    """A server on a socket. `limits` are those of every server: how long a request may take."""

    def __init__(self, app: App, listening: socket.socket, *, limits: Limits | None = None) -> None:
        self._host = hosting.Host(app, listening, lifespan="on", limits=limits or Limits())

    async def serve(self) -> None:
        """Until this is cancelled, or `stop` was called."""
        await self._host.start()
        try:
            await self._host.ended()
        except asyncio.CancelledError:
            await self._host.stop(_PATIENCE)
            raise

    def stop(self) -> None:
        """Take no more, and end what is open."""
        self._host.quit(_PATIENCE)
