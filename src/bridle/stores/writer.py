"""The one thread that touches the disk: it writes in order and syncs in groups.

The event loop hands over batches and is told when they are written, or durable. It never waits
for the disk itself. What a batch means, and whose log it is, is not known here.
"""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


_GROUP = 32  # batches that are told of together: the first need not wait for the thousandth


class Batch(Protocol):
    """Some bytes for one file. Runs in the writer's thread; `done` runs in the event loop."""

    parents: Sequence[str]  # folders with a new entry, to be synced once for the whole group

    @property
    def sync(self) -> bool: ...
    def write(self) -> None: ...
    def done(self, error: OSError | None) -> None: ...


class Writer:
    """A thread, started with the first batch, that ends with `close`."""

    def __init__(self) -> None:
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
        self.put(loop, [_Errand(job, done)])

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
                _write_group(loop, batches[start : start + _GROUP])


def _write_group(loop: "AbstractEventLoop", batches: list[Batch]) -> None:
    outcome = [(batch, _attempt(batch.write)) for batch in batches]
    if any(batch.parents for batch in batches):
        outcome = _with_parents(outcome)
    with suppress(RuntimeError):  # the loop is gone: it is written, and nobody is left to tell
        loop.call_soon_threadsafe(_announce, outcome)


class _Errand:
    parents: Sequence[str] = ()
    sync = False

    def __init__(self, job: Callable[[], None], done: "Future[None]") -> None:
        self.write = job
        self._done = done

    def done(self, error: OSError | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


def _attempt(write: Callable[[], None]) -> OSError | None:
    try:
        write()
    except OSError as error:
        return error
    except Exception as error:  # a thread that died would leave everybody waiting for ever
        return OSError(f"{type(error).__name__}: {error}")
    return None


def _with_parents(
    outcome: list[tuple[Batch, OSError | None]],
) -> list[tuple[Batch, OSError | None]]:
    """Sync each folder that has a new entry, once; its batches fail with it."""
    wanted = {path for batch, error in outcome if error is None for path in batch.parents}
    failed = {path: error for path in wanted if (error := _attempt(partial(sync_folder, path)))}
    return [
        (batch, error or next((failed[p] for p in batch.parents if p in failed), None))
        for batch, error in outcome
    ]


def _announce(outcome: list[tuple[Batch, OSError | None]]) -> None:
    for batch, error in outcome:
        batch.done(error)


def sync_folder(path: str) -> None:
    """Make the entries of a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


sync_file = getattr(os, "fdatasync", os.fsync)
_DSYNC: int | None = getattr(os, "RWF_DSYNC", None)


def write_at(handle: int, data: bytes, offset: int, *, sync: bool) -> None:
    """Write all of `data` there; with `sync` it is durable on return (one call where it can be)."""
    if sync and _DSYNC is not None:
        try:
            _write_through(handle, memoryview(data), offset, _DSYNC)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                raise
        else:
            return
    view = memoryview(data)
    while view:
        count = os.pwrite(handle, view, offset)
        view, offset = view[count:], offset + count
    if sync:
        sync_file(handle)


def _write_through(handle: int, view: memoryview, offset: int, flags: int) -> None:
    """Some kernels and sandboxes know no such flags; then it raises, and nothing is lost."""
    while view:
        count = os.pwritev(handle, [view], offset, flags)
        view, offset = view[count:], offset + count
