"""Clients of a server that is killed again and again: they go on, and note what they were told."""

import asyncio
import json
from contextlib import suppress

import aiohttp

TOKEN = {"Authorization": "Bearer " + "t" * 40}
GONE = (aiohttp.ClientError, ConnectionError, asyncio.TimeoutError)
_AGAIN = 0.03  # seconds until a client that found nobody comes back


class Clients:
    """All of them, and what they know. `over`: nothing new is sent."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/api"
        self.sessions = []
        self.prompts = {}  # acknowledged: by key, the session, the words and the turn
        self.answers = {}  # acknowledged: by what was shown, the session
        self.seen = {}  # what each stream was told, by its number: seq and data in order
        self.over = False
        self.moves = 0  # how much was seen and acknowledged
        self._count = 0

    async def begin(self, count):
        """That many sessions."""
        self._client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(sock_read=30))
        for _ in range(count):
            _, body = await self.ask("POST", "/sessions", {})
            self.sessions.append(body["id"])

    async def close(self):
        await self._client.close()

    async def ask(self, method, path, body=None, **headers):
        """One answer, whoever is killed meanwhile."""
        while True:
            with suppress(*GONE):
                async with self._client.request(
                    method, self.url + path, json=body, headers=TOKEN | headers
                ) as answer:
                    if answer.status not in (429, 503):  # it is full, or was just being started
                        return answer.status, await answer.json()
            await asyncio.sleep(_AGAIN)

    async def talk(self, session_id):
        """Prompts, one after the other, each with a key until it is accepted."""
        while not self.over:
            self._count += 1
            key = f"key {self._count}"
            chat = {"prompt": f"prompt {self._count}", "queue": True}
            path = f"/sessions/{session_id}/chat"
            status, body = await self.ask("POST", path, chat, **{"Idempotency-Key": key})
            assert status == 202, body
            self.prompts[key] = session_id, chat["prompt"], body["turn"]
            self.moves += 1
            await asyncio.sleep(0.2)

    async def moved(self, count, seconds=240.0):
        """Until so much more was seen; or for so long."""
        end = self.moves + count
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.moves < end:  # noqa: ASYNC110 - the moment is meant, not an event
                    await asyncio.sleep(0.001)

    async def say_yes(self):
        """An answer to every question, for ever."""
        while True:
            _, body = await self.ask("GET", "/approvals")
            for one in body["approvals"]:
                path = f"/sessions/{one['sessionId']}/approvals/{one['callId']}"
                answer = {"allowed": True, "shown": one["shown"]}
                status, found = await self.ask("POST", path, answer)
                assert status in (200, 409, 410, 404), found
                if status == 200:
                    self.answers[one["shown"]] = one["sessionId"]
                    self.moves += 1
            await asyncio.sleep(0.02)

    async def follow(self, name, session_id):
        """A stream, taken up again by Last-Event-ID; what was seen above it is dropped."""
        seen = self.seen[name] = []
        last = 0
        while True:
            del seen[last:]  # seqs are dense, so that these are those above the id
            with suppress(*GONE):
                sent = TOKEN | ({"Last-Event-ID": str(last)} if last else {})
                path = f"{self.url}/sessions/{session_id}/stream"
                async with self._client.get(path, headers=sent) as answer:
                    async for block in blocks(answer.content):
                        if "data" in block and block.get("event") not in ("resync", "stopping"):
                            data = json.loads(block["data"])
                            seen.append((data["seq"], data["data"]))
                            self.moves += 1
                        last = int(block.get("id", last))
            await asyncio.sleep(_AGAIN)


async def blocks(content):
    """The blocks of a stream, each with its fields."""
    fields = {}
    async for line in content:
        if text := line.decode().rstrip("\r\n"):
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            if fields:
                yield fields
            fields = {}
