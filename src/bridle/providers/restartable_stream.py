"""An event stream that can restart until the first delta has been delivered.

From then on it costs nothing: the caller awaits the provider's own generator. `Retrying` and
`Fallback` decide whether to restart, and with which stream.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

from bridle.errors import AgentError
from bridle.events import ModelEvent, TraceEvent, UsageReported
from bridle.protocols.provider import Retry

Stream = AsyncGenerator[ModelEvent, None]
Start = Callable[[], Stream]

_NOT_OF_REPLY = frozenset({TraceEvent, UsageReported})  # events without a part of the reply


class Restart(NamedTuple):
    """What to do after a failure: report it, wait, start the next attempt."""

    retry: Retry
    start: Start


class RestartableStream(AsyncGenerator[ModelEvent, None]):
    """The events of the first attempt that delivers a delta.

    Subclasses decide what to do after a failure.
    """

    __slots__ = ("_events", "_next", "_restart", "has_begun")

    def __init__(self, first: Stream) -> None:
        self._events = first
        self._restart: Restart | None = None
        self.has_begun = False  # a part of the reply was delivered: no more restarts
        self._next: Callable[[], Awaitable[ModelEvent]] = self._attempt

    def next_attempt(self, error: AgentError) -> Restart | None:
        """Return how to restart after this failure; None: raise it."""
        raise NotImplementedError

    def on_event(self, event: ModelEvent) -> None:
        """Look at an event; at most one of them is a part of the reply."""

    def __anext__(self) -> Any:
        # The provider's own awaitable, so that a delta costs one plain call more.
        return self._next()

    async def _attempt(self) -> ModelEvent:
        if self._restart is not None:
            await self._start_again(self._restart)
        try:
            event = await self._events.__anext__()
        except AgentError as error:
            self._restart = self.next_attempt(error)
            if self._restart is None:
                raise
            return self._restart.retry.trace
        self.on_event(event)
        if type(event) not in _NOT_OF_REPLY:
            self.has_begun = True
            self._next = self._events.__anext__
        return event

    async def _start_again(self, restart: Restart) -> None:
        await restart.retry.wait()
        self._restart = None
        self._events = restart.start()

    async def asend(self, value: None) -> ModelEvent:
        """Return the next event; there is nothing to send."""
        event: ModelEvent = await self.__anext__()
        return event

    async def athrow(self, *how: Any) -> ModelEvent:
        """Throw into the running attempt."""
        return await self._events.athrow(*how)

    async def aclose(self) -> None:
        """End the running attempt, and start no other."""
        self._next = self._events.__anext__
        await self._events.aclose()
