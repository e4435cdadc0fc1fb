"""A turn under way: its task, its voice, its clock and its budget, and how it can be stopped.

Knows what a turn is handed and nothing of prompts, watchers or other turns.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bridle.engine.belongings import Belongings
from bridle.engine.budget import Budget
from bridle.engine.compact import Window
from bridle.engine.history import History
from bridle.engine.loop import PARKED, Ending, outcome, run_turn
from bridle.engine.parts import Parts
from bridle.engine.turn import Turn
from bridle.engine.voice import Voice
from bridle.errors import AgentError, HookDenied, TimedOut
from bridle.events import Event
from bridle.messages import Message, ToolCall
from bridle.promises.tool import ToolContext

if TYPE_CHECKING:
    from bridle.engine.approvals import Approvals
    from bridle.engine.around import Around
    from bridle.engine.children import Children
    from bridle.engine.gate import Gate

PATIENCE = 5.0  # seconds that an interrupt waits for a tool that does not let go
_LONGEST = 60.0  # ... where the turn is another agent's, which is ended, or given up, before that
_given_up: set["asyncio.Task[None]"] = set()
Outcome = tuple[Ending, AgentError | None]


class UnderWay:
    """One turn while it runs."""

    __slots__ = (
        "_around",
        "_children",
        "before",
        "begun",
        "belongings",
        "budget",
        "deadline",
        "goes_on",
        "history",
        "inputs",
        "is_steered",
        "number",
        "parking",
        "parts",
        "prompts",
        "session_id",
        "steer",
        "stopped",
        "task",
        "voice",
    )

    def __init__(
        self,
        number: int,
        session_id: str,
        parts: Parts,
        history: History,
        belongings: Belongings,
    ) -> None:
        self.number = number
        self.session_id = session_id
        self.parts = parts
        self.history = history
        self.before = before = history.before
        self.belongings = belongings
        self._around: Around | None = None
        self.task: asyncio.Task[None] | None = None
        self.begun = self.stopped = self.parking = False
        self.goes_on = False  # was it parked before?
        self.prompts: tuple[Message, ...] = ()  # with which it began
        self.steer: Callable[[], tuple[Message, ...]] = tuple  # takes those that came meanwhile
        self.is_steered: Callable[[], bool] = bool  # are there some that it has not taken?
        self.inputs: Turn | None = None
        self.voice: Voice | None = None
        limits = parts.limits
        now = asyncio.get_running_loop().time()
        self.deadline = now + limits.seconds if limits.seconds else None
        self.budget = Budget(limits, parts.provider.info, before, parts.day, session_id)
        if parts.parent is not None:
            self.budget.begin_below(parts.parent.budget, shares=parts.agent is not None)
        self._children: Children | None = None

    def inherit(self, before: "UnderWay") -> None:
        """It may use what an earlier turn has left, and no more."""
        before.budget.go_on()
        self.budget, self.deadline = before.budget, before.deadline

    async def carry(
        self,
        window: Window,
        gate: "Callable[[], Gate]",
        approvals: "Callable[[], Approvals]",
        emit: Callable[[Event], None],
        settled: Callable[[], Awaitable[None]],
        left: tuple[ToolCall, ...],
    ) -> Outcome:
        """Run it; how it ended, whatever happened. `left` are calls that were left open before."""
        self.begun = True
        parts = self.parts
        try:
            self.voice = Voice(emit)
            self._surround(emit)
            self.inputs = Turn(
                window,
                parts.provider,
                parts.tools,
                gate,
                emit,
                self.budget,
                settled,
                self._context,
                self.belongings,
                self.belongings.mode,
                approvals,
                parts.config if not self.goes_on else replace(parts.config, tool_choice=""),
                parts.system,
                parts.offered,
                redactor=parts.redactor,
                left=left,
                around=self._around,
                sources=parts.sources,
                is_steered=self.is_steered,
            )
            if self.stopped:
                raise asyncio.CancelledError
            await settled()  # nothing happens before the prompt is safe
            return await self._way(self.inputs), None
        except (Exception, asyncio.CancelledError) as raised:
            if self.parking and isinstance(raised, asyncio.CancelledError):
                return PARKED, None
            return outcome(raised)

    def _surround(self, emit: Callable[[Event], None]) -> None:
        """Hooks, a policy engine and what undo keeps are loaded where there is one of them."""
        parts = self.parts
        if parts.hooks is not None or parts.judge is not None or parts.keeper is not None:
            from bridle.engine.around import Around

            self._around = Around(parts, self.session_id, self.number, emit)

    def _way(self, inputs: Turn) -> Coroutine[Any, Any, Ending]:
        """What is to be awaited: whoever has no limit and no hooks waits through no more."""
        if self.deadline is not None:
            return self._in_time(inputs)
        return self._work(inputs) if self._around is None else self._begin(inputs)

    async def _in_time(self, inputs: Turn) -> Ending:
        try:
            async with asyncio.timeout_at(self.deadline):
                return await self._begin(inputs)
        except TimeoutError:
            limit = f"the limit of {self.parts.limits.seconds:g} seconds"
            raise TimedOut(f"{limit} is reached") from None

    async def _begin(self, inputs: Turn) -> Ending:
        """Hooks are heard before it begins; one that goes on has begun already."""
        if self._around is not None and not self.goes_on and self._around.listens("before_turn"):
            remark = await self._around.hear("before_turn")
            if remark.deny:
                raise HookDenied(f"a hook refused the turn, and nothing was run: {remark.deny}")
            from bridle.engine.remarks import from_hook

            inputs.system += from_hook(remark.word)
        return await self._work(inputs)

    def _work(self, inputs: Turn) -> Coroutine[Any, Any, Ending]:
        """What is to be awaited: our own loop, or the agent that carries the turns."""
        if (agent := self.parts.agent) is None:
            return run_turn(inputs)
        from bridle.engine.agent_session import Assignment
        from bridle.engine.backend import carry_turn

        given = Assignment(
            agent,
            self.session_id,
            self.number,
            self.parts.workspace.root,
            self.history,
            self.deadline,
            self.prompts,
            self.goes_on,
            self.steer,
            self.parts.translate,
        )
        return carry_turn(inputs, given)

    @property
    def is_heard(self) -> bool:
        """Is there a hook that hears how it ended?"""
        return self._around is not None and self._around.listens("after_turn")

    async def tell_end(self, ending: Ending) -> None:
        """Have hooks hear how it ended. What they say is recorded, and changes nothing."""
        if self._around is None or ending.reason == "parked":
            return
        said, ok = ending.detail or ending.reason, ending.reason == "done"
        with suppress(asyncio.CancelledError):  # somebody does not want to wait: it is over
            await self._around.hear("after_turn", result=said, ok=ok)

    @property
    def patience(self) -> float:
        """How long it is waited for. Who ends another agent's turn has a limit of its own."""
        alone = self.parts.agent is None and self._children is None
        return PATIENCE if alone else _LONGEST

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
        await asyncio.wait([task], timeout=self.patience)
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
        parts, mine = self.parts, self.belongings
        assert self.voice is not None
        tool = parts.tools.get(call.name)
        context = ToolContext(
            parts.workspace,
            call.id,
            self.session_id,
            self.deadline,
            parts.deps,
            self.voice.of_a_person if tool is not None and tool.policy.asks else self.voice,
            memory=mine.memory,
            at_close=mine.at_close,
            folder=mine.folder,
            mode=mine.mode(),
        )
        if parts.redactor is not None:
            context.clean = parts.redactor.text
        if parts.rules:
            from bridle.engine.hidden import hidden_by

            context.hidden = hidden_by(parts.rules)
        if tool is not None and tool.policy.delegates:
            context.spawn = partial(self._family().spawn, call.id)
        return context

    def _family(self) -> "Children":
        """The child sessions of the turn. Made, and loaded, with the first of them."""
        if self._children is None:
            from bridle.engine.children import Children

            assert self.inputs is not None and self.voice is not None
            origin = (self.session_id, self.deadline)
            self._children = Children(self.parts, self.inputs, self.voice, *origin)
        return self._children
