"""A server that answers as it is told to, and the terminal's screen attached to it."""

import asyncio
import json
from contextlib import asynccontextmanager

from aiohttp import web

from bridle.client import Client
from bridle.events import PromptReceived, TextDelta, TurnEnded
from bridle.protocols.codec import encode_data
from bridle.tui.remote_backend import RemoteBackend
from tui.screen_rig import app_at

ID = "20260101-000000-abcdef"
EVENTS = (PromptReceived("hi", 1), TextDelta("so it is"), TurnEnded(1, "done"))
LINE = {"id": ID, "title": "there", "workspace": "/w", "mode": "ask", "seq": len(EVENTS)}


def block(seq, event):
    """A record as a stream has it."""
    stamp = "2026-01-01T00:00:00Z"
    data = b'{"seq":%d,"timestamp":"%b","data":%b}' % (seq, stamp.encode(), encode_data(event))
    return b"id: %d\nevent: trace\ndata: " % seq + data + b"\n\n"


class Lies:
    """What is answered: by the end of a path, the body; what is not named is answered honestly."""

    def __init__(self, answers=None, events=EVENTS, line=None):
        self.answers = dict(answers or {})
        self.blocks = [block(seq, event) for seq, event in enumerate(events, 1)]
        self.line = {**LINE, "seq": len(self.blocks), **(line or {})}
        self.asked = []
        self.news = asyncio.Event()

    async def handle(self, request):
        """One request."""
        path = request.path
        self.asked.append(f"{request.method} {request.path_qs}")
        if path.endswith(("/stream", "/api/events")):
            return await self._stream(request, path)
        for end, body in self.answers.items():
            if path.endswith(end):
                said = body(request) if callable(body) else body
                return said if isinstance(said, web.Response) else web.Response(body=said)
        return web.Response(body=json.dumps(self.line).encode())

    async def _stream(self, request, path):
        for end, body in self.answers.items():
            if end and path.endswith(end):
                return body(request)
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        if path.endswith("/stream"):
            for one in self.blocks:
                await answer.write(one)
        await self.news.wait()
        return answer


@asynccontextmanager
async def lying(lies):
    """The server; gives its address."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", lies.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        lies.news.set()
        await runner.cleanup()


@asynccontextmanager
async def visited(lies, size=(80, 24)):
    """The screen, attached to it: the pilot."""
    async with lying(lies) as url, Client(url, "token") as client:
        house = RemoteBackend(client, await client.session(ID))
        async with app_at(house, size) as pilot:
            yield pilot
