"""One turn, watched: records go to whoever shows them, Ctrl-C goes to the session.

Knows the session's verbs; what is shown, and how, is handed in.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Protocol

from bridle.cli.failure import INTERRUPTED
from bridle.errors import StoreFailed
from bridle.events import ResponseCompleted, TraceEvent, TurnEnded
from bridle.promises.session import Prompt, Session, TurnResult
from bridle.promises.store import Record

Show = Callable[[Record], None]
ENDING = (signal.SIGTERM, signal.SIGHUP)  # the machine goes down; the terminal was closed
_PATIENCE = 3.0  # seconds that an orderly end may take once a person has asked twice


class Awaited(Session, Protocol):
    """A session whose turns can be waited for."""

    async def wait(self, turn: int) -> TurnResult: ...


class Watch:
    """Follows one session and shows each record once.

    Remembers of the last turn what its result does not say: the hint, and why the model stopped.
    """

    def __init__(self, session: Awaited, show: Show, after: int = 0) -> None:
        self._session = session
        self._show = show
        self._last = after
        self.hint = ""
        self.stopped = ""

    async def play(self, prompt: Prompt) -> TurnResult:
        """Send a prompt, show what happens, and come back with the result."""
        self.hint = self.stopped = ""
        turn = await self._session.send(prompt)
        waiting = asyncio.ensure_future(self._session.wait(turn))
        showing = asyncio.ensure_future(self._follow(turn))
        try:
            with holding_reins(self._session.interrupt):
                await asyncio.wait([waiting, showing], return_when=asyncio.FIRST_COMPLETED)
                if showing.done():
                    showing.result()  # a broken pipe ends everything
                result = await waiting
            if not isinstance(result.error, StoreFailed):  # then the end was never written
                await showing
            return result
        finally:
            for task in (waiting, showing):
                task.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await task

    async def _follow(self, turn: int) -> None:
        while not await self._follow_once(turn):
            pass

    async def _follow_once(self, turn: int) -> bool:
        """Until the turn's end; False when we were too slow and have to look again."""
        async with aclosing(self._session.subscribe(self._last)) as records:
            async for record in records:
                event = record.event
                if isinstance(event, TraceEvent) and event.kind == "resync":
                    return False
                self._last = record.seq
                self._show(record)
                if isinstance(event, ResponseCompleted):
                    self.stopped = event.stop_reason
                if isinstance(event, TurnEnded) and event.turn == turn:
                    self.hint = event.hint
                    return True
        return True


@contextmanager
def holding_reins(interrupt: Callable[[], Awaitable[Any]]) -> Iterator[None]:
    """Ctrl-C, SIGTERM or a closed terminal interrupts the turn; twice ends the program."""
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    stopping: list[asyncio.Future[Any]] = []

    def pulled() -> None:
        if not stopping:
            stopping.append(asyncio.ensure_future(interrupt()))
        elif me is not None:
            loop.call_later(_PATIENCE, os._exit, INTERRUPTED)
            me.cancel()

    with on_signals(pulled, signal.SIGINT, *ENDING):
        yield


_acts: dict[signal.Signals, list[Callable[[], object]]] = {}


@contextmanager
def on_signals(act: Callable[[], object], *signals: signal.Signals) -> Iterator[None]:
    """While inside, these signals do this too, before what they did; `nohup` is respected."""
    loop = asyncio.get_running_loop()
    heard = [number for number in signals if not _ignored(number)]
    for number in heard:
        _acts.setdefault(number, []).append(act)
        loop.add_signal_handler(number, _act_on, number)
    try:
        yield
    finally:
        for number in heard:
            _acts[number].remove(act)
            if not _acts[number]:
                loop.remove_signal_handler(number)


def _ignored(number: signal.Signals) -> bool:
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


def _act_on(number: signal.Signals) -> None:
    for act in reversed(_acts[number]):
        act()


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run a command's work in an event loop of its own; the exit code."""
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        return INTERRUPTED
