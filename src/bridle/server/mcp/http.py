"""MCP over streamable HTTP, on loopback alone, behind the guard."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server

from bridle.server import http
from bridle.server.auth import OWNER, Caller, Guard, HostCheck, Names, same
from bridle.server.middleware import App, Limits, WholeBody

PATH = "/mcp"
_PATIENCE = 2  # seconds that open streams have to end


def application(server: Server[Any], port: int, token: str) -> App:
    """The whole application for that port."""
    return guarded(server.streamable_http_app(streamable_http_path=PATH), port, token)


def bound(port: int) -> socket.socket:
    """A socket of this machine's own programs; port 0 is any. Raise `ConfigError`."""
    return http.bound("127.0.0.1", port)


class Web:
    """A server on a socket. `limits` are those of every server: how long a request may take."""

    def __init__(self, app: App, listening: socket.socket, *, limits: Limits | None = None) -> None:
        self._host = http.Host(
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


def guarded(app: App, port: int, token: str) -> HostCheck:
    """The application, for those who know the token; no path is free."""
    whole = WholeBody(app, Limits().chat_bytes)
    return HostCheck(Guard(whole, _One(token), lambda path: False), Names(port))


class _One:
    """One token, and no signing in."""

    def __init__(self, token: str) -> None:
        self._token = token

    def caller(self, token: str) -> Caller | None:
        """Its owner."""
        return Caller(OWNER, "admin") if same(token, self._token) else None

    def signed_in(self, cookie: str, key: str) -> Caller | None:
        """Nobody."""
        return None

    def leavers(self, cookie: str) -> set[Callable[[], object]]:
        """Nobody leaves."""
        return set()
