"""Subagents: the child sessions of a turn, started for a call and counted in their parent.

A child is a session of the same engine with its own log, below its parent's gate and budget. Each
of its calls is judged in its own mode and in every mode above it; the strictest decision counts. It
may use what it was given, and never more than what is left above. The parent gets its progress as
output of the call, one line at a time.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.budget import Budget, Limits
from bridle.engine.cancellation import run_uncancelled
from bridle.engine.engine_config import EngineConfig
from bridle.engine.foreign.agent import NoModel, agent_name, shut_down
from bridle.engine.turn_context import Emit, TurnContext
from bridle.errors import AgentError, BudgetReached, ToolError
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    ChildEnded,
    ChildOf,
    ChildStarted,
    Event,
    ModeChanged,
    Reason,
    ResponseCompleted,
    TitleChanged,
    ToolOutputDelta,
    UsageReported,
)
from bridle.messages import Message, ToolCall
from bridle.policy import MODES, ORDER, Decision, Mode
from bridle.protocols.tool import SAME, Task, TaskResult
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.engine.session import Session
    from bridle.protocols.agent import BaseAgent

_TINY = 1e-6  # dollars, or seconds: less is nothing


def child_limits(budget: Budget, task: Task, seconds: float | None, *, shares: bool) -> Limits:
    """Return the limits of a subagent: what was asked for, never more than what is left above.

    `seconds` is what the turn has left; None: no limit. Our loop reserves each request in the
    budgets above, so several subagents together keep to them. A foreign agent spends without asking
    (`shares`): it gets nothing that others have reserved, and half of what is left if nobody said
    how much. Raise `BudgetReached` if nothing is left of one of the limits.
    """
    part = 2 if shares else 1
    tokens, money = _tokens(budget, shares=shares), _money(budget, shares=shares)
    return replace(
        budget.limits,
        max_steps=int(_least("steps", task.max_steps, _steps(budget))),
        max_tool_calls=int(_least("tool calls", 0, _calls(budget))),
        max_turn_tokens=int(_least("tokens", 0, None if tokens is None else tokens / part)),
        max_cost=_least("money", task.max_cost, _part(money, task.max_cost, part)),
        max_seconds=_least("time", task.max_seconds, seconds),
        max_session_tokens=0,
        max_session_cost=0.0,
    )


def _part(left: float | None, wanted: float, part: int) -> float | None:
    """Return what is left, divided by `part` if the task does not say how much it wants."""
    return left if left is None or wanted else left / part


def _least(what: str, wanted: float, left: float | None) -> float:
    """Return what is wanted, or what is left if that is less; zero is no limit."""
    if left is None:
        return wanted
    if left < (_TINY if what in ("money", "time") else 1):
        raise BudgetReached(f"nothing is left of the limits for a task: no {what}")
    return min(wanted, left) if wanted else left


def _steps(budget: Budget) -> float | None:
    levels = [level for level in budget.levels() if level.limits.max_steps]
    return min((level.limits.max_steps - level.steps for level in levels), default=None)


def _calls(budget: Budget) -> float | None:
    levels = [level for level in budget.levels() if level.limits.max_tool_calls]
    return min((level.limits.max_tool_calls - level.tool_calls for level in levels), default=None)


def _tokens(budget: Budget, *, shares: bool) -> float | None:
    left: list[float] = []
    for level in budget.levels():
        limits, used = level.limits, level.tokens + (level.reserved[0] if shares else 0)
        left += [limits.max_turn_tokens - used] if limits.max_turn_tokens else []
        earlier = level.before.tokens
        left += [limits.max_session_tokens - earlier - used] if limits.max_session_tokens else []
    return min(left, default=None)


def _money(budget: Budget, *, shares: bool) -> float | None:
    left: list[float] = []
    for level in budget.levels():
        limits, used = level.limits, level.money + (level.reserved[1] if shares else 0.0)
        left += [limits.max_cost - used] if limits.max_cost else []
        earlier = level.before.cost
        left += [limits.max_session_cost - earlier - used] if limits.max_session_cost else []
    return min(left, default=None)


class Tree(Struct):
    """What all subagents below one turn share."""

    running: int = 0  # subagents that run now


class Parent(Struct, frozen=True):
    """The turn that started this session. `depth` is 1 for a subagent, 2 for a subagent of it."""

    session_id: str
    call_id: str
    depth: int
    budget: Budget
    mode: Callable[[], Mode]
    tree: Tree
    above: "Parent | None" = None

    @property
    def origin(self) -> str:
        """The session at the top, which is not a subagent."""
        return self.session_id if self.above is None else self.above.origin

    def narrowed(self, mode: Mode) -> Mode:
        """Return the mode, or the parent's if that is narrower."""
        return min(mode, self.mode(), key=MODES.index)

    def bound(self, decision: Decision, under: Callable[[Mode], Decision]) -> Decision:
        """Return the strictest of a decision and of those in the modes above."""
        for mode in self._modes():
            other = under(mode)
            if ORDER.index(other.verdict) < ORDER.index(decision.verdict):
                decision = other
        return decision

    def _modes(self) -> Iterator[Mode]:
        level: Parent | None = self
        while level is not None:
            yield level.mode()
            level = level.above


_SUBJECTS = ("command", "path", "pattern", "query", "url", "description", "prompt", "question")
_LINE = 120  # characters


class ProgressForwarder:
    """Follows one subagent, and forwards its progress and usage to its parent."""

    def __init__(self, child: "Session", call_id: str, emit: Emit) -> None:
        self._child = child
        self._call_id = call_id
        self._emit = emit
        self.text = ""  # the newest
        self._calls: dict[str, ToolCall] = {}  # of the newest reply
        self._records = child.subscribe(0)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to follow."""
        self._task = asyncio.create_task(self._follow(), name="bridle-child")

    async def end(self) -> None:
        """Forward the rest: the subagent is closed."""
        if self._task is None:
            await self._records.aclose()
        else:
            await self._task

    async def _follow(self) -> None:
        async with aclosing(self._records) as records:
            async for record in records:
                self._forward(record.event)

    def _forward(self, event: Event) -> None:
        match event:
            case UsageReported():
                self._emit(replace(event, purpose="task", priced=True))
            case ResponseCompleted(message=Message() as message):
                self._calls = {call.id: call for call in message.tool_calls}
                if text := message.content.strip():
                    self.text = text
                    self._write_line(one_line(text.rpartition("\n")[2], _LINE))
            case CallIntended(call_id=call_id, name=name):
                self._write_line(f"▸ {name} {_subject(self._calls.get(call_id))}".rstrip())
            case ApprovalAsked(call=call, reason=reason):
                question = f"? {call.name} needs approval: {reason}"
                self._write_line(f"{one_line(question, _LINE)} (session {self._child.id})")

    def _write_line(self, line: str) -> None:
        self._emit(ToolOutputDelta(self._call_id, line + "\n"))


def _subject(call: ToolCall | None) -> str:
    """Return what a call is about, in a few words."""
    arguments = call.arguments if call is not None else {}
    values = (arguments.get(name) for name in _SUBJECTS)
    return next((one_line(text, _LINE) for text in values if isinstance(text, str) and text), "")


log = logging.getLogger(__name__)

DEEPEST = 3  # levels of subagents
AT_ONCE = 4  # subagents of one turn that run at the same time; the others wait
IN_ALL = 16  # subagents of one tree that run at the same time
LOOP = "loop"
_PROMPT = 200  # characters of a task that the parent's log repeats
_OMITTED_TOOLS = ("exit_plan_mode",)  # a subagent leaves plan mode when its parent does


class _Runner(Struct, frozen=True):
    """The agent that runs a subagent's turn, or None for our loop; shut it down if it `is_ours`."""

    name: str
    agent: "BaseAgent | None" = None
    is_ours: bool = False


class Subagents:
    """Starts the subagents of one turn, and ends them with it."""

    def __init__(
        self,
        parts: EngineConfig,
        turn: TurnContext,
        emit: Emit,
        session_id: str,
        deadline: float | None,
    ) -> None:
        self._parts = parts
        self._turn = turn
        self._emit = emit
        self._session_id = session_id
        self._deadline = deadline
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tree = parts.parent.tree if parts.parent is not None else Tree()
        self._depth = parts.parent.depth + 1 if parts.parent is not None else 1

    async def spawn(self, call_id: str, task: Task) -> TaskResult:
        """Run a task to its end. Raise `AgentError` if it cannot be started."""
        if self._depth > DEEPEST:
            raise ToolError(
                f"not run: subagents can be nested {DEEPEST} levels deep, and this session is at "
                "the deepest level. Do the work here"
            )
        async with self._slots:
            if self._tree.running >= IN_ALL:
                raise ToolError(f"not run: {IN_ALL} tasks run already. Wait until one has ended")
            self._tree.running += 1
            try:
                return await self._run(call_id, task)
            finally:
                self._tree.running -= 1

    async def _run(self, call_id: str, task: Task) -> TaskResult:
        runner = self._find_runner(task.agent)
        try:
            child = await self._open_when_free(call_id, task, runner)
            return await _ChildRun(self._turn, self._emit, child, call_id).run(task, runner.name)
        finally:
            if runner.is_ours and runner.agent is not None:
                await run_uncancelled(shut_down(runner.agent))

    def _find_runner(self, wanted: str) -> _Runner:
        """Return the agent to run the task. Raise `AgentError` if there is no such agent."""
        parts = self._parts
        own_runner = _Runner(_name(parts.agent), parts.agent)
        has_model = not isinstance(parts.provider, NoModel)
        if wanted == SAME or wanted == own_runner.name or not (wanted or has_model):
            return own_runner
        agent = None
        if wanted not in ("", LOOP):
            if parts.agents is None:
                raise ToolError(f"there is no agent {wanted!r}: leave `agent` out")
            agent = parts.agents(wanted)
        if agent is None and not has_model:
            raise ToolError(
                f"there is no model beside {own_runner.name}: name {SAME!r} as the agent"
            )
        return _Runner(_name(agent), agent, is_ours=agent is not None)

    async def _open_when_free(self, call_id: str, task: Task, runner: _Runner) -> "Session":
        """Open the session once its share of the budget is not reserved by others."""
        budget = self._turn.budget
        while True:
            try:
                return self._open(call_id, task, runner)
            except BudgetReached:
                if runner.agent is None or not budget.has_reservations_of_others:
                    raise
            await budget.wait_for_release()

    def _open(self, call_id: str, task: Task, runner: _Runner) -> "Session":
        """Open the session. Nothing is recorded before its first prompt."""
        parts, mode = self._parts, self._turn.tool_state.mode
        if parts.begin is None:
            raise ToolError("this engine cannot start subagents")
        parent = Parent(
            self._session_id,
            call_id,
            self._depth,
            self._turn.budget,
            mode,
            self._tree,
            parts.parent,
        )
        child = parts.begin(self._config_for(task, runner, parent))
        child.emit_with_first_prompt(ChildOf(self._session_id, call_id))
        child.emit_with_first_prompt(
            ModeChanged(child.mode, "task", "as in the session that started it")
        )
        if title := one_line(task.title):
            child.emit_with_first_prompt(TitleChanged(title))
        return child

    def _config_for(self, task: Task, runner: _Runner, parent: Parent) -> EngineConfig:
        """Return the parent's configuration, changed to what makes it a task."""
        parts, agent = self._parts, runner.agent
        left = None
        if self._deadline is not None:
            left = self._deadline - asyncio.get_running_loop().time()
        values: dict[str, Any] = {
            "limits": child_limits(self._turn.budget, task, left, shares=agent is not None),
            "mode": parent.mode(),
            "agent": agent,
            "parent": parent,
            "small": None,  # it needs no title of its own
            "system": _system_prompt(parts, agent),
            "tools": [tool for tool in parts.offered if tool.name not in _OMITTED_TOOLS],
        }
        if parts.config.output_schema is not None:  # it is for the parent's answer
            values["config"] = replace(parts.config, output_schema=None)
        if agent is not None:
            values["provider"] = NoModel(agent)
        if parts.approver is not None:
            title = one_line(task.title or task.prompt)
            values["approver"] = partial(self._turn.approvals.ask_for_child, title)
        return parts.changed(**values)


class _ChildRun:
    """One subagent, from its prompt to its end."""

    def __init__(self, turn: TurnContext, emit: Emit, child: "Session", call_id: str) -> None:
        self._turn = turn
        self._emit = emit
        self._child = child
        self._call_id = call_id
        self._reason: Reason = "failed"

    async def run(self, task: Task, agent: str) -> TaskResult:
        """Run the subagent. Record its start durably before anything happens, and its end."""
        child = self._child
        progress = ProgressForwarder(child, self._call_id, self._emit)
        prompt = one_line(task.prompt, _PROMPT)
        self._emit(ChildStarted(self._call_id, child.id, agent, prompt, child.mode))
        try:
            await self._turn.settled()  # after a crash, the log says where to look
            progress.start()
            turn = await child.send(task.prompt, by="task")
            result = await child.wait(turn)
            self._reason = result.reason
        except asyncio.CancelledError:
            self._reason = "interrupted"
            await run_uncancelled(child.interrupt(by="task"))
            raise
        finally:
            await run_uncancelled(self._finish(progress))
        if result.permission_needed and result.reason != "parked":
            self._turn.approvals.add_unanswered(result.permission_needed)
        text = result.text or progress.text  # a turn that was cut off may have written some text
        return TaskResult(child.id, result.reason, text, result.detail, agent, child.metrics)

    async def _finish(self, progress: ProgressForwarder) -> None:
        """Close the subagent, so that nothing of it keeps running, and record its end."""
        child = self._child
        try:
            await child.close()
            await progress.end()
        except AgentError as error:  # its log cannot be written; ours may still
            log.warning("the child session %s: %s", child.id, error.message)
        finally:
            self._turn.budget.end_below(child.id)
            self._emit(ChildEnded(self._call_id, child.id, self._reason, child.metrics))


def _name(agent: "BaseAgent | None") -> str:
    return LOOP if agent is None else agent_name(agent)


def _system_prompt(parts: EngineConfig, agent: "BaseAgent | None") -> str:
    """Return the subagent's system prompt, with the parent's if both are run by the same loop."""
    instructions = Path(__file__).with_name("child.md").read_text(encoding="utf-8").strip()
    is_alike = (agent is None) == (parts.agent is None)
    return f"{parts.system}\n\n{instructions}" if is_alike and parts.system else instructions
