"""How messages get to a server and back: by the pipes of a program, or by HTTP."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter

from bridle.errors import ToolError
from bridle.tools.mcp.message_filter import (
    MAX_MESSAGE,
    TOO_LARGE,
    FilteredStream,
    JsonCounter,
    RateLimit,
)
from bridle.tools.mcp.oauth import Browser, oauth_provider
from bridle.tools.mcp.spec import ServerSpec
from bridle.workspace.process.command import clean_environment
from bridle.workspace.process.supervised_process import SupervisedProcess
from bridle.workspace.programs import find_program, is_in_roots

_CHUNK = 1 << 16

_SendStream = MemoryObjectSendStream[SessionMessage | Exception]
_ReceiveStream = MemoryObjectReceiveStream[SessionMessage]


class StdioTransport:
    """The stdin and stdout of a program that is started below a supervisor.

    Each line is one message. A line that is too long ends the server; a line that is not a message
    is skipped.

    `problem` says why we ended it, if we did. `stream` has its messages, once it is open.
    """

    is_expired = False  # a program that has forgotten our session has ended

    def __init__(self, spec: ServerSpec, folder: str, on_change: Callable[[], None]) -> None:
        self._spec = spec
        self._folder = spec.cwd or folder
        self._roots = (folder, os.path.realpath(folder))  # a call may have put programs there
        self._on_change = on_change
        self._process: SupervisedProcess | None = None
        self.problem = ""
        self.stream: FilteredStream | None = None

    @property
    def stderr_tail(self) -> str:
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
            asyncio.ensure_future(_send(process, from_client, to_client)),
        ]
        self.stream = FilteredStream(from_server, self._on_change)
        try:
            yield self.stream, to_server
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
        if path := self._spec.env.get("PATH"):  # without the folders of the workspace
            folders = (folder for folder in path.split(os.pathsep) if folder.startswith("/"))
            outside = (folder for folder in folders if not is_in_roots(folder, self._roots))
            environment["PATH"] = os.pathsep.join(outside)
        argv = [self._find_program(environment.get("PATH", "")), *self._spec.command[1:]]
        try:
            return await SupervisedProcess.start(argv, self._folder, environment)
        except (OSError, ValueError) as error:  # ValueError: NUL, or a lone surrogate
            raise ToolError(f"it cannot be started: {error}", error) from error

    def _find_program(self, path: str) -> str:
        """Find the program. A name alone is never found in the workspace. Raise `ToolError`."""
        name = self._spec.command[0]
        if "/" in name:
            program = str(Path(self._folder, Path(name).expanduser()))
            if os.access(program, os.X_OK):
                return program
            raise ToolError(f"there is no program {name!r}")
        listed = shutil.which(name, path=path)
        if listed is not None and not is_in_roots(listed, self._roots):
            return listed
        if other := find_program(name, self._roots):
            return other
        is_inside = shutil.which(name, path=self._spec.env.get("PATH"))
        where = " outside the workspace" if is_inside else ""
        raise ToolError(f"there is no program {name!r}{where}")

    async def _receive(self, process: SupervisedProcess, client: _SendStream) -> None:
        """Pass on what the server says, line by line."""
        parts: list[bytes] = []
        size = 0
        counter = JsonCounter()
        with client, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while data := await process.reader.read(_CHUNK):
                *lines, rest = data.split(b"\n")
                for line in lines:
                    if not counter.add(line):
                        self.problem = TOO_LARGE
                        return
                    counter.reset()
                    parts.append(line)
                    await _pass_on(b"".join(parts), client)
                    parts.clear()
                    size = 0
                parts.append(rest)
                size += len(rest)
                if not counter.add(rest):
                    self.problem = TOO_LARGE
                    return
                if size > MAX_MESSAGE:
                    self.problem = f"it sent a message of more than {MAX_MESSAGE:,} bytes"
                    return


async def _send(process: SupervisedProcess, messages: _ReceiveStream, client: _SendStream) -> None:
    """Write messages to the server. If that fails, the client sees that the server has ended."""
    try:
        with messages:
            async for item in messages:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.writer.write(text.encode() + b"\n")
                await process.writer.drain()
    except (OSError, anyio.ClosedResourceError):
        client.close()


async def _pass_on(line: bytes, client: _SendStream) -> None:
    """Pass on a line as a message. A broken answer becomes an error: its request waits for it."""
    if not line.strip():
        return
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        number = _request_id(line)
        if number is None:
            await client.send(ValueError("not a message"))
            return
        error = ErrorData(code=INVALID_REQUEST, message="the answer is not what MCP says it is")
        message = JSONRPCError(jsonrpc="2.0", id=number, error=error)
    await client.send(SessionMessage(message))


def _request_id(line: bytes) -> int | str | None:
    """Return the id of the request that a broken answer belongs to, None if it cannot be read."""
    try:
        message: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(message, dict) or "method" in message:
        return None
    number = message.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


_CONNECT_SECONDS = 15.0
_MAX_REOPENED = 20  # streams that are reopened at once: the SDK does so whenever the server says
_PROBLEMS = {
    401: "it answered 401: it wants a token, or another one",
    403: "it answered 403: this is not allowed with that token",
    404: "it answered 404: there is no MCP server at that address",
    405: "it answered 405: there is no MCP server at that address",
}


class HttpTransport:
    """A server behind a URL, by the SDK's streamable HTTP.

    The SDK follows redirects only within the URL's own origin. Answers are limited as they come
    over the wire. A compressed one is refused, because it could expand to any size.

    `problem` is what was wrong with the last bad answer. `stream` has the messages, once it is
    open.
    """

    stderr_tail = ""  # only programs have one

    def __init__(
        self, spec: ServerSpec, browser: Browser | None, on_change: Callable[[], None]
    ) -> None:
        self._spec = spec
        self._browser = browser
        self._on_change = on_change
        self._reopened = RateLimit(_MAX_REOPENED, 0.05)
        self._expired_requests: set[int | str] = set()
        self.problem = ""
        self.is_expired = False  # the server does not know our session any more
        self.stream: FilteredStream | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Yield the two streams that the SDK wants."""
        client = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self._spec.headers},
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),  # a call has its own deadline
            event_hooks={"response": [self._check_response]},
            auth=oauth_provider(self._spec, self._browser) if self._spec.tokens else None,
        )
        async with (
            client,
            streamable_http_client(
                self._spec.url, http_client=client, max_sse_event_size=MAX_MESSAGE
            ) as (received, to_server),
        ):
            self.stream = FilteredStream(received, self._on_change, self._expired_requests)
            yield self.stream, to_server

    async def _check_response(self, response: httpx2.Response) -> None:
        """Note what is wrong with an answer, and limit its body before it is read."""
        status = response.status_code
        if response.request.method == "GET" and not self._reopened.take():
            raise httpx2.RemoteProtocolError("it ends every stream as soon as it is opened")
        if response.request.method == "POST":  # a GET that finds no event stream is no problem
            self.problem = _PROBLEMS.get(status, f"it answered {status}") if status >= 400 else ""
            if status == 404 and "mcp-session-id" in response.request.headers:
                self.is_expired, self.problem = True, "it has forgotten this session"
                self._note_expired(response.request.content)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self.problem = "it sent a compressed answer, which was not requested"
            raise httpx2.RemoteProtocolError(self.problem)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _LimitedEvents(response.stream, self)
        else:
            response.stream = _LimitedBody(response.stream)

    def _note_expired(self, body: bytes) -> None:
        """Note a request that was certainly not carried out: this one, and no other."""
        with suppress(msgspec.DecodeError):
            message = msgspec.json.decode(body, type=_SentMessage)
            if message.method is not None and message.id is not None:
                self._expired_requests.add(message.id)


class _SentMessage(msgspec.Struct, gc=False):
    """What tells a request from an answer or a notification."""

    id: int | str | None = None
    method: str | None = None


class _LimitedEvents(httpx2.AsyncByteStream):
    """An event stream that ends with an error if one of its messages is too large."""

    def __init__(self, inner: httpx2.AsyncByteStream, transport: HttpTransport) -> None:
        self._inner = inner
        self._transport = transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        counter = JsonCounter()
        async for data in self._inner:
            if not counter.add_events(data):
                self._transport.problem = TOO_LARGE
                raise httpx2.SSEError(TOO_LARGE)
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LimitedBody(httpx2.AsyncByteStream):
    """A body that ends with an error if it is too long, or has too many values."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, counter = 0, JsonCounter()
        async for data in self._inner:
            size += len(data)
            if size > MAX_MESSAGE:
                raise httpx2.StreamError(f"the answer is longer than {MAX_MESSAGE:,} bytes")
            if not counter.add(data):
                raise httpx2.StreamError(TOO_LARGE)
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()
