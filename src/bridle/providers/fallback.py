"""Fallback: a second provider for when the first cannot be had.

Only before the first delta, and only where another model may do better: the first is overloaded,
limited or out of reach. `ResponseCompleted.model` says who answered.
"""

from bridle.errors import AgentError, Overloaded, RateLimited, Unreachable
from bridle.events import TraceEvent
from bridle.promises.provider import Provider, ProviderInfo, Request
from bridle.providers.opening import Detour, Opening, Stream


class Fallback:
    """A provider made of two. What is known of it is known of the first."""

    def __init__(self, first: Provider, second: Provider) -> None:
        self.first = first
        self.second = second

    def __repr__(self) -> str:
        return f"Fallback({self.first!r}, {self.second!r})"

    @property
    def info(self) -> ProviderInfo:
        """What is known of the first."""
        return self.first.info

    def stream(self, request: Request) -> Stream:
        """The first provider's events, or a `fallback` trace and the second's."""
        fallen = False

        def mend(error: AgentError) -> Detour | None:
            nonlocal fallen
            if fallen or not isinstance(error, Overloaded | RateLimited | Unreachable):
                return None
            fallen = True
            return Detour(self._told(error), 0.0, lambda: self.second.stream(request))

        return Opening(lambda: self.first.stream(request), mend)

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
