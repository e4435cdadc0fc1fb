"""A server on 127.0.0.1 that says what a test tells it to, byte for byte."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bridle.events import ModelEvent
from bridle.messages import Message, user
from bridle.protocols.provider import Provider, Request

RECORDINGS = Path(__file__).parent.parent / "recordings"
Answerer = Callable[["Exchange"], Awaitable[None]]


class Exchange:
    """One request as it came, and the way to answer it."""

    def __init__(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.line, *lines = head.split("\r\n")
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        self.headers = {name.lower(): value.strip() for name, value in pairs}
        self.body = b""
        self._reader = reader
        self._writer = writer

    async def begin(self, status: int = 200, **headers: str) -> None:
        """The answer's head; the body follows in chunks."""
        lines = [f"HTTP/1.1 {status} Whatever", "transfer-encoding: chunked"]
        headers.setdefault("content-type", "text/event-stream")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode())
        await self._writer.drain()

    async def say(self, data: bytes) -> None:
        """One chunk of the body; an empty one would end it."""
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """The end of the body."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def raw(self, data: bytes) -> None:
        """Bytes as they are, outside of any framing."""
        self._writer.write(data)
        await self._writer.drain()

    async def hang_up(self) -> None:
        """Close the connection, whatever was under way."""
        self._writer.close()

    async def wait_until_gone(self) -> None:
        """Return when the client has closed the connection."""
        with contextlib.suppress(ConnectionError):
            assert await self._reader.read(1) == b""


class Loopback:
    """What the server was asked so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Exchange] = []
        self.connections = 0


@asynccontextmanager
async def served(answer: Answerer) -> AsyncIterator[Loopback]:
    """A server for the duration of a test; every request is given to `answer`."""
    tasks: set[asyncio.Task[None]] = set()
    place = Loopback("")

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip("\r\n")
                exchange = Exchange(head, reader, writer)
                exchange.body = await reader.readexactly(
                    int(exchange.headers.get("content-length", "0"))
                )
                place.asked.append(exchange)
                await answer(exchange)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(converse(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    place.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield place
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def saying(*chunks: bytes, **headers: str) -> Answerer:
    """Answers every request with a stream of these chunks."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin(**headers)
        for chunk in chunks:
            await exchange.say(chunk)
        await exchange.end()

    return answer


def refusing(status: int, body: bytes, **headers: str) -> Answerer:
    """Answers every request with this status and document."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin(status, **{"content_type": "application/json", **headers})
        await exchange.say(body)
        await exchange.end()

    return answer


def recording(name: str) -> bytes:
    """A stream from the folder of recordings."""
    return (RECORDINGS / name).read_bytes()


ASK = Request([user("go on")])


async def collected(provider: Provider, request: Request = ASK) -> list[ModelEvent]:
    """Everything one request yields; the provider is closed."""
    try:
        return [event async for event in provider.stream(request)]
    finally:
        await provider.close()


def split_everywhere(data: bytes, limit: int = 1 << 30) -> Sequence[tuple[bytes, bytes]]:
    """The stream cut in two, at every byte."""
    return [(data[:cut], data[cut:]) for cut in range(1, min(len(data), limit))]


def prompts(*texts: str) -> list[Message]:
    """Messages of the person, one for each text."""
    return [user(text) for text in texts]
