"""A chat's life on a socket: warm before the first request, and down again within a deadline."""

import asyncio
import socket
from contextlib import suppress

from bridle.server.chat import ChatServer
from bridle.server.hosting import Host

_SHARE = 0.7  # of the time to stop, for requests that are being answered


class ChatServing:
    """The chat on a socket, from `start` to `stop`."""

    def __init__(self, server: ChatServer, listening: socket.socket) -> None:
        self._room = server.room
        self._host = Host(server, listening, limits=server.room.limits)

    async def start(self) -> None:
        """Load everything that the first message would wait for, then take requests."""
        await self._room.app.start()
        await self._host.start()

    async def ended(self) -> None:
        """Wait until it has ended, by whatever."""
        await self._host.ended()

    async def stop(self, seconds: float = 10.0) -> None:
        """Let what is being answered end, let go of the rest; another process can go on with it."""
        self._room.stop()
        try:
            await self._host.stop(seconds * _SHARE)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(1.0, seconds * (1 - _SHARE))):
                    await self._room.app.close()
