"""Run the calls of a step, and give each exactly one result, whatever happens.

For each call: find its tool and ask for permission; record the intent and, unless the call only
reads, wait until that is on disk; have the effect; record the result.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.call_middleware import CallMiddleware, hook_note, note
from bridle.engine.gate import JudgedCall
from bridle.engine.grants import fingerprint
from bridle.engine.history import NOT_RUN
from bridle.engine.permission_pipeline import PermissionPipeline
from bridle.engine.turn_context import Parked, TurnContext
from bridle.errors import AgentError
from bridle.events import CallIntended, FilesChanged, ToolResultEvent
from bridle.messages import File, Image, ToolCall, ToolOutput, escape_surrogates
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.workspace.protected_files import record_changes
from bridle.workspace.text import quantity, shorten

if TYPE_CHECKING:
    from bridle.protocols.hooks import ChangeRecorder

log = logging.getLogger(__name__)

INTERRUPTED = "interrupted before it finished"
SO_FAR = ". What it had written until then:\n"
FINISHED = "the call had finished; what follows it, such as hooks, was cut off"
NOT_STOPPED = "interrupted, and it did not stop: it may still be running"
CutOff = Literal["not_run", "interrupted", "not_stopped"]
_CUT_OFF: dict[CutOff, str] = {
    "not_run": NOT_RUN,
    "interrupted": INTERRUPTED,
    "not_stopped": NOT_STOPPED,
}
_COMMAND_GRACE = 10.0  # seconds that a command has to end by itself when its time is over
_MAX_BROKEN = 500  # characters of arguments that do not parse, quoted to the model
_MAX_DATA = 200_000  # bytes of a result's structured data that the log keeps
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Undo(Protocol):
    """Keeps what a call will change, so that it can be undone."""

    async def begin_undo(self, call: ToolCall) -> "ChangeRecorder | None": ...

    async def changed_files(
        self, recorder: "ChangeRecorder", call: ToolCall
    ) -> FilesChanged | None: ...


class ToolCalls:
    """Runs the calls of one turn.

    `run` takes all calls of a step. `engine.foreign.calls` uses the parts of it, because another
    agent asks for one call after the other, and makes some by its own means. `undo` replaces the
    turn's own for it, and `on_output` is called with every result that is recorded.
    """

    def __init__(
        self,
        turn: TurnContext,
        *,
        undo: Undo | None = None,
        on_output: Callable[[ToolOutput], None] | None = None,
    ) -> None:
        self._turn = turn
        self._emit = turn.emit
        self._budget = turn.budget
        self._middleware = turn.middleware
        self._undo = undo or turn.middleware
        self._on_output = on_output
        self._gate = turn.gate
        self.permission = PermissionPipeline(turn)
        self.open: dict[str, ToolCall] = {}  # calls of this step without a result
        self.begun: set[str] = set()  # those whose effect may have happened
        self._contexts: dict[str, ToolContext[Any]] = {}  # of calls that have begun
        self._finished: dict[str, ToolResult] = {}  # results that are still to be recorded
        self._failures: dict[str, int] = {}
        self.is_parked = False  # a call of this step waits for a person
        self.leaves_open = False  # ... and still does when the turn is cancelled
        self._stops = False  # a tool has said that the turn has to end here
        self.is_over = False
        self.stuck = ""

    async def run(self, calls: tuple[ToolCall, ...]) -> None:
        """Run the calls of a step: side by side if all only read, otherwise in order."""
        open_calls = self.open = {call.id: call for call in calls}
        self.begun.clear()
        self._finished.clear()
        self._contexts.clear()
        parked = self.is_parked = self.leaves_open = False
        try:
            if len(calls) > 1 and all(map(self.permission.reads_only, calls)):
                await _run_concurrently([self.run_call(call, open_calls) for call in calls])
            else:
                for call in calls:
                    if self._stops:
                        break
                    if self.is_parked:
                        await self._request_approval(call)
                    else:
                        await self.run_call(call, open_calls)
            parked = self.is_parked
        finally:
            for call in () if parked or self.leaves_open else list(open_calls.values()):
                self.cut_off(
                    call, "interrupted" if call.id in self.begun else "not_run", open_calls
                )
        if parked:
            raise Parked
        self._stop_if_over()

    def leave_open(self) -> bool:
        """Leave calls that wait for a person without a result. Return False if one is running."""
        self.leaves_open = bool(self.open) and not self.open.keys() & self.begun
        return self.leaves_open

    def abandon(self) -> str:
        """Record results for tools that do not stop, and return their names."""
        running = [call for call in self.open.values() if call.id in self.begun]
        if not running:
            return ""
        self.is_over = True
        for call in list(self.open.values()):
            self.cut_off(call, "not_stopped" if call in running else "not_run", self.open)
        return ", ".join(dict.fromkeys(call.name for call in running))

    def refuse(self, calls: tuple[ToolCall, ...], text: str, rule: str = "") -> None:
        """Record results for calls that are not to be run."""
        diagnostics = {"rule": rule} if rule else None
        result = ToolResult.failure(text, diagnostics, outcome="refused")
        open_calls = {call.id: call for call in calls}
        for call in calls:
            self.record(call, result, open_calls, watch=False)

    async def run_call(self, call: ToolCall, open_calls: dict[str, ToolCall] | None = None) -> None:
        """Run one call and record its result, unless it has to wait for a person."""
        self._stop_if_over()
        tool = self.permission.tools.get(call.name)
        result: ToolResult
        if call.broken:
            result = ToolResult.failure(_invalid_json_text(call.broken), outcome="invalid")
        elif tool is None:
            names = ", ".join(sorted(self.permission.tools)) or "none"
            text = f"there is no tool named {call.name!r}; there are: {names}"
            result = ToolResult.failure(text, outcome="invalid")
        else:
            try:
                checked = await self.permission.check(call, tool)
            except Parked:
                self.is_parked = True
                return
            result = checked if isinstance(checked, ToolResult) else await self._execute(checked)
        self.record(call, result, open_calls)
        if result.stops:
            self._stops, self.stuck = True, result.stops

    async def _request_approval(self, call: ToolCall) -> None:
        """Request approval of a call that stands behind one that waits for a person."""
        self._stop_if_over()
        if (judged := await self.permission.preview(call)) is not None:
            await self.permission.request_together(judged)
            with suppress(Parked):
                await self._turn.approvals.settle(judged)

    def _stop_if_over(self) -> None:
        """Raise `CancelledError` if a tool has swallowed an interrupt or the turn's deadline."""
        task = asyncio.current_task()
        if self.is_over or (task is not None and task.cancelling()):
            raise asyncio.CancelledError

    def not_begun(self) -> list[ToolCall]:
        """Return the calls of the step that have not begun."""
        return [call for call in self.open.values() if call.id not in self.begun]

    async def _execute(self, judged: JudgedCall) -> ToolResult:
        """Record the intent, then have the effect, with undo before it and hooks after it."""
        recorder = await self.begin(judged)
        if isinstance(recorder, ToolResult):
            return recorder
        if self._middleware is None:
            return await self.run_tool(judged)
        try:
            result = self._finished[judged.call.id] = await self.run_tool(judged)
        finally:
            if recorder is not None:
                await self.end_undo(judged, recorder)
        return await self._run_after_hooks(self._middleware, judged, result)

    async def begin(self, judged: JudgedCall) -> "ChangeRecorder | ToolResult | None":
        """Record the intent of a call, durably unless it only reads, and have undo begin.

        Return what undo keeps, or the result of a call that cannot be begun.
        """
        call, reads = judged.call, judged.reads
        network = judged.decision.network
        self._emit(CallIntended(call.id, call.name, reads, fingerprint(call), network))
        if reads:
            return None
        await self._turn.settled()
        if self._undo is None or judged.tool.policy.delegates:
            return None
        try:
            return await self._undo.begin_undo(call)
        except Exception as error:  # undo was promised, so the call does not run without it
            log.debug("nothing could be saved before %r", call.name, exc_info=True)
            text = f"not run: what it would change cannot be saved for undo: {error!r}"
            return ToolResult.failure(text, outcome="refused")

    async def finish(
        self, judged: JudgedCall, result: ToolResult, recorder: "ChangeRecorder | None"
    ) -> str:
        """Record the result of a call that was begun, with what it has changed, and run the hooks.

        Return the notes that are added to the result for the model. If there are neither hooks nor
        undo, nothing in here waits.
        """
        call = judged.call
        if self._middleware is not None:
            self._finished[call.id] = result
            if recorder is not None:
                await self.end_undo(judged, recorder)
            result = await self._run_after_hooks(self._middleware, judged, result)
        notes = self.permission.notes.get(call.id, "")
        self.record(call, result)
        return notes

    def run_tool(self, judged: JudgedCall) -> Coroutine[Any, Any, ToolResult]:
        """Return the coroutine that runs the tool. From here on, it may have had its effect."""
        call, tool = judged.call, judged.tool
        context = self._turn.context(call)
        context.word = judged.decision.word
        context.network = judged.decision.network
        if tool.policy.runs:
            context.access = self._gate.file_access(judged)
        if self._turn.open_calls:
            context.was_approved = any(waiting.id == call.id for waiting in self._turn.open_calls)
        self.begun.add(call.id)
        self._contexts[call.id] = context
        seconds = 0.0 if tool.policy.delegates else self._budget.limits.tool_seconds
        if seconds:
            end = asyncio.get_running_loop().time() + seconds
            context.deadline = end if context.deadline is None else min(end, context.deadline)
            if tool.policy.runs:  # it ends a command by itself, and returns the output
                seconds += _COMMAND_GRACE
        work = execute(call, tool, context, seconds)
        if judged.reads or tool.policy.runs or not judged.paths:
            return work
        return _run_file_tool(context.workspace.root, judged.paths, work)

    async def end_undo(self, judged: JudgedCall, recorder: "ChangeRecorder") -> None:
        """Record which files the call has changed."""
        if self._undo is None:
            return
        changed = await self._undo.changed_files(recorder, judged.call)
        if changed is None or self.is_over:
            return
        self._emit(changed)
        if self._middleware is None:
            return
        if text := self._middleware.report_guarded_changes(judged, changed):
            self.permission.add_note(judged.call, note("note", text))

    async def _run_after_hooks(
        self, middleware: CallMiddleware, judged: JudgedCall, result: ToolResult
    ) -> ToolResult:
        """Return the result after the hooks. If a hook objects, the result is a failure."""
        if self.is_over or not middleware.has_hook("after_tool"):
            return result
        call, text = judged.call, self.permission.redacted(result.text)
        hook_output = await middleware.after_call(judged, text, result.ok)
        self.permission.add_note(call, hook_note(hook_output.word))
        if hook_output.deny:
            self.permission.add_note(call, note("a hook objects", hook_output.deny))
            result = replace(result, ok=False)
        return result

    def cut_off(
        self, call: ToolCall, outcome: CutOff, open_calls: dict[str, ToolCall] | None = None
    ) -> None:
        """Record a result for a call that was cut off: its own, if it had finished."""
        result = self._finished.get(call.id)
        if result is not None:
            self.permission.add_note(call, note("interrupted", FINISHED))
        else:
            text = _CUT_OFF[outcome] + self._output_so_far(call)
            result = ToolResult.failure(text, outcome=outcome)
        self.record(call, result, open_calls)

    def _output_so_far(self, call: ToolCall) -> str:
        """Return what a call that was cut off has written until then."""
        context = self._contexts.get(call.id)
        output = context.unfinished() if context is not None and context.unfinished else ""
        return f"{SO_FAR}{output}" if output else ""

    def record(
        self,
        call: ToolCall,
        result: ToolResult,
        open_calls: dict[str, ToolCall] | None = None,
        *,
        watch: bool = True,
    ) -> None:
        """Record the result of a call, unless it has one already.

        `open_calls` are the calls of its step, which may not be the current one.
        """
        calls = self.open if open_calls is None else open_calls
        if calls.pop(call.id, None) is None:
            return
        limit = self._budget.limits.output_chars
        is_long = 0 < limit < len(result.text)
        whole = self.permission.redacted(result.text) if is_long else result.text
        text = shorten(whole, limit) if is_long else whole
        data = result.data if result.ok else result.diagnostics
        if isinstance(data, str) and data == result.text:
            data = None  # it is the text
        elif text is not whole or not _is_recordable(data):
            data = None  # what is too long for the model is too long for the log, too
        text += self.permission.notes.pop(call.id, "")
        output = ToolOutput(
            call_id=call.id,
            text=escape_surrogates(text),
            is_error=not result.ok,
            name=call.name,
            data=data,
            media=result.media,
            outcome="" if result.ok else result.outcome or "failed",
        )
        if self._on_output is not None:
            self._on_output(output)
        self._emit(ToolResultEvent(output, call.id in self.permission.foreign))
        if watch:
            self._count_failures(call, result)

    def _count_failures(self, call: ToolCall, result: ToolResult) -> None:
        """Note that the turn is stuck if the same call fails in the same way too often."""
        if result.ok or result.outcome in ("interrupted", "not_run"):
            self._failures.clear()
            return
        key = fingerprint(ToolCall("", call.name, call.arguments), result.text)
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if self._budget.limits.repeats and count >= self._budget.limits.repeats:
            text = self.permission.redacted(result.text)[:200]
            self.stuck = f"{call.name} failed {count} times in the same way: {text}"


async def execute(
    call: ToolCall, tool: Tool, context: ToolContext[Any], seconds: float
) -> ToolResult:
    """Run a tool, within its time if `seconds` is not 0. Raise only what ends the turn."""
    limit = TimeLimit(seconds)
    try:
        with limit:
            result = await tool.execute(call.arguments, context)
        return _valid_result(result)
    except AgentError as error:
        return ToolResult.failure(error.message)
    except BaseException as error:  # the one catch-all: a tool ends neither the turn nor the host
        if _ends_turn(error):
            raise
        if limit.is_expired and isinstance(error, TimeoutError | asyncio.CancelledError):
            time = quantity(seconds, "second")
            return ToolResult.failure(f"{call.name} did not finish within {time}")
        log.debug("tool %r failed", call.name, exc_info=True)
        return ToolResult.failure(f"{call.name} failed: {type(error).__name__}: {error}")


def _ends_turn(error: BaseException) -> bool:
    """Return whether an exception is to end the turn, rather than the tool's own failure."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit)


def _valid_result(result: Any) -> ToolResult:
    """Return a tool's return value as a `ToolResult`. Raise `TypeError` if a field is invalid."""
    if not isinstance(result, ToolResult):
        return ToolResult.success(result)
    if not isinstance(result.text, str):
        raise TypeError(f"the text of its result is {type(result.text).__name__}, not str")
    if result.media and not all(isinstance(part, Image | File) for part in result.media):
        raise TypeError("the media of its result are not images or files")
    if not isinstance(result.stops, str):
        raise TypeError(f"`stops` of its result is {type(result.stops).__name__}, not str")
    return result


def _invalid_json_text(text: str) -> str:
    """Return the result of a call whose arguments are not valid JSON."""
    return (
        f"not run: the arguments are not valid JSON: {shorten(text, _MAX_BROKEN)}\n"
        "Send the call again with one JSON object as its arguments."
    )


async def _run_concurrently(work: list[Coroutine[Any, Any, None]]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                group.create_task(coroutine)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _is_recordable(data: Any) -> bool:
    """Return whether structured data can be encoded and is short enough for the log."""
    if data is None:
        return True
    try:
        return len(_encode(data)) <= _MAX_DATA
    except (TypeError, ValueError, RecursionError):
        return False


async def _run_file_tool(
    root: str, paths: Sequence[str], work: Coroutine[Any, Any, ToolResult]
) -> ToolResult:
    """Await a tool that may change these files, so that no command is blamed for the changes."""
    with record_changes(root, paths):
        return await work


# A time limit for the task that runs a tool call.
#
# Every call has a limit, and hardly any call reaches it. So all limits of the same length share one
# timer: with `asyncio.timeout`, the timers of short calls cost more than the rest of such a call.


class TimeLimit:
    """Cancel the current task, once, if the block has not ended after `seconds`; 0 is no limit.

    Unlike `asyncio.timeout` it raises nothing by itself: look at `is_expired`. The cancellation is
    taken back when the block ends, also if the tool has swallowed it.
    """

    __slots__ = ("_seconds", "_task", "_timer", "deadline", "is_expired")

    def __init__(self, seconds: float) -> None:
        self.is_expired = False
        self.deadline = 0.0
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._timer: _SharedTimer | None = None

    def __enter__(self) -> Self:
        if not self._seconds:
            return self
        loop = asyncio.get_running_loop()
        timers = _timers.get(loop)
        if timers is None:
            timers = _timers[loop] = {}
        timer = timers.get(self._seconds)
        if timer is None:
            timer = timers[self._seconds] = _SharedTimer()
        self._task, self._timer = asyncio.current_task(), timer
        self.deadline = loop.time() + self._seconds
        timer.limits[self] = None
        if not timer.is_set:
            timer.is_set = True
            loop.call_at(self.deadline, timer.expire_due)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.limits.pop(self, None)
        if self.is_expired and self._task is not None:
            self._task.uncancel()

    def expire(self) -> None:
        """Cancel the task."""
        if self._task is not None:
            self.is_expired = True
            self._task.cancel()


class _SharedTimer(Struct):
    """The limits of one length in one event loop. The first that was added is the first to end."""

    limits: dict[TimeLimit, None] = {}
    is_set: bool = False

    def expire_due(self) -> None:
        """Expire the limits that have been reached, and set the timer for the next one."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self.is_set = False
        for limit in list(self.limits):
            if limit.deadline > now:
                self.is_set = True
                loop.call_at(limit.deadline, self.expire_due)
                return
            del self.limits[limit]
            limit.expire()


_timers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, _SharedTimer]]
_timers = WeakKeyDictionary()
