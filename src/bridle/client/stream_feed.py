"""The records of one session as a server streams them, folded as they arrive; no gap, no repeat.

One connection serves all readers here. If it breaks it is opened again, from the newest record that
is durable on the server. Records after that are compared with what was seen before. If they differ,
the server has lost records that were not durable yet: everything is folded again, and readers get
a `resync`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

from msgspec import DecodeError, json

from bridle.client.connection import Connection, quoted
from bridle.client.problems import read
from bridle.client.sse import Block
from bridle.engine.history import History
from bridle.errors import AgentError, BadStream, RateLimited, Unreachable
from bridle.events import TraceEvent
from bridle.protocols.codec import to_record
from bridle.protocols.session_values import RecordPage, SessionInfo
from bridle.protocols.store import Record
from bridle.runtime.followed_session import TurnResults

_ROOM = 4096  # records that are kept for readers that are a little behind
_PAGE = 500
_FAR = 2**62  # beyond every record
DELAYS = (0.1, 0.3, 1.0, 2.0, 5.0)  # seconds before the connection is opened again


class StreamFeed:
    """Follows one session until it is closed. Implements `RecordFeed`."""

    def __init__(
        self, connection: Connection, info: SessionInfo, tell: Callable[[str], None] | None = None
    ) -> None:
        self.info = info
        self._connection = connection
        self._id = session_id = info.id
        self._tell = tell or (lambda text: None)
        self._path = f"/api/sessions/{quoted(session_id)}"
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._failures = 0
        self._stopping = False
        self._era = 0  # how often everything was folded anew
        self._lost = 0  # the newest record that was right when it last was
        self.error: AgentError | None = None  # why nothing more will come
        self.closed = False
        self._clear()

    def _clear(self) -> None:
        self.history = History()
        self.turns = TurnResults(self._id)
        self.seq = 0
        self._settled = 0  # where to come back to
        self._held: deque[Record] = deque(maxlen=_ROOM)
        self._floor = 0  # the newest record that is held no more

    def start(self) -> None:
        """Follow the session from its beginning."""
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following; readers see the end."""
        self.closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._wake()

    async def until(self, there: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until the condition holds; False: it did not in time. Raise what ended the feed."""
        try:
            async with asyncio.timeout(seconds):
                while not there():
                    self.check()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def check(self) -> None:
        """Raise what ended the stream, if something has."""
        if self.error is not None:
            raise self.error
        if self.closed:
            raise Unreachable(f"session {self._id} is not watched any more")

    async def records(self, after: int) -> AsyncGenerator[Record, None]:
        """Yield every record after that number: what was written, then live."""
        last, era = after, self._era
        while not self.closed:
            if era != self._era:
                era = self._era
                if last > self._lost:
                    last = self._lost
                    yield Record(last, "", TraceEvent("resync", {"after": last}))
            batch = await self._batch(last)
            for record in batch:
                if era != self._era:
                    break
                last = record.seq
                yield record
            if not batch:
                if self.error is not None:
                    raise self.error
                await self._news.wait()

    async def _batch(self, last: int) -> list[Record]:
        """Return what is known after that number; what is no longer kept is requested."""
        if last >= self.seq:
            return []
        if last >= self._floor:
            return [one for one in self._held if one.seq > last]
        query = {"after": last, "limit": _PAGE}
        found = await self._connection.ask("GET", f"{self._path}/records", query=query)
        page = map(_record, map(bytes, read(found, RecordPage).records))
        return [one for one in page if last < one.seq <= self.seq]

    async def _follow(self) -> None:
        while self.error is None:
            try:
                await self._listen()
                self._lose("the server ended the stream")
            except (Unreachable, RateLimited, BadStream) as problem:
                self._lose(problem.message)
            except AgentError as problem:
                self._fail(problem)
                return
            except Exception as problem:  # records that no session could have
                said = "the server's records contradict each other"
                self._fail(BadStream(said, problem))
                return
            await asyncio.sleep(DELAYS[min(self._failures, len(DELAYS)) - 1])

    def _fail(self, problem: AgentError) -> None:
        self.error = problem
        self._wake()

    async def _listen(self) -> None:
        """Read one connection until it ends."""
        query, last = {"after": 0}, ""
        if self._settled:
            query, last = {}, str(self._settled)
        async with aclosing(self._connection.stream(f"{self._path}/stream", query, last)) as blocks:
            async for block in blocks:
                if self._failures:
                    self._failures = 0
                    self._tell("connected again")
                if not self._hear(block):
                    return

    def _lose(self, why: str) -> None:
        self._failures += 1
        if self._failures == 1:
            self._tell(f"{'the server is stopping' if self._stopping else why}; trying again")
            self._stopping = False

    def _hear(self, block: Block) -> bool:
        """Handle one block; return whether to go on reading this connection."""
        if block.name == "resync":
            if _after(block) < self._settled:
                self._start_over(_after(block))
            return False
        if block.name == "stopping":
            self._stopping = True
        elif block.data is not None and not self._take(_record(block.data)):
            return False
        if block.id is not None and block.id.isdecimal():
            self._settled = max(self._settled, int(block.id))
        return True

    def _take(self, record: Record) -> bool:
        """Fold a record, once; return False if the server lost what was seen in its place."""
        if record.seq <= self.seq:
            seen = next((one for one in reversed(self._held) if one.seq == record.seq), record)
            if seen == record:
                return True
            self._start_over(record.seq - 1)
            return False
        if len(self._held) == _ROOM:
            self._floor = self._held[0].seq
        self._held.append(record)
        self.seq = record.seq
        self.history.apply(record)
        self.turns.apply(record, self.history)
        self._wake()
        return True

    def _start_over(self, right: int) -> None:
        self._tell("the server lost records that were not saved yet; reading the session again")
        self._era += 1
        self._lost = right
        self._clear()
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _record(data: bytes) -> Record:
    try:
        return to_record(data)
    except (DecodeError, RecursionError) as problem:
        raise BadStream("the server sent a record that cannot be read", problem) from problem


def _after(block: Block) -> int:
    with suppress(DecodeError, RecursionError):
        found: Any = json.decode(block.data or b"{}")
        found = found.get("data", found) if isinstance(found, dict) else {}
        if isinstance(found, dict) and isinstance(found.get("after"), int):
            return int(found["after"])
    return _FAR
