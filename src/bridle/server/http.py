"""uvicorn on a socket that is bound already. Signals are the business of whoever runs it."""

import asyncio
import contextlib
import functools
import ipaddress
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import uvicorn
from msgspec.structs import replace

from bridle.errors import ConfigError
from bridle.server.app import Application
from bridle.server.middleware import App, Limits

_BACKLOG = 1_024
_KEPT = 30  # seconds that a connection is kept without a request: longer than clients reuse theirs


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any. Raise `ConfigError`."""
    if not 0 <= port <= 65_535:
        raise _taken(port, "there is no such port")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why, _, _ = (error.strerror or str(error)).partition(
            " (while attempting"
        )  # a tuple follows
        raise _taken(port, why) from error
    # Its connections inherit this. asyncio would set it on sockets that name their protocol, which
    # this one does not; without it a head and a body that are written apart cost 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _taken(port: int, why: str) -> ConfigError:
    hint = "Name another, or 0 for any that is free."
    return ConfigError(f"port {port} cannot be used: {why}", hint=hint)


def bind_unix(path: Path) -> socket.socket:
    """A Unix socket for this user alone, in a folder of this user alone. Raise `ConfigError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and not _answers(path):
            path.unlink()  # its server is gone
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        why = error.strerror or str(error)
        raise ConfigError(
            f"the socket {path} cannot be used: {why}",
            hint="Is a server running there already? Its path may also be too long.",
        ) from error
    return listening


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trying:
        try:
            trying.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True


def uvicorn_config(app: App | Callable[[], App], **more: Any) -> uvicorn.Config:
    """How uvicorn serves our applications. Signals and logs are the business of whoever runs it."""
    return uvicorn.Config(
        app,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEPT,
        **more,
    )


class HttpServer:
    """An application on a socket, from `start` to `stop`.

    `is_guarded` says whether connections that are held open by saying little are cut; if it is left
    out, they are if other machines can reach the socket.
    """

    def __init__(
        self,
        app: App,
        listening: socket.socket,
        *,
        lifespan: Literal["on", "off"] = "off",
        limits: Limits | None = None,
        is_guarded: bool | None = None,
    ) -> None:
        self._socket = listening
        http = protocol_of(listening, limits, is_guarded) if limits else "h11"
        self._config = uvicorn_config(app, http=http, lifespan=lifespan)
        self._server = _Quiet(self._config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take requests from now on."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        up = asyncio.create_task(self._server.up.wait())
        try:
            await asyncio.wait({self._serving, up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up.cancel()
        if self._serving.done():
            self._serving.result()

    async def ended(self) -> None:
        """Wait until it has ended."""
        if self._serving is not None:
            await asyncio.wait([self._serving])

    def quit(self, seconds: float) -> None:
        """Take no more; what is open has so long to end."""
        self._config.timeout_graceful_shutdown = seconds  # type: ignore[assignment]  # any number
        self._server.should_exit = True

    async def stop(self, seconds: float) -> None:
        """The same, and wait for the end."""
        self.quit(seconds)
        await self.ended()


def protocol_of(listening: socket.socket, limits: Limits, is_guarded: bool | None = None) -> Any:
    """How uvicorn reads connections: guarded against slow clients if other machines reach us."""
    if is_guarded is None:
        is_guarded = not _is_local(listening)
    if not is_guarded:
        return "httptools"
    from bridle.server.slow_clients import Connection  # needs httptools, which the extra brings

    return functools.partial(Connection, limits)


def _is_local(listening: socket.socket) -> bool:
    """Can only this machine's own programs reach it?"""
    if listening.family == socket.AF_UNIX:
        return True
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


class _Quiet(uvicorn.Server):
    """uvicorn, without its own ideas about signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say when it is up."""
        await super().startup(sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


_FILES_OF_OUR_OWN = 256  # logs, locks, children: what sessions need beside the connections


def check_listen_address(host: str, explicit: bool) -> None:
    """Raise `ConfigError` for an address beyond this machine without a token that was chosen."""
    if explicit or host == "localhost":
        return
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    raise ConfigError(
        f"{host} can be reached from other machines, so the server does not listen there by itself",
        hint="Choose your own token with --token TOKEN, name the file of other people's tokens "
        "with --token-file FILE, or listen on 127.0.0.1.",
    )


def process_limits(limits: Limits) -> Limits:
    """These limits, as far as this process may open files; it is let open as many as it can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (soft < hard or hard == resource.RLIM_INFINITY):
        with suppress(ValueError, OSError):
            most = limits.connections + _FILES_OF_OUR_OWN * 4
            wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return limits
    room = max(16, soft - _FILES_OF_OUR_OWN)
    connections = min(limits.connections, room)
    return replace(limits, connections=connections, streams=min(limits.streams, connections - 8))


class ServerLifecycle:
    """The application on a socket, with its sessions and streams."""

    def __init__(
        self, app: Application, listening: socket.socket, *, is_guarded: bool | None = None
    ) -> None:
        self._room = app.room
        self._host = HttpServer(app, listening, limits=app.room.limits, is_guarded=is_guarded)

    async def start(self) -> None:
        """Take requests; what the last server left behind is taken up meanwhile."""
        await self._room.sessions.start()
        await self._host.start()

    async def ended(self) -> None:
        """Wait until it has ended, by whatever."""
        await self._host.ended()

    async def stop(self, seconds: float = 10.0) -> None:
        """Settle every session, tell every stream, let everything go; all within so long."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds * 0.7):
                    await self._room.sessions.stop(seconds * 0.6)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.1, (end - loop.time()) / 2)):
                    await self._room.streams.stop()
        finally:
            self._room.metrics.close()
            await self._host.stop(max(0.1, end - loop.time() - 0.3))
