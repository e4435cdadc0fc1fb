"""A server that is a program: started below a supervisor, spoken to by its input and output.

One message a line; a line that is too long ends the server, what is no message is passed over. The
supervisor (workspace/supervise.py) ends everybody that the program started: when it ends itself,
when it is let go, and when bridle is killed.
"""

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE, Process
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
from bridle.tools.family import Family
from bridle.tools.mcp.guarded import Guarded
from bridle.tools.mcp.spec import Spec
from bridle.tools.mcp.tally import TOO_MUCH, Tally
from bridle.tools.process import clean_environment
from bridle.workspace.lookup import find_program, is_below
from bridle.workspace.sandbox import supervised
from bridle.workspace.text import neutral

LARGEST = 16 * 1024 * 1024  # bytes of one message
WORDS = 4_000  # bytes that are kept of what it says beside the protocol
_CHUNK = 1 << 16
_POLITE = 0.5  # seconds to end by itself once its input is closed, and once it is asked to
_FAREWELL = 3.0  # seconds that the supervisor has for ending everybody

Sending = MemoryObjectSendStream[SessionMessage | Exception]
Receiving = MemoryObjectReceiveStream[SessionMessage]


class Pipe:
    """The way to one server by pipes. `trouble` is why it was let go, where it was."""

    def __init__(self, spec: Spec, folder: str) -> None:
        self._spec = spec
        self._folder = spec.cwd or folder
        self._roots = (folder, os.path.realpath(folder))  # where anybody may have put programs
        self._family = Family()
        self._said = b""
        self._lifeline = -1
        self.trouble = ""
        self.lost = False
        self.on_change: Callable[[], None] = lambda: None
        self.guard: Guarded | None = None

    @property
    def last_words(self) -> str:
        """The end of what it said beside the protocol: mostly why it did not work."""
        return neutral(self._said.decode(errors="replace").strip())

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """The two streams, as the SDK wants them; the program lives as long as they are used."""
        process = await self._start()
        heard_by, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        say, said = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.ensure_future(self._listen(process, heard_by)),
            asyncio.ensure_future(self._speak(process, said, heard_by)),
            asyncio.ensure_future(self._overhear(process)),
        ]
        self.guard = Guarded(heard, lambda: self.on_change())
        try:
            yield self.guard, say
        finally:
            for stream in (heard, say, said, heard_by):
                stream.close()
            await self._end(process, tasks)

    async def _start(self) -> Process:
        environment = {**clean_environment(self._roots), **self._spec.env}
        if given := self._spec.env.get("PATH"):
            environment["PATH"] = self._elsewhere(given)
        words = [self._program(environment.get("PATH", "")), *self._spec.command[1:]]
        theirs, self._lifeline = os.pipe()
        try:
            start = supervised(words, theirs)
            process = await asyncio.create_subprocess_exec(
                *start.argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=self._folder,
                env=self._family.marked(environment),
                start_new_session=True,
                pass_fds=start.handles,
            )
        except (OSError, ValueError) as error:  # ValueError: NUL, or a lone surrogate
            self._let_go()
            raise ToolError(f"it cannot be started: {error}", error) from error
        except BaseException:
            self._let_go()
            raise
        finally:
            os.close(theirs)
        self._family.lead(process.pid)
        return process

    def _program(self, path: str) -> str:
        """Where the program lies; a name alone is never found in the workspace."""
        name = self._spec.command[0]
        if "/" in name:
            found = str(Path(self._folder, Path(name).expanduser()))
            return found if os.access(found, os.X_OK) else self._missing(name)
        listed = shutil.which(name, path=path)
        if listed is not None and not is_below(listed, self._roots):
            return listed
        return find_program(name, self._roots) or self._missing(name)

    def _elsewhere(self, path: str) -> str:
        """Of a PATH that the person wrote, the folders outside the workspace."""
        found = (one for one in path.split(os.pathsep) if one.startswith("/"))
        return os.pathsep.join(one for one in found if not is_below(one, self._roots))

    def _missing(self, name: str) -> str:
        inside = "/" not in name and shutil.which(name, path=self._spec.env.get("PATH"))
        raise ToolError(f"there is no program {name!r}{' outside the workspace' if inside else ''}")

    async def _listen(self, process: Process, to: Sending) -> None:
        """Hand on what it says, line by line."""
        assert process.stdout is not None
        parts: list[bytes] = []
        size = 0
        tally = Tally()
        with to, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while data := await process.stdout.read(_CHUNK):
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

    async def _speak(self, process: Process, said: Receiving, to: Sending) -> None:
        """Hand over what it is to hear. Where that does not work any more, it is let go."""
        assert process.stdin is not None
        try:
            with said:
                async for item in said:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            to.close()

    async def _overhear(self, process: Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(_CHUNK):
            self._said = (self._said + data)[-WORDS:]

    async def _end(self, process: Process, tasks: list["asyncio.Task[None]"]) -> None:
        """Close its input, ask, and have everybody ended; nobody is left, whatever it does."""
        try:
            assert process.stdin is not None
            process.stdin.close()
            if not await _gone(process, _POLITE):
                with suppress(OSError):
                    os.write(self._lifeline, b"T")
                await _gone(process, _POLITE)
        finally:
            self._let_go()
            by_itself = await _gone(process, _FAREWELL)
            if not by_itself or process.returncode == -9:  # the supervisor itself was ended
                self._family.end(thorough=True)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            _close(process)

    def _let_go(self) -> None:
        handle, self._lifeline = self._lifeline, -1
        if handle >= 0:
            os.close(handle)


async def _deliver(line: bytes, to: Sending) -> None:
    """One line as a message; what is none is passed over, but for an answer: somebody waits."""
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
    """The request that a broken answer answers, where that can be told."""
    try:
        found: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(found, dict) or "method" in found:
        return None
    number = found.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


async def _gone(process: Process, seconds: float) -> bool:
    """Wait for its end. Not by `wait`: somebody who holds its output would be waited for, too."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while process.returncode is None:
        if loop.time() >= until:
            return False
        await asyncio.sleep(0.005)
    return True


def _close(process: Process) -> None:
    """Let go of the pipes, also where somebody still holds the other end."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
