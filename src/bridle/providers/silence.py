"""Ends replies that have gone silent: one clock for all of them, not a timer for every chunk.

A stream brings a chunk every few milliseconds; setting and clearing a timer for each would cost as
much as reading it. So each reply notes since when it waits, and a clock looks four times within
the time that is allowed.
"""

import asyncio
from typing import Protocol

_LOOKS = 4


class Waiting(Protocol):
    """Somebody who waits for bytes."""

    def give_up(self) -> None:
        """They did not come in time."""
        ...


class Silence:
    """Who waits, and since when."""

    def __init__(self, allowed: float) -> None:
        self._allowed = allowed
        self._since: dict[Waiting, float] = {}
        self._clock: asyncio.TimerHandle | None = None

    def begin(self, waiting: Waiting) -> None:
        """Bytes are waited for from now on."""
        loop = asyncio.get_running_loop()
        self._since[waiting] = loop.time()
        if self._clock is None:
            self._clock = loop.call_later(self._allowed / _LOOKS, self._look)

    def end(self, waiting: Waiting) -> None:
        """They came, or nobody waits any more."""
        self._since.pop(waiting, None)

    def close(self) -> None:
        """Stop the clock."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _look(self) -> None:
        self._clock = None
        loop = asyncio.get_running_loop()
        for waiting, since in list(self._since.items()):
            if loop.time() - since >= self._allowed:
                self._since.pop(waiting)
                waiting.give_up()
        if self._since:
            self._clock = loop.call_later(self._allowed / _LOOKS, self._look)
