"""Ends requests that take too long: one clock for all of them, not a timer for every chunk.

Setting and clearing timers for each request and each chunk would cost as much as reading them. So
each request notes when it was sent and since when it waits for bytes, and a clock looks four times
within the shortest time that is allowed. Knows no sockets: it is told how to stop a request.
"""

import asyncio
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Literal

_LOOKS = 4
_LONGEST_PAUSE = 3600.0


class Wait:
    """One request: when it was sent, since when it waits for bytes (0: it does not), and how to
    stop it. `late` says what it was stopped for."""

    __slots__ = ("late", "sent", "since", "stop")

    def __init__(self, stop: Callable[[], object]) -> None:
        self.sent = self.since = monotonic()
        self.stop = stop
        self.late: Literal["", "idle", "total"] = ""

    def give_up(self, late: Literal["idle", "total"]) -> None:
        """It took too long: whoever waits for it is told."""
        self.late = late
        self.stop()


class Patience:
    """Who is under way, and for how long."""

    def __init__(self, idle: float, total: float | None) -> None:
        self._idle = idle or inf
        self._total = total or inf
        self._pause = min(self._idle / _LOOKS, self._total / _LOOKS, _LONGEST_PAUSE)
        self._under_way: set[Wait] = set()
        self._clock: asyncio.TimerHandle | None = None

    def begin(self, stop: Callable[[], object]) -> Wait:
        """A request is sent, and its answer is waited for from now on."""
        wait = Wait(stop)
        self._under_way.add(wait)
        if self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(self._pause, self._look)
        return wait

    def end(self, wait: Wait) -> None:
        """It is over, or nobody waits for it any more."""
        self._under_way.discard(wait)

    def close(self) -> None:
        """Stop the clock."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _look(self) -> None:
        self._clock = None
        now = monotonic()
        for wait in list(self._under_way):
            if now - wait.sent >= self._total:
                self._under_way.discard(wait)
                wait.give_up("total")
            elif wait.since and now - wait.since >= self._idle:
                self._under_way.discard(wait)
                wait.give_up("idle")
        if self._under_way:
            loop = asyncio.get_running_loop()
            self._clock = loop.call_later(self._pause, self._look)
