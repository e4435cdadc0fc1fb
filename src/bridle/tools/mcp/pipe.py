"""An MCP server that is a program: started below a supervisor, spoken to over its pipes.

Each line is one message. A line that is too long ends the server; a line that is not a message is
skipped.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter

from bridle.errors import ToolError
from bridle.tools.mcp.guarded import Guarded
from bridle.tools.mcp.spec import Spec
from bridle.tools.mcp.tally import TOO_MUCH, Tally
from bridle.workspace.lookup import find_program, is_in_roots
from bridle.workspace.process.environment import clean_environment
from bridle.workspace.process.supervised import SupervisedProcess

LARGEST = 16 * 1024 * 1024  # bytes of one message
_CHUNK = 1 << 16

Sending = MemoryObjectSendStream[SessionMessage | Exception]
Receiving = MemoryObjectReceiveStream[SessionMessage]


class Pipe:
    """The connection to one server over its pipes. `trouble` says why it was ended, if it was."""

    def __init__(self, spec: Spec, folder: str) -> None:
        self._spec = spec
        self._folder = spec.cwd or folder
        self._roots = (folder, os.path.realpath(folder))  # a call may have put programs there
        self._process: SupervisedProcess | None = None
        self.trouble = ""
        self.lost = False
        self.on_change: Callable[[], None] = lambda: None
        self.guard: Guarded | None = None

    @property
    def last_words(self) -> str:
        """The end of what the server wrote to stderr, which mostly says why it did not work."""
        return self._process.stderr_tail(None) if self._process is not None else ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start the server and yield the two streams that the SDK wants; end it afterwards."""
        self._process = process = await self._start()
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.ensure_future(self._receive(process, to_client)),
            asyncio.ensure_future(self._send(process, from_client, to_client)),
        ]
        self.guard = Guarded(from_server, lambda: self.on_change())
        try:
            yield self.guard, to_server
        finally:
            for stream in (from_server, to_server, from_client, to_client):
                stream.close()
            try:
                await process.end()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _start(self) -> SupervisedProcess:
        environment = {**clean_environment(self._roots), **self._spec.env}
        if given := self._spec.env.get("PATH"):
            environment["PATH"] = self._outside(given)
        argv = [self._program(environment.get("PATH", "")), *self._spec.command[1:]]
        try:
            return await SupervisedProcess.start(argv, self._folder, environment)
        except (OSError, ValueError) as error:  # ValueError: NUL, or a lone surrogate
            raise ToolError(f"it cannot be started: {error}", error) from error

    def _program(self, path: str) -> str:
        """Find the program. A name alone is never found in the workspace."""
        name = self._spec.command[0]
        if "/" in name:
            place = str(Path(self._folder, Path(name).expanduser()))
            return place if os.access(place, os.X_OK) else self._missing(name)
        listed = shutil.which(name, path=path)
        if listed is not None and not is_in_roots(listed, self._roots):
            return listed
        return find_program(name, self._roots) or self._missing(name)

    def _outside(self, path: str) -> str:
        """Reduce a PATH from the settings to the folders outside the workspace."""
        folders = (folder for folder in path.split(os.pathsep) if folder.startswith("/"))
        return os.pathsep.join(one for one in folders if not is_in_roots(one, self._roots))

    def _missing(self, name: str) -> str:
        inside = "/" not in name and shutil.which(name, path=self._spec.env.get("PATH"))
        raise ToolError(f"there is no program {name!r}{' outside the workspace' if inside else ''}")

    async def _receive(self, process: SupervisedProcess, to: Sending) -> None:
        """Deliver what the server says, line by line."""
        parts: list[bytes] = []
        size = 0
        tally = Tally()
        with to, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while data := await process.reader.read(_CHUNK):
                *lines, rest = data.split(b"\n")
                for line in lines:
                    if not tally.add(line):
                        self.trouble = TOO_MUCH
                        return
                    tally.clear()
                    parts.append(line)
                    await _deliver(b"".join(parts), to)
                    parts.clear()
                    size = 0
                parts.append(rest)
                size += len(rest)
                if not tally.add(rest):
                    self.trouble = TOO_MUCH
                    return
                if size > LARGEST:
                    self.trouble = f"it sent a message of more than {LARGEST:,} bytes"
                    return

    async def _send(self, process: SupervisedProcess, messages: Receiving, to: Sending) -> None:
        """Write messages to the server. If that fails, the client is told that it has ended."""
        try:
            with messages:
                async for item in messages:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.writer.write(text.encode() + b"\n")
                    await process.writer.drain()
        except (OSError, anyio.ClosedResourceError):
            to.close()


async def _deliver(line: bytes, to: Sending) -> None:
    """Deliver one line as a message, and a broken answer as an error: its request waits for it."""
    if not line.strip():
        return
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        number = _answered(line)
        if number is None:
            await to.send(ValueError("not a message"))
            return
        error = ErrorData(code=INVALID_REQUEST, message="the answer is not what MCP says it is")
        message = JSONRPCError(jsonrpc="2.0", id=number, error=error)
    await to.send(SessionMessage(message))


def _answered(line: bytes) -> int | str | None:
    """Return the id of the request that a broken answer belongs to, if it can be read."""
    try:
        message: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(message, dict) or "method" in message:
        return None
    number = message.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None
