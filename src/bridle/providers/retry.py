"""Ask again if a request failed: the same provider (`Retrying`), or another one (`Fallback`).

Both do so only before the first delta, so that nobody sees a sentence twice. If a reply breaks off
later, its reader has to discard it and ask again; `retry_policy` says for how long. Errors are
judged by their `retryable` and `retry_after`, whatever the vendor. `Fallback` asks the second
provider if the first is overloaded, limited or out of reach; `ResponseCompleted.model` says which
one answered, and its tokens are priced as its own.
"""

from asyncio import sleep
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from random import uniform
from time import monotonic
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bridle.errors import AgentError, Overloaded, RateLimited, Unreachable
from bridle.events import ModelEvent, TraceEvent, UsageReported
from bridle.protocols.provider import Provider, ProviderInfo, Request, Retry, retry_policy_of
from bridle.workspace.text import quantity

# An event stream that can restart until the first delta has been delivered.
#
# From then on it costs nothing: the caller awaits the provider's own generator. `Retrying` and
# `Fallback` decide whether to restart, and with which stream.

Stream = AsyncGenerator[ModelEvent, None]
Start = Callable[[], Stream]

_NOT_OF_REPLY = frozenset({TraceEvent, UsageReported})  # events without a part of the reply


class Restart(Struct, frozen=True):
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
        """Return the tries of one request."""
        return Tries(self)

    async def pause(self, seconds: float) -> None:
        """Wait until the next try."""
        if self._pause is not None:
            await self._pause(seconds)
        elif seconds > 0:
            await sleep(seconds)

    def wait(self, failures: int, waited: float, error: AgentError) -> float | None:
        """Return the seconds until the next try; None: there is none."""
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
        """Return the next try; None: raise the error, whose hint says what was tried."""
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
            asked = f"The server asks to wait {_duration(error.retry_after)}."
            error.hint = f"{asked} {error.hint}".rstrip()
        elif error.retryable and self._failures > 1:
            tried = f"It was tried {self._failures} times in {_duration(waited)}."
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
        """Return what is known about the provider inside."""
        return self.provider.info

    def stream(self, request: Request) -> Stream:
        """Yield the provider's events, and a `retry` trace before each wait."""
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
        """Note that the server has answered."""
        self._retrying.retry_policy.answered = True

    def next_attempt(self, error: AgentError) -> Restart | None:
        """Wait and ask again, if another try may work."""
        if self._tries is None:
            self._tries = self._retrying.retry_policy.begin()
        retry = self._tries.after(error)
        return None if retry is None else Restart(retry, self._begin)

    def _begin(self) -> Stream:
        return self._retrying.provider.stream(self._request)


def _duration(seconds: float) -> str:
    """Return a duration in words."""
    if seconds < 100:
        return quantity(round(seconds), "second")
    minutes = round(seconds / 60)
    if minutes < 120:
        return quantity(minutes, "minute")
    return f"{quantity(minutes // 60, 'hour')} and {quantity(minutes % 60, 'minute')}"


_FALLBACK_RETRIES = 2  # of the first provider, unless its policy says how many


class Fallback:
    """A provider that asks a second one if the first cannot be had. Its info is the first's."""

    def __init__(self, first: Provider, second: Provider) -> None:
        self.first = _with_few_retries(first)
        self.second = second
        self.retry_policy = retry_policy_of(first)

    def __repr__(self) -> str:
        return f"Fallback({self.first!r}, {self.second!r})"

    @property
    def info(self) -> ProviderInfo:
        """Return what is known about the first."""
        return self.first.info

    def stream(self, request: Request) -> Stream:
        """Yield the first provider's events, or a `fallback` trace and the second's."""
        return _FallbackAttempts(self, request)

    def trace(self, error: AgentError) -> TraceEvent:
        """Return the event that announces the second provider."""
        first, second = self.first.info, self.second.info
        detail = {
            "from": f"{first.name}/{first.model}",
            "to": f"{second.name}/{second.model}",
            "error": error.message,
            "kind": error.kind,
            "status": error.status,
        }
        return TraceEvent("fallback", detail)

    async def close(self) -> None:
        """Close both."""
        try:
            await self.first.close()
        finally:
            await self.second.close()


class _FallbackAttempts(RestartableStream):
    """One request, and whether the second provider was asked already."""

    __slots__ = ("_asked_second", "_fallback", "_request")

    def __init__(self, fallback: Fallback, request: Request) -> None:
        super().__init__(fallback.first.stream(request))
        self._fallback = fallback
        self._request = request
        self._asked_second = False

    def next_attempt(self, error: AgentError) -> Restart | None:
        """Ask the second provider, once, if another model may do better."""
        if self._asked_second or not isinstance(error, Overloaded | RateLimited | Unreachable):
            return None
        self._asked_second = True
        return Restart(Retry(self._fallback.trace(error), 0.0, sleep), self._second)

    def _second(self) -> Stream:
        return _priced(self._fallback.second, self._request)


def _with_few_retries(first: Provider) -> Provider:
    """Return the provider with few retries, because there is another one to ask."""
    if not isinstance(first, Retrying):
        return first
    policy = first.retry_policy
    retries = _FALLBACK_RETRIES if policy.retries is None else policy.retries
    return Retrying(first.provider, RetryPolicy(retries, policy.seconds, base=policy.base))


async def _priced(second: Provider, request: Request) -> Stream:
    """Yield the second provider's events, with the cost at its own price."""
    price = second.info.price
    async with aclosing(second.stream(request)) as events:
        async for event in events:
            if isinstance(event, UsageReported) and not event.priced:
                cost = price.cost(event.usage) if price is not None else None
                yield replace(event, cost=cost, priced=True)
            else:
                yield event
