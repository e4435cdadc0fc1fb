"""Our own CPU per turn in a session with few messages and in one with very many.

    long_history.py URL FEW MANY BLOCKS

What a turn costs beyond the floor's for the same request bytes. Both are in this process and take
turns, so that a noisy minute hits both: the floor (`with_floor_aiohttp`) sends the very bytes that
bridle has just sent, from a history of encoded messages, and reads the same reply; and once more
from a body that is ready made. Each block has fresh sessions, a turn to warm up, and a few that
count, so that FEW stays few. The window is large: nothing is shortened.
"""

import asyncio
import json
import os
import sys
import time
from statistics import median
from typing import Any

import msgspec
import with_floor_aiohttp as floor

import bridle
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.providers.wire import Wire

TURNS = 4
SENTENCE = "The function returns the value when the index is out of range. "
sent: list[bytes] = []  # the newest request's body


class _Body(msgspec.Struct):
    messages: list[msgspec.Raw]


def conversation(count: int) -> list[Message]:
    """Messages of a coding session: prompt, call, result, reply, and so on."""
    found: list[Message] = []
    for number in range(0, count, 4):
        call = ToolCall(f"toolu_{number:06}", "lookup", {"key": f"item-{number}"})
        found += [
            Message("user", (Text(SENTENCE * 2),)),
            Message("assistant", (Text(SENTENCE), call)),
            Message("tool", (ToolOutput(call.id, SENTENCE * 6, name="lookup"),)),
            Message("assistant", (Text(SENTENCE * 3),)),
        ]
    return found[:count]


class Pair:
    """One conversation, carried on by bridle and, with the same bytes, by the floor."""

    def __init__(self, engine: Any, http: Any, target: str, count: int) -> None:
        self._engine, self._http, self._target, self._count = engine, http, target, count
        self.ours: list[float] = []
        self.floors: list[float] = []
        self.ready: list[float] = []  # the floor once more, with a body that is made already
        self.size = 0

    async def begin(self) -> None:
        """A fresh session with its messages, all of them encoded and on disk."""
        self._session = await self._engine.session()
        self._session.add_history(conversation(self._count - 2))
        await self._turn()

    async def step(self) -> None:
        """A turn of each; the two kinds of floor change places, as the last one leaves memory."""
        self.ours.append(await self._turn())
        pieces = taken_apart(sent[0])
        kinds = [(self.floors, pieces), (self.ready, [sent[0]])]
        for kept, parts in kinds if len(self.ours) % 2 else reversed(kinds):
            kept.append(await self._floor(parts))
        self.size = len(sent[0])

    async def _floor(self, pieces: list[bytes]) -> float:
        started = time.process_time()
        body = b"".join(pieces) if len(pieces) > 1 else pieces[0]
        blocks = await floor.stream(self._http, self._target, body)
        pieces.append(floor.encode({"role": "assistant", "content": blocks}))
        spent = time.process_time() - started
        if body != sent[0]:
            raise RuntimeError("the floor did not send what bridle sent")
        return spent

    async def end(self) -> None:
        """Let the session go."""
        await self._session.close()

    async def _turn(self) -> float:
        started = time.process_time()
        result = await self._session.wait(await self._session.send("Go on, please."))
        spent = time.process_time() - started
        if not result.ok:
            raise RuntimeError(f"{result.reason}: {result.detail or result.error}")
        return spent

    def summary(self) -> dict[str, float]:
        """Medians in ms; our own is that of the differences."""
        own, bare = (
            [ours - other for ours, other in zip(self.ours, others, strict=True)]
            for others in (self.floors, self.ready)
        )
        named = {"turn": self.ours, "floor": self.floors, "own": own, "own_ready": bare}
        return {name: median(values) * 1000 for name, values in named.items()} | {
            "body_kb": self.size / 1024
        }


def taken_apart(body: bytes) -> list[bytes]:
    """A request as a floor would hold it that copies nothing twice: head, messages, end."""
    pieces = [b",%b" % bytes(raw) for raw in msgspec.json.decode(body, type=_Body).messages]
    head = body[: body.index(b'"messages":[') + 12]
    return [head, pieces[0][1:], *pieces[1:], b"]}"]


def note_bodies() -> None:
    """Keep what is sent."""
    post = Wire.post

    def noted(self: Wire, path: str, body: bytes) -> Any:
        sent[:] = [body]
        return post(self, path, body)

    Wire.post = noted  # type: ignore[method-assign]  # only this script


async def main() -> None:
    """Blocks of turns, the few and the many in turn."""
    url, few, many, blocks = sys.argv[1], *map(int, sys.argv[2:])
    note_bodies()
    floor.load()
    tool = bridle.tool(read_only=True)(lookup)
    model = bridle.provider(
        "anthropic/bench-model", api_key="k", base_url=f"{url}/hello", context_window=100_000_000
    )
    engine = bridle.build_engine(
        model,
        tools=[tool],
        workspace=os.environ["BENCH_WORKSPACE"],
        state=os.environ["BENCH_STATE"],
    )
    http = floor.aiohttp.ClientSession(headers={"content-type": "application/json"})
    target = f"{url}/hello/v1/messages"
    pairs = [Pair(engine, http, target, count) for count in (few, many)]
    for _ in range(blocks):
        for pair in pairs:
            await pair.begin()
        for _ in range(TURNS):
            for pair in pairs:
                await pair.step()
        for pair in pairs:
            await pair.end()
    await http.close()
    await engine.close()
    print(json.dumps({"few": pairs[0].summary(), "many": pairs[1].summary()}))


async def lookup(key: str) -> str:
    """Look up an item by its key."""
    return key


if __name__ == "__main__":
    asyncio.run(main())
