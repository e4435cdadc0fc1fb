"""Threads for blocking work: plain functions as tools, file operations, searches.

asyncio's own pool has few threads and waits for all of them at exit. Here there are up to 64, which
start when they are needed. They are daemons: a function that never returns blocks its thread, but
not the exit.
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

_MAX_THREADS = 64


class DaemonThreads:
    """Daemon threads that take jobs from one queue; a new one starts if none is idle."""

    def __init__(self, limit: int = _MAX_THREADS) -> None:
        self._limit = limit
        self._count = 0
        self._free = 0  # idle threads minus waiting jobs
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], R]) -> "Future[R]":
        """Run `work` in a thread as soon as one is free."""
        future: Future[R] = Future()
        with self._lock:
            if self._free <= 0 and self._count < self._limit:
                self._count += 1
                name = f"bridle-tool-{self._count}"
                threading.Thread(target=self._run_jobs, name=name, daemon=True).start()
            else:
                self._free -= 1
        self._jobs.put((future, work))
        return future

    def _run_jobs(self) -> None:
        while True:
            future, work = self._jobs.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except (StopIteration, SystemExit, KeyboardInterrupt) as error:
                    # A future cannot carry StopIteration, and a tool must not end the program.
                    problem = f"the function raised {type(error).__name__}: {error}"
                    future.set_exception(RuntimeError(problem))
                except BaseException as error:
                    future.set_exception(error)
            del future, work  # an idle thread keeps no references
            with self._lock:
                self._free += 1


_threads = DaemonThreads()


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking function in a thread, with the caller's context variables."""
    context = contextvars.copy_context()
    work: Callable[[], R] = partial(context.run, partial(function, *args, **kwargs))
    return await asyncio.wrap_future(_threads.submit(work))
