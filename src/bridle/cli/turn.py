"""A session, watched: records go to whoever shows them, Ctrl-C goes to the session.

Knows the session's verbs; what is shown, and how, is handed in.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol

from bridle.cli.event_lines import StepCounter
from bridle.cli.failure import INTERRUPTED
from bridle.cli.hearing import ENDING as ENDING
from bridle.cli.hearing import on_signals as on_signals
from bridle.errors import StoreFailed
from bridle.events import (
    Event,
    GrantRevoked,
    ResponseCompleted,
    TurnEnded,
    TurnParked,
    When,
)
from bridle.protocols.session import Prompt, Session, TurnResult
from bridle.protocols.store import Record
from bridle.workspace.text import neutral, one_line

Show = Callable[[Record], None]
_PATIENCE = 3.0  # seconds that an orderly end may take once a person has asked twice


class Awaited(Session, Protocol):
    """A session whose turns can be waited for."""

    @property
    def is_busy(self) -> bool: ...
    async def wait(self, turn: int) -> TurnResult: ...
    async def resume(self) -> int: ...


class Seen(Protocol):
    """What whoever watched a turn knows of it and its result does not say.

    `hint` is the advice that the turn ended with, `stopped` why the model stopped, `steps` counts
    those of an agent that does not.
    """

    hint: str
    stopped: str
    steps: StepCounter


class Watch:
    """Follows one session, as long as it is entered, and shows each record once.

    One subscription serves all turns.
    """

    def __init__(
        self, session: Awaited, show: Show, after: int = 0, *, elsewhere: bool = False
    ) -> None:
        self._session = session
        self._elsewhere = elsewhere  # another process runs its turns: who leaves stops nothing
        self._show = show
        self._last = after
        self._ended: set[int] = set()  # turns whose end, or parking, has been shown
        self._news: asyncio.Future[None] | None = None
        self.on_end: Callable[[], None] | None = None  # a turn is over, whoever began it
        self.hint = ""
        self.stopped = ""
        self.steps = StepCounter()

    async def __aenter__(self) -> "Watch":
        self._records = self._session.subscribe(self._last)  # from now on, not from when it runs
        self._showing = asyncio.ensure_future(self._follow())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._showing.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await self._showing
        await self._records.aclose()

    async def play(self, prompt: Prompt) -> TurnResult:
        """Send a prompt, show what happens, and come back with the result."""
        self.hint = self.stopped = ""
        self.steps = StepCounter()
        when: When = "queue" if self._session.is_busy else "idle"
        return await self.see(await self._session.send(prompt, when=when))

    async def resume(self) -> TurnResult:
        """Carry on what was left behind, show what happens, and come back with the result."""
        self.hint = self.stopped = ""
        self._ended.clear()  # a parked turn has been seen to stop, and is not over
        with self._reins():  # it runs already
            return await self._see(await self._session.resume())

    async def see(self, turn: int) -> TurnResult:
        """Show that turn to its end."""
        with self._reins():
            return await self._see(turn)

    def _reins(self) -> AbstractContextManager[None]:
        return holding_reins(self._session.interrupt, elsewhere=self._elsewhere)

    async def _see(self, turn: int) -> TurnResult:
        waiting = asyncio.ensure_future(self._session.wait(turn))
        try:
            await self._either(waiting)
            result = await waiting
            if not isinstance(result.error, StoreFailed):  # then the end was never written
                await self._shown(turn)
            return result
        finally:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting

    async def reached(self, seq: int) -> None:
        """Until that record has been shown, or nothing more is."""
        while self._last < seq and not self._showing.done():
            self._news = asyncio.get_running_loop().create_future()
            await self._either(self._news)

    async def _shown(self, turn: int) -> None:
        """Until the turn's end has been shown, or nothing more is."""
        while turn not in self._ended and not self._showing.done():
            self._news = asyncio.get_running_loop().create_future()
            await self._either(self._news)

    async def _either(self, other: "asyncio.Future[Any]") -> None:
        """Until that is there, or showing is over: a broken pipe ends everything."""
        await asyncio.wait([other, self._showing], return_when=asyncio.FIRST_COMPLETED)
        if self._showing.done():
            self._showing.result()

    async def _follow(self) -> None:
        async with aclosing(self._records) as records:
            async for record in records:
                self._last = record.seq
                self._show(record)
                self._note(record.event)
                if self._news is not None and not self._news.done():
                    self._news.set_result(None)

    def _note(self, event: Event) -> None:
        self.steps.add(event)
        if isinstance(event, ResponseCompleted):
            self.stopped = event.stop_reason
        elif isinstance(event, TurnEnded | TurnParked):
            self.hint = event.hint if isinstance(event, TurnEnded) else ""
            self._ended.add(event.turn)
            if self.on_end is not None:
                self.on_end()
        elif isinstance(event, GrantRevoked) and self.on_end is not None:
            self.on_end()  # somebody may stand behind a prompt that its line has taken away


@contextmanager
def holding_reins(
    interrupt: Callable[[], Awaitable[Any]], *, elsewhere: bool = False
) -> Iterator[None]:
    """Ctrl-C, SIGTERM or a closed terminal interrupts the turn; twice ends the program.

    `elsewhere`: another process runs the turn, and only Ctrl-C interrupts it.
    """
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    stopping: list[asyncio.Future[Any]] = []

    def pulled() -> None:
        if not stopping:
            stopping.append(asyncio.ensure_future(interrupt()))
            stopping[0].add_done_callback(lambda done: done.cancelled() or done.exception())
        elif me is not None:
            loop.call_later(_PATIENCE, os._exit, INTERRUPTED)
            me.cancel()

    with on_signals(pulled, signal.SIGINT, *(() if elsewhere else ENDING)):
        yield


class _LogLine(logging.Formatter):
    """A warning of the engine as one line; where it happened is for those who asked to see it."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"bridle: {one_line(record.getMessage(), 1000)}"
        if record.exc_info and os.environ.get("BRIDLE_DEBUG"):
            line += "\n" + neutral(self.formatException(record.exc_info))
        return line


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run a command's work in an event loop of its own; the exit code."""
    if logging.lastResort is not None:  # what writes to stderr if nobody set up anything else
        logging.lastResort.setFormatter(_LogLine())
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        return INTERRUPTED
