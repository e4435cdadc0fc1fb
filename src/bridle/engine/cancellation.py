"""Work that has to finish even if the task that waits for it is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


async def run_uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to completion. If we are cancelled meanwhile, re-raise once it has finished."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()  # retrieved: the caller gets the cancel instead
        raise asyncio.CancelledError
    return task.result()


# A time limit for the task that runs a tool call.
#
# Every call has a limit, and hardly any call reaches it. So all limits of the same length share one
# timer: with `asyncio.timeout`, the timers of short calls cost more than the rest of such a call.


class TimeLimit:
    """Cancel the current task, once, if the block has not ended after `seconds`; 0 is no limit.

    Unlike `asyncio.timeout` it raises nothing by itself: look at `is_expired`. The cancellation is
    taken back when the block ends, also if the tool has swallowed it.
    """

    __slots__ = ("_task", "_timer", "deadline", "is_expired")

    def __init__(self, seconds: float) -> None:
        self.is_expired = False
        self.deadline = 0.0
        self._task = asyncio.current_task() if seconds else None
        self._timer = _shared_timer(seconds) if seconds else None

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.remove(self)
        if self.is_expired and self._task is not None:
            self._task.uncancel()

    def expire(self) -> None:
        """Cancel the task."""
        if self._task is not None:
            self.is_expired = True
            self._task.cancel()


class _SharedTimer:
    """The limits of one length in one event loop. The first that was added is the first to end."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._limits: dict[TimeLimit, None] = {}
        self._is_set = False

    def add(self, limit: TimeLimit) -> None:
        loop = asyncio.get_running_loop()
        limit.deadline = loop.time() + self._seconds
        self._limits[limit] = None
        if not self._is_set:
            self._is_set = True
            loop.call_at(limit.deadline, self._expire_due)

    def remove(self, limit: TimeLimit) -> None:
        self._limits.pop(limit, None)

    def _expire_due(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._is_set = False
        for limit in list(self._limits):
            if limit.deadline > now:
                self._is_set = True
                loop.call_at(limit.deadline, self._expire_due)
                return
            del self._limits[limit]
            limit.expire()


_timers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, _SharedTimer]]
_timers = WeakKeyDictionary()


def _shared_timer(seconds: float) -> _SharedTimer:
    loop = asyncio.get_running_loop()
    timers = _timers.get(loop)
    if timers is None:
        timers = _timers[loop] = {}
    timer = timers.get(seconds)
    if timer is None:
        timer = timers[seconds] = _SharedTimer(seconds)
    return timer
