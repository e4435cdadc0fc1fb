"""The turns of a session: at most one under way, those that wait, and the results of the last ones.

Owns the life of a turn from its prompt to its end. Who sends, watches or asks is not known here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from bridle.engine.awaited import Results
from bridle.engine.belongings import Belongings
from bridle.engine.budget import Budget
from bridle.engine.compact import Window
from bridle.engine.deltas import Deltas
from bridle.engine.history import History
from bridle.engine.loop import Ending
from bridle.engine.parts import Parts
from bridle.engine.recovery import abandoned, is_parked, left_open, refused
from bridle.engine.underway import UnderWay
from bridle.errors import AgentError, StoreFailed
from bridle.events import MessageAdded, Reason, TraceEvent, TurnEnded, TurnParked
from bridle.messages import Message, Transcript, as_parts
from bridle.policy import Mode
from bridle.promises.provider import ProviderInfo
from bridle.promises.session import Answer, TurnResult
from bridle.promises.store import Log
from bridle.usage import ExecutionMetrics

if TYPE_CHECKING:
    from bridle.engine.approvals import Approvals
    from bridle.engine.gate import Gate
    from bridle.engine.question import Judged


_EVERY = 4_000_000  # bytes of log between two checkpoints
_STOPPED = Ending("interrupted", "the turn was interrupted")


class Turns:
    """Starts, ends and answers for the turns of one session."""

    def __init__(
        self,
        parts: Parts,
        log: Log,
        history: History,
        deltas: Deltas,
        mode: Callable[[], Mode],
    ) -> None:
        self.parts = parts
        self.one_budget = False  # do the limits hold over all turns from here on, or over each?
        self.busy = False
        self.number = 0  # the turn that runs; 0: none does
        self.closed = False
        self.ended: Reason | None = None  # how the newest turn has ended that ended here
        self._id = log.session_id
        self._log = log
        self._history = history
        self._deltas = deltas
        emit = self._emit = deltas.add
        self._settled = log.settled
        self._approvals: Approvals | None = None
        self._gate: Gate | None = None
        self._mode = mode
        self._way: UnderWay | None = None  # the turn that runs, or the last one
        self._last = history.turn  # the newest number that a turn was given
        self.results = Results()
        self.belongings = Belongings(log, mode)
        self._aside: asyncio.Task[bool] | None = None  # what runs between two turns
        self._far = _EVERY
        read = history.metrics.context_tokens
        self._window = Window(parts, emit, self._conversation, self._settled, read)

    def approvals(self) -> "Approvals":
        """The questions of the session. Made, and loaded, with the first of them."""
        if self._approvals is None:
            from bridle.engine.approvals import Approvals

            self._approvals = Approvals(self._emit, self.parts, self._id, self._history)
        return self._approvals

    def gate(self) -> "Gate":
        """What every call of the session has to pass. Made, and loaded, with the first of them."""
        if self._gate is None:
            from bridle.engine.gate import Gate

            self._gate = Gate(self.parts, self._mode, self._ask, self._history.grants)
        return self._gate

    def _ask(self, judged: "Judged") -> Awaitable[Answer]:
        return self.approvals().ask(judged)

    @property
    def parked(self) -> bool:
        """Does a turn wait for answers, with nothing running?"""
        return not self.busy and is_parked(self._history)

    @property
    def current(self) -> int:
        """The turn that runs, or is parked; 0: none."""
        return self.number or (self._history.running if self.parked else 0)

    @property
    def latest(self) -> int:
        """The turn that runs, is just ending, or is parked; 0: none."""
        way = self._way if self.busy and self._aside is None else None
        return way.number if way is not None else self.current

    def new(self) -> int:
        """The number of one more turn, whose result somebody may wait for."""
        self._last += 1
        self.results.expect(self._last)
        return self._last

    def steered(self) -> int:
        """The number of the turn that runs or is parked, whose result somebody may wait for."""
        if self.current not in self.results:
            self.results.expect(self.current)
        return self.current

    def due(self, turn: int) -> int:
        """The turn that begins where this one was asked for: who was promised one goes first."""
        oldest = next(iter(self._history.waiting.values())).turn
        return oldest if self.results.lacks(oldest) else turn

    def begin(self, turn: int) -> None:
        """Start this turn, with its prompts."""
        prompts = self._take_prompts(turn)
        self._start(turn, prompts)

    def go_on(self) -> int:
        """A parked turn has its answers, or somebody who can be asked for them."""
        turn = self._history.running
        if not self.results.lacks(turn):  # somebody may wait already, who steers it
            self.results.expect(turn)
        for event in refused(self._history):  # a no stays one, whatever the mode is by now
            self._emit(event)
        self._start(turn)
        return turn

    def promise(self) -> None:
        """Prompts that wait keep the turns that they were given, as where they were sent."""
        for prompt in self._history.waiting.values():
            if prompt.when != "next_step" and prompt.turn not in self.results:
                self.results.expect(prompt.turn)

    def follow(self) -> int:
        """Start the turn of the oldest prompt that waits.

        One that was sent into a turn, and came too late for it, goes before those that were queued:
        it is about what was just done.
        """
        waiting = list(self._history.waiting.values())
        turn = next((one for one in waiting if one.when == "next_step"), waiting[0]).turn
        if not self.results.lacks(turn):
            turn = self.new()
        self.begin(turn)
        return turn

    def withdraw(self, turn: int) -> None:
        """Nobody need wait for a turn whose prompt was taken back, where it has no other."""
        others = any(one.turn == turn for one in self._history.waiting.values())
        if turn != self.current and not others:
            self._settle_result(turn, Ending("interrupted", "the prompt was taken back"), None)

    async def stop(self, detail: dict[str, str]) -> bool:
        """End the turn that runs, and come back when it has ended: was that recorded?"""
        if self._aside is not None:
            self._aside.cancel()
            await asyncio.wait([self._aside])
            return False
        if (way := self._way) is None:
            return False
        parks = not self.number and self.busy and is_parked(self._history)  # in this very moment
        if says := not way.stopped and (self.number > 0 or (parks and not self.closed)):
            self._emit(TraceEvent("interrupt", detail))
            way.stop(cancels=not parks)
        if await way.gone() or way is not self._way:
            return says
        if not await self._give_up(way) and way.task is not None:
            await asyncio.wait([way.task])
        return says

    async def shorten(self) -> bool:
        """Between two turns, because a person asks for it: was there anything to gain?

        An interrupt leaves everything as it was.
        """
        parts = self._window.parts = self.parts
        info, used = parts.provider.info, self._history.metrics
        budget = Budget(parts.limits, info, used, parts.day, self._id)
        self.busy = True
        work = self._aside = asyncio.create_task(self._window.shorten(budget))
        work.add_done_callback(self._shortened)
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])
            raise
        return not work.cancelled() and work.result()

    def _shortened(self, work: asyncio.Task[bool]) -> None:
        """Whoever has given up waiting for it: the session is idle, and its next turn begins."""
        self._aside, self.busy = None, False
        if any(self.results.lacks(one.turn) for one in self._history.waiting.values()):
            self._go_over()  # somebody has sent one meanwhile
        if not work.cancelled():
            work.exception()  # it is heard here where nobody else hears it

    async def leave(self, detail: dict[str, str]) -> None:
        """The session is closed: a turn that waits for a person is parked, any other is ended."""
        way = self._way
        if self.busy and way is not None and not way.stopped and is_parked(self._history):
            way.park()
        await self.stop(detail)

    async def abandon(self, detail: dict[str, str]) -> None:
        """End a turn that is parked."""
        turn = self._history.running
        self._emit(TraceEvent("interrupt", detail))
        self._say_end(turn, _STOPPED, None)
        try:
            await self._log.settled()
        finally:
            self._settle_result(turn, _STOPPED, None)
            self._go_over()

    def beside(self, info: ProviderInfo, purpose: str) -> Budget | None:
        """The budget of the turn that runs, for another model's call beside it."""
        return self._way.budget.beside(info, purpose) if self._way is not None else None

    def close(self) -> None:
        """Prompts that wait stay in the log for another day; nobody waits for them here."""
        for turn in list(self.results):
            self._settle_result(turn, Ending("interrupted", "the session was closed"), None)

    def _take_prompts(self, turn: int, *, steering: bool = False) -> tuple[Message, ...]:
        """Bring prompts into the conversation of this turn, each once; what they say.

        What steers belongs to the turn that runs. A turn that begins takes those, too, for which
        nobody waits here: they came too late to steer, or a process ended before it came to them.
        """
        taken: list[Message] = []
        for seq, prompt in list(self._history.waiting.items()):
            mine = prompt.turn == turn or not (steering or self.results.lacks(prompt.turn))
            if mine and (prompt.when == "next_step" or not steering):
                parts = prompt.parts or as_parts(prompt.content)
                taken.append(Message("user", parts))
                self._emit(MessageAdded(taken[-1], seq, turn))
        return tuple(taken)

    def _is_steered(self, turn: int) -> bool:
        """Was a prompt sent into this turn that it has not read yet?"""
        waiting = self._history.waiting.values()
        return any(one.turn == turn and one.when == "next_step" for one in waiting)

    def _start(self, turn: int, prompts: tuple[Message, ...] = ()) -> None:
        last, history = self._way, self._history
        way = self._way = UnderWay(turn, self._id, self.parts, history, self.belongings)
        self.busy, self.number = True, turn
        way.prompts, way.steer = prompts, partial(self._take_prompts, turn, steering=True)
        way.is_steered = partial(self._is_steered, turn)
        way.goes_on = history.steps > 0
        self._window.parts = self.parts
        if self.one_budget and last is not None:
            way.inherit(last)
        elif way.goes_on:  # it was parked: its limits hold over all of it
            way.budget.resume(history.metrics.since(history.before), history.steps)
        way.task = asyncio.create_task(self._carry(way), name=f"bridle-turn-{self._id}")

    async def _carry(self, way: UnderWay) -> None:
        """The whole turn, and how it ended: said once, whatever happens."""
        outcome = await way.carry(
            self._window,
            self.gate,
            self.approvals,
            self._emit,
            self._settled,
            left_open(self._history),
        )
        if way.task is not None:  # otherwise it was given up, and has no say
            await self._finish(way, *outcome)

    async def _give_up(self, way: UnderWay) -> bool:
        """End a turn whose tool does not let go, and leave the tool to itself."""
        if not (names := way.give_up()):
            return False
        detail = f"{names} did not stop within {way.patience:g} seconds and may still be running"
        self._emit(TraceEvent("not_stopped", {"tools": names, "message": detail}))
        ending = self._finish(way, Ending("interrupted", detail), None)
        await asyncio.shield(asyncio.ensure_future(ending))  # whoever gives up waiting, it goes on
        return True

    async def _finish(self, way: UnderWay, ending: Ending, error: AgentError | None) -> None:
        if (redactor := self.parts.redactor) is not None:
            redactor.error(error)
            ending = redactor.value(ending)
        if way.is_heard:
            await way.tell_end(ending)
        way.close()
        if self._approvals is not None:
            self._approvals.drop_all()
        self.number = 0  # from here on there is nothing left to interrupt
        try:
            self._say_end(way.number, ending, error)
            self._deltas.close()
            await self._log.settled()
            if way.stopped and not way.parking and is_parked(self._history):
                ending = _STOPPED  # interrupted in the moment in which it was parked
                self._say_end(way.number, ending, None)
                await self._log.settled()
        except StoreFailed as failed:
            ending, error = Ending("failed", failed.message, failed.hint), failed
        finally:
            self._settle_result(way.number, ending, error)
            self.busy = False
            self._go_over()

    def _go_over(self) -> None:
        """One turn is over: the next, if a prompt waits; the same, if its answers have come."""
        if self.busy or self.closed:
            return
        if is_parked(self._history):
            if not self._history.pending:
                self.go_on()
        elif self._history.waiting:
            self.follow()

    def _say_end(self, turn: int, ending: Ending, error: AgentError | None) -> None:
        if ending.reason == "parked":
            calls = tuple(one.call.id for one in self._history.pending.values())
            self._emit(TurnParked(turn, calls))
        else:
            for event in abandoned(self._history):  # it may have ended before it came to them
                self._emit(event)
            kind = error.kind if error is not None else ""
            self.ended = ending.reason
            self._emit(TurnEnded(turn, ending.reason, ending.detail, kind, ending.hint))
            self.keep_short()

    def _conversation(self) -> Transcript:
        """The messages so far, with what was sent to steer the turn that runs."""
        if self._history.waiting:
            self._take_prompts(self.number, steering=True)
        self.keep_short()
        return self._history.transcript

    def keep_short(self) -> None:
        """Say what everything adds up to where the way back to the last such word is long."""
        if self._log.size > max(self._far, 4 * self._log.weight):
            try:
                self._emit(self._history.checkpoint(self._log.head))
            except StoreFailed:  # too large to be kept: it is a help, and not needed
                self._far = 2 * self._log.size

    def _settle_result(self, turn: int, ending: Ending, error: AgentError | None) -> None:
        if not self.results.lacks(turn):
            return
        way = self._way if self._way is not None and self._way.number == turn else None
        text = self._history.newest_text if way is not None else ""
        if way is not None and way.inputs is not None and way.inputs.said:
            text = way.inputs.said + text  # the model went on with a reply that was cut off
        used = self._history.metrics.since(way.before) if way is not None else ExecutionMetrics()
        asked = self._approvals
        unheard = asked.take_unanswered() if asked is not None else 0
        if ending.reason == "parked":
            unheard += len(self._history.pending)
        self.results.settle(
            TurnResult(text, ending.reason, self._id, turn, ending.detail, error, used, unheard)
        )
