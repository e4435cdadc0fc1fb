"""Ends requests that take too long, with one timer for all of them.

Timers for each request and each chunk would cost as much as reading them. So each request notes
when it was sent and since when it waits for bytes, and one timer looks four times within the
shortest limit. Knows no sockets: it is told how to stop a request.
"""

import asyncio
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Literal

_LOOKS = 4
_LONGEST_INTERVAL = 3600.0


class PendingRequest:
    """One request: when it was sent, and since when it waits for bytes (0: it does not).

    `stop` ends it, and `late` says which limit was exceeded.
    """

    __slots__ = ("late", "sent", "since", "stop")

    def __init__(self, stop: Callable[[], object]) -> None:
        self.sent = self.since = monotonic()
        self.stop = stop
        self.late: Literal["", "idle", "total"] = ""

    def stop_late(self, late: Literal["idle", "total"]) -> None:
        """Stop it because it took too long."""
        self.late = late
        self.stop()


class RequestTimeouts:
    """The requests that are running, and their limits."""

    def __init__(self, idle: float, total: float | None) -> None:
        self._idle = idle or inf
        self._total = total or inf
        self._interval = min(self._idle / _LOOKS, self._total / _LOOKS, _LONGEST_INTERVAL)
        self._running: set[PendingRequest] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, stop: Callable[[], object]) -> PendingRequest:
        """Watch a request that is sent now."""
        wait = PendingRequest(stop)
        self._running.add(wait)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._look)
        return wait

    def end(self, wait: PendingRequest) -> None:
        """Stop watching a request."""
        self._running.discard(wait)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = monotonic()
        for wait in list(self._running):
            if now - wait.sent >= self._total:
                self._running.discard(wait)
                wait.stop_late("total")
            elif wait.since and now - wait.since >= self._idle:
                self._running.discard(wait)
                wait.stop_late("idle")
        if self._running:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._look)
