"""Fallback: a second provider for when the first cannot be had.

Only before the first delta, and only where another model may do better: the first is overloaded,
limited or out of reach. `ResponseCompleted.model` says who answered, and its use is priced as its
own.
"""

from contextlib import aclosing

from msgspec.structs import replace

from bridle.errors import AgentError, Overloaded, RateLimited, Unreachable
from bridle.events import TraceEvent, UsageReported
from bridle.protocols.provider import Provider, ProviderInfo, Request, Retry, retry_policy_of
from bridle.providers.retry import Restart, RestartableStream, Retrying, RetryPolicy, Stream

_TRIES = 2  # of the first, beyond the one that failed, unless somebody has said how many


class Fallback:
    """A provider made of two. What is known of it is known of the first."""

    def __init__(self, first: Provider, second: Provider) -> None:
        self.first = _brief(first)
        self.second = second
        self.retry_policy = retry_policy_of(first)

    def __repr__(self) -> str:
        return f"Fallback({self.first!r}, {self.second!r})"

    @property
    def info(self) -> ProviderInfo:
        """What is known of the first."""
        return self.first.info

    def stream(self, request: Request) -> Stream:
        """The first provider's events, or a `fallback` trace and the second's."""
        return _Fall(self, request)

    def _told(self, error: AgentError) -> TraceEvent:
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


class _Fall(RestartableStream):
    """One request, and whether the second was asked already."""

    __slots__ = ("_fallback", "_fallen", "_request")

    def __init__(self, fallback: Fallback, request: Request) -> None:
        super().__init__(fallback.first.stream(request))
        self._fallback = fallback
        self._request = request
        self._fallen = False

    def next_attempt(self, error: AgentError) -> Restart | None:
        """Ask the second, once, where another model may do better."""
        if self._fallen or not isinstance(error, Overloaded | RateLimited | Unreachable):
            return None
        self._fallen = True
        return Restart(Retry(self._fallback._told(error), 0.0, _at_once), self._second)

    def _second(self) -> Stream:
        return _priced(self._fallback.second, self._request)


def _brief(first: Provider) -> Provider:
    """The first, tried again no more often than is worth a moment: the second is there."""
    if not isinstance(first, Retrying):
        return first
    policy = first.retry_policy
    retries = _TRIES if policy.retries is None else policy.retries
    return Retrying(first.provider, RetryPolicy(retries, policy.seconds, base=policy.base))


async def _at_once(seconds: float) -> None:
    """There is nothing to wait for."""


async def _priced(second: Provider, request: Request) -> Stream:
    """The second's events; what they used has the second's price, not the first's."""
    price = second.info.price
    async with aclosing(second.stream(request)) as events:
        async for event in events:
            if isinstance(event, UsageReported) and not event.priced:
                cost = price.cost(event.usage) if price is not None else None
                yield replace(event, cost=cost, priced=True)
            else:
                yield event
