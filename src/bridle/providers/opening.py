"""A stream that may begin anew as long as nothing of the reply has been seen.

From the first delta on it gets out of the way: the caller then waits on the provider's own
generator. `Retrying` and `Fallback` say when to begin anew, and where.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

from bridle.errors import AgentError
from bridle.events import ModelEvent, TraceEvent, UsageReported
from bridle.promises.provider import Retry

Stream = AsyncGenerator[ModelEvent, None]
Begin = Callable[[], Stream]

_QUIET = frozenset({TraceEvent, UsageReported})  # these carry nothing of the reply itself


class Detour(NamedTuple):
    """What to do about a failure: say so, wait, begin anew."""

    retry: Retry
    begin: Begin


class Opening(AsyncGenerator[ModelEvent, None]):
    """The events of the first attempt that gets as far as a delta.

    A subclass says what to do about a failure.
    """

    __slots__ = ("_detour", "_events", "_next", "has_begun")

    def __init__(self, first: Stream) -> None:
        self._events = first
        self._detour: Detour | None = None
        self.has_begun = False  # has something of the reply come? Then nothing begins anew
        self._next: Callable[[], Awaitable[ModelEvent]] = self._attempt

    def mend(self, error: AgentError) -> Detour | None:
        """How to go on after this failure; None: it is raised."""
        raise NotImplementedError

    def heard(self, event: ModelEvent) -> None:
        """An event came, at most one of them of the reply itself."""

    def __anext__(self) -> Any:
        # Hands out the provider's own awaitable, so a delta costs one plain call more.
        return self._next()

    async def _attempt(self) -> ModelEvent:
        if self._detour is not None:
            await self._begin_anew(self._detour)
        try:
            event = await self._events.__anext__()
        except AgentError as error:
            self._detour = self.mend(error)
            if self._detour is None:
                raise
            return self._detour.retry.trace
        self.heard(event)
        if type(event) not in _QUIET:
            self.has_begun = True
            self._next = self._events.__anext__
        return event

    async def _begin_anew(self, detour: Detour) -> None:
        await detour.retry.wait()
        self._detour = None
        self._events = detour.begin()

    async def asend(self, value: None) -> ModelEvent:
        """The next event: there is nothing to send."""
        event: ModelEvent = await self.__anext__()
        return event

    async def athrow(self, *how: Any) -> ModelEvent:
        """Throw into the attempt under way."""
        return await self._events.athrow(*how)

    async def aclose(self) -> None:
        """End the attempt under way, and every further one."""
        self._next = self._events.__anext__
        await self._events.aclose()
