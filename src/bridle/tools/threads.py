"""Threads for work that blocks: plain functions as tools, file walks, searches.

asyncio's own pool has a handful of threads and is waited for at exit. These are up to 64, made
when they are needed, and daemons: a function that never returns costs a thread, not the exit.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MOST = 64

_Job = tuple["Future[Any]", Callable[[], Any]]


class Threads:
    """Daemon threads that take jobs from one queue; a new one starts when none is idle."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._count = 0
        self._free = 0  # threads that wait, minus jobs that do
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], R]) -> "Future[R]":
        """Have it done by a thread, as soon as one is free."""
        future: Future[R] = Future()
        with self._lock:
            if self._free <= 0 and self._count < self._most:
                self._count += 1
                name = f"bridle-tool-{self._count}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            else:
                self._free -= 1
        self._jobs.put((future, work))
        return future

    def _work(self) -> None:
        while True:
            future, work = self._jobs.get()
            if future.set_running_or_notify_cancel():
                _settle(future, work)
            del future, work  # a thread that waits keeps nothing alive
            with self._lock:
                self._free += 1


def _settle(future: "Future[Any]", work: Callable[[], Any]) -> None:
    """Put what the work gives, or raises, into the future.

    StopIteration cannot travel through a future, and an exit is not a tool's to ask for.
    """
    try:
        result = work()
    except (StopIteration, SystemExit, KeyboardInterrupt) as error:
        future.set_exception(RuntimeError(f"the function raised {type(error).__name__}: {error}"))
    except BaseException as error:  # whatever it is, it belongs to whoever waits for it
        future.set_exception(error)
    else:
        future.set_result(result)


_threads = Threads()


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function that blocks, in a thread, with the caller's context variables."""
    context = contextvars.copy_context()
    work: Callable[[], R] = partial(context.run, partial(function, *args, **kwargs))
    return await asyncio.wrap_future(_threads.submit(work))
