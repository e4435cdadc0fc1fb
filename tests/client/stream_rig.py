"""A server on loopback that plays the streams it is told to, byte by byte, and breaks off."""

import asyncio
import json
import re
from contextlib import asynccontextmanager

from bridle.client.connection import Connection
from bridle.client.stream_feed import StreamFeed
from bridle.events import PromptReceived, TextDelta, TurnEnded
from bridle.protocols.codec import encode_data, to_record
from bridle.protocols.session_values import SessionInfo

ID = "20260101-000000-abcdef"


def line(seq, event, stamp="2026-01-01T00:00:00Z"):
    """A record as a stream has it."""
    return b'{"seq":%d,"timestamp":"%b","data":%b}' % (seq, stamp.encode(), encode_data(event))


def story(count):
    """So many records of one turn."""
    middle = [TextDelta(f"word {number} ") for number in range(count - 2)]
    events = [PromptReceived("hi", 1), *middle, TurnEnded(1, "done")]
    return [line(seq, event) for seq, event in enumerate(events, 1)]


def frames(lines, after, settled):
    """What is sent to one who comes back with that number: ids up to the settled mark."""
    found = b"retry: 1000\n\n: hello\n\n"
    for seq, data in enumerate(lines, 1):
        if seq > after:
            mark = b"id: %d\n" % seq if seq <= settled else b""
            found += mark + b"event: trace\ndata: " + data + b"\n\n"
    return found + b"id: %d\n\n" % settled if settled > after else found


class Stage:
    """What is played: `play(after)` gives the bytes of a connection; `asked` keeps the places."""

    def __init__(self, play):
        self._play = play
        self.asked = []

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        found = re.search(r"last-event-id: (\d+)", head, re.I) or re.search(r"after=(\d+)", head)
        if "/records?" in head:
            body = json.dumps({"records": [], "next": 0, "last": 0}).encode()
            kind = b"application/json"
        else:
            self.asked.append(int(found[1]))
            body, kind = self._play(int(found[1])), b"text/event-stream"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n" % kind + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def followed(play, tell=None):
    """A feed of a server that plays this, and the stage."""
    stage = Stage(play)
    server = await asyncio.start_server(stage.serve, "127.0.0.1", 0)
    connection = Connection(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "token")
    feed = StreamFeed(connection, SessionInfo(id=ID), tell)
    feed.start()
    try:
        yield feed, stage
    finally:
        await feed.close()
        await connection.close()
        server.close()
        await server.wait_closed()


async def first(feed, count, after=0):
    """So many records of the feed."""
    found = []
    records = feed.records(after)
    async for record in records:
        found.append(record)
        if len(found) == count:
            break
    await records.aclose()
    return found


def read(lines):
    return [to_record(one) for one in lines]
