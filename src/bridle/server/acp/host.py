"""What whoever starts the server knows and it does not: settings, keys, models, who carried what.

Values and a promise; nothing is made here.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from acp import RequestError, schema
from msgspec import Struct

from bridle.engine.engine import Engine
from bridle.errors import SessionClosed
from bridle.policy import Mode
from bridle.protocols.provider import Provider
from bridle.stores.reader import SessionFolder

FACE = "acp"  # in the log: where the session was begun


class EditorsServer(Struct, frozen=True):
    """An MCP server that the editor names: a program with its words, or an address."""

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"<server {self.name}>"  # variables and headers may be secret


class Place(Struct, frozen=True):
    """Where sessions work: the folder that the editor names, and what it has there.

    `agent` carries the turns where it is another than usual: a session that another agent carried
    is carried on by it.
    """

    workspace: str
    also: tuple[str, ...] = ()
    servers: tuple[EditorsServer, ...] = ()
    agent: str = ""


class Host(Protocol):
    """Whoever started the server."""

    @property
    def folder(self) -> SessionFolder:
        """Where the sessions are kept."""
        ...

    @property
    def person(self) -> str:
        """In whose name prompts and answers are recorded."""
        ...

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Those that may be chosen."""
        ...

    def engine(self, place: Place) -> Engine:
        """A new engine for that place. Raise `ConfigError`."""
        ...

    def carrier(self, session_id: str) -> str:
        """The agent that carried a session; empty where it is the usual one."""
        ...

    def models(self) -> Sequence[str]:
        """Names of models that may be chosen, beside the one in use."""
        ...

    def provider(self, model: str) -> Provider:
        """The side of that model. Raise `ConfigError`."""
        ...


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
