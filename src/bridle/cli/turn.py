"""Follow a turn from a command: show its records as they come, and how it ended."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, Protocol

from bridle.cli import exit_codes as failure
from bridle.cli.printer import Printer
from bridle.cli.render import StepCounter, usage_line
from bridle.cli.signals import interrupt_on_signals
from bridle.cli.style import wrapped
from bridle.errors import StoreFailed
from bridle.events import GrantRevoked, TurnEnded, TurnParked, When
from bridle.policy import Mode
from bridle.protocols.session import Prompt, Session, TurnResult
from bridle.protocols.store import Record

Show = Callable[[Record], None]


class RunnableSession(Session, Protocol):
    """A session whose turns can be resumed and waited for."""

    @property
    def is_busy(self) -> bool: ...
    async def wait(self, turn: int) -> TurnResult: ...
    async def resume(self) -> int: ...


class Watch:
    """Shows each record of a session once, as long as it is entered, and runs turns of it.

    One subscription serves all turns. Signals interrupt the turn that runs. Of the newest turn,
    `hint` is the advice that it ended with, and `steps` counts those of an agent.
    """

    def __init__(
        self, session: RunnableSession, show: Show, after: int = 0, *, elsewhere: bool = False
    ) -> None:
        self._session = session
        self._elsewhere = elsewhere  # another process runs its turns: only Ctrl-C stops them
        self._show = show
        self._last = after
        self._ended: set[int] = set()  # turns whose end, or parking, has been shown
        self._news: asyncio.Future[None] | None = None
        self.on_end: Callable[[], None] | None = None  # called when any turn is over
        self.hint = ""
        self.steps = StepCounter()

    async def __aenter__(self) -> "Watch":
        self._records = self._session.subscribe(self._last)  # from now on, not from when it runs
        self._showing = asyncio.ensure_future(self._show_records())
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

    async def send(self, prompt: Prompt) -> TurnResult:
        """Send a prompt, show its turn to its end, and return the result."""
        self.hint = ""
        self.steps = StepCounter()
        when: When = "queue" if self._session.is_busy else "idle"
        return await self.wait(await self._session.send(prompt, when=when))

    async def resume(self) -> TurnResult:
        """Resume what was left behind, show it to its end, and return the result."""
        self.hint = ""
        self._ended.clear()  # the end of a parked turn has been shown, and it is not over
        with interrupt_on_signals(self._session.interrupt, only_ctrl_c=self._elsewhere):
            return await self._wait(await self._session.resume())

    async def wait(self, turn: int) -> TurnResult:
        """Show a turn to its end, and return its result."""
        with interrupt_on_signals(self._session.interrupt, only_ctrl_c=self._elsewhere):
            return await self._wait(turn)

    async def _wait(self, turn: int) -> TurnResult:
        waiting = asyncio.ensure_future(self._session.wait(turn))
        try:
            await self._wait_for(waiting)
            result = await waiting
            if not isinstance(result.error, StoreFailed):  # then the end was never written
                await self._wait_until(lambda: turn in self._ended)
            return result
        finally:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting

    async def wait_for_record(self, seq: int) -> None:
        """Wait until that record has been shown, or nothing more is."""
        await self._wait_until(lambda: self._last >= seq)

    async def _wait_until(self, is_shown: Callable[[], bool]) -> None:
        while not is_shown() and not self._showing.done():
            self._news = asyncio.get_running_loop().create_future()
            await self._wait_for(self._news)

    async def _wait_for(self, future: "asyncio.Future[Any]") -> None:
        """Wait until it is done, or nothing more is shown; raise the error of a broken pipe."""
        await asyncio.wait([future, self._showing], return_when=asyncio.FIRST_COMPLETED)
        if self._showing.done():
            self._showing.result()

    async def _show_records(self) -> None:
        async with aclosing(self._records) as records:
            async for record in records:
                event = record.event
                self._last = record.seq
                self._show(record)
                self.steps.add(event)
                if isinstance(event, TurnEnded | TurnParked):
                    self.hint = event.hint if isinstance(event, TurnEnded) else ""
                    self._ended.add(event.turn)
                # the line of a revoked grant may have replaced a prompt that a person stands at
                is_end = isinstance(event, TurnEnded | TurnParked | GrantRevoked)
                if is_end and self.on_end is not None:
                    self.on_end()
                if self._news is not None and not self._news.done():
                    self._news.set_result(None)


def print_turn_end(
    result: TurnResult,
    printer: Printer,
    *,
    mode: Mode,
    hint: str,
    steps: int,
    again: str,
    parked: Sequence[str] = (),
    name: str = "",
) -> None:
    """Say how a turn ended, unless it simply was done, and what it used.

    `hint` is the advice that the turn ended with; `again` says how to go on without one. `parked`
    are sessions of its subagents that need approval, `name` is that of the session itself.
    """
    if result.reason == "interrupted":
        printer.line(printer.paint.yellow("■ interrupted; the session is kept"))
        printer.line(f"  → {again}")
    elif result.reason == "parked":
        pass  # whoever parked it has said what it needs
    elif not result.ok:
        hint = result.error.hint if result.error is not None else hint
        if not hint and result.reason == "budget" and not result.metrics.invocations:
            hint = "Raise the limit: it is too low for a single step."
        printer.break_line()
        failure.trace(result.error)
        failure.complain(result.detail or result.reason, hint or again)
    elif result.detail:
        failure.complain(result.detail, hint)
    if result.permission_needed and mode == "plan":
        failure.complain(
            "a plan or a question needs an answer, and no one was available to give it; "
            "nothing was changed",
            "Run it in a terminal, or use --on-ask park and answer later.",
        )
    elif result.permission_needed:
        more = "--mode edits or --yes" if mode == "ask" else "--yes"
        failure.complain(
            "a call needed approval, and no one was available to give it",
            f"Run it in a terminal, or allow more with {more}.",
        )
    if parked:
        count = f"{len(parked)} subagents need" if len(parked) > 1 else "a subagent needs"
        failure.complain(
            f"{count} approval, in session {', '.join(parked)}; the turn continued without "
            "the result",
            "See `bridle approvals list`, answer with `bridle approvals answer`, "
            f"then continue with `bridle run --resume {parked[0]}`.",
        )
    usage = usage_line(result.metrics, steps) + (f" · {name}" if name else "")
    printer.line(printer.paint.dim(wrapped(usage, printer.width)))
