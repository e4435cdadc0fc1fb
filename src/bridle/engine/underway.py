"""A turn under way: its task, its voice, its clock and its budget, and how it can be stopped.

Knows what a turn is handed and nothing of prompts, watchers or other turns.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bridle.engine.budget import Budget
from bridle.engine.compact import Window
from bridle.engine.gate import Gate
from bridle.engine.loop import PARKED, Ending, Turn, outcome, run_turn
from bridle.engine.parts import Parts
from bridle.engine.voice import Voice
from bridle.errors import AgentError, TimedOut
from bridle.events import Event
from bridle.messages import ToolCall
from bridle.promises.tool import ToolContext
from bridle.usage import ExecutionMetrics

PATIENCE = 5.0  # seconds that an interrupt waits for a tool that does not let go
_given_up: set["asyncio.Task[None]"] = set()
Outcome = tuple[Ending, AgentError | None]


class UnderWay:
    """One turn while it runs."""

    __slots__ = (
        "before",
        "begun",
        "budget",
        "deadline",
        "inputs",
        "memory",
        "number",
        "parking",
        "parts",
        "session_id",
        "stopped",
        "task",
        "voice",
    )

    def __init__(
        self,
        number: int,
        session_id: str,
        parts: Parts,
        before: ExecutionMetrics,
        memory: dict[str, Any],
    ) -> None:
        self.number = number
        self.session_id = session_id
        self.parts = parts
        self.before = before
        self.memory = memory
        self.task: asyncio.Task[None] | None = None
        self.begun = self.stopped = self.parking = False
        self.inputs: Turn | None = None
        self.voice: Voice | None = None
        limits = parts.limits
        now = asyncio.get_running_loop().time()
        self.deadline = now + limits.seconds if limits.seconds else None
        self.budget = Budget(limits, parts.provider.info, before, parts.day, session_id)

    def inherit(self, before: "UnderWay") -> None:
        """It may use what an earlier turn has left, and no more."""
        before.budget.go_on()
        self.budget, self.deadline = before.budget, before.deadline

    async def carry(
        self,
        window: Window,
        gate: Gate,
        emit: Callable[[Event], None],
        settled: Callable[[], Awaitable[None]],
        left: tuple[ToolCall, ...],
    ) -> Outcome:
        """Run it; how it ended, whatever happened. `left` are calls that were left open before."""
        self.begun = True
        parts = self.parts
        try:
            self.voice = Voice(emit)
            self.inputs = Turn(
                window,
                parts.provider,
                parts.tools,
                gate,
                emit,
                self.budget,
                settled,
                self._context,
                parts.config,
                parts.system,
                parts.offered,
                left=left,
            )
            return await self._run(self.inputs), None
        except (Exception, asyncio.CancelledError) as raised:
            if self.parking and isinstance(raised, asyncio.CancelledError):
                return PARKED, None
            return outcome(raised)

    async def _run(self, inputs: Turn) -> Ending:
        if self.stopped:
            raise asyncio.CancelledError
        await inputs.settled()  # nothing happens before the prompt is safe
        if self.deadline is None:
            return await run_turn(inputs)
        try:
            async with asyncio.timeout_at(self.deadline):
                return await run_turn(inputs)
        except TimeoutError:
            limit = f"the limit of {self.parts.limits.seconds:g} seconds"
            raise TimedOut(f"{limit} is reached") from None

    @property
    def patience(self) -> float:
        """How long it is waited for."""
        return PATIENCE

    def park(self) -> None:
        """Have it end soon, but leave its calls open where none of them has begun."""
        caller = self.inputs.caller if self.inputs is not None else None
        self.parking = caller is None or caller.leave_open()

    def stop(self, *, cancels: bool = True) -> None:
        """Have it end soon. One that is about to end anyway is not cancelled."""
        self.stopped = True
        if cancels and self.task is not None and self.begun:  # one that did not looks for itself
            self.task.cancel()

    async def gone(self) -> bool:
        """Wait for its task, but not for ever: did it end?"""
        task = self.task
        if task is None or task is asyncio.current_task():
            return True
        await asyncio.wait([task], timeout=PATIENCE)
        return task.done()

    def give_up(self) -> str:
        """Leave tools that do not let go to themselves: their names; nothing where none runs."""
        caller = self.inputs.caller if self.inputs is not None else None
        if self.task is None or caller is None or not (names := caller.give_up()):
            return ""
        _given_up.add(self.task)  # asyncio itself holds tasks only weakly
        self.task.add_done_callback(_given_up.discard)
        self.task = None
        return names

    def close(self) -> None:
        """Nothing that its tools say is heard any more."""
        if self.voice is not None:
            self.voice.close()

    def _context(self, call: ToolCall) -> ToolContext[Any]:
        parts = self.parts
        assert self.voice is not None
        return ToolContext(
            parts.workspace,
            call.id,
            self.session_id,
            self.deadline,
            parts.deps,
            self.voice,
            memory=self.memory,
        )
