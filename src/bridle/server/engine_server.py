"""Serve an engine that a program has built, with the routes, streams and page of `bridle serve`.

Clients see the sessions that the program has open. The program still owns the engine: the server
does not close it.
"""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from bridle.engine.engine import Engine
from bridle.errors import ConfigError
from bridle.protocols.session_values import Choice, Choices
from bridle.runtime.agents import LOOP
from bridle.server.app import Application
from bridle.server.auth import AllowedHosts
from bridle.server.context import EmptyCatalogue, ServerContext
from bridle.server.http import ServerLifecycle, bind, check_listen_address, process_limits
from bridle.server.login import Authenticator
from bridle.server.middleware import Limits
from bridle.server.streams import Streams
from bridle.server.tokens import Tokens
from bridle.service.choices import AllowedChoices
from bridle.service.engine_pool import EnginePool, EngineSpec
from bridle.service.local_service import LocalService

PORT = 8420
_USUAL_FACE = "library"  # of every program that has no name of its own
_SHORTEST = 16  # characters of a token


class EngineServer:
    """A running server: its address, and how to sign in.

    `token` is the owner's. Opening `sign_in_url` signs a browser in; each one works once, within
    15 minutes.
    """

    def __init__(self, url: str, door: Authenticator) -> None:
        self.url = url
        self._door = door

    @property
    def token(self) -> str:
        """The owner's token, for `bridle.client.Client` and for `Authorization: Bearer …`."""
        return self._door.tokens.own

    @property
    def sign_in_url(self) -> str:
        """An address that opens the page and signs a browser in; each read makes a new one."""
        return f"{self.url}/#code={self._door.code()}"


def announce(server: EngineServer) -> None:
    """Print where the server is and how to sign in."""
    sys.stdout.write(f"bridle serves {server.url}\nopen {server.sign_in_url}\n")
    sys.stdout.flush()


async def serve(
    engine: Engine,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str = "",
    allowed_hosts: Iterable[str] = (),
    on_start: Callable[[EngineServer], object] = announce,
) -> None:
    """Serve the engine until this task is cancelled (Ctrl-C under `asyncio.run` does that).

    Raise `ConfigError` if the engine's sessions are not on disk, if it would deny its questions
    before anybody could answer them, or if the address cannot be used.
    """
    async with open_server(
        engine, host=host, port=port, token=token, allowed_hosts=allowed_hosts
    ) as server:
        on_start(server)
        await asyncio.Event().wait()


@asynccontextmanager
async def open_server(
    engine: Engine,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    allowed_hosts: Iterable[str] = (),
) -> AsyncIterator[EngineServer]:
    """Serve the engine inside a `with` block, beside the program's own work."""
    check_listen_address(host, explicit=bool(token))
    if token and len(token) < _SHORTEST:
        raise ConfigError(
            f"the token is too short: it needs at least {_SHORTEST} characters",
            hint="Leave it out, and bridle makes one and keeps it beside the sessions.",
        )
    folder = _folder(engine)
    _check_answerable(engine)
    door = Authenticator(Tokens(folder / "server", token))
    with bind(host, port) as listening:
        port = listening.getsockname()[1]
        room = _room(engine, folder, door)
        app = Application(room, AllowedHosts(port, host, tuple(allowed_hosts)))
        serving = ServerLifecycle(app, listening)
        await serving.start()
        try:
            yield EngineServer(f"http://{f'[{host}]' if ':' in host else host}:{port}", door)
        finally:
            await serving.stop()


class OneEngine(EnginePool):
    """The one engine that there is. It was handed in, and is closed by its owner."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(lambda wanted, session_id: engine)
        self._wanted = EngineSpec(engine.parts.workspace.root)

    async def engine(self, wanted: EngineSpec, session_id: str = "") -> Engine:
        """The engine, whatever is wanted: the offer has seen to it that nothing else is."""
        return await super().engine(self._wanted, session_id)

    def has(self, wanted: EngineSpec) -> bool:
        """Always."""
        return True

    async def sweep(self, idle: float = 0.0) -> None:
        """It stays open, however long nobody asks for it."""

    async def close(self) -> None:
        """Hand out no more; the engine stays as it is."""
        self._closed = True


class _OneChoice(EmptyCatalogue):
    """The engine's own model and agent."""

    def __init__(self, model: str, agent: str) -> None:
        self._model, self._agent = model, agent

    async def models(self) -> Choices:
        """The engine's."""
        return Choices((Choice(self._model, default=True),))

    async def agents(self) -> Choices:
        """The engine's."""
        return Choices((Choice(self._agent, default=True),))


def _room(engine: Engine, folder: Path, door: Authenticator) -> ServerContext:
    parts = engine.parts
    model, limits = parts.provider.info.label, process_limits(Limits())
    agent = LOOP if parts.agent is None else model
    # A session of another program that has no name of its own is not gone on with here.
    face = parts.face if parts.face != _USUAL_FACE else f"{_USUAL_FACE}:{secrets.token_hex(4)}"
    offer = AllowedChoices(False, (agent,), frozenset(), model, parts.mode, face)
    sessions = LocalService(folder, OneEngine(engine), (parts.workspace.root,), choices=offer)
    streams = Streams(sessions, most=limits.streams)
    return ServerContext(sessions, streams, door, limits, _OneChoice(model, agent))


def _folder(engine: Engine) -> Path:
    folder = getattr(engine.store, "folder", None)
    if isinstance(folder, Path):
        return folder
    raise ConfigError(
        "a server reads sessions from their logs, and this engine does not keep logs in a folder",
        hint="Build the engine without store=, or with a JsonlStore from bridle.stores.",
    )


def _check_answerable(engine: Engine) -> None:
    parts = engine.parts
    if parts.approver is None and parts.on_ask == "deny" and parts.mode != "auto":
        raise ConfigError(
            "the engine denies calls that need approval before anybody can answer over HTTP",
            hint="Build it with on_ask='wait': build_engine(…, on_ask='wait').",
        )
