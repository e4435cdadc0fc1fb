"""The calls of another agent, on the way through the same gate as any other.

Two kinds. What the agent does by its own means is *permitted*: recorded, judged, asked about, its
intent settled on disk and what it will change kept, before the agent hears a yes; what came of it
the agent reports, and what it does not report is unknown. What the agent has our tools do is *run*
as in our own loop. Once the turn is over (`over`) nothing is let through any more.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from bridle.engine.approvals import is_about
from bridle.engine.fingerprint import fingerprint
from bridle.engine.gate import ForeignTool, JudgedCall
from bridle.engine.history import NOT_RUN, UNKNOWN, History
from bridle.engine.hooks import CallMiddleware, note
from bridle.engine.loop import PARKED, Ending
from bridle.engine.permission import preapproval_key
from bridle.engine.spans import Spans
from bridle.engine.tool_calls import ToolCalls
from bridle.engine.turn_context import Parked, TurnContext
from bridle.events import CallIntended, Event, ToolResultEvent, TraceEvent, UnknownCallReported
from bridle.messages import ToolCall, ToolOutput
from bridle.promises.agent import Permission
from bridle.promises.tool import CWD, Tool, ToolResult

if TYPE_CHECKING:
    from bridle.promises.keeping import Keeping

log = logging.getLogger(__name__)

T = TypeVar("T")

OVER = "not run: the turn is over"
WAITS = "not run yet: a person has to be asked, and the turn rests until they have answered"
_ONCE = "a person has allowed it: it was not run yet, and may be made once with these arguments"
_SPENT = "the limit of {} tool calls is reached"


class Allowed(Struct, frozen=True, gc=False):
    """A call that the agent was told to make, and what undo has kept before it."""

    judged: JudgedCall
    keeping: "Keeping | None" = None


class AgentCaller(ToolCalls):
    """Lets the calls of one agent through, in one turn."""

    def __init__(self, turn: TurnContext, history: History, session_id: str = "") -> None:
        super().__init__(turn)
        self._history = history
        self._session_id = session_id
        self._say_it, self._emit = turn.emit, self._noted
        self._outputs: dict[str, ToolOutput] = {}  # what was answered in this turn
        self._allowed: dict[str, Allowed] = {}  # what the agent does by its own means now
        self._added: dict[str, str] = {}  # what hooks say of a result, for the agent's model
        self._errands: set[asyncio.Future[Any]] = set()
        self._spans: Spans | None = None
        self._spent = False  # a call was asked for beyond the limit
        self.over: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def end(self, ending: Ending) -> None:
        """There is no going on; the first reason for it stands."""
        if not self.over.done():
            self.over.set_result(ending)

    def knows(self, call_id: str) -> bool:
        """Was there such a call in this turn that has come to the gate?"""
        return call_id in self._open or call_id in self._outputs

    async def permit(self, call: ToolCall) -> Permission:
        """May the agent make this call? Where it may, its intent is on disk."""
        self._open[call.id] = call
        self._permission.foreign.add(call.id)
        found = await self._until_over(self._permit(call))
        if found is None or (found and self.over.done()):
            await self._take_back(call)
            return self._late(call)
        return found

    async def _take_back(self, call: ToolCall) -> None:
        """The turn was stopped in the moment in which it was allowed: the agent hears no yes."""
        self._begun.discard(call.id)
        allowed = self._allowed.pop(call.id, None)
        if allowed is not None and allowed.keeping is not None and self._middleware is not None:
            await self._record_changes(self._middleware, allowed.judged, allowed.keeping)

    def _late(self, call: ToolCall) -> Permission:
        parked = self.over.done() and self.over.result() is PARKED
        return Permission(False, WAITS if parked else OVER, call_id=call.id, stops=True)

    async def _permit(self, call: ToolCall) -> Permission:
        try:
            found = await self._check(call, self._tool(call.name))
            if isinstance(found, JudgedCall):
                found = await self._begin(found)
        except Parked:
            self.end(PARKED)
            return self._late(call)
        if isinstance(found, ToolResult):
            self._record(call, found, self._open)
            self._end_if_stuck()
            said = self._permission.redacted(found.text)
            return Permission(False, said, call_id=call.id, stops=self.over.done())
        given = found.call.arguments
        changed = None if given == call.arguments else given
        return Permission(True, "", changed, call.id, found.decision.word)

    async def call_tool(self, call: ToolCall) -> ToolOutput:
        """Have our tool run; its one result, as the log has it."""
        self._open[call.id] = call
        if not self.over.done():
            await self._until_over(self._run_call(call, self._open))
            if self._parked:
                self.end(PARKED)
            self._end_if_stuck()
        output = self._outputs.get(call.id)
        if output is None:
            return self._late_output(call)
        redactor = self._turn.redactor
        return output if redactor is None else redactor.value(output)

    def is_allowed(self, call_id: str, name: str, arguments: Any) -> bool:
        """Was the agent told that it may make exactly this call, and has it not?"""
        allowed = self._allowed.get(call_id)
        if allowed is None or name not in self._permission.tools:
            return False
        call = allowed.judged.call
        return (call.name, call.arguments) == (name, arguments)

    def begin_anew(self) -> None:
        """Have our shell start in the root, wherever its last command ended."""
        self._turn.tool_state.memory.pop(CWD, None)

    async def carry_out(self, call_id: str) -> ToolOutput:
        """Have our tool do what the agent was allowed to do itself: its one result."""
        judged = self._allowed[call_id].judged
        self.begin_anew()  # where it was judged
        result = await self._until_over(self._run_tool(judged))
        if result is not None:
            await self.finish(call_id, result)
        output = self._outputs.get(call_id)
        if output is None:
            return self._late_output(judged.call)
        redactor = self._turn.redactor
        return output if redactor is None else redactor.value(output)

    def _late_output(self, call: ToolCall) -> ToolOutput:
        """Return what the agent is told about a call that came when the turn was over."""
        text = self._late(call).message
        return ToolOutput(call.id, text, is_error=True, name=call.name, outcome="refused")

    async def finish(self, call_id: str, result: ToolResult) -> bool:
        """What came of a call that was allowed; was there such a call?"""
        middleware = self._middleware
        if middleware is None or (allowed := self._allowed.pop(call_id, None)) is None:
            return self.finish_plainly(call_id, result)
        judged = allowed.judged
        self._finished[judged.call.id] = result
        if allowed.keeping is not None:
            await self._record_changes(middleware, judged, allowed.keeping)
        result = await self._run_after_hooks(middleware, judged, result)
        self._added[call_id] = self._permission.redacted(
            self._permission.notes.get(judged.call.id, "")
        )
        self._record(judged.call, result, self._open)
        self._end_if_stuck()
        return True

    def added(self, call_id: str) -> str:
        """What the model is to read after the result of a call; told once."""
        return self._added.pop(call_id, "")

    def finish_plainly(self, call_id: str, result: ToolResult) -> bool:
        """The same where neither hooks nor undo stand around it."""
        if (allowed := self._allowed.pop(call_id, None)) is None:
            return False
        self._record(allowed.judged.call, result, self._open)
        self._end_if_stuck()
        return True

    def answer(self, call: ToolCall, result: ToolResult) -> None:
        """What came of a call that the agent has made without asking."""
        if not self.over.done():  # otherwise it was stopped before it came to that
            self._emit(TraceEvent("ungated_call", {"callId": call.id, "name": call.name}))
        self._record(call, result, {call.id: call})

    async def go_on(self, calls: tuple[ToolCall, ...]) -> None:
        """Settle the calls that a turn was parked with; one may still have to wait.

        Ours are run as they were shown. What only the agent can do it may do once, in its next run.
        """
        asked = {one.call.id for one in self._history.pending.values()} | set(self._history.answers)
        self._open = {call.id: call for call in calls}
        for call in calls:
            if call.id not in asked:
                self._record(call, ToolResult.failure(NOT_RUN, outcome="not_run"), self._open)
            elif call.name in self._permission.tools:
                if self._was_theirs(call):  # what it was asked about; ours confines it even more
                    self._permission.foreign.add(call.id)
                    self.begin_anew()
                await self._run_call(call, self._open)
            else:
                await self._pass_on(call)
        if self._parked:
            self.end(PARKED)
        self._end_if_stuck()

    def _was_theirs(self, call: ToolCall) -> bool:
        """Was it asked about as something that the agent would do itself?"""
        asked = {one.call.id: one.shown for one in self._history.pending.values()}
        said = self._history.answers.get(call.id)
        shown = said.shown if said is not None else asked.get(call.id, "")
        judged = self._gate.judge(call, self._tool(call.name), foreign=True)
        return is_about(judged, self._session_id, shown)

    async def _pass_on(self, call: ToolCall) -> None:
        self._permission.foreign.add(call.id)
        try:
            found = await self._check(call, ForeignTool(call.name))
        except Parked:
            self._parked = True
            return
        if isinstance(found, JudgedCall):
            self._budget.tool_calls -= 1  # it is counted when it is made
            self._permission.preapproved.add(preapproval_key(found.call))
            found = ToolResult(True, _ONCE)
        self._record(call, found, self._open)

    async def settle(self, *, ended: bool) -> None:
        """The agent is done: answer what it has left open, but for what waits for a person."""
        rests = self._leaves_open or (self.over.done() and self.over.result() is PARKED)
        waits = {one.call.id for one in self._history.pending.values()} if rests else set[str]()
        if self._middleware is not None:
            for one in list(self._allowed.values()):
                if one.keeping is not None:
                    await self._record_changes(self._middleware, one.judged, one.keeping)
        for call in list(self._open.values()):
            if call.id in waits:
                continue
            if call.id in self._allowed:
                self.lose(call)
            elif call.id not in self._begun:
                self._cut_off(call, "not_run", self._open)
            else:
                self._cut_off(call, "interrupted" if ended else "not_stopped", self._open)
        self.is_over = not ended  # nobody hears what still runs

    async def drain(self, seconds: float) -> bool:
        """Wait for what was cut off: did all of it end?"""
        for errand in self._errands:
            errand.cancel()
        if self._errands:
            await asyncio.wait(self._errands, timeout=seconds)
        return not self._errands

    async def _begin_undo(
        self, middleware: CallMiddleware, call: ToolCall
    ) -> "Keeping | ToolResult | None":
        """What is kept, also where other calls of the agent are under way."""
        self._spans = self._spans or Spans(middleware)
        try:
            keeping, changed = await self._spans.begin(call)
        except Exception as error:  # what cannot be undone was promised to be
            log.debug("nothing could be kept before %r", call.name, exc_info=True)
            text = f"not run: what it would change cannot be kept: {error!r}"
            return ToolResult.failure(text, outcome="refused")
        if changed is not None:
            self._emit(changed)
        return keeping

    async def _record_changes(
        self, middleware: CallMiddleware, judged: JudgedCall, keeping: "Keeping"
    ) -> None:
        assert self._spans is not None  # it has kept something before
        changed = await self._spans.end(judged.call)
        if changed is not None and not self.is_over:
            self._emit(changed)
            if text := middleware.report_guarded_changes(judged, changed):
                self._permission.add_note(judged.call, note("note", text))

    def lose(self, call: ToolCall) -> None:
        """Nobody knows what came of it."""
        said = f"the agent did not say what came of {call.name}"
        words = f"{said}: it is not known whether it ran. Look at what it may have changed."
        self._emit(UnknownCallReported.of(call, words))
        result = ToolResult.failure(UNKNOWN, outcome="unknown")
        self._record(call, result, {call.id: call})
        self._open.pop(call.id, None)

    def _tool(self, name: str) -> Tool:
        return self._permission.tools.get(name) or ForeignTool(name)

    async def _begin(self, judged: JudgedCall) -> JudgedCall | ToolResult:
        """Say that it is about to happen, and have what it will change kept."""
        call, reads, keeping = judged.call, judged.reads, None
        self._emit(CallIntended(call.id, call.name, reads, fingerprint(call)))
        if not reads:
            await self._turn.settled()
            if self._middleware is not None and not judged.tool.policy.delegates:
                keeping = await self._begin_undo(self._middleware, call)
        if isinstance(keeping, ToolResult):
            return keeping
        if self.over.done():
            if self._middleware is not None and keeping is not None:
                await self._record_changes(self._middleware, judged, keeping)
            return ToolResult.failure(OVER, outcome="refused")
        self._begun.add(call.id)
        self._allowed[call.id] = Allowed(judged, keeping)
        return judged

    async def _check(self, call: ToolCall, tool: Tool) -> JudgedCall | ToolResult:
        """Return the call as it may run, or the result if it may not. Raise `Parked`."""
        self._note_if_spent()
        return await self._permission.check(call, tool)

    async def _run_call(self, call: ToolCall, open_calls: dict[str, ToolCall]) -> None:
        if call.name in self._permission.tools and not call.broken:
            self._note_if_spent()
        await super()._run_call(call, open_calls)

    def _note_if_spent(self) -> None:
        """Note that the agent asks for a call beyond its limit."""
        self._spent |= 0 < self._budget.limits.tool_calls <= self._budget.tool_calls

    def _end_if_stuck(self) -> None:
        if self._spent:
            self.end(Ending("budget", _SPENT.format(self._budget.limits.tool_calls)))
        elif self.stuck:
            hint = "Look at that call, then say how to go on."
            self.end(Ending("stuck", self.stuck, hint))

    def _noted(self, event: Event) -> None:
        if isinstance(event, ToolResultEvent):
            self._outputs[event.output.call_id] = event.output
        self._say_it(event)

    async def _until_over(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What comes of it; None where the turn was over before."""
        task = asyncio.ensure_future(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        try:
            await asyncio.wait((task, self.over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        await asyncio.wait((task,))
        return None if task.cancelled() else task.result()
