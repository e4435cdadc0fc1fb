"""The thread that writes logs: in order, and synced in groups.

The event loop hands over batches and is called back when they are written, or durable. It never
waits for the disk itself.
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


_GROUP = 32  # batches that are reported together: the first need not wait for the thousandth


class Batch(Protocol):
    """Some bytes for one file. Runs in the writer's thread; `done` runs in the event loop.

    All batches of a group are written before the first is synced, so that a file system with a
    journal writes that once for the group and not once for each file.
    """

    @property
    def durable(self) -> bool:
        """Whether it has to be synced."""
        ...

    @property
    def parent(self) -> str:
        """After the sync: a folder with a new entry, which is synced once for the whole group."""
        ...

    def write(self) -> None: ...
    def sync(self) -> None: ...
    def done(self, error: OSError | None) -> None: ...


class Writer:
    """A thread that starts with the first batch and ends with `close`."""

    def __init__(self, disk: Disk | None = None) -> None:
        self._disk = disk or Disk()
        self._jobs: SimpleQueue[tuple[AbstractEventLoop, list[Batch]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, loop: "AbstractEventLoop", batches: list[Batch]) -> None:
        """Have these written. The batches of one file must be put in order."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="bridle-writer", daemon=True)
            self._thread.start()
        self._jobs.put((loop, batches))

    def run(self, loop: "AbstractEventLoop", job: Callable[[], None], done: "Future[None]") -> None:
        """Run `job` in this thread, after what was put before."""
        self.put(loop, [Task(job, partial(_resolve, done))])

    def close(self) -> None:
        """End the thread once everything is written."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, batches = job
            for start in range(0, len(batches), _GROUP):
                outcome = self._write(batches[start : start + _GROUP])
                with suppress(RuntimeError):  # the loop is closed: it is written, and nobody waits
                    loop.call_soon_threadsafe(_report, outcome)

    def _write(self, batches: list[Batch]) -> "list[tuple[Batch, OSError | None]]":
        outcome = [(batch, _attempt(batch.write)) for batch in batches]
        outcome = [
            (batch, _attempt(batch.sync) if error is None and batch.durable else error)
            for batch, error in outcome
        ]
        parents = {batch.parent for batch, error in outcome if error is None and batch.parent}
        if not parents:
            return outcome
        errors = {path: _attempt(partial(sync_path, self._disk, path)) for path in parents}
        return [(batch, error or errors.get(batch.parent)) for batch, error in outcome]


class Task:
    """A function to be called in the order of the batches; then `on_done`, in the event loop."""

    parent = ""
    durable = False

    def __init__(self, job: Callable[[], None], on_done: Callable[[], None]) -> None:
        self.write = job
        self._on_done = on_done

    def sync(self) -> None:
        """Do nothing: there is no file."""

    def done(self, error: OSError | None) -> None:
        """Report that this and everything before it is done."""
        self._on_done()


def _resolve(done: "Future[None]") -> None:
    if not done.done():
        done.set_result(None)


def _attempt(write: Callable[[], None]) -> OSError | None:
    try:
        write()
    except OSError as error:
        return error
    except Exception as error:  # if the thread died, everybody would wait forever
        return OSError(f"{type(error).__name__}: {error}")
    return None


def _report(outcome: list[tuple[Batch, OSError | None]]) -> None:
    for batch, error in outcome:
        batch.done(error)
