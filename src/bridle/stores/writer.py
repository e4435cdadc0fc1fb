"""The one thread that touches the disk: it writes in order and syncs in groups.

The event loop hands over batches and is told when they are written, or durable. It never waits
for the disk itself. What a batch means, and whose log it is, is not known here.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from bridle.stores.disk import Disk, sync_path

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


_GROUP = 32  # batches that are told of together: the first need not wait for the thousandth


class Batch(Protocol):
    """Some bytes for one file. Runs in the writer's thread; `done` runs in the event loop.

    All of a group are written before the first is synced: a file system that keeps a journal then
    writes it once for the group, and not once for each file.
    """

    @property
    def durable(self) -> bool:
        """Has it to be synced?"""
        ...

    @property
    def parent(self) -> str:
        """After the sync: a folder with a new entry, synced once for the whole group."""
        ...

    def write(self) -> None: ...
    def sync(self) -> None: ...
    def done(self, error: OSError | None) -> None: ...


class Writer:
    """A thread, started with the first batch, that ends with `close`."""

    def __init__(self, disk: Disk | None = None) -> None:
        self._disk = disk or Disk()
        self._jobs: SimpleQueue[tuple[AbstractEventLoop, list[Batch]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, loop: "AbstractEventLoop", batches: list[Batch]) -> None:
        """Hand over; the batches of one file must be handed over in order."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="bridle-writer", daemon=True)
            self._thread.start()
        self._jobs.put((loop, batches))

    def run(self, loop: "AbstractEventLoop", job: Callable[[], None], done: "Future[None]") -> None:
        """Something else for this thread, after what was handed over before."""
        self.put(loop, [Errand(job, partial(_settle, done))])

    def close(self) -> None:
        """End the thread once everything handed over is written."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, batches = job
            for start in range(0, len(batches), _GROUP):
                outcome = self._write(batches[start : start + _GROUP])
                with suppress(RuntimeError):  # the loop is gone: it is written, nobody is told
                    loop.call_soon_threadsafe(_announce, outcome)

    def _write(self, batches: list[Batch]) -> "list[tuple[Batch, OSError | None]]":
        outcome = [(batch, _attempt(batch.write)) for batch in batches]
        outcome = [
            (batch, _attempt(batch.sync) if error is None and batch.durable else error)
            for batch, error in outcome
        ]
        parents = {batch.parent for batch, error in outcome if error is None and batch.parent}
        if not parents:
            return outcome
        found = {path: _attempt(partial(sync_path, self._disk, path)) for path in parents}
        return [(batch, error or found.get(batch.parent)) for batch, error in outcome]


class Errand:
    """Something else in the order of the batches. `tell` is called in the event loop after it."""

    parent = ""
    durable = False

    def __init__(self, job: Callable[[], None], tell: Callable[[], None]) -> None:
        self.write = job
        self._tell = tell

    def sync(self) -> None:
        """Nothing."""

    def done(self, error: OSError | None) -> None:
        """It is over, and so is everything before it."""
        self._tell()


def _settle(done: "Future[None]") -> None:
    if not done.done():
        done.set_result(None)


def _attempt(write: Callable[[], None]) -> OSError | None:
    try:
        write()
    except OSError as error:
        return error
    except Exception as error:  # a thread that died would leave everybody waiting for ever
        return OSError(f"{type(error).__name__}: {error}")
    return None


def _announce(outcome: list[tuple[Batch, OSError | None]]) -> None:
    for batch, error in outcome:
        batch.done(error)
