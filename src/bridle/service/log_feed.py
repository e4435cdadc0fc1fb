"""The records of a session of this machine, folded as its owner writes them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

from bridle.engine.history import History
from bridle.errors import AgentError, SessionClosed
from bridle.events import SessionStarted
from bridle.protocols.session_catalog import SessionCatalog
from bridle.protocols.session_values import SessionInfo
from bridle.protocols.store import Record
from bridle.runtime.followed_session import TurnResults
from bridle.runtime.recorded_mode import is_mode_record
from bridle.service.threads import in_thread

Subscribe = Callable[[str, int], AsyncGenerator[Record, None]]


class LogFeed:
    """Follows one session until it is closed. Implements `RecordFeed`."""

    def __init__(
        self,
        catalog: SessionCatalog,
        subscribe: Subscribe,
        read_info: Callable[[str], Awaitable[SessionInfo]],
        info: SessionInfo,
    ) -> None:
        self.info = info
        self.history = History()
        self.turns = TurnResults(info.id)
        self.seq = 0
        self.closed = False
        self._catalog = catalog
        self._subscribe = subscribe
        self._read_info = read_info
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._error: AgentError | None = None

    async def start(self) -> None:
        """Read what is there, and follow it from then on. Raise `UnknownSession`."""
        self.seq = await asyncio.to_thread(self._catalog.fold, self.info.id, self._apply)
        self._task = asyncio.create_task(self._follow())

    async def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until the condition holds; False: it did not in time. Raise what ended the feed."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    if self._error is not None:
                        raise self._error
                    if self.closed:
                        raise SessionClosed(f"session {self.info.id} is not watched any more")
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def records(self, after: int) -> AsyncGenerator[Record, None]:
        """Yield every record after that number: what was written, then live; no gap, no repeat."""
        last = after
        reader = await in_thread(
            lambda: self._catalog.reader(self.info.id, after), lambda opened: opened.close()
        )
        try:
            while not self.closed:
                news = self._news
                while last < self.seq and (records := await in_thread(reader.read_new)):
                    for record in records:
                        await self.until(lambda seq=record.seq: self.seq >= seq)  # type: ignore[misc]
                        last = record.seq
                        yield record
                if self._error is not None:
                    raise self._error
                await news.wait()
        except SessionClosed:
            return  # closing the feed is no error to those who read from it
        finally:
            reader.close()

    async def close(self) -> None:
        """Stop following. The session goes on where it is."""
        self.closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._wake()

    async def _follow(self) -> None:
        try:
            async with aclosing(self._subscribe(self.info.id, self.seq)) as records:
                async for record in records:
                    self._apply(record)
                    self.seq = record.seq
                    event = record.event
                    if isinstance(event, SessionStarted) or is_mode_record(event):
                        self.info = await self._read_info(self.info.id)  # it has another owner
                    self._wake()
        except AgentError as error:  # it was deleted, or cannot be read any more
            self._error = error
            self._wake()

    def _apply(self, record: Record) -> None:
        self.history.apply(record)
        self.turns.apply(record, self.history)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
