"""A connection to a tool server that is kept: opened when it is first needed, and anew when lost.

The SDK wants its client to be opened and closed by the same task, and calls come from many: so a
task of its own holds it. It belongs to one event loop; asked from another one, it is opened there.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from bridle.errors import ToolError

if TYPE_CHECKING:
    from mcp import Client

_PARTING = 5.0  # seconds for an orderly end


class Life:
    """One connection, from its opening to its end."""

    def __init__(self, make: "Callable[[], Client]") -> None:
        self.loop = asyncio.get_running_loop()
        self.over = False
        self._ready: asyncio.Future[Client] = self.loop.create_future()
        self._ready.add_done_callback(_noticed)
        self._stop = asyncio.Event()
        self._task = self.loop.create_task(self._own(make))

    async def client(self) -> "Client":
        """The client, once it is there. Raise `ToolError` where it never will be."""
        return await asyncio.shield(self._ready)

    def end(self) -> None:
        """Nobody takes it from here on; what is under way is told that it is gone."""
        self.over = True
        self._stop.set()

    async def gone(self) -> None:
        """Until nothing of it runs any more."""
        self.end()
        if not self._ready.done():
            self._task.cancel()  # it is still being opened
        await asyncio.wait([self._task], timeout=_PARTING)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _own(self, make: "Callable[[], Client]") -> None:
        try:
            async with make() as client:
                self._ready.set_result(client)
                await self._stop.wait()
        except (Exception, BaseExceptionGroup) as error:  # the SDK raises groups of what happened
            if not self._ready.done():
                said = ToolError("the tool server cannot be reached", error)
                self._ready.set_exception(said)
        finally:
            self.over = True
            if not self._ready.done():
                self._ready.set_exception(ToolError("the tool server was let go"))


class Link:
    """The connection that counts now."""

    def __init__(self, make: "Callable[[], Client]") -> None:
        self._make = make
        self._life: Life | None = None

    def life(self) -> Life:
        """The one that is open, or a new one."""
        life = self._life
        if life is None or life.over or life.loop is not asyncio.get_running_loop():
            life = self._life = Life(self._make)
        return life

    async def close(self) -> None:
        """Let go of it. It may be used again: then it is opened anew."""
        life, self._life = self._life, None
        if life is not None and life.loop is asyncio.get_running_loop():
            await life.gone()


def _noticed(ready: "asyncio.Future[Client]") -> None:
    """An opening that failed is told to those who asked; it is no news to the loop."""
    with contextlib.suppress(asyncio.CancelledError):
        ready.exception()
