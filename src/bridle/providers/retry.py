"""Retrying: the same provider, asked again when another try may work.

`Retrying` retries by itself only before the first delta, so that nobody sees a sentence twice. If a
reply breaks off later, its reader has to discard it and ask again; `retry_policy` says for how
long. Errors are judged by their `retryable` and `retry_after`, whatever the vendor.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from time import monotonic
from typing import Any, NamedTuple

from bridle.errors import AgentError, Unreachable
from bridle.events import ModelEvent, TraceEvent, UsageReported
from bridle.protocols.provider import Provider, ProviderInfo, Request, Retry
from bridle.workspace.text import quantity

# An event stream that can restart until the first delta has been delivered.
#
# From then on it costs nothing: the caller awaits the provider's own generator. `Retrying` and
# `Fallback` decide whether to restart, and with which stream.

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


SECONDS = 300.0  # how long a failed request is tried again
NEVER_REACHED = 10.0  # ... if no connection was ever made: its address may be wrong
Pause = Callable[[float], Awaitable[object]]


class RetryPolicy:
    """How often, and for how long, a failed request is retried.

    Each wait is up to twice the one before, with jitter, and at most `longest` seconds. A vendor's
    `retry_after` is honoured; if it is longer than the time left, the error is raised at once, so
    that a person can decide. With `retries=None`, retry as often as `seconds` allow. `pause` and
    `clock` are there for tests.
    """

    def __init__(
        self,
        retries: int | None = None,
        seconds: float = SECONDS,
        *,
        base: float = 0.5,
        longest: float = 30.0,
        pause: Pause | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.retries = retries
        self.seconds = seconds
        self.base = base
        self.longest = longest
        self.clock = clock
        self.answered = False  # has the server answered in this process?
        self._pause = pause

    def begin(self) -> "Tries":
        """The tries of one request."""
        return Tries(self)

    async def pause(self, seconds: float) -> None:
        """Wait until the next try."""
        if self._pause is not None:
            await self._pause(seconds)
        elif seconds > 0:
            from asyncio import sleep

            await sleep(seconds)

    def wait(self, failures: int, waited: float, error: AgentError) -> float | None:
        """Seconds until the next try; None: there is none."""
        from random import uniform

        if not error.retryable or (self.retries is not None and failures > self.retries):
            return None
        most = self.seconds
        if isinstance(error, Unreachable) and not self.answered:
            most = min(most, NEVER_REACHED)
        left = most - waited
        if left <= 0:
            return None
        if (asked := error.retry_after) is not None:
            return None if asked > left else asked * uniform(1.0, 1.1)
        longest = min(self.longest, self.base * 2.0 ** min(failures - 1, 30))
        return min(uniform(longest / 2, longest), left)


class Tries:
    """How often one request has failed, and since when."""

    __slots__ = ("_failures", "_policy", "_since")

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failures = 0
        self._since = 0.0

    def after(self, error: AgentError) -> Retry | None:
        """How to go on after this failure; None: it is raised, and its hint says what was done."""
        policy, now = self._policy, self._policy.clock()
        if not isinstance(error, Unreachable):
            policy.answered = True
        if not self._failures:
            self._since = now
        self._failures += 1
        waited = now - self._since
        seconds = policy.wait(self._failures, waited, error)
        if seconds is not None:
            return Retry(self._trace(error, seconds), seconds, policy.pause)
        if error.retryable and error.retry_after is not None and policy.retries != 0:
            asked = f"The server asks to wait {_spoken(error.retry_after)}."
            error.hint = f"{asked} {error.hint}".rstrip()
        elif error.retryable and self._failures > 1:
            tried = f"It was tried {self._failures} times in {_spoken(waited)}."
            error.hint = f"{tried} {error.hint}".rstrip()
        return None

    def _trace(self, error: AgentError, seconds: float) -> TraceEvent:
        detail = {
            "attempt": self._failures + 1,
            "seconds": round(seconds, 3),
            "error": error.message,
            "kind": error.kind,
            "status": error.status,
        }
        return TraceEvent("retry", detail)


class Retrying:
    """A provider that waits and asks again, as its policy says."""

    def __init__(self, provider: Provider, policy: RetryPolicy | None = None) -> None:
        self.provider = provider
        self.retry_policy = policy or RetryPolicy()

    def __repr__(self) -> str:
        return f"Retrying({self.provider!r})"

    @property
    def info(self) -> ProviderInfo:
        """What is known of the provider inside."""
        return self.provider.info

    def stream(self, request: Request) -> Stream:
        """The provider's events; a `retry` trace before each wait."""
        return _Attempts(self, request)

    async def close(self) -> None:
        """Close the provider inside."""
        await self.provider.close()


class _Attempts(RestartableStream):
    """One request, and its tries."""

    __slots__ = ("_request", "_retrying", "_tries")

    def __init__(self, retrying: Retrying, request: Request) -> None:
        super().__init__(retrying.provider.stream(request))
        self._retrying = retrying
        self._request = request
        self._tries: Tries | None = None

    def on_event(self, event: ModelEvent) -> None:
        """The server has answered."""
        self._retrying.retry_policy.answered = True

    def next_attempt(self, error: AgentError) -> Restart | None:
        """Wait and ask again, if another try may work."""
        if self._tries is None:
            self._tries = self._retrying.retry_policy.begin()
        retry = self._tries.after(error)
        return None if retry is None else Restart(retry, self._begin)

    def _begin(self) -> Stream:
        return self._retrying.provider.stream(self._request)


def _spoken(seconds: float) -> str:
    """A wait as a person says it."""
    if seconds < 100:
        return quantity(round(seconds), "second")
    minutes = round(seconds / 60)
    if minutes < 120:
        return quantity(minutes, "minute")
    return f"{quantity(minutes // 60, 'hour')} and {quantity(minutes % 60, 'minute')}"
