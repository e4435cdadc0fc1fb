"""The server that is measured: the real application over real uvicorn, with a scripted model.

    serve_app.py STATE WORKSPACE

Says on its first line where it is and who may come in. Then it does what its input says, one JSON
object a line, and answers each with one: `emit` (records in sessions, at a rate, with the time of
their making in them), `use` (what the process has used), `end`.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.events import ModelEvent, TraceEvent
from bridle.messages import Text
from bridle.protocols.provider import Request
from bridle.providers.scripted import Scripted, play, to_reply
from bridle.server.app import Application
from bridle.server.auth import AllowedHosts
from bridle.server.context import ServerContext
from bridle.server.http import ServerLifecycle, bind
from bridle.server.login import Authenticator
from bridle.server.metrics import resident_bytes
from bridle.server.middleware import Limits
from bridle.server.streams import Streams
from bridle.server.tokens import Tokens
from bridle.service.engine_pool import EnginePool, EngineSpec
from bridle.service.local_service import LocalService
from bridle.stores.jsonl import JsonlStore
from bridle.workspace.workspace import Workspace

SENTENCE = "The function returns the value when the index is out of range."
REPLY = to_reply({"text": SENTENCE, "chunk": len(SENTENCE)})  # one piece: no stream is measured
PARTS = (Text(SENTENCE),)
PADDING = "x" * 60


class Endless(Scripted):
    """A model that always says the same, and keeps nothing."""

    def __init__(self) -> None:
        super().__init__([])

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """One short reply."""
        async with aclosing(play(REPLY, PARTS, self.info, "")) as events:
            async for event in events:
                yield event


def room_of(state: Path, workspace: Path) -> ServerContext:
    """All that a server works with."""
    state.mkdir(parents=True, exist_ok=True)

    def opening(wanted: EngineSpec, session_id: str) -> Engine:
        store = JsonlStore(state)
        place = Workspace(wanted.workspace)
        return Engine(EngineConfig(Endless(), {}, store, place, on_ask="wait", face="server"))

    sessions = LocalService(state, EnginePool(opening), (str(workspace),), idle=600.0)
    door = Authenticator(Tokens(state / "server"))
    limits = Limits(rate=0, sessions=4_000)
    return ServerContext(
        sessions, Streams(sessions, most=limits.streams, each=limits.streams), door, limits
    )


class Driver:
    """Sessions that say something, each at its own times."""

    def __init__(self, room: ServerContext) -> None:
        self._room = room

    async def emit(self, sessions: list[str], per_s: float, seconds: float) -> dict[str, Any]:
        """So many records a second in each of them; where their logs end."""
        loop = asyncio.get_running_loop()
        start, step = loop.time() + 0.1, 1 / per_s
        turns = int(per_s * seconds)
        for turn in range(turns):
            for number, session_id in enumerate(sessions):
                at = start + (turn + number / len(sessions)) * step
                if (wait := at - loop.time()) > 0:
                    await asyncio.sleep(wait)
                session = self._room.sessions.get_open(session_id)
                assert session is not None
                said = {"at": time.monotonic(), "text": PADDING}
                session.emit(TraceEvent("tick", said))
        ends = {one: self._opened(one).seq for one in sessions}
        return {"ends": ends}

    def _opened(self, session_id: str) -> Any:
        return self._room.sessions.get_open(session_id)


def used() -> dict[str, float]:
    """What this process has used so far."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    top = spent.ru_maxrss / 1024
    cpu = spent.ru_utime + spent.ru_stime
    return {"cpu": cpu, "rss_mb": resident_bytes() / (1 << 20), "top_mb": top}


async def lines() -> asyncio.StreamReader:
    """What comes in."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def main() -> None:
    """Serve, and do what is asked for."""
    state, workspace = Path(sys.argv[1]), Path(sys.argv[2])
    room = room_of(state, workspace)
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    serving = ServerLifecycle(Application(room, AllowedHosts(port, "127.0.0.1", ())), listening)
    await serving.start()
    driver, reader = Driver(room), await lines()
    said: dict[str, Any] = {"port": port, "token": room.door.tokens.own}
    while True:
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        if not (line := await reader.readline()):
            break
        asked = json.loads(line)
        if asked["do"] == "emit":
            said = await driver.emit(asked["sessions"], asked["per_s"], asked["seconds"])
        else:
            said = used()
    await serving.stop(5)


if __name__ == "__main__":
    asyncio.run(main())
