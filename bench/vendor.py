"""The fake vendor: one process on loopback that answers every model request with ready-made bytes.

The scenario is the first part of the URL's path (`/deltas-1000/v1/messages`). What turn a run has
reached is read off its request by counting the tool results in it, without parsing: the server
keeps nothing about a run. `talk` asks for one call in each turn of a session that goes on and on
and `pages` says a few pages, `paced` and `brisk` write as slowly as a model does. It notes when
requests came and when replies left, so that a client's start and a step's length are seen from
outside, the same way for all. Knows no client.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from bench.wire import PROTOCOLS, Call, Reply

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"request-id: req_bench\r\nx-request-id: req_bench\r\ntransfer-encoding: chunked\r\n\r\n"
)
# The last part of the path tells the protocol, and the words that mark a result in its requests.
DOORS = {
    b"messages": ("anthropic", b'"tool_result"'),
    b"responses": ("responses", b'"function_call_output"'),
    b"completions": ("chat", b'"tool_call_id"'),
}
WORDS = ("The", " quick", " brown", " fox", " jumps", " over", " the", " lazy", " dog", ".\n")
CHUNK_EVENTS = 16
PACE, PACE_EVENTS = 0.02, 2  # seconds between two parts of a reply that is paced: 100 deltas/s
BRISK, BRISK_EVENTS = 0.005, 1  # ... and of a brisk one: 200 deltas/s
PAGE = (
    "## What was found\n\nThe *quick* brown fox reads `basket.py` and finds that **ten** is not a "
    "hundred; so it looks again, line by line, and writes down what it sees.\n\n"
    "- the first item is as it should be\n- the second one was counted twice\n\n"
    "```python\ndef total(basket):\n    return sum(item.price for item in basket)\n```\n\n"
)
PIECES = tuple(re.findall(r"\s*\S+|\s+$", PAGE))


class Times:
    """When requests came and when replies left, since the last reset."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.answered: list[float] = []

    def clear(self) -> None:
        """Forget everything so far."""
        self.asked.clear()
        self.answered.clear()

    def dump(self) -> bytes:
        """All of it as JSON."""
        return json.dumps({"asked": self.asked, "answered": self.answered}).encode()


class Connection(asyncio.Protocol):
    """One client's connection: requests in, bytes out, as often as it likes."""

    def __init__(self, times: Times) -> None:
        self.times = times
        self.waiting = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            length = content_length(bytes(self.waiting[:end]))
            whole = end + 4 + length
            if len(self.waiting) < whole:
                return
            target = bytes(self.waiting[: self.waiting.find(b"\r\n")]).split(b" ")[1]
            body = self.waiting[end + 4 : whole]
            del self.waiting[:whole]
            self.answer(target, body)

    def answer(self, target: bytes, body: bytearray) -> None:
        """Write the reply that belongs to this request."""
        if target.startswith(b"/_"):
            self.transport.write(plain(self.tell(target)))
            return
        self.times.asked.append(time.monotonic())
        scenario, door = target.split(b"/")[1], target.split(b"?")[0].rsplit(b"/", 1)[1]
        protocol, mark = DOORS[door]
        if scenario.startswith((b"paced", b"brisk")):
            brisk = scenario.startswith(b"brisk")
            parts = list(paced(scenario.decode(), protocol, BRISK_EVENTS if brisk else PACE_EVENTS))
            self.trickle(parts, BRISK if brisk else PACE)
            return
        found = answered(scenario, body, protocol, mark)
        self.transport.write(found or prepared(scenario.decode(), protocol, body.count(mark)))
        self.times.answered.append(time.monotonic())

    def trickle(self, parts: list[bytes], pace: float) -> None:
        """One part now, and the others one by one, as a model writes; late ones are caught up."""
        loop = asyncio.get_running_loop()
        begun, parts = loop.time(), parts[::-1]

        def write(number: int) -> None:
            if self.transport.is_closing():
                return
            self.transport.write(parts.pop())
            if parts:
                loop.call_at(begun + number * pace, write, number + 1)
            else:
                self.times.answered.append(time.monotonic())

        write(1)

    def tell(self, target: bytes) -> bytes:
        """The times, for the harness; asking resets them."""
        told = self.times.dump()
        if target == b"/_reset":
            self.times.clear()
        return told


def content_length(head: bytes) -> int:
    """How many bytes of body follow this head."""
    lower = head.lower()
    at = lower.find(b"content-length:")
    if at < 0:
        return 0
    return int(lower[at + 15 :].split(b"\r\n", 1)[0])


def plain(body: bytes) -> bytes:
    """A small whole HTTP response."""
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


@cache
def prepared(scenario: str, protocol: str, results: int) -> bytes:
    """A reply that is made once."""
    return whole(tell_story(scenario, results), protocol)


def whole(reply: Reply, protocol: str) -> bytes:
    """A reply as it goes out: head, then the events, several to a chunk, as a proxy would."""
    events = list(PROTOCOLS[protocol](reply))
    return b"".join([HEAD, *chunks(events, CHUNK_EVENTS), b"0\r\n\r\n"])


def talk(body: bytearray, protocol: str, mark: bytes) -> bytes:
    """A call to every prompt and a word to every result; and tokens are counted, as vendors do.

    Without tools it is a summary that is asked for.
    """
    told = body.rfind(mark) > body.rfind(b'"type":"text"') or b'"tools":' not in body
    results = body.count(mark)
    call = Call(f"toolu_{results:04}_{len(body)}", "lookup", json.dumps({"key": f"item-{results}"}))
    reply = Reply(("All", " done", ".")) if told else Reply(("Looking", " that", " up."), (call,))
    return whole(replace(reply, read=len(body) // 4), protocol)


def answered(scenario: bytes, body: bytearray, protocol: str, mark: bytes) -> bytes | None:
    """A reply that depends on the whole request; None: it is one that is made once."""
    if scenario == b"talk":
        return talk(body, protocol, mark)
    if scenario == b"pages":
        return whole(Reply(PIECES * 20, read=len(body) // 4), protocol)
    return None


def paced(scenario: str, protocol: str, at_once: int) -> Iterator[bytes]:
    """The parts of a reply that comes a few deltas at a time."""
    events = list(PROTOCOLS[protocol](tell_story(scenario, 0)))
    yield HEAD
    yield from chunks(events, at_once)
    yield b"0\r\n\r\n"


def chunks(events: list[bytes], size: int) -> Iterator[bytes]:
    """The events as chunks of HTTP, so many in each."""
    for at in range(0, len(events), size):
        piece = b"".join(events[at : at + size])
        yield b"%x\r\n%s\r\n" % (len(piece), piece)


def tell_story(scenario: str, results: int) -> Reply:
    """What the model says at this point of a scenario."""
    kind, _, size = scenario.partition("-")
    number = int(size or 0)
    if kind in ("deltas", "paced"):
        return Reply(tuple(WORDS[i % len(WORDS)] for i in range(number)))
    if kind == "brisk":
        return Reply(tuple(PIECES[i % len(PIECES)] for i in range(number)))
    if kind == "tools" and results < number:
        call = Call(f"toolu_{results:04}", "lookup", json.dumps({"key": f"item-{results:04}"}))
        return Reply(("Looking", " that", " up."), (call,))
    if kind == "parallel" and results == 0:
        names = [f"part-{i}" for i in range(number)]
        calls = tuple(Call(f"toolu_{n}", "lookup", json.dumps({"key": n})) for n in names)
        return Reply((), calls)
    return Reply(("All", " done", "."))


async def serve() -> None:
    """Listen, say where, and stay until stdin closes (so that no server outlives its harness)."""
    loop = asyncio.get_running_loop()
    times = Times()
    server = await loop.create_server(lambda: Connection(times), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.sched_setaffinity(0, {int(sys.argv[1])})
    asyncio.run(serve())
