"""Runs a session's turns: at most one at a time, queued prompts after it, and hands out results.

`TurnRunner` owns a turn from its prompt to its end: start, interrupt, park, resume. `RunningTurn`
is the one that runs: its task, time limit and budget. `PendingResult` is what callers wait for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from bridle.engine.approvals import Approvals
from bridle.engine.budget import Budget
from bridle.engine.call_middleware import CallMiddleware, hook_note
from bridle.engine.compaction import ContextWindow
from bridle.engine.engine_config import EngineConfig
from bridle.engine.foreign.session import AgentTurnInput
from bridle.engine.foreign.turn import run_agent_turn
from bridle.engine.gate import Gate, unreadable_paths
from bridle.engine.history import History, results_at_end
from bridle.engine.loop import PARKED, Ending, outcome, run_turn
from bridle.engine.recovery import denied_results
from bridle.engine.stream import DeltaBuffer, ToolEmitter
from bridle.engine.subagents import Subagents
from bridle.engine.tool_calls import ToolCalls
from bridle.engine.turn_context import ToolState, TurnContext
from bridle.errors import AgentError, HookDenied, StoreFailed, TimedOut
from bridle.events import (
    Event,
    InterruptRequested,
    MessageAdded,
    Reason,
    TraceEvent,
    TurnEnded,
    TurnParked,
)
from bridle.messages import Message, ToolCall, Transcript, to_parts
from bridle.policy import Mode
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Log
from bridle.protocols.tool import ToolContext
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import quantity

INTERRUPT_SECONDS = 5.0  # that an interrupt waits for a tool that does not stop
_AGENT_INTERRUPT_SECONDS = 60.0  # the same for a foreign agent or subagents, which end themselves
_CHECKPOINT_BYTES = 4_000_000  # of log between two checkpoints
_RESULTS_KEPT = 64  # of past turns
_INTERRUPTED = Ending("interrupted", "the turn was interrupted")
_abandoned_tasks: set["asyncio.Task[None]"] = set()  # asyncio itself holds tasks only weakly

Outcome = tuple[Ending, AgentError | None]


class PendingResult:
    """A turn's result, which any number of callers can wait for and give up waiting for."""

    __slots__ = ("_waiters", "result")

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []
        self.result: TurnResult | None = None

    async def wait(self) -> TurnResult:
        """Return the result once there is one."""
        while self.result is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        return self.result

    def set(self, result: TurnResult) -> None:
        """Hand the result to everybody who waits."""
        self.result = result
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters = []


class RunningTurn:
    """One turn while it runs."""

    __slots__ = (
        "_config",
        "_history",
        "_session_id",
        "_subagents",
        "_tool_state",
        "budget",
        "context",
        "deadline",
        "emitter",
        "has_started",
        "is_parking",
        "is_resumed",
        "is_stopped",
        "middleware",
        "number",
        "prompts",
        "read_steering",
        "task",
        "used_before",
    )

    def __init__(
        self,
        *,
        number: int,
        session_id: str,
        config: EngineConfig,
        history: History,
        tool_state: ToolState,
        emit: Callable[[Event], None],
        prompts: tuple[Message, ...],
    ) -> None:
        self.number = number
        self.prompts = prompts
        self.task: asyncio.Task[None] | None = None  # None again once it was abandoned
        self.context: TurnContext | None = None
        self.has_started = self.is_stopped = self.is_parking = False
        self.is_resumed = history.steps > 0  # it was parked before
        self.read_steering: Callable[[], tuple[Message, ...]] = tuple
        self.used_before = used = history.before
        self._session_id = session_id
        self._config = config
        self._history = history
        self._tool_state = tool_state
        self.middleware: CallMiddleware | None = None
        self._subagents: Subagents | None = None
        self.emitter = ToolEmitter(emit)
        limits = config.limits
        now = asyncio.get_running_loop().time()
        self.deadline = now + limits.max_seconds if limits.max_seconds else None
        self.budget = Budget(limits, config.provider.info, used, config.day, session_id)
        if config.parent is not None:
            self.budget.begin_below(config.parent.budget, shares=config.agent is not None)
        if self.is_resumed:  # its limits hold over all of it
            self.budget.resume(history.metrics.since(used), history.steps)

    async def run(
        self,
        *,
        window: ContextWindow,
        gate: Gate,
        approvals: Approvals,
        emit: Callable[[Event], None],
        settled: Callable[[], Awaitable[None]],
    ) -> Outcome:
        """Run it to its end, and return how it ended. Raise nothing."""
        self.has_started = True
        config = self._config
        time_limit = asyncio.timeout_at(self.deadline)
        try:
            if config.hooks is not None or config.judge is not None or config.undo is not None:
                self.middleware = CallMiddleware(config, self._session_id, self.number, emit)
            request = config.config
            if self.is_resumed:
                request = replace(request, tool_choice="")
            self.context = turn = TurnContext(
                window=window,
                provider=config.provider,
                tools=config.tools,
                gate=gate,
                emit=emit,
                budget=self.budget,
                settled=settled,
                context=self._tool_context,
                tool_state=self._tool_state,
                mode=self._tool_state.mode,
                approvals=approvals,
                config=request,
                system=config.system,
                offered=config.offered,
                redactor=config.redactor,
                open_calls=self._history.resumable_calls,
                middleware=self.middleware,
                sources=config.sources,
                has_steering=self._has_steering,
            )
            if self.is_stopped:
                raise asyncio.CancelledError
            await settled()  # nothing happens before the prompt is durable
            async with time_limit:
                middleware = None if self.is_resumed else self.middleware
                if middleware is not None and middleware.has_hook("before_turn"):
                    await self._run_start_hooks(turn, middleware)
                if config.agent is not None:
                    return await run_agent_turn(turn, self._agent_input()), None
                turn.tool_calls = ToolCalls(turn)
                return await run_turn(turn), None
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, TimeoutError) and time_limit.expired():
                limit = f"the limit of {quantity(config.limits.max_seconds, 'second')}"
                return outcome(TimedOut(f"{limit} is reached"))
            if self.is_parking and isinstance(error, asyncio.CancelledError):
                return PARKED, None
            return outcome(error)

    async def _run_start_hooks(self, turn: TurnContext, middleware: CallMiddleware) -> None:
        hook_output = await middleware.run_hooks("before_turn")
        if hook_output.deny:
            raise HookDenied(f"a hook refused the turn, and nothing was run: {hook_output.deny}")
        turn.system += hook_note(hook_output.word)

    def _agent_input(self) -> AgentTurnInput:
        agent = self._config.agent
        assert agent is not None
        return AgentTurnInput(
            agent=agent,
            session_id=self._session_id,
            number=self.number,
            root=self._config.workspace.root,
            history=self._history,
            deadline=self.deadline,
            prompts=self.prompts,
            resumes=self.is_resumed,
            steer=self.read_steering,
            translate=self._config.translate,
        )

    @property
    def interrupt_seconds(self) -> float:
        """How long an interrupt waits for the turn to end."""
        alone = self._config.agent is None and self._subagents is None
        return INTERRUPT_SECONDS if alone else _AGENT_INTERRUPT_SECONDS

    def park(self) -> None:
        """End the turn soon; leave its calls open if none of them has started."""
        calls = self.context.tool_calls if self.context is not None else None
        self.is_parking = calls is None or calls.leave_open()

    def stop(self, *, cancel: bool = True) -> None:
        """End the turn soon. Do not cancel one that is about to end anyway."""
        self.is_stopped = True
        if cancel and self.task is not None and self.has_started:  # otherwise `run` looks itself
            self.task.cancel()

    async def wait_for_end(self) -> bool:
        """Wait for its task, for a limited time: did it end?"""
        task = self.task
        if task is None or task is asyncio.current_task():
            return True
        await asyncio.wait([task], timeout=self.interrupt_seconds)
        return task.done()

    def abandon_tools(self) -> str:
        """Leave tools that do not stop to themselves; return their names, if any run."""
        calls = self.context.tool_calls if self.context is not None else None
        if self.task is None or calls is None or not (names := calls.abandon()):
            return ""
        _abandoned_tasks.add(self.task)
        self.task.add_done_callback(_abandoned_tasks.discard)
        self.task = None
        return names

    def release(self) -> None:
        """Drop what refers back to the turn, so that its memory is free without a collection."""
        if self.context is not None:
            self.context.tool_calls = None
        self.context = None

    def _has_steering(self) -> bool:
        """Was a prompt sent into this turn that it has not read yet?"""
        waiting = self._history.waiting.values()
        return any(prompt.turn == self.number and prompt.when == "next_step" for prompt in waiting)

    def _tool_context(self, call: ToolCall) -> ToolContext[Any]:
        config, state, emitter = self._config, self._tool_state, self.emitter
        if state.folder is None:
            path = getattr(state.log, "path", "")
            state.folder = str(path).rpartition("/")[0]
        tool = config.tools.get(call.name)
        asks = tool is not None and tool.policy.asks
        context = ToolContext(
            config.workspace,
            call.id,
            self._session_id,
            self.deadline,
            config.deps,
            emitter.emit_unrestricted if asks else emitter,
            memory=state.memory,
            at_close=state.closers.append,
            folder=state.folder,
            mode=state.mode(),
        )
        if config.redactor is not None:
            context.redact = config.redactor.text
        if config.rules:
            context.hidden = unreadable_paths(config.rules)
        if config.parent is not None:
            context.origin = config.parent.origin
        if tool is not None and tool.policy.delegates:
            context.spawn = partial(self._get_subagents().spawn, call.id)
        return context

    def _get_subagents(self) -> Subagents:
        if self._subagents is None:
            assert self.context is not None
            self._subagents = Subagents(
                self._config, self.context, self.emitter, self._session_id, self.deadline
            )
        return self._subagents


class TurnRunner:
    """Starts and ends the turns of one session, and hands out their results."""

    def __init__(
        self,
        config: EngineConfig,
        log: Log,
        history: History,
        deltas: DeltaBuffer,
        mode: Callable[[], Mode],
    ) -> None:
        self.config = config
        self.is_busy = False
        self.running_number = 0  # the turn that runs; 0: none
        self.is_closed = False
        self.last_reason: Reason | None = None  # how the newest turn ended that ended here
        self.results: dict[int, PendingResult] = {}  # by turn: expected ones and the newest others
        self.tool_state = ToolState(log, mode)
        self._session_id = log.session_id
        self._log = log
        self._history = history
        self._deltas = deltas
        self._emit = deltas.add
        self._turn: RunningTurn | None = None  # the turn that runs, or the last one
        self._last_number = history.turn  # the newest number that a turn was given
        self._compaction: asyncio.Task[bool] | None = None  # runs between two turns
        self._checkpoint_bytes = _CHECKPOINT_BYTES
        self.approvals = Approvals(self._emit, config, self._session_id, history)
        self.gate = Gate.of_session(config, mode, history.grants)
        self._window = ContextWindow(
            config, self._emit, self._conversation, log.settled, history.metrics.context_tokens
        )

    @property
    def is_parked(self) -> bool:
        """Does a turn wait for approvals, with nothing running?"""
        return not self.is_busy and self._history.is_parked

    @property
    def current(self) -> int:
        """The turn that runs, or is parked; 0: none."""
        return self.running_number or (self._history.running if self.is_parked else 0)

    @property
    def latest(self) -> int:
        """The turn that runs, is just ending, or is parked; 0: none."""
        turn = self._turn if self.is_busy and self._compaction is None else None
        return turn.number if turn is not None else self.current

    def new_number(self) -> int:
        """Return the number of one more turn, whose result somebody may wait for."""
        self._last_number += 1
        self.results[self._last_number] = PendingResult()
        return self._last_number

    def is_expected(self, number: int) -> bool:
        """Is this turn's result still to come, for somebody who may wait for it?"""
        pending = self.results.get(number)
        return pending is not None and pending.result is None

    def steered_number(self) -> int:
        """Return the number of the current turn, whose result somebody may wait for."""
        if self.current not in self.results:
            self.results[self.current] = PendingResult()
        return self.current

    def start(self, number: int, prompts: tuple[Message, ...]) -> None:
        """Start a turn with these prompts, or none if it was parked."""
        turn = self._turn = RunningTurn(
            number=number,
            session_id=self._session_id,
            config=self.config,
            history=self._history,
            tool_state=self.tool_state,
            emit=self._emit,
            prompts=prompts,
        )
        self.is_busy, self.running_number = True, number
        if self.config.agent is not None:
            turn.read_steering = partial(self.take_prompts, number, steering=True)
        self._window.config = self.config
        turn.task = asyncio.create_task(self._run(turn), name=f"bridle-turn-{self._session_id}")

    def resume(self) -> int:
        """Continue the parked turn: it has its answers, or somebody can be asked now."""
        number = self._history.running
        if not self.is_expected(number):  # a caller may wait already that has steered it
            self.results[number] = PendingResult()
        for event in denied_results(self._history):  # a denied call stays denied in any mode
            self._emit(event)
        self.start(number, ())
        return number

    def expect_waiting(self) -> None:
        """Have prompts that wait keep the turns they were given when they were sent."""
        for prompt in self._history.waiting.values():
            if prompt.when != "next_step" and prompt.turn not in self.results:
                self.results[prompt.turn] = PendingResult()

    def start_waiting(self) -> int:
        """Start the turn of the oldest prompt that waits.

        A prompt that was sent into a turn and came too late for it goes before queued ones: it is
        about what was just done.
        """
        waiting = list(self._history.waiting.values())
        first = next((prompt for prompt in waiting if prompt.when == "next_step"), waiting[0])
        number = first.turn
        if not self.is_expected(number):
            number = self.new_number()
        self.start(number, self.take_prompts(number))
        return number

    def withdraw(self, number: int) -> None:
        """Resolve the result of a turn whose only prompt was withdrawn."""
        has_others = any(prompt.turn == number for prompt in self._history.waiting.values())
        if number != self.current and not has_others:
            self._settle_result(number, Ending("interrupted", "the prompt was withdrawn"), None)

    async def interrupt(self, request: InterruptRequested) -> bool:
        """End the turn that runs, and return when it has ended: was an interrupt recorded?"""
        if self._compaction is not None:
            self._compaction.cancel()
            await asyncio.wait([self._compaction])
            return False
        if (turn := self._turn) is None:
            return False
        is_ending_parked = (
            not self.running_number and self.is_busy and self._history.is_parked
        )  # in this very moment
        records = not turn.is_stopped and (
            self.running_number > 0 or (is_ending_parked and not self.is_closed)
        )
        if records:
            self._emit(request)
            turn.stop(cancel=not is_ending_parked)
        if await turn.wait_for_end() or turn is not self._turn:
            return records
        if not await self._abandon_tools(turn) and turn.task is not None:
            await asyncio.wait([turn.task])
        return records

    async def compact(self) -> bool:
        """Shorten the conversation between two turns: was there anything to gain?

        An interrupt leaves everything as it was.
        """
        config = self._window.config = self.config
        budget = Budget(
            config.limits,
            config.provider.info,
            self._history.metrics,
            config.day,
            self._session_id,
        )
        self.is_busy = True
        work = self._compaction = asyncio.create_task(self._window.shorten(budget))
        work.add_done_callback(self._end_compaction)
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])
            raise
        return not work.cancelled() and work.result()

    def _end_compaction(self, work: asyncio.Task[bool]) -> None:
        """Make the session idle, also if nobody waits for the compaction any more."""
        self._compaction, self.is_busy = None, False
        if any(self.is_expected(prompt.turn) for prompt in self._history.waiting.values()):
            self._start_next()  # a prompt was sent meanwhile
        if not work.cancelled():
            work.exception()  # retrieved here if nobody else does

    async def close(self, request: InterruptRequested) -> None:
        """Park a turn that waits for a person, interrupt any other."""
        turn = self._turn
        if self.is_busy and turn is not None and not turn.is_stopped and self._history.is_parked:
            turn.park()
        await self.interrupt(request)

    async def end_parked(self, request: InterruptRequested) -> None:
        """End a turn that is parked."""
        number = self._history.running
        self._emit(request)
        self._record_end(number, _INTERRUPTED, None)
        try:
            await self._log.settled()
        finally:
            self._settle_result(number, _INTERRUPTED, None)
            self._start_next()

    def budget_beside(self, info: ProviderInfo, purpose: str) -> Budget | None:
        """Return the running turn's budget, for another model's call beside it."""
        return self._turn.budget.beside(info, purpose) if self._turn is not None else None

    def settle_all(self) -> None:
        """Resolve all results: the session is closed. Prompts that wait stay in the log."""
        for number in list(self.results):
            self._settle_result(number, Ending("interrupted", "the session was closed"), None)

    def release(self) -> None:
        """Drop what refers back to this, so that its memory is free without a collection."""
        del self._window

    def take_prompts(self, number: int, *, steering: bool = False) -> tuple[Message, ...]:
        """Add this turn's waiting prompts to the conversation, each once, and return them.

        With `steering`, only prompts that were sent into the running turn. A turn that starts also
        takes prompts whose turn nobody waits for here: they came too late to steer, or the process
        that queued them ended.
        """
        taken: list[Message] = []
        for seq, prompt in list(self._history.waiting.items()):
            is_mine = prompt.turn == number or not (steering or self.is_expected(prompt.turn))
            if is_mine and (prompt.when == "next_step" or not steering):
                message = Message("user", prompt.parts or to_parts(prompt.content))
                taken.append(message)
                self._emit(MessageAdded(message, seq, number))
        return tuple(taken)

    async def _run(self, turn: RunningTurn) -> None:
        outcome = await turn.run(
            window=self._window,
            gate=self.gate,
            approvals=self.approvals,
            emit=self._emit,
            settled=self._log.settled,
        )
        if turn.task is not None:  # None: it was abandoned, and its end is recorded
            await self._finish(turn, *outcome)

    async def _abandon_tools(self, turn: RunningTurn) -> bool:
        """End a turn whose tools do not stop, and leave them to themselves."""
        if not (names := turn.abandon_tools()):
            return False
        patience = quantity(turn.interrupt_seconds, "second")
        detail = f"{names} did not stop within {patience} and may still be running"
        self._emit(TraceEvent("not_stopped", {"tools": names, "message": detail}))
        ending = self._finish(turn, Ending("interrupted", detail), None)
        await asyncio.shield(asyncio.ensure_future(ending))  # also if nobody waits any more
        return True

    async def _finish(self, turn: RunningTurn, ending: Ending, error: AgentError | None) -> None:
        if (redactor := self.config.redactor) is not None:
            if error is not None:
                redactor.error(error)
            ending = redactor.value(ending)
        middleware = turn.middleware if ending.reason != "parked" else None
        if middleware is not None and middleware.has_hook("after_turn"):
            result = ending.detail or ending.reason
            with suppress(asyncio.CancelledError):  # an interrupt: the turn is over anyway
                await middleware.run_hooks("after_turn", result=result, ok=ending.reason == "done")
        turn.emitter.close()  # what its tools emit from here on is ignored
        self.approvals.cancel_waiters()
        self.running_number = 0  # from here on there is nothing left to interrupt
        try:
            self._record_end(turn.number, ending, error)
            self._deltas.close()
            await self._log.settled()
            if turn.is_stopped and not turn.is_parking and self._history.is_parked:
                ending = _INTERRUPTED  # interrupted in the moment in which it was parked
                self._record_end(turn.number, ending, None)
                await self._log.settled()
        except StoreFailed as failed:
            ending, error = Ending("failed", failed.message, failed.hint), failed
        finally:
            self._settle_result(turn.number, ending, error)
            turn.release()
            self.is_busy = False
            self._start_next()

    def _start_next(self) -> None:
        """Start what comes next: a parked turn whose approvals are answered, or the next prompt."""
        if self.is_busy or self.is_closed:
            return
        if self._history.is_parked:
            if not self._history.pending:
                self.resume()
        elif self._history.waiting:
            self.start_waiting()

    def _record_end(self, number: int, ending: Ending, error: AgentError | None) -> None:
        if ending.reason == "parked":
            calls = tuple(request.call.id for request in self._history.pending.values())
            self._emit(TurnParked(number, calls))
            return
        for event in results_at_end(self._history):  # calls that the turn did not come to
            self._emit(event)
        kind = error.kind if error is not None else ""
        self.last_reason = ending.reason
        self._emit(TurnEnded(number, ending.reason, ending.detail, kind, ending.hint))
        self.write_checkpoint_if_due()

    def _conversation(self) -> Transcript:
        """Return the messages so far, with what was sent into the running turn."""
        if self._history.waiting:
            self.take_prompts(self.running_number, steering=True)
        self.write_checkpoint_if_due()
        return self._history.transcript

    def write_checkpoint_if_due(self) -> None:
        """Write a checkpoint if the log has grown enough since the last one."""
        if self._log.size > max(self._checkpoint_bytes, 4 * self._log.weight):
            try:
                self._emit(self._history.checkpoint(self._log.head))
            except StoreFailed:  # too large for a record; the session works without
                self._checkpoint_bytes = 2 * self._log.size

    def _settle_result(self, number: int, ending: Ending, error: AgentError | None) -> None:
        if not self.is_expected(number):
            return
        text, used = "", ExecutionMetrics()
        if (turn := self._turn) is not None and turn.number == number:
            text = self._history.newest_text
            if turn.context is not None:
                text = turn.context.cut_text + text
            used = self._history.metrics.since(turn.used_before)
        permission_needed = self.approvals.take_unanswered()
        if ending.reason == "parked":
            permission_needed += len(self._history.pending)
        self.results[number].set(
            TurnResult(
                text=text,
                reason=ending.reason,
                session_id=self._session_id,
                turn=number,
                detail=ending.detail,
                error=error,
                metrics=used,
                permission_needed=permission_needed,
            )
        )
        settled = [known for known, pending in self.results.items() if pending.result is not None]
        for old in settled[:-_RESULTS_KEPT]:
            del self.results[old]
