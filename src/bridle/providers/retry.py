"""Retrying: the same provider, asked again when another try may work.

Only before the first delta: nobody sees a sentence twice. Knows errors by their `retryable` and
`retry_after`, and no vendor.
"""

from bridle.errors import AgentError
from bridle.events import TraceEvent
from bridle.promises.provider import Provider, ProviderInfo, Request
from bridle.providers.opening import Detour, Opening, Stream


class Retrying:
    """A provider that waits and asks again: each wait up to twice the one before, with jitter.

    A vendor's `retry_after` is honoured; where it asks for more than `patience` seconds the error
    is raised at once, so that a person can decide.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        attempts: int = 3,
        base: float = 0.5,
        longest: float = 8.0,
        patience: float = 120.0,
    ) -> None:
        self.provider = provider
        self.attempts = attempts
        self.base = base
        self.longest = longest
        self.patience = patience

    def __repr__(self) -> str:
        return f"Retrying({self.provider!r}, attempts={self.attempts})"

    @property
    def info(self) -> ProviderInfo:
        """What is known of the provider inside."""
        return self.provider.info

    def stream(self, request: Request) -> Stream:
        """The provider's events; a `retry` trace before each wait."""
        return _Attempts(self, request)

    def _wait(self, failures: int, asked: float | None) -> float | None:
        """Seconds until the next attempt; None: longer than anybody should wait unasked."""
        from random import uniform

        if asked is not None:
            return None if asked > self.patience else asked * uniform(1.0, 1.1)
        longest = min(self.longest, self.base * 2.0 ** (failures - 1))
        return uniform(longest / 2, longest)

    def _told(self, error: AgentError, failures: int, seconds: float) -> TraceEvent:
        detail = {
            "attempt": failures,
            "of": self.attempts,
            "seconds": round(seconds, 3),
            "error": error.message,
            "kind": error.kind,
            "status": error.status,
        }
        return TraceEvent("retry", detail)

    async def close(self) -> None:
        """Close the provider inside."""
        await self.provider.close()


class _Attempts(Opening):
    """One request, and how often it failed."""

    __slots__ = ("_failures", "_request", "_retrying")

    def __init__(self, retrying: Retrying, request: Request) -> None:
        super().__init__(retrying.provider.stream(request))
        self._retrying = retrying
        self._request = request
        self._failures = 0

    def mend(self, error: AgentError) -> Detour | None:
        """Wait and ask again, where another try may work."""
        self._failures += 1
        retrying, failures = self._retrying, self._failures
        if not error.retryable or failures >= retrying.attempts:
            return None
        seconds = retrying._wait(failures, error.retry_after)
        if seconds is None:
            error.hint = f"The server asks to wait {_spoken(error.retry_after)}. {error.hint}"
            return None
        return Detour(retrying._told(error, failures, seconds), seconds, self._begin)

    def _begin(self) -> Stream:
        return self._retrying.provider.stream(self._request)


def _spoken(seconds: float | None) -> str:
    """A long wait as a person says it."""
    minutes = round((seconds or 0) / 60)
    if minutes < 120:
        return f"{minutes} minutes"
    return f"{minutes // 60} hours and {minutes % 60} minutes"
