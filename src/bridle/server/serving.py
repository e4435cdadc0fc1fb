"""The server's life: up on a socket, and down again within a deadline with everything settled.

Where it may listen is decided here: beyond this machine only with a token that somebody chose.
"""

import asyncio
import ipaddress
import resource
import socket
from contextlib import suppress

from msgspec.structs import replace

from bridle.errors import ConfigError
from bridle.server.app import Application
from bridle.server.hosting import Host
from bridle.server.limits import Limits

_FILES_OF_OUR_OWN = 256  # logs, locks, children: what sessions need beside the connections


def check_reach(host: str, explicit: bool) -> None:
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


def affordable(limits: Limits) -> Limits:
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


class Serving:
    """The application on a socket, with its sessions and streams."""

    def __init__(self, app: Application, listening: socket.socket) -> None:
        self._room = app.room
        self._host = Host(app, listening, limits=app.room.limits)

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
