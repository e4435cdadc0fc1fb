"""Engines for the server's sessions: one for each workspace, model and agent that is wanted.

How an engine is put together is not known here: that is handed in, because settings and rules are
read by whoever starts the server. What is made here is closed here.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from msgspec import Struct

from bridle.engine.engine import Engine
from bridle.errors import AgentError
from bridle.server.refusals import ServerStopping


class Wanted(Struct, frozen=True):
    """What a session is to have. What is empty is as the server was started."""

    workspace: str
    provider: str = ""
    model: str = ""
    agent: str = ""


Opening = Callable[[Wanted, str], Engine]  # the second: the session that is taken up, or ""


class Engines:
    """The engines that are open, by what was wanted of them."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._making: dict[Wanted, asyncio.Task[Engine]] = {}
        self._engines: dict[Wanted, Engine] = {}
        self._closed = False
        self.on_made: Callable[[Engine], None] = lambda engine: None

    async def engine(self, wanted: Wanted, session_id: str = "") -> Engine:
        """The engine for that, made when it is first needed. Raise `ConfigError`."""
        if self._closed:
            raise ServerStopping("the server is being stopped")
        if (found := self._engines.get(wanted)) is not None:
            return found
        making = self._making.get(wanted)
        if making is None:
            making = self._making[wanted] = asyncio.ensure_future(self._make(wanted, session_id))
            making.add_done_callback(lambda done: self._made(wanted, done))
        return await asyncio.shield(making)  # whoever gives up waiting, it is made all the same

    async def _make(self, wanted: Wanted, session_id: str) -> Engine:
        return await asyncio.to_thread(self._opening, wanted, session_id)

    def _made(self, wanted: Wanted, done: "asyncio.Task[Engine]") -> None:
        self._making.pop(wanted, None)
        if not done.cancelled() and done.exception() is None:
            self._engines[wanted] = done.result()
            self.on_made(done.result())

    def open(self) -> tuple[Engine, ...]:
        """Those that there are."""
        return tuple(self._engines.values())

    async def close(self) -> None:
        """Close all of them, and their sessions. Raise what the first that failed has raised."""
        self._closed = True
        if self._making:
            await asyncio.wait(list(self._making.values()))
        failed: list[AgentError] = []
        async with AsyncExitStack() as leaving:  # whatever fails, the rest is closed, too
            for engine in self._engines.values():
                leaving.push_async_callback(_close, engine, failed)
        self._engines.clear()
        if failed:
            raise failed[0]


async def _close(engine: Engine, failed: list[AgentError]) -> None:
    try:
        await engine.close()
    except AgentError as error:
        failed.append(error)
