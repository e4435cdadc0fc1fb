"""A session's stream: events come in, deltas are joined into records, and records go to watchers.

`ToolEmitter` takes the events of tools, from any thread. `DeltaBuffer` joins what streams in small
pieces before it is recorded. `Channel` passes items to its watchers; `Broadcast` is the channel of
one session. `follow` yields every record after a number, first from the store and then live,
without gap or repeat.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Generic, TypeVar

from bridle.errors import UnknownSession
from bridle.events import (
    ApprovalAnswered,
    Event,
    GrantRevoked,
    ModeChanged,
    PromptWithdrawn,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolOutputDelta,
    TraceEvent,
)
from bridle.protocols.store import Log, Record, Store

log = logging.getLogger(__name__)

_USER_ONLY = frozenset({ApprovalAnswered, GrantRevoked, ModeChanged, PromptWithdrawn})


class ToolEmitter:
    """Emits the events of a turn's tools from any thread, until `close`.

    Tools may not emit what only a person does (answers, mode changes), except through
    `emit_unrestricted`, which is for tools that ask a person.
    """

    __slots__ = ("_emit", "_loop", "_open", "_thread")

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._open = True

    def __call__(self, event: Event) -> None:
        if type(event) in _USER_ONLY:
            log.warning("a tool may not emit %s: only a person does that", type(event).__name__)
        else:
            self.emit_unrestricted(event)

    def emit_unrestricted(self, event: Event) -> None:
        """Emit any event: for tools that ask a person, and pass on the answer."""
        if threading.get_ident() == self._thread:
            self._emit_if_open(event)
        elif self._open:
            self._loop.call_soon_threadsafe(self._emit_if_open, event)

    def close(self) -> None:
        """Ignore what tools emit from here on: the turn is over."""
        self._open = False

    def _emit_if_open(self, event: Event) -> None:
        if self._open:
            self._emit(event)


_DELTA_SECONDS = 0.03  # between two records of deltas
Delta = TextDelta | ThinkingDelta | ToolCallArgsDelta | ToolOutputDelta
_WITHOUT_CALL = frozenset({TextDelta, ThinkingDelta})
_DELTAS = _WITHOUT_CALL | {ToolCallArgsDelta, ToolOutputDelta}


class DeltaBuffer:
    """Joins deltas, so that a thousand of them become a few records.

    The first ones are recorded with the next round of the event loop (what arrives in one go is one
    record), then at most one record every 30 ms. Order is kept: any other event is recorded after
    the deltas before it.
    """

    __slots__ = ("_call", "_first", "_flushed_at", "_kind", "_record", "_texts", "_timer")

    def __init__(self, record: Callable[[Event], object]) -> None:
        self._record = record
        self._first: Delta | None = None
        self._kind: type | None = None
        self._call = ""
        self._texts: list[str] = []
        self._timer: asyncio.Handle | None = None
        self._flushed_at = 0.0

    def add(self, event: Event) -> None:
        """Record an event, at once or with the deltas around it."""
        kind = type(event)
        if kind not in _DELTAS:
            if self._first is not None:
                self.flush()
            self._record(event)
            return
        delta: Any = event
        if self._kind is kind and (kind in _WITHOUT_CALL or self._call == delta.call_id):
            self._texts.append(delta.text)
            return
        self.flush()
        self._first, self._kind = delta, kind
        self._call = getattr(delta, "call_id", "")
        self._texts.append(delta.text)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = self._flushed_at + _DELTA_SECONDS - loop.time()
            self._timer = (
                loop.call_later(wait, self._tick) if wait > 0 else loop.call_soon(self._tick)
            )

    def flush(self) -> None:
        """Record the deltas that wait."""
        first = self._first
        if first is None:
            return
        self._first = self._kind = None
        texts, self._texts = self._texts, []
        if len(texts) > 1:
            kind: Any = type(first)
            text = "".join(texts)
            first = kind(text) if kind in _WITHOUT_CALL else kind(self._call, text)
        self._record(first)

    def close(self) -> None:
        """Record the deltas that wait, and stop the timer."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        if self._first is not None:
            self._flushed_at = asyncio.get_running_loop().time()
            self.flush()


BACKLOG = 10_000  # items that a watcher may be behind
T = TypeVar("T")


class _Link(Generic[T]):
    """One batch, and the link to the next."""

    __slots__ = ("items", "next")

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items
        self.next: _Link[T] | None = None


class Watcher(Generic[T]):
    """One subscriber of a channel: a position in its chain of batches."""

    __slots__ = ("_position", "_waiter", "backlog", "lagging", "over", "received")

    def __init__(self, newest: _Link[T], published: int, backlog: int) -> None:
        self._position = newest
        self.received = published
        self.backlog = backlog
        self._waiter: asyncio.Future[None] | None = None
        self.lagging = False
        self.over = False

    def wake(self) -> None:
        """Have it look again: there is a batch, or the end."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def drop(self) -> None:
        """Drop it for being too slow, with everything it has not received."""
        self.lagging = True
        self._position = _Link(())
        self.wake()

    def end(self) -> None:
        """Have it end after what is published already."""
        self.over = True
        self.wake()

    async def batch(self) -> Sequence[T]:
        """Wait for the next batch; return an empty one at the end, or if it was dropped."""
        while (link := self._position.next) is None:
            if self.lagging or self.over:
                return ()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._position = link
        self.received += len(link.items)
        return link.items

    async def records(self) -> AsyncGenerator[T, None]:
        """Yield item by item, until the end or until it was dropped."""
        while batch := await self.batch():
            for item in batch:
                yield item


class Channel(Generic[T]):
    """Hands items to any number of watchers. Calls `changed` when one joins or leaves.

    Batches form a linked chain, so that a slow watcher costs the others nothing.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._watchers: dict[Watcher[T], None] = {}
        self._newest: _Link[T] = _Link(())
        self._published = 0
        self._over = False
        self._changed = changed

    def __len__(self) -> int:
        return len(self._watchers)

    def join(self, backlog: int = BACKLOG) -> Watcher[T]:
        """Return a new watcher, which gets everything published from here on."""
        watcher = Watcher(self._newest, self._published, backlog)
        if self._over:
            watcher.end()
        self._watchers[watcher] = None
        self._changed()
        return watcher

    def leave(self, watcher: Watcher[T]) -> None:
        """Remove a watcher."""
        if watcher not in self._watchers:
            return
        del self._watchers[watcher]
        if not self._watchers:
            self._newest = _Link(())
        self._changed()

    def publish(self, items: Sequence[T]) -> None:
        """Hand a batch to all watchers, and drop those that are too slow."""
        if not items or not self._watchers:
            return
        published = self._published
        slow = [
            watcher for watcher in self._watchers if published - watcher.received >= watcher.backlog
        ]
        for watcher in slow:
            watcher.drop()
            self.leave(watcher)
        link = _Link(items)
        self._newest.next = link
        self._newest = link
        self._published = published + len(items)
        for watcher in self._watchers:
            watcher.wake()

    def end(self) -> None:
        """End all watchers, also those that join later."""
        self._over = True
        for watcher in self._watchers:
            watcher.end()


class Broadcast(Channel[Record]):
    """The channel of one session, with one listener for the stream of all sessions.

    The log reports its records only while somebody watches or listens.
    """

    def __init__(self, log: Log | None = None) -> None:
        super().__init__(self._update_log)
        self._log = log
        self._listener: Callable[[Sequence[Record]], None] | None = None
        self._is_attached = False

    def set_listener(self, listener: Callable[[Sequence[Record]], None] | None) -> None:
        """Call `listener` with every batch; None: no more."""
        self._listener = listener
        self._update_log()

    def publish(self, items: Sequence[Record]) -> None:
        """Hand a batch to the watchers and the listener."""
        super().publish(items)
        if self._listener is not None:
            self._listener(items)

    def _update_log(self) -> None:
        wanted = self._listener is not None or bool(self._watchers)
        if wanted != self._is_attached and self._log is not None:
            self._log.on_written(self.publish if wanted else None)
        self._is_attached = wanted


_NEAR = BACKLOG // 2  # so many records can be read while new ones wait in the watcher
_BATCH = 128
_START = Record(0, "", TraceEvent("begun"))  # discarded: see `start_now`


def start_now(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Run a generator up to its first `yield`, discard that value, and return the generator.

    A generator starts when it is first asked for an item, but a watcher has to join at once. And
    one that has started runs its `finally` in any case.
    """
    with suppress(StopIteration):
        items.asend(None).__await__().__next__()
    return items


async def follow(
    store: Store, log: Log, broadcast: Broadcast, after: int = 0
) -> AsyncGenerator[Record, None]:
    """Yield every record after that number, until the session is closed. Start it with `start_now`.

    Join the channel if few records are missing, and read those from the store. If many are missing,
    read first and join afterwards. A watcher that was dropped for being too slow starts again.
    """
    last = after
    watcher: Watcher[Record] | None = None
    reader: _StoreReader | None = None
    try:
        if log.seq - last <= _NEAR:
            watcher = broadcast.join()
        is_behind = log.seq > last
        yield _START
        while True:
            if is_behind:
                reader = _StoreReader(store, log.session_id, last)
                while not reader.is_over:
                    for record in await reader.batch():
                        last = record.seq
                        yield record
                reader = None
            if watcher is None:
                watcher, is_behind = broadcast.join(), log.seq > last
                continue
            while batch := await watcher.batch():
                for record in batch:
                    if record.seq > last:
                        last = record.seq
                        yield record
            if not watcher.lagging:
                return
            watcher = broadcast.join() if log.seq - last <= _NEAR else None
            is_behind = log.seq > last
    finally:
        if reader is not None:
            reader.close()
        if watcher is not None:
            broadcast.leave(watcher)


class _StoreReader:
    """Reads the records after a number in batches, in a thread: the event loop never waits."""

    def __init__(self, store: Store, session_id: str, after: int) -> None:
        self._store = store
        self._session_id = session_id
        self._after = after
        self._records: Iterator[Record] | None = None
        self.is_over = False

    async def batch(self) -> list[Record]:
        """Return the next batch, empty if nothing more is written."""
        job = asyncio.get_running_loop().run_in_executor(None, self._read)
        try:
            await asyncio.wait([job])
        finally:
            if not job.done():  # cancelled: the thread still uses the file
                await asyncio.wait([job])
        return job.result()

    def close(self) -> None:
        """Close the file."""
        if (close := getattr(self._records, "close", None)) is not None:
            close()

    def _read(self) -> list[Record]:
        """In the thread: read a batch; a short one is the last."""
        try:
            if self._records is None:
                self._records = self._store.read(self._session_id, self._after)
            batch = list(islice(self._records, _BATCH))
        except UnknownSession:
            batch = []
        self.is_over = len(batch) < _BATCH
        return batch
