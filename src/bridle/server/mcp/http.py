"""MCP over streamable HTTP, on loopback alone, behind the guard."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server

from bridle.server import http
from bridle.server.auth import OWNER, AllowedHosts, Caller, Guard, HostCheck, is_same_secret
from bridle.server.middleware import App, BufferedBody, Limits

PATH = "/mcp"
_PATIENCE = 2  # seconds that open streams have to end


def application(server: Server[Any], port: int, token: str) -> App:
    """The whole application for that port."""
    return with_token_check(server.streamable_http_app(streamable_http_path=PATH), port, token)


def bind(port: int) -> socket.socket:
    """A socket of this machine's own programs; port 0 is any. Raise `ConfigError`."""
    return http.bind("127.0.0.1", port)


class HttpTransport:
    """A server on a socket. `limits` are those of every server: how long a request may take."""

    def __init__(self, app: App, listening: socket.socket, *, limits: Limits | None = None) -> None:
        self._host = http.HttpServer(
            app, listening, lifespan="on", limits=limits or Limits(), is_guarded=True
        )

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


def with_token_check(app: App, port: int, token: str) -> HostCheck:
    """The application, for those who know the token; no path is free."""
    whole = BufferedBody(app, Limits().chat_bytes)
    return HostCheck(Guard(whole, _SingleToken(token), lambda path: False), AllowedHosts(port))


class _SingleToken:
    """One token, and no signing in."""

    def __init__(self, token: str) -> None:
        self._token = token

    def caller(self, token: str) -> Caller | None:
        """Its owner."""
        return Caller(OWNER, "admin") if is_same_secret(token, self._token) else None

    def signed_in(self, cookie: str, key: str) -> Caller | None:
        """Nobody."""
        return None

    def leavers(self, cookie: str) -> set[Callable[[], object]]:
        """Nobody leaves."""
        return set()
