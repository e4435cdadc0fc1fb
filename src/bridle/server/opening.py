"""Engines for the server's sessions: one for each workspace, model and agent that is wanted.

How an engine is put together is not known here: that is handed in, because settings and rules are
read by whoever starts the server. What is made here is closed here.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack

from msgspec import Struct

from bridle.engine.engine import Engine
from bridle.errors import AgentError
from bridle.server.refusals import ServerStopping, Unavailable

log = logging.getLogger(__name__)

_IDLE = 600.0  # seconds after which an engine without sessions is closed
_RECENT = 10.0  # seconds in which whoever asked for one may still be about to use it
_MOST = 64  # engines at a time


class Wanted(Struct, frozen=True):
    """What a session is to have. What is empty is as the server was started."""

    workspace: str
    provider: str = ""
    model: str = ""
    agent: str = ""
    effort: str = ""


Opening = Callable[[Wanted, str], Engine]  # the second: the session that is taken up, or ""


class Engines:
    """The engines that are open, by what was wanted of them."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._making: dict[Wanted, asyncio.Task[Engine]] = {}
        self._engines: dict[Wanted, Engine] = {}
        self._used: dict[Wanted, float] = {}  # when somebody last asked for it, in the loop's time
        self._closed = False
        self.on_made: Callable[[Engine], None] = lambda engine: None

    async def engine(self, wanted: Wanted, session_id: str = "") -> Engine:
        """The engine for that, made when it is first needed. Raise `ConfigError`."""
        if self._closed:
            raise ServerStopping("the server is being stopped")
        self._used[wanted] = asyncio.get_running_loop().time()
        if (found := self._engines.get(wanted)) is not None:
            return found
        if wanted not in self._making:
            await self._make_room()
        making = self._making.get(wanted)
        if making is None:
            making = self._making[wanted] = asyncio.ensure_future(self._make(wanted, session_id))
            making.add_done_callback(lambda done: self._made(wanted, done))
        return await asyncio.shield(making)  # whoever gives up waiting, it is made all the same

    async def _make(self, wanted: Wanted, session_id: str) -> Engine:
        return await asyncio.to_thread(self._opening, wanted, session_id)

    def _made(self, wanted: Wanted, done: "asyncio.Task[Engine]") -> None:
        self._making.pop(wanted, None)
        if done.cancelled() or done.exception() is not None:
            self._used.pop(wanted, None)
        if not done.cancelled() and done.exception() is None:
            self._engines[wanted] = done.result()
            self.on_made(done.result())

    async def sweep(self, idle: float = _IDLE) -> None:
        """Close those that nobody has asked for so long, and that have no session."""
        now = asyncio.get_running_loop().time()
        for wanted, engine in list(self._engines.items()):
            if now - self._used.get(wanted, now) >= idle and not engine.sessions():
                del self._engines[wanted], self._used[wanted]
                failed: list[AgentError] = []
                await _close(engine, failed)
                for error in failed:
                    log.warning("an engine could not be closed: %s", error.message)

    async def _make_room(self) -> None:
        """Raise `Unavailable` where there are as many as may be, and all are in use."""
        if len(self._engines) + len(self._making) < _MOST:
            return
        await self.sweep(_RECENT)
        if len(self._engines) + len(self._making) >= _MOST:
            raise Unavailable(
                f"{_MOST} choices of folder, model and agent are in use, and there may be no more",
                hint="Wait until some sessions rest, or choose as another session has.",
            )

    def has(self, wanted: Wanted) -> bool:
        """Is there one for that already?"""
        return wanted in self._engines

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
