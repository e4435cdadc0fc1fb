"""A fake vendor server: real HTTP on loopback, replies from a script, faults on demand.

Knows the life of a server and of a stream (paces, splits, cuts, silences). What is said in the
stream, and which requests are refused, each API knows for itself.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import msgspec
from aiohttp import web

from bridle.testing.script import (
    Block,
    Names,
    WireAnswering,
    WireFault,
    WireReply,
    WireScriptable,
    to_wire_reply,
)

_PIECE = 2**16


class Frame(NamedTuple):
    """One server-sent event; an empty name is left out, and text is sent as it is."""

    name: str
    data: dict[str, Any] | str


class Received(NamedTuple):
    """A request as it came in; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Speaker(Protocol):
    """One stream of one API."""

    def blocks(self) -> Iterable[Block]: ...
    def open(self) -> Iterable[Frame]: ...
    def say(self, block: Block) -> Iterable[Frame]: ...
    def ping(self) -> Frame | str: ...
    def fail(self, fault: WireFault) -> Iterable[Frame]: ...
    def close(self) -> Iterable[Frame]: ...


class Api(Protocol):
    """One API of a vendor: where it lives, what it refuses, how it speaks and fails."""

    path: str
    request_id_header: str

    def refuse(self, received: Received) -> WireFault | None: ...
    def failure(self, fault: WireFault, request_id: str) -> tuple[int, dict[str, Any]]: ...
    def speaker(self, reply: WireReply, body: dict[str, Any], names: Names) -> Speaker: ...


class FakeServer:
    """`async with FakeAnthropic([…]) as server: server.url`. Replies are used up in order.

    `requests` keeps what came in, also what was refused. `strict=False` lets requests that break
    the vendor's rules pass. `loop` repeats the script.
    """

    prefix = ""
    owner = "fake"

    def __init__(
        self,
        script: Iterable[WireScriptable | WireAnswering] | WireAnswering = (),
        *,
        strict: bool = True,
        loop: bool = False,
    ) -> None:
        answers = [script] if callable(script) else list(script)
        self._answers = [each if callable(each) else to_wire_reply(each) for each in answers]
        self._loop = loop or callable(script)
        self._strict = strict
        self._apis = self.apis()
        self._told = 0
        self._names = Names()
        self._runner: web.ServerRunner | None = None
        self._news = asyncio.Condition()
        self.requests: list[Received] = []
        self.disconnects = 0
        self.port = 0

    def apis(self) -> tuple[Api, ...]:
        """The APIs this vendor has, made once."""
        raise NotImplementedError

    def counted(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The answer of an endpoint that says something of a request, and no reply; None: none."""
        return None

    @property
    def url(self) -> str:
        """What a client is given as its base URL."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    async def start(self, port: int = 0) -> Self:
        """Listen on loopback; port 0 takes a free one."""
        server = web.Server(self._serve, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        """Close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def disconnected(self, count: int = 1) -> None:
        """Return once so many clients have gone away in the middle of a reply."""
        async with self._news:
            await self._news.wait_for(lambda: self.disconnects >= count)

    async def asked(self, count: int = 1) -> None:
        """Return once so many requests have come in."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.requests) >= count)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except (asyncio.CancelledError, ConnectionResetError):
            self.disconnects += 1
            await self._tell()
            raise

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.removeprefix("/v1")
        if path == "/models":
            row = {"id": "fake-model", "object": "model", "owned_by": self.owner}
            return web.json_response({"object": "list", "data": [row]})
        api = next((each for each in self._apis if each.path == path), None)
        if api is None:
            return await self._plain(path, request)
        received = await _receive(request)
        self.requests.append(received)
        await self._tell()
        request_id = f"req_{len(self.requests):04}"
        if self._strict and (refusal := api.refuse(received)) is not None:
            return _fail(api, refusal, request_id)
        reply = self._next(received.body)
        await asyncio.sleep(reply.delay)
        if reply.error is not None and not reply.speaks and reply.raw is None:
            return await self._fault(api, reply.error, request, request_id)
        return await self._stream(api, reply, request, received, request_id)

    async def _plain(self, path: str, request: web.BaseRequest) -> web.Response:
        found = self.counted(path, (await _receive(request)).body)
        if found is None:
            return web.Response(status=404, text="404: Not Found")
        return web.json_response(found)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    def _next(self, body: dict[str, Any]) -> WireReply:
        count = len(self._answers)
        self._told += 1
        if not count or (self._told > count and not self._loop):
            message = f"the fake's script has {count} replies and was asked for {self._told}"
            return WireReply(error=WireFault("invalid", message, status=400))
        answer = self._answers[(self._told - 1) % count]
        return answer if isinstance(answer, WireReply) else to_wire_reply(answer(body))

    async def _fault(
        self, api: Api, fault: WireFault, request: web.BaseRequest, request_id: str
    ) -> web.StreamResponse:
        if fault.status is None and fault.kind == "timeout":
            await asyncio.Event().wait()
        if fault.status is None and fault.kind == "network":
            return _hang_up(request, web.Response())
        return _fail(api, fault, request_id)

    async def _stream(
        self,
        api: Api,
        reply: WireReply,
        request: web.BaseRequest,
        received: Received,
        request_id: str,
    ) -> web.StreamResponse:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            api.request_id_header: request_id,
        }
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        budget = reply.cut_at
        async for piece in _paced(api.speaker(reply, received.body, self._names), reply):
            if budget is not None and len(piece) >= budget:
                await response.write(piece[:budget])
                return _hang_up(request, response)
            budget = None if budget is None else budget - len(piece)
            await response.write(piece)
        if reply.silent:
            await asyncio.Event().wait()
        if reply.cut:
            return _hang_up(request, response)
        await response.write_eof()
        return response


async def _receive(request: web.BaseRequest) -> Received:
    raw = b"".join([chunk async for chunk in request.content.iter_chunked(_PIECE)])
    try:
        body = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = {}
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Received(request.path, headers, body)


def _fail(api: Api, fault: WireFault, request_id: str) -> web.Response:
    status, body = api.failure(fault, request_id)
    headers = {api.request_id_header: request_id, **fault.headers}
    if fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:g}"
    if fault.body is not None:
        return web.Response(status=status, text=fault.body, headers=headers)
    return web.json_response(body, status=status, headers=headers)


def _hang_up(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """Close the socket as a dying server does: what was written still arrives, the end never."""
    if request.transport is not None:
        request.transport.close()
    return response


async def _paced(speaker: Speaker, reply: WireReply) -> AsyncIterator[bytes]:
    """The bytes of a stream as they are to be written, one by one."""
    for event in _events(speaker, reply):
        size = reply.split or _PIECE
        for start in range(0, len(event), size):
            yield event[start : start + size]
            if reply.split:  # let the reader have these before the next ones come
                await asyncio.sleep(0)
        if reply.pause:
            await asyncio.sleep(reply.pause)


def _events(speaker: Speaker, reply: WireReply) -> Iterator[bytes]:
    if reply.raw is not None:
        yield reply.raw.encode("utf-8", "surrogateescape")
        return
    for frame in _frames(speaker, reply):
        yield _encode(frame, reply.newline)


def _frames(speaker: Speaker, reply: WireReply) -> Iterator[Frame | str]:
    yield from speaker.open()
    blocks = iter(speaker.blocks())
    if (first := next(blocks, None)) is not None:
        yield from speaker.say(first)
    yield from (speaker.ping() for _ in range(reply.pings))
    yield from (Frame(str(data.get("type", "")), data) for data in reply.unknown)
    if reply.broken:
        yield Frame("broken", reply.broken)
    yield from _line(reply.huge)
    for block in blocks:
        yield from speaker.say(block)
    if reply.error is not None:
        yield from speaker.fail(reply.error)
    elif not (reply.cut or reply.silent):
        yield from speaker.close()


def _line(size: int) -> Iterator[str]:
    """One line of so many bytes, a piece at a time: nobody has to hold it whole."""
    if size:
        yield "data: "
        yield from ("x" * min(_PIECE, size - start) for start in range(0, size, _PIECE))
        yield "\n\n"


def _encode(frame: Frame | str, newline: str) -> bytes:
    if isinstance(frame, str):
        return frame.replace("\n", newline).encode()
    data = frame.data if isinstance(frame.data, str) else msgspec.json.encode(frame.data).decode()
    name = f"event: {frame.name}{newline}" if frame.name else ""
    return f"{name}data: {data}{newline}{newline}".encode()
