"""What tests of streams need: sessions of real parts, and one who reads server-sent events."""

import asyncio
import json
from contextlib import aclosing

from bridle.events import TraceEvent
from bridle.protocols.session_values import SessionInfo
from bridle.server.streams import Streams
from bridle.stores.file_catalog import FileCatalog
from bridle.stores.jsonl import JsonlStore
from rig import make_engine


class House:
    """Sessions of a real engine over real files; `elsewhere` is like another process."""

    def __init__(self, folder, **rest):
        self.folder = JsonlStore(folder)
        self.catalog = FileCatalog(folder)
        self.elsewhere = JsonlStore(folder)
        self.engine = make_engine(["yes"], store=self.folder)
        self._tell = []
        self.streams = Streams(self, **rest)

    async def info(self, session_id):
        self.folder.path(session_id)
        return SessionInfo(id=session_id)

    def get_open(self, session_id):
        return self.engine.get_open(session_id)

    def on_changed(self, tell, *, others=True):
        self._tell.append(tell)
        return lambda: self._tell.remove(tell)

    def tell(self, session_id, how):
        for one in list(self._tell):
            one(session_id, how)

    async def open(self, session_id=None):
        session = await self.engine.session(session_id)
        self.tell(session.id, "opened")
        return session

    async def let_go(self, session):
        await session.close()
        self.tell(session.id, "closed")

    async def begun(self):
        """A session with its first record on disk."""
        session = await self.open()
        session._write_opening()
        await session._log.settled()
        return session

    async def close(self):
        await self.streams.stop()
        await self.engine.close()
        self.elsewhere.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()


async def until_live(house, session_id, count=1):
    """Until so many have read what was before, and wait for what that session says next."""
    feeds = house.streams._feeds
    while not (found := feeds.get(session_id)) or _waiting(found) < count:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)


def _waiting(feed):
    return sum(place.watcher._waiter is not None for place in feed._places)


def note(number):
    """A record that says which one it is."""
    return TraceEvent("note", {"number": number})


class Parser:
    """Server-sent events, parsed as the specification says."""

    def __init__(self):
        self.rest = b""
        self.position = ""

    def feed(self, chunk):
        """The events that end in what came: (name, data, position)."""
        self.rest += chunk
        *blocks, self.rest = self.rest.split(b"\n\n")
        return [event for block in blocks if (event := self._block(block)) is not None]

    def _block(self, block):
        name, data = "message", []
        for line in block.decode().split("\n"):
            field, _, value = line.partition(": ")
            if field == "id":
                self.position = value
            elif field == "event":
                name = value
            elif field == "data":
                data.append(value)
        return (name, json.loads("\n".join(data)), self.position) if data else None


async def read(chunks, wanted):
    """Events until `wanted(event)`; all of them."""
    parser, seen = Parser(), []
    async with aclosing(chunks) as pieces:
        async for chunk in pieces:
            for event in parser.feed(chunk):
                seen.append(event)
                if wanted(event):
                    return seen
    return seen


def seqs(events):
    """The numbers of the records among them."""
    return [data["seq"] for _, data, _ in events if "seq" in data]
