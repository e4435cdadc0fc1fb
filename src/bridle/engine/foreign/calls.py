"""The calls of a foreign agent, which go through the same gate as any other call.

There are two kinds. A call that the agent makes itself is permitted (`permit`): it is recorded and
judged, a person is asked if needed, its intent is durable and undo has saved what it will change
before the agent learns that it may. The agent reports the result (`finish`); without a report it is
unknown. A call of our tools is run (`run`) as in our own loop. Once the turn is over, no call may
run.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from bridle.engine.approvals import is_about
from bridle.engine.call_middleware import CallMiddleware
from bridle.engine.gate import ForeignTool, JudgedCall
from bridle.engine.history import NOT_RUN, UNKNOWN, History
from bridle.engine.loop import PARKED, Ending
from bridle.engine.permission_pipeline import preapproval_key
from bridle.engine.tool_calls import ToolCalls
from bridle.engine.turn_context import Parked, TurnContext
from bridle.events import Event, FilesChanged, TraceEvent, UnknownCallReported
from bridle.messages import ToolCall, ToolOutput
from bridle.protocols.agent import Permission
from bridle.protocols.tool import CWD, Tool, ToolResult
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from bridle.protocols.hooks import ChangeRecorder

T = TypeVar("T")

OVER = "not run: the turn is over"
PARKED_CALL = "not run yet: it needs approval, and the turn is parked until there is an answer"
_PREAPPROVED = (
    "a person has allowed it: it was not run yet, and may be made once with these arguments"
)
_SPENT = "the limit of {} is reached"
_SEVERAL = "several calls at once"  # no tool has such a name, so it may touch any file


class _Permitted(Struct, frozen=True, gc=False):
    """A call that the agent was told to make, and what undo has kept before it."""

    judged: JudgedCall
    recorder: "ChangeRecorder | None" = None


class ForeignCalls:
    """Takes the calls of one agent through the gate, in one turn.

    `over` is the turn's ending, once it has one.
    """

    def __init__(self, turn: TurnContext, history: History, session_id: str) -> None:
        self._turn = turn
        self._history = history
        self._session_id = session_id
        undo = UndoWindows(turn.middleware, turn.emit) if turn.middleware is not None else None
        self._calls = turn.tool_calls = ToolCalls(turn, undo=undo, on_output=self._keep_output)
        self._permission = self._calls.permission
        self._outputs: dict[str, ToolOutput] = {}  # the results of this turn
        self._permitted: dict[str, _Permitted] = {}  # what the agent does by its own means now
        self._waiting: set[asyncio.Future[Any]] = set()
        self._is_spent = False  # a call was asked for beyond the limit
        self.over: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    def end(self, ending: Ending) -> None:
        """End the turn; if it has an ending already, that stands."""
        if not self.over.done():
            self.over.set_result(ending)

    def is_known(self, call_id: str) -> bool:
        """Has a call with this id come to the gate in this turn?"""
        return call_id in self._calls.open or call_id in self._outputs

    async def permit(self, call: ToolCall) -> Permission:
        """Decide whether the agent may make this call. If it may, the intent is durable."""
        self._calls.open[call.id] = call
        self._permission.foreign.add(call.id)
        permission = await self._unless_over(self._permit(call))
        if permission is None or (permission and self.over.done()):
            await self._withdraw(call)
            return self._too_late(call)
        return permission

    async def run(self, call: ToolCall) -> ToolOutput:
        """Have our tool run, and return its result as the log has it."""
        self._calls.open[call.id] = call
        if not self.over.done():
            await self._unless_over(self._run(call))
            self._end_if_stuck()
        return self._output(call)

    async def run_permitted(self, call_id: str) -> ToolOutput:
        """Have our tool do what the agent was permitted to do itself, and return its result."""
        judged = self._permitted[call_id].judged
        self.reset_folder()  # the call was judged in the root
        result = await self._unless_over(self._calls.run_tool(judged))
        if result is not None:
            await self.finish(call_id, result)
        return self._output(judged.call)

    def is_permitted(self, call_id: str, name: str, arguments: Any) -> bool:
        """Was the agent permitted exactly this call of our tool, and has not made it yet?"""
        permitted = self._permitted.get(call_id)
        if permitted is None or name not in self._permission.tools:
            return False
        call = permitted.judged.call
        return (call.name, call.arguments) == (name, arguments)

    def reset_folder(self) -> None:
        """Have our shell start in the root, wherever its last command ended."""
        self._turn.tool_state.memory.pop(CWD, None)

    async def finish(self, call_id: str, result: ToolResult) -> str | None:
        """Record the result of a permitted call. Nothing waits here unless hooks or undo do.

        Return what hooks add for the agent's model; None if no such call was permitted.
        """
        if (permitted := self._permitted.pop(call_id, None)) is None:
            return None
        added = await self._calls.finish(permitted.judged, result, permitted.recorder)
        self._end_if_stuck()
        return self._permission.redacted(added)

    def record_ungated(self, call: ToolCall, result: ToolResult) -> None:
        """Record the result of a call that the agent has made without asking."""
        if not self.over.done():  # otherwise it was stopped before it could ask
            self._turn.emit(TraceEvent("ungated_call", {"callId": call.id, "name": call.name}))
        self._calls.record(call, result, {call.id: call})

    def record_unknown(self, call: ToolCall) -> None:
        """Record that nobody knows the result of a call."""
        message = (
            f"the agent did not report a result of {call.name}: it is not known whether it ran. "
            "Check what it may have changed."
        )
        self._turn.emit(UnknownCallReported.of(call, message))
        result = ToolResult.failure(UNKNOWN, outcome="unknown")
        self._calls.record(call, result, {call.id: call})
        self._calls.open.pop(call.id, None)

    async def resume(self, calls: tuple[ToolCall, ...]) -> None:
        """Settle the calls with which a turn was parked; one may still have to wait.

        Calls of our tools are run as they were shown. What only the agent can do it may do once, in
        its next run.
        """
        asked = {pending.call.id for pending in self._history.pending.values()}
        asked |= set(self._history.answers)
        self._calls.open = {call.id: call for call in calls}
        for call in calls:
            if call.id not in asked:
                result = ToolResult.failure(NOT_RUN, outcome="not_run")
                self._calls.record(call, result)
            elif call.name in self._permission.tools:
                if self._was_foreign(call):  # our tool does it, which is confined even more
                    self._permission.foreign.add(call.id)
                    self.reset_folder()
                await self._run(call)
            else:
                await self._preapprove(call)
        if self._calls.is_parked:
            self.end(PARKED)
        self._end_if_stuck()

    async def settle(self, *, ended: bool) -> None:
        """Record results for calls that the agent has left open, unless they wait for a person.

        `ended`: has everything stopped that ran?
        """
        is_parked = self._calls.leaves_open or (self.over.done() and self.over.result() is PARKED)
        pending = self._history.pending.values() if is_parked else ()
        waiting = {request.call.id for request in pending}
        for permitted in list(self._permitted.values()):
            if permitted.recorder is not None:
                await self._calls.end_undo(permitted.judged, permitted.recorder)
        for call in list(self._calls.open.values()):
            if call.id in waiting:
                continue
            if call.id in self._permitted:
                self.record_unknown(call)
            elif call.id not in self._calls.begun:
                self._calls.cut_off(call, "not_run")
            else:
                self._calls.cut_off(call, "interrupted" if ended else "not_stopped")
        self._calls.is_over = not ended  # nothing is recorded of what still runs

    async def drain(self, seconds: float) -> bool:
        """Cancel what still waits here, wait for it, and return whether all of it ended."""
        for future in self._waiting:
            future.cancel()
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=seconds)
        return not self._waiting

    async def _permit(self, call: ToolCall) -> Permission:
        self._note_if_spent()
        recorder: ChangeRecorder | None = None
        try:
            checked = await self._permission.check(call, self._tool(call.name))
            if isinstance(checked, JudgedCall):
                begun = await self._calls.begin(checked)
                if isinstance(begun, ToolResult):
                    checked = begun
                else:
                    recorder = begun
        except Parked:
            self.end(PARKED)
            return self._too_late(call)
        if isinstance(checked, JudgedCall) and self.over.done():
            if recorder is not None:
                await self._calls.end_undo(checked, recorder)
            checked = ToolResult.failure(OVER, outcome="refused")
        if isinstance(checked, ToolResult):
            self._calls.record(call, checked)
            self._end_if_stuck()
            reason = self._permission.redacted(checked.text)
            return Permission(False, reason, call_id=call.id, stops=self.over.done())
        self._calls.begun.add(call.id)
        self._permitted[call.id] = _Permitted(checked, recorder)
        arguments = checked.call.arguments
        return Permission(
            allowed=True,
            updated_input=None if arguments == call.arguments else arguments,
            call_id=call.id,
            word=checked.decision.word,
        )

    async def _run(self, call: ToolCall) -> None:
        if call.name in self._permission.tools and not call.broken:
            self._note_if_spent()
        await self._calls.run_call(call)
        if self._calls.is_parked:
            self.end(PARKED)

    async def _preapprove(self, call: ToolCall) -> None:
        """Let the agent make a call once, in its next run, if a person has allowed it."""
        self._permission.foreign.add(call.id)
        self._note_if_spent()
        try:
            result = await self._permission.check(call, ForeignTool(call.name))
        except Parked:
            self._calls.is_parked = True
            return
        if isinstance(result, JudgedCall):
            self._turn.budget.add_tool_calls(-1)  # it is counted when it is made
            self._permission.preapproved.add(preapproval_key(result.call))
            result = ToolResult(True, _PREAPPROVED)
        self._calls.record(call, result)

    def _was_foreign(self, call: ToolCall) -> bool:
        """Was it asked about as something that the agent would do itself?"""
        shown = {pending.call.id: pending.shown for pending in self._history.pending.values()}
        answer = self._history.answers.get(call.id)
        fingerprint = answer.shown if answer is not None else shown.get(call.id, "")
        judged = self._turn.gate.judge(call, self._tool(call.name), foreign=True)
        return is_about(judged, self._session_id, fingerprint)

    async def _withdraw(self, call: ToolCall) -> None:
        """Take a permission back: the turn ended before the agent was told of it."""
        self._calls.begun.discard(call.id)
        permitted = self._permitted.pop(call.id, None)
        if permitted is not None and permitted.recorder is not None:
            await self._calls.end_undo(permitted.judged, permitted.recorder)

    def _too_late(self, call: ToolCall) -> Permission:
        is_parked = self.over.done() and self.over.result() is PARKED
        reason = PARKED_CALL if is_parked else OVER
        return Permission(False, reason, call_id=call.id, stops=True)

    def _output(self, call: ToolCall) -> ToolOutput:
        """Return the result of a call as the log has it, or that it came too late."""
        output = self._outputs.get(call.id)
        if output is None:
            text = self._too_late(call).message
            return ToolOutput(call.id, text, is_error=True, name=call.name, outcome="refused")
        redactor = self._turn.redactor
        return output if redactor is None else redactor.value(output)

    def _keep_output(self, output: ToolOutput) -> None:
        self._outputs[output.call_id] = output

    def _tool(self, name: str) -> Tool:
        return self._permission.tools.get(name) or ForeignTool(name)

    def _note_if_spent(self) -> None:
        """Note that the agent asks for a call beyond its limit."""
        budget = self._turn.budget
        self._is_spent |= 0 < budget.limits.max_tool_calls <= budget.tool_calls

    def _end_if_stuck(self) -> None:
        if self._is_spent:
            most = quantity(self._turn.budget.limits.max_tool_calls, "tool call")
            self.end(Ending("budget", _SPENT.format(most)))
        elif self._calls.stuck:
            hint = "Look at that call, then say how to continue."
            self.end(Ending("stuck", self._calls.stuck, hint))

    async def _unless_over(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Await the work. Cancel it and return None if the turn is over before."""
        task = asyncio.ensure_future(work)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        try:
            await asyncio.wait((task, self.over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        await asyncio.wait((task,))
        return None if task.cancelled() else task.result()


class UndoWindows:
    """Undo for calls that run at the same time.

    Undo knows one call at a time. So only one window is open: a call that begins or ends closes it
    and, while another still runs, opens the next. A window with several calls covers the whole
    workspace, because nobody can tell which of them changes what; its changes are reported for the
    call that it was opened for.
    """

    def __init__(self, middleware: CallMiddleware, emit: "Callable[[Event], None]") -> None:
        self._middleware = middleware
        self._emit = emit
        self._running: dict[str, ToolCall] = {}
        self._window: tuple[ChangeRecorder, ToolCall] | None = None
        self._lock = asyncio.Lock()

    async def begin_undo(self, call: ToolCall) -> "ChangeRecorder | None":
        """Have undo keep what the call may change, and report what others have changed before."""
        async with self._lock:
            changed = await self._close()
            several = bool(self._running)
            self._running[call.id] = call
            try:
                recorder = await self._open(call, several=several)
            except BaseException:
                del self._running[call.id]
                await self._continue()
                raise
        if changed is not None:
            self._emit(changed)
        return recorder

    async def changed_files(
        self, recorder: "ChangeRecorder", call: ToolCall
    ) -> FilesChanged | None:
        """Report what has changed since the window was opened, at the end of a call."""
        async with self._lock:
            changed = await self._close()
            self._running.pop(call.id, None)
            await self._continue()
            return changed

    async def _continue(self) -> None:
        """Open the next window for the calls that still run."""
        for call in self._running.values():
            await self._open(call, several=True)
            break

    async def _open(self, call: ToolCall, *, several: bool) -> "ChangeRecorder | None":
        kept = ToolCall(call.id, _SEVERAL) if several else call
        recorder = await self._middleware.begin_undo(kept)
        self._window = None if recorder is None else (recorder, kept)
        return recorder

    async def _close(self) -> FilesChanged | None:
        if self._window is None:
            return None
        (recorder, call), self._window = self._window, None
        return await self._middleware.changed_files(recorder, call)
