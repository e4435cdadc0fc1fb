"""Engines for an editor's sessions: one for each place, made when it is first needed.

How one is put together is the host's; what was made is closed here.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from acp import RequestError, schema

from bridle.engine.engine import Engine
from bridle.errors import SessionClosed
from bridle.server.acp.host import EditorsServer, Host, Place


class Engines:
    """The engines that are open."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._engines: dict[Place, Engine] = {}
        self._making = asyncio.Lock()
        self._closed = False

    async def at(self, place: Place) -> Engine:
        """The engine of that place. Raise `ConfigError`, `RequestError`."""
        async with self._making:
            if self._closed:
                raise SessionClosed("bridle is ending, and begins nothing new")
            if place not in self._engines:
                for folder in (place.workspace, *place.also):
                    await asyncio.to_thread(_check, folder)
                self._engines[place] = await asyncio.to_thread(self._host.engine, place)
            return self._engines[place]

    async def close(self) -> None:
        """Close all of them, and their sessions."""
        async with self._making:
            self._closed = True
            for engine in self._engines.values():
                await engine.close()
            self._engines.clear()


def _check(folder: str) -> None:
    if not Path(folder).is_absolute():
        raise RequestError(-32602, f"{folder!r} is not a whole path")
    if not Path(folder).is_dir():
        raise RequestError(-32602, f"there is no folder {folder!r}")


def place_of(request: Any, agent: str = "") -> Place:
    """Where the editor wants a session to be."""
    also = tuple(request.additional_directories or ())
    servers = tuple(map(_server, request.mcp_servers or ()))
    return Place(os.path.normpath(request.cwd), also, servers, agent)


def _server(given: Any) -> EditorsServer:
    if isinstance(given, schema.McpServerStdio):
        env = tuple((one.name, one.value) for one in given.env or ())
        return EditorsServer(given.name, (given.command, *(given.args or ())), env)
    if isinstance(given, schema.HttpMcpServer):
        headers = tuple((one.name, one.value) for one in given.headers or ())
        return EditorsServer(given.name, url=given.url, headers=headers)
    raise RequestError(
        -32602, "an MCP server is reached as a program, or over HTTP; no other way is taken here"
    )
