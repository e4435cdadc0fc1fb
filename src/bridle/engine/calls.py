"""Runs the calls of one step, and gives each exactly one result, whatever happens.

For each call: known tool, and the way through the gate (passage.py); then the intent is recorded
and, unless the call only reads, settled on disk; then the effect; then the result.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from bridle.engine.around import Around
from bridle.engine.conversation import NOT_RUN
from bridle.engine.execution import execute
from bridle.engine.fingerprint import fingerprint
from bridle.engine.gate import Parked
from bridle.engine.passage import Passage
from bridle.engine.question import Judged
from bridle.engine.remarks import from_hook, line
from bridle.engine.turn_context import TurnContext
from bridle.events import CallIntended, ToolResultEvent
from bridle.messages import ToolCall, ToolOutput, sound
from bridle.promises.tool import CHANGED, Tool, ToolContext, ToolResult
from bridle.workspace.text import shorten

if TYPE_CHECKING:
    from bridle.promises.keeping import Keeping

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(enc_hook=str).encode
INTERRUPTED = "interrupted before it finished"
SO_FAR = ". What it had written until then:\n"
UNHEARD = "it had finished; what follows it, such as hooks, was cut off"
NOT_STOPPED = "interrupted, and it did not stop: it may still be running"
_FAREWELL = 10.0  # seconds that a command has for ending when its time is over
_MOST_BROKEN = 500  # characters of arguments that do not parse, told to the model
_MOST_DATA = 200_000  # bytes of the structured part that the log keeps


class Caller(Passage):
    """Answers calls, step after step, in one turn."""

    def __init__(self, turn: TurnContext) -> None:
        super().__init__(turn)
        self._emit = turn.emit
        self._budget = turn.budget
        self._failures: dict[str, int] = {}
        self._contexts: dict[str, ToolContext[Any]] = {}  # of calls that have begun
        self._finished: dict[str, ToolResult] = {}  # of effects whose answer is still to be given
        self._parked = False  # a call of this step waits for a person
        self._leaves = False  # ... and so it stays when the turn is cancelled
        self._halted = False  # a tool has said that the turn has to end here
        self.is_over = False
        self.stuck = ""

    async def answer_all(self, calls: tuple[ToolCall, ...]) -> None:
        """Side by side when all only read, in order otherwise."""
        open_calls = self._open = {call.id: call for call in calls}
        self._begun.clear()
        self._finished.clear()
        self._contexts.clear()
        parked = self._parked = self._leaves = False
        try:
            if len(calls) > 1 and all(self._reads(call) for call in calls):
                await _side_by_side([self._answer(call, open_calls) for call in calls])
            else:
                for call in calls:
                    if self._halted:
                        break
                    await (self._put(call) if self._parked else self._answer(call, open_calls))
            parked = self._parked
        finally:
            for call in () if parked or self._leaves else list(open_calls.values()):
                words = INTERRUPTED if call.id in self._begun else NOT_RUN
                self._cut_off(call, words, open_calls)
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
            self._cut_off(call, words, self._open)
        return ", ".join(dict.fromkeys(call.name for call in running))

    def refuse_all(self, calls: tuple[ToolCall, ...], words: str, rule: str = "") -> None:
        """Answer calls that are not to be run."""
        result = ToolResult.failure(words, {"rule": rule} if rule else None)
        open_calls = {call.id: call for call in calls}
        for call in calls:
            self._say(call, result, open_calls, watch=False)

    def _cut_off(self, call: ToolCall, words: str, open_calls: dict[str, ToolCall]) -> None:
        """Answer for a call that was not heard to its end; what its effect came to is said."""
        result = self._finished.get(call.id)
        if result is not None:
            self._add(call, line("interrupted", UNHEARD))
        self._say(call, result or ToolResult.failure(words + self._so_far(call)), open_calls)

    def _so_far(self, call: ToolCall) -> str:
        """What a call that was cut off has said until then."""
        context = self._contexts.get(call.id)
        said = context.unfinished() if context is not None and context.unfinished else ""
        return f"{SO_FAR}{said}" if said else ""

    async def _answer(self, call: ToolCall, open_calls: dict[str, ToolCall]) -> None:
        self._stop_if_over()
        try:
            result = await self._attempt(call)
        except Parked:
            self._parked = True
            return
        self._say(call, result, open_calls)
        if result.stops:
            self._halted, self.stuck = True, result.stops

    def _stop_if_over(self) -> None:
        """An interrupt, or the deadline, that a tool has swallowed still holds."""
        task = asyncio.current_task()
        if self.is_over or (task is not None and task.cancelling()):
            raise asyncio.CancelledError

    async def _put(self, call: ToolCall) -> None:
        """A call before this one waits for a person: have the question of this one put, too."""
        self._stop_if_over()
        if (judged := await self._ahead(call)) is not None:
            await self._put_together(judged)
            with suppress(Parked):
                await self._gate.ask(judged)

    def _say(
        self,
        call: ToolCall,
        result: ToolResult,
        open_calls: dict[str, ToolCall],
        *,
        watch: bool = True,
    ) -> None:
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
        if self._words:
            text += self._words.pop(call.id, "")
        output = ToolOutput(call.id, sound(text), not result.ok, call.name, data, result.media)
        self._emit(ToolResultEvent(output))
        if watch:
            self._watch(call, result)

    def _watch(self, call: ToolCall, result: ToolResult) -> None:
        """Notice the same call failing in the same way over and over."""
        if result.ok or result.text.partition(SO_FAR)[0] in (INTERRUPTED, NOT_RUN):
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
        found = await self._let_through(call, tool)
        if isinstance(found, ToolResult):
            return found
        call, reads = found.call, found.reads
        network = found.decision.network
        self._emit(CallIntended(call.id, call.name, reads, fingerprint(call), network))
        if not reads:
            await self._turn.settled()
        if self._around is None:
            return await self._effect(found)
        return await self._surrounded(self._around, found, reads)

    async def _let_through(self, call: ToolCall, tool: Tool) -> Judged | ToolResult:
        """The call as it may run; a result where it may not, or cannot be judged."""
        try:
            return await self._passed(call, tool)
        except Parked:
            raise
        except Exception as error:  # what cannot be judged does not run
            log.debug("call of %r could not be judged", call.name, exc_info=True)
            return ToolResult.failure(f"not run: it could not be judged: {error}")

    def _effect(self, judged: Judged) -> Coroutine[Any, Any, ToolResult]:
        """What is to be awaited next: from here on it may have happened."""
        context = self._turn.context(judged.call)
        context.word = judged.decision.word
        context.network = judged.decision.network
        if judged.tool.policy.runs:
            context.access = self._gate.access(judged)
        elif not judged.reads:
            context.memory.setdefault(CHANGED, set()).update(judged.paths)
        if self._turn.open_calls:
            context.agreed = any(one.id == judged.call.id for one in self._turn.open_calls)
        self._begun.add(judged.call.id)
        self._contexts[judged.call.id] = context
        seconds = 0.0 if judged.tool.policy.delegates else self._budget.limits.tool_seconds
        if seconds:
            end = asyncio.get_running_loop().time() + seconds
            context.deadline = end if context.deadline is None else min(end, context.deadline)
            if judged.tool.policy.runs:  # it ends a command by itself, and keeps its output
                seconds += _FAREWELL
        return execute(judged.call, judged.tool, context, seconds)

    async def _surrounded(self, around: Around, judged: Judged, reads: bool) -> ToolResult:
        """The effect, with what is kept for undo before it and what hooks say of it after."""
        call = judged.call
        changes = not (reads or judged.tool.policy.delegates)
        keeping = await self._keep(around, call) if changes else None
        if isinstance(keeping, ToolResult):
            return keeping
        try:
            result = self._finished[call.id] = await self._effect(judged)
        finally:
            if keeping is not None:
                await self._say_changed(around, judged, keeping)
        return await self._remarked(around, judged, result)

    async def _keep(self, around: Around, call: ToolCall) -> "Keeping | ToolResult | None":
        """What is kept of what it will change; a result where that cannot be."""
        try:
            return await around.keep(call)
        except Exception as error:  # what cannot be undone was promised to be
            log.debug("nothing could be kept before %r", call.name, exc_info=True)
            return ToolResult.failure(f"not run: what it would change cannot be kept: {error!r}")

    async def _say_changed(self, around: Around, judged: Judged, keeping: "Keeping") -> None:
        changed = await around.kept(keeping, judged.call)
        if changed is not None and not self.is_over:
            self._emit(changed)
            if said := around.guarded(judged, changed):
                self._add(judged.call, line("note", said))

    async def _remarked(self, around: Around, judged: Judged, result: ToolResult) -> ToolResult:
        """What came of it, with what hooks say of that."""
        if self.is_over or not around.listens("after_tool"):
            return result
        call = judged.call
        remark = await around.after(judged, self._clean(result.text), result.ok)
        self._add(call, from_hook(remark.word))
        if remark.deny:
            self._add(call, line("a hook objects", remark.deny))
            result = replace(result, ok=False)
        return result


def _unreadable(text: str) -> str:
    """What the model is told of arguments that do not parse."""
    came = shorten(text, _MOST_BROKEN)
    return (
        f"not run: the arguments are not valid JSON: {came}\n"
        "Send the call again with one JSON object as its arguments."
    )


async def _side_by_side(work: list[Coroutine[Any, Any, None]]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _keepable(data: Any) -> bool:
    """Can the structured part be written down, and is it short enough to keep?"""
    if data is None:
        return True
    try:
        return len(_encode(data)) <= _MOST_DATA
    except (TypeError, ValueError, RecursionError):
        return False
