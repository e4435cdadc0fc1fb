"""MCP over streamable HTTP, on loopback alone, behind the guard."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server

from bridle.errors import ConfigError
from bridle.server.mcp.guard import App, Guard

PATH = "/mcp"
_PATIENCE = 2  # seconds that open streams have to end


def application(server: Server[Any], port: int, token: str) -> App:
    """The whole application for that port."""
    return Guard(server.streamable_http_app(streamable_http_path=PATH), port, token)


def bound(port: int) -> socket.socket:
    """A socket of this machine's own programs; port 0 is any. Raise `ConfigError`."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=64)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"port {port} cannot be used: {why}", hint="Name another, or 0 for any that is free."
        ) from error


class Web:
    """A server on a socket. Signals are the business of whoever runs it."""

    def __init__(self, app: App, listening: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=_PATIENCE,
        )
        self._socket = listening
        self._server = _Quiet(config)

    async def serve(self) -> None:
        """Until this is cancelled, or `stop` was called."""
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait([serving])
            raise

    def stop(self) -> None:
        """Take no more, and end what is open."""
        self._server.should_exit = True


class _Quiet(uvicorn.Server):
    """uvicorn, without its own ideas about signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield
