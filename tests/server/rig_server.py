"""The real application under real uvicorn on a free loopback port, in the test's own event loop."""

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple

import aiohttp

from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.policy import ToolPolicy
from bridle.providers.scripted import Scripted
from bridle.server.app import Application
from bridle.server.auth import AllowedHosts
from bridle.server.context import ServerContext
from bridle.server.http import ServerLifecycle, bind, bind_unix
from bridle.server.login import Authenticator
from bridle.server.middleware import Limits
from bridle.server.streams import Streams
from bridle.server.tokens import Tokens
from bridle.service.engine_pool import EnginePool
from bridle.service.local_service import LocalService
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import as_tool
from bridle.workspace.workspace import Workspace

LIMITS = Limits(rate=0)


class Answer(NamedTuple):
    """What came back: `body` is the JSON, or the bytes where it is none."""

    status: int
    body: object
    headers: object

    @property
    def code(self):
        return self.body["code"]


class Event(NamedTuple):
    """A server-sent event."""

    id: str
    name: str
    data: object


class Running:
    """A server, and a client of it. `token` is the owner's."""

    def __init__(self, app, port, client, serving):
        self.app, self.room = app, app.room
        self.port, self.client, self.serving = port, client, serving
        self.token = app.room.door.tokens.own
        self.url = f"http://127.0.0.1:{port}" if port else "http://localhost"

    def headers(self, token=None, **more):
        token = self.token if token is None else token
        return ({"Authorization": f"Bearer {token}"} if token else {}) | more

    async def call(self, method, path, body=None, *, token=None, headers=None, **rest):
        """One request: the answer, its JSON taken apart."""
        sent = self.headers(token, **(headers or {}))
        how = {"json": body} if body is not None else {}
        async with self.client.request(
            method, self.url + path, headers=sent, **how, **rest
        ) as answer:
            found = await answer.read()
            kind = answer.headers.get("content-type", "")
            if found and kind in ("application/json", "application/problem+json"):
                found = json.loads(found)
            return Answer(answer.status, found, answer.headers)

    async def get(self, path, **rest):
        return await self.call("GET", path, **rest)

    async def post(self, path, body=None, **rest):
        return await self.call("POST", path, body, **rest)

    async def made(self, **wanted):
        """A new session's id."""
        answer = await self.post("/api/sessions", wanted)
        assert answer.status == 201, answer
        return answer.body["id"]

    async def events(self, path, *, token=None, headers=None):
        """The events of a stream, as long as it lasts; comments and positions are left out."""
        sent = self.headers(token, **(headers or {}))
        timeout = aiohttp.ClientTimeout(total=None, sock_read=40)
        async with self.client.get(self.url + path, headers=sent, timeout=timeout) as answer:
            assert answer.status == 200, await answer.text()
            async with aclosing(parsed(answer.content)) as found:
                async for event in found:
                    yield event

    async def until(self, path, wanted, **rest):
        """The events of a stream up to the first for which `wanted` holds."""
        found = []
        async with aclosing(self.events(path, **rest)) as events:
            async for event in events:
                found.append(event)
                if wanted(event):
                    return found
        raise AssertionError(f"the stream ended after {found}")


async def parsed(content):
    """Bytes of a stream as events."""
    fields = {}
    async for line in content:
        text = line.decode().rstrip("\r\n")
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            event = fields.get("event", "message")
            yield Event(fields.get("id", ""), event, json.loads(fields["data"]))
        fields = {}


def write_note(text: str) -> str:
    """Write a note. It changes something, so that it is asked about."""
    return f"wrote {text}"


write_note.policy = ToolPolicy(requires_approval=True)


def opening(replies, *tools, **parts):
    """How the server's engines are made: a scripted model and these tools."""

    def open_engine(wanted, session_id=""):
        model = replies() if callable(replies) else Scripted(replies)
        named = {tool.name: tool for tool in map(as_tool, tools)}
        store = JsonlStore(parts["folder"])
        rest = {key: value for key, value in parts.items() if key != "folder"}
        return Engine(
            EngineConfig(model, named, store, Workspace(wanted.workspace), on_ask="wait", **rest)
        )

    return open_engine


def room_of(tmp_path, replies, tools, limits, parts):
    """LocalService over that folder, their streams, and the tokens beside them."""
    folder, workspace = tmp_path / "sessions", tmp_path / "workspace"
    for one in (folder, workspace):
        one.mkdir(exist_ok=True)
    replies = replies if callable(replies) else list(replies)
    offer = parts.pop("offer", None)
    engines = EnginePool(opening(replies, *tools, folder=folder, face="server", **parts))
    sessions = LocalService(folder, engines, (str(workspace),), choices=offer)
    streams = Streams(sessions, most=limits.streams)
    return ServerContext(sessions, streams, Authenticator(Tokens(tmp_path / "server")), limits)


@asynccontextmanager
async def server(
    tmp_path,
    replies=(),
    *tools,
    limits=LIMITS,
    more=(),
    allowed=(),
    around=None,
    unix=None,
    guarded=True,
    **parts,
):
    """A server over that folder, started and stopped.

    `around` wraps the application; `unix` is the path of a private socket in the place of a port.
    `guarded` is as if other machines could reach it.
    """
    room = room_of(tmp_path, replies, tools, limits, parts)
    listening = bind_unix(unix) if unix else bind("127.0.0.1", 0)
    port = None if unix else listening.getsockname()[1]
    app = Application(room, AllowedHosts(port, "127.0.0.1", allowed), more=more)
    serving = ServerLifecycle(around(app) if around else app, listening, is_guarded=guarded)
    await serving.start()
    try:
        connector = aiohttp.UnixConnector(str(unix)) if unix else aiohttp.TCPConnector(limit=0)
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as client:
            yield Running(app, port, client, serving)
    finally:
        await serving.stop(5)
        await asyncio.sleep(0)
