"""The effect itself: a tool is run, in its time, and whatever it does becomes one result."""

import asyncio
import logging
from typing import Any

from bridle.errors import AgentError
from bridle.messages import File, Image, ToolCall
from bridle.promises.tool import Tool, ToolContext, ToolResult

log = logging.getLogger(__name__)

_LONG = 10.0  # seconds from which on a limit is kept to the second
_ROUND = 1.0


async def execute(
    call: ToolCall, tool: Tool, context: ToolContext[Any], seconds: float
) -> ToolResult:
    """Run it. Raise only what ends the turn."""
    clock = _Clock(seconds)
    try:
        try:
            given = await tool.execute(call.arguments, context)
        finally:
            clock.stop()
        return _checked(given)
    except AgentError as error:
        return ToolResult.failure(error.message)
    except BaseException as error:  # the one catch-all: a tool ends neither turn nor host
        if _is_ours(error):
            raise
        if clock.rang and isinstance(error, TimeoutError | asyncio.CancelledError):
            return ToolResult.failure(f"{call.name} did not finish within {seconds:g} seconds")
        log.debug("tool %r broke", call.name, exc_info=True)
        return ToolResult.failure(f"{call.name} broke: {type(error).__name__}: {error}")


class _Clock:
    """Cancels the task in which it was set, once; `stop` takes that cancel back.

    What `asyncio.timeout` does, for less: every call has a clock, and hardly one ever rings.
    """

    __slots__ = ("_handle", "_rounds", "_task", "rang")

    def __init__(self, seconds: float) -> None:
        self.rang = False
        self._task = asyncio.current_task()
        self._handle: asyncio.TimerHandle | None = None
        self._rounds: _Rounds | None = None
        if seconds >= _LONG:
            self._rounds = _rounds_in(asyncio.get_running_loop())
            self._rounds.add(self, seconds)
        elif seconds:
            self._handle = asyncio.get_running_loop().call_later(seconds, self.ring)

    def ring(self) -> None:
        """The time is over."""
        if self._task is not None:
            self.rang = True
            self._task.cancel()

    def stop(self) -> None:
        """The tool is done, or gave up. Also one that swallowed the cancel leaves none behind."""
        if self._rounds is not None:
            self._rounds.clocks.pop(self, None)
        elif self._handle is not None:
            self._handle.cancel()
        if self.rang and self._task is not None:
            self._task.uncancel()


class _Rounds:
    """One timer for all the clocks of an event loop that have minutes: it looks every second.

    A timer of its own would stay in the loop's queue long after the call that it was set for.
    """

    __slots__ = ("_goes", "clocks", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.clocks: dict[_Clock, float] = {}  # and when each has to ring
        self._goes = False

    def add(self, clock: _Clock, seconds: float) -> None:
        """Have it ring then, or within a second after."""
        self.clocks[clock] = self.loop.time() + seconds
        if not self._goes:
            self._goes = True
            self.loop.call_later(_ROUND, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        for clock in [clock for clock, end in self.clocks.items() if end <= now]:
            del self.clocks[clock]
            clock.ring()
        self._goes = bool(self.clocks)
        if self._goes:
            self.loop.call_later(_ROUND, self._look)


_newest: _Rounds | None = None


def _rounds_in(loop: asyncio.AbstractEventLoop) -> _Rounds:
    """Those of this loop; where another was used meanwhile, new ones do as well."""
    global _newest
    found = _newest
    if found is None or found.loop is not loop:
        found = _newest = _Rounds(loop)
    return found


def _is_ours(error: BaseException) -> bool:
    """Was it raised to end the turn, and not by the tool? Ctrl-C comes as a cancel."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit)


def _checked(result: Any) -> ToolResult:
    """What a tool gave back as a result, whatever it is. Raise for what nobody can read."""
    if not isinstance(result, ToolResult):
        return ToolResult.success(result)
    if not isinstance(result.text, str):
        raise TypeError(f"its text is {type(result.text).__name__}, not str")
    if result.media and not all(isinstance(part, Image | File) for part in result.media):
        raise TypeError("its media are not images or files")
    if not isinstance(result.stops, str):
        raise TypeError(f"why it stops is {type(result.stops).__name__}, not str")
    return result
