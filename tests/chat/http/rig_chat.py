"""The real chat application under real uvicorn on a free loopback port, in the test's own loop."""

import json
import time
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple

import aiohttp
import jwt

from bridle.chat import ChatApp, ServiceLimits
from bridle.server.auth import AllowedHosts
from bridle.server.chat.app import ChatLifecycle, ChatServer
from bridle.server.chat.context import LIMITS, ChatContext
from bridle.server.chat.jwt import AUDIENCE, JwtVerifier, SharedSecret
from bridle.server.http import bind

SECRET = "a secret that is long enough for HS256, and known to tests alone"


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

    name: str
    data: object


def token(user="ana", secret=SECRET, algorithm="HS256", **more):
    """A token, with whatever is wrong about it."""
    said = {"sub": user, "exp": int(time.time()) + 600, "aud": AUDIENCE} | more
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, secret, algorithm=algorithm)


class Running:
    """A chat, and a client of it."""

    def __init__(self, server, port, client):
        self.server, self.room, self.port, self.client = server, server.room, port, client
        self.url = f"http://127.0.0.1:{port}"

    def headers(self, bearer, **more):
        return ({"Authorization": f"Bearer {bearer}"} if bearer else {}) | more

    async def call(self, method, path, body=None, *, user="ana", bearer=None, headers=None, **rest):
        """One request in a user's name: the answer, its JSON taken apart."""
        bearer = token(user) if bearer is None else bearer
        how = {"json": body} if body is not None else {}
        sent = self.headers(bearer, **(headers or {}))
        async with self.client.request(
            method, self.url + path, headers=sent, allow_redirects=False, **how, **rest
        ) as answer:
            found = await answer.read()
            if found and "json" in answer.headers.get("content-type", ""):
                found = json.loads(found)
            return Answer(answer.status, found, answer.headers)

    async def get(self, path, **rest):
        return await self.call("GET", path, **rest)

    async def post(self, path, body=None, **rest):
        return await self.call("POST", path, body, **rest)

    async def say(self, message, conversation=None, *, user="ana", key="", **rest):
        """A message; the answer."""
        body = {"message": message} | ({"conversation_id": conversation} if conversation else {})
        headers = {"Idempotency-Key": key} if key else {}
        return await self.post(f"/api/{user}/chat", body, user=user, headers=headers, **rest)

    async def events(self, path, body=None, *, user="ana"):
        """The events of a stream, as long as it lasts."""
        sent = self.headers(token(user), Accept="text/event-stream")
        method, how = ("POST", {"json": body}) if body is not None else ("GET", {})
        timeout = aiohttp.ClientTimeout(total=None, sock_read=40)
        async with self.client.request(
            method, self.url + path, headers=sent, timeout=timeout, **how
        ) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers["content-type"].startswith("text/event-stream")
            async with aclosing(parsed(answer.content)) as found:
                async for event in found:
                    yield event


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
            yield Event(fields.get("event", "message"), json.loads(fields["data"]))
        fields = {}


@asynccontextmanager
async def chat(database, *, limits=LIMITS, around=None, bearing=None, app=None, **serves):
    """A chat over that database, started and stopped."""
    serves = {"messages_a_minute": 0} | serves
    app = app or ChatApp(
        database=database, provider="offline", service_limits=ServiceLimits(**serves)
    )
    room = ChatContext(app, bearing or JwtVerifier(SharedSecret(SECRET)), limits)
    with bind("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        server = ChatServer(room, AllowedHosts(port, "127.0.0.1"))
        hosted = around(server) if around else server
        serving = ChatLifecycle(hosted, listening, is_guarded=True)
        await serving.start()
        try:
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as client:
                yield Running(server, port, client)
        finally:
            await serving.stop(5)
