"""Runs the calls of one step, and gives each exactly one result, whatever happens.

For each call: known tool, valid arguments, the gate; then the intent is recorded and, unless the
call only reads, settled on disk; then the effect; then the result.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from bridle.engine.budget import Budget
from bridle.engine.gate import Gate, Parked, fingerprint
from bridle.engine.history import NOT_RUN
from bridle.engine.schema import compile_schema
from bridle.errors import AgentError
from bridle.events import CallIntended, Event, ToolResultEvent
from bridle.messages import File, Image, ToolCall, ToolOutput, sound
from bridle.policy import Decision
from bridle.promises.tool import Tool, ToolContext, ToolResult
from bridle.workspace.text import shorten

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(enc_hook=str).encode
Check = Callable[[Any], list[str]]
INTERRUPTED = "interrupted before it finished"
NOT_STOPPED = "interrupted, and it did not stop: it may still be running"
_MOST_BROKEN = 500  # characters of arguments that do not parse, told to the model
_MOST_DATA = 200_000  # bytes of the structured part that the log keeps


class Caller:
    """Answers calls, step after step, in one turn."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        gate: Gate,
        emit: Callable[[Event], None],
        settled: Callable[[], Awaitable[None]],
        context: Callable[[ToolCall], ToolContext[Any]],
        budget: Budget,
    ) -> None:
        self._tools = tools
        self._gate = gate
        self._emit = emit
        self._settled = settled
        self._context = context
        self._budget = budget
        self._failures: dict[str, int] = {}
        self._checks: dict[str, Check] = {}
        self._begun: set[str] = set()  # calls of this step whose effect may have happened
        self._open: dict[str, ToolCall] = {}
        self._parked = False  # a call of this step waits for a person
        self._leaves = False  # ... and so it stays when the turn is cancelled
        self.is_over = False
        self.stuck = ""

    async def answer_all(self, calls: tuple[ToolCall, ...]) -> None:
        """Side by side when all only read, in order otherwise."""
        open_calls = self._open = {call.id: call for call in calls}
        self._begun.clear()
        parked = self._parked = self._leaves = False
        try:
            if len(calls) > 1 and all(self._reads(call) for call in calls):
                await _side_by_side([self._answer(call, open_calls) for call in calls])
            else:
                for call in calls:
                    await (self._put(call) if self._parked else self._answer(call, open_calls))
            parked = self._parked
        finally:
            for call in () if parked or self._leaves else list(open_calls.values()):
                words = INTERRUPTED if call.id in self._begun else NOT_RUN
                self._say(call, ToolResult.failure(words), open_calls)
        if parked:
            raise Parked

    def leave_open(self) -> bool:
        """Have no answers given for calls that wait for a person, if nothing is running."""
        self._leaves = bool(self._open) and not self._open.keys() & self._begun
        return self._leaves

    def give_up(self) -> str:
        """Answer for tools that do not let go, and hear nothing of them any more: their names."""
        running = [call for call in self._open.values() if call.id in self._begun]
        if not running:
            return ""
        self.is_over = True
        for call in list(self._open.values()):
            words = NOT_STOPPED if call in running else NOT_RUN
            self._say(call, ToolResult.failure(words), self._open)
        return ", ".join(dict.fromkeys(call.name for call in running))

    def refuse_all(self, calls: tuple[ToolCall, ...], reason: str) -> None:
        """Answer calls that are not to be run."""
        open_calls = {call.id: call for call in calls}
        for call in calls:
            self._say(call, ToolResult.failure(f"not run: {reason}"), open_calls)

    def _check(self, tool: Tool) -> Check:
        """The check of a tool's arguments, compiled once."""
        check = self._checks.get(tool.name)
        if check is None:
            check = self._checks[tool.name] = _compiled(msgspec.json.encode(tool.parameters))
        return check

    def _reads(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and tool.policy.read_only

    async def _answer(self, call: ToolCall, open_calls: dict[str, ToolCall]) -> None:
        self._stop_if_over()
        try:
            result = await self._attempt(call)
        except Parked:
            self._parked = True
            return
        self._say(call, result, open_calls)

    def _stop_if_over(self) -> None:
        """An interrupt, or the deadline, that a tool has swallowed still holds."""
        task = asyncio.current_task()
        if self.is_over or (task is not None and task.cancelling()):
            raise asyncio.CancelledError

    async def _put(self, call: ToolCall) -> None:
        """A call before this one waits for a person: have the question of this one put, too."""
        self._stop_if_over()
        tool = self._tools.get(call.name)
        if tool is None or call.broken or self._check(tool)(call.arguments):
            return
        if (decision := self._gate.decide(call, tool)).verdict == "ask":
            with suppress(Parked):
                await self._ask(call, decision)

    async def _ask(self, call: ToolCall, decision: Decision) -> Decision:
        return await self._gate.ask(call, decision, self._context(call).workspace.root)

    def _say(self, call: ToolCall, result: ToolResult, open_calls: dict[str, ToolCall]) -> None:
        if open_calls.pop(call.id, None) is None:
            return
        limit = self._budget.limits.output_chars
        cut = 0 < limit < len(result.text)
        said = self._clean(result.text) if cut else result.text
        text = shorten(said, limit) if cut else said
        data = result.data if result.ok else result.diagnostics
        if isinstance(data, str) and data == result.text:
            data = None  # the text says it already
        elif text is not said or not _keepable(data):
            data = None  # what is too long for the model is too long for the log
        output = ToolOutput(call.id, sound(text), not result.ok, call.name, data, result.media)
        self._emit(ToolResultEvent(output))
        self._watch(call, result)

    def _clean(self, text: str) -> str:
        """Without secrets, before it is cut: half of one is not found when it is recorded."""
        redactor = self._gate.redactor
        return text if redactor is None else redactor.text(text)

    def _watch(self, call: ToolCall, result: ToolResult) -> None:
        """Notice the same call failing in the same way over and over."""
        if result.ok or result.text in (INTERRUPTED, NOT_RUN):
            self._failures.clear()
            return
        key = fingerprint(ToolCall("", call.name, call.arguments), result.text)
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if self._budget.limits.repeats and count >= self._budget.limits.repeats:
            said = self._clean(result.text)[:200]
            self.stuck = f"{call.name} failed {count} times in the same way: {said}"

    async def _attempt(self, call: ToolCall) -> ToolResult:
        if call.broken:
            return ToolResult.failure(_unreadable(call.broken))
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            return ToolResult.failure(f"there is no tool named {call.name!r}; there are: {known}")
        try:
            refusal = self._refusal(call, tool)
            if isinstance(refusal, Decision):
                refusal = _denied(await self._ask(call, refusal))
        except Parked:
            raise
        except Exception as error:  # what cannot be judged does not run
            log.debug("call of %r could not be judged", call.name, exc_info=True)
            return ToolResult.failure(f"not run: it could not be judged: {error}")
        if refusal is not None:
            return refusal
        reads = tool.policy.read_only
        self._emit(CallIntended(call.id, call.name, reads, fingerprint(call)))
        if not reads:
            await self._settled()
        return await self._execute(call, tool)

    def _refusal(self, call: ToolCall, tool: Tool) -> ToolResult | Decision | None:
        """Why the call may not run, if it may not; a decision where a person has to be asked."""
        if problems := self._check(tool)(call.arguments):
            return ToolResult.failure("these arguments are not valid: " + "; ".join(problems))
        if not self._budget.take_call():
            return ToolResult.failure("not run: the limit of tool calls is reached")
        decision = self._gate.decide(call, tool)
        return decision if decision.verdict == "ask" else _denied(decision)

    async def _execute(self, call: ToolCall, tool: Tool) -> ToolResult:
        seconds = self._budget.limits.tool_seconds
        context = self._context(call)
        self._begun.add(call.id)
        clock = _Clock(seconds)
        try:
            try:
                given = await tool.execute(call.arguments, context)
            finally:
                clock.stop()
            return _checked(given)
        except AgentError as error:
            return ToolResult.failure(error.message)
        except BaseException as error:  # the one catch-all: a tool ends neither turn nor host
            if _is_ours(error):
                raise
            if clock.rang and isinstance(error, TimeoutError | asyncio.CancelledError):
                return ToolResult.failure(f"{call.name} did not finish within {seconds:g} seconds")
            log.debug("tool %r broke", call.name, exc_info=True)
            return ToolResult.failure(f"{call.name} broke: {type(error).__name__}: {error}")


class _Clock:
    """Cancels the task in which it was set, once; `stop` takes that cancel back.

    What `asyncio.timeout` does, at two thirds of its cost: every call has a clock, and hardly
    one ever rings.
    """

    __slots__ = ("_handle", "_task", "rang")

    def __init__(self, seconds: float) -> None:
        self.rang = False
        self._task = asyncio.current_task()
        self._handle: asyncio.TimerHandle | None = None
        if seconds:
            self._handle = asyncio.get_running_loop().call_later(seconds, self._ring)

    def _ring(self) -> None:
        if self._task is not None:
            self.rang = True
            self._task.cancel()

    def stop(self) -> None:
        """The tool is done, or gave up. Also one that swallowed the cancel leaves none behind."""
        if self._handle is not None:
            self._handle.cancel()
        if self.rang and self._task is not None:
            self._task.uncancel()


def _unreadable(text: str) -> str:
    """What the model is told of arguments that do not parse."""
    came = shorten(text, _MOST_BROKEN)
    return (
        f"not run: the arguments are not valid JSON: {came}\n"
        "Send the call again with one JSON object as its arguments."
    )


def _is_ours(error: BaseException) -> bool:
    """Was it raised to end the turn, and not by the tool? Ctrl-C comes as a cancel."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit)


def _denied(decision: Decision) -> ToolResult | None:
    if decision.verdict == "allow":
        return None
    return ToolResult.failure(f"not permitted: {decision.reason}", {"rule": decision.rule})


async def _side_by_side(work: list[Coroutine[Any, Any, None]]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


@lru_cache(maxsize=512)
def _compiled(schema: bytes) -> Check:
    return compile_schema(msgspec.json.decode(schema))


def _checked(result: Any) -> ToolResult:
    """What a tool gave back as a result, whatever it is. Raise for what nobody can read."""
    if not isinstance(result, ToolResult):
        return ToolResult.success(result)
    if not isinstance(result.text, str):
        raise TypeError(f"its text is {type(result.text).__name__}, not str")
    if result.media and not all(isinstance(part, Image | File) for part in result.media):
        raise TypeError("its media are not images or files")
    return result


def _keepable(data: Any) -> bool:
    """Can the structured part be written down, and is it short enough to keep?"""
    if data is None:
        return True
    try:
        return len(_encode(data)) <= _MOST_DATA
    except (TypeError, ValueError, RecursionError):
        return False
