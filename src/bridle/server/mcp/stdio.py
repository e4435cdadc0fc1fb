"""MCP over standard input and output: a line in is a message, a line out is one.

The two pipes are taken away from everybody else first (server/pipes.py). The SDK's own transport
waits in threads that cannot be left, so that a signal would have to wait for a line; here the
threads are left behind when the process ends.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from bridle.server.pipes import take_pipes as take_pipes

LONGEST = 16 << 20  # bytes of one message
_AHEAD = 64  # messages that are read before the server has taken them


class StdioTransport:
    """Our ends of the two pipes. `on_end` is called once, when nothing more will come."""

    def __init__(self, lines: BinaryIO, out: BinaryIO, on_end: Callable[[], None]) -> None:
        self._in = lines
        self._out = out
        self._on_end = on_end
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._written = threading.Event()
        self._room = threading.Semaphore(_AHEAD)

    async def serve(self, server: Server[Any]) -> None:
        """Until the input ends, or this is cancelled. What runs then is cancelled, too."""
        loop = asyncio.get_running_loop()
        arriving: asyncio.Queue[bytes] = asyncio.Queue()
        writing = threading.Thread(target=self._write, daemon=True, name="mcp-out")
        reading = threading.Thread(
            target=self._read, args=(loop, arriving.put_nowait), daemon=True, name="mcp-in"
        )
        to_server, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        replies, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        writing.start()
        reading.start()
        async with anyio.create_task_group() as work, from_server, messages:
            work.start_soon(self._bring, arriving, to_server)
            work.start_soon(self._take, from_server)
            await server.run(messages, replies, server.create_initialization_options())
            work.cancel_scope.cancel()
        self._waiting.put(None)
        await asyncio.to_thread(self._written.wait, 1.0)

    def _read(self, loop: asyncio.AbstractEventLoop, put: Callable[[bytes], None]) -> None:
        """In a thread: every line, and an empty one at the end."""
        line = b"\n"
        while line:
            self._room.acquire()
            try:
                line = self._in.readline(LONGEST)
            except OSError:
                line = b""
            if line and not line.endswith(b"\n"):
                line = b""  # cut off, or longer than any message: there is no way back into step
            try:
                loop.call_soon_threadsafe(put, line)
            except RuntimeError:  # the loop is closed, and nobody waits any more
                return

    def _write(self) -> None:
        """In a thread: whatever is to be said, until there is nothing, or nobody reads."""
        while (line := self._waiting.get()) is not None:
            try:
                self._out.write(line)
                self._out.flush()
            except OSError:
                break
        self._written.set()

    async def _bring(self, arriving: "asyncio.Queue[bytes]", to_server: Any) -> None:
        async with to_server:
            while line := await arriving.get():
                await to_server.send(_message(line))
                self._room.release()
            self._on_end()

    async def _take(self, from_server: Any) -> None:
        async for one in from_server:
            text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            self._waiting.put(text.encode() + b"\n")


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error
