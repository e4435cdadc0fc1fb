"""Several workers on one port: started, replaced when one dies, and stopped together."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys

import msgspec

from bridle.cli.chat_server_worker import DEADLINE, Up
from bridle.errors import ConfigError
from bridle.server.chat.app import ChatSetup

_log = logging.getLogger("bridle.server")
_TRIES = 5  # workers that may die one after the other before any of them was ready
_PAUSE = 0.5  # seconds before one that was never ready is started anew
_LINE = 65_536


class Crew:
    """As many workers as were asked for, from `start` to `stop`."""

    def __init__(self, setup: ChatSetup, listening: socket.socket, count: int) -> None:
        self._setup, self._socket, self._count = setup, listening, count
        self._keepers: list[asyncio.Task[None]] = []
        self._children: set[asyncio.subprocess.Process] = set()
        self._stopping = False

    @property
    def pids(self) -> list[int]:
        """The processes that are there now."""
        return sorted(one.pid for one in self._children)

    async def start(self) -> None:
        """All of them take requests. Raise `ConfigError`: why they do not."""
        first = await asyncio.gather(*(self._born() for _ in range(self._count)))
        self._keepers = [asyncio.create_task(self._keep(child)) for child in first]

    async def ended(self) -> None:
        """Wait until none is left, because none would start any more."""
        await asyncio.wait(self._keepers)

    async def stop(self, seconds: float = DEADLINE) -> None:
        """Each lets go of what it does; one that takes too long is ended."""
        self._stopping = True
        for child in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
        waiting = [asyncio.ensure_future(child.wait()) for child in self._children]
        if waiting:
            await asyncio.wait(waiting, timeout=seconds + 2)
        for child in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        left = [asyncio.ensure_future(child.wait()) for child in self._children]
        # the keepers end by themselves, also one whose child is only being started
        await asyncio.gather(*waiting, *left, *self._keepers, return_exceptions=True)

    async def _born(self) -> asyncio.subprocess.Process:
        """One that is ready. Raise `ConfigError`."""
        number = self._socket.fileno()
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "bridle.cli.chat_server_worker", str(number)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=(number,),
            limit=_LINE,
        )
        self._children.add(child)
        if self._stopping:  # it was being started when the others were told to stop
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        assert child.stdin is not None and child.stdout is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            child.stdin.write(msgspec.json.encode(self._setup) + b"\n")
            await child.stdin.drain()
        line = await child.stdout.readline()
        try:
            up = msgspec.json.decode(line, type=Up)
        except msgspec.DecodeError:
            up = Up("a worker of the chat ended before it was ready", "The log has the reason.")
        if up.error:
            await child.wait()
            self._children.discard(child)
            raise ConfigError(up.error, hint=up.hint)
        return child

    async def _keep(self, child: asyncio.subprocess.Process) -> None:
        """Whenever it dies, there is another."""
        while True:
            code = await child.wait()
            self._children.discard(child)
            if self._stopping:
                return
            _log.warning("worker %d ended with %d; another takes its place", child.pid, code)
            found = await self._again()
            if found is None:
                return
            child = found

    async def _again(self) -> asyncio.subprocess.Process | None:
        for _ in range(_TRIES):
            try:
                return await self._born()
            except ConfigError as error:
                if self._stopping:
                    return None
                _log.error("a worker did not start: %s", error.message)
                await asyncio.sleep(_PAUSE)
        return None
