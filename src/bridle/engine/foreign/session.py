"""The session as a foreign agent sees it: it reports what it does, asks, and runs our tools here.

It is passed to `execute`, and ignores everything once the turn is over. An agent cannot emit what
only a person or the engine emits.
"""

import asyncio
import logging
from collections.abc import Callable, Container, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.engine_config import Back, Translate
from bridle.engine.foreign.agent import agent_name
from bridle.engine.foreign.budget import (
    DayBudget,
    add_usage,
    limit_reached,
    remaining_budget,
    sanitize_usage,
)
from bridle.engine.foreign.calls import OVER, ForeignCalls
from bridle.engine.history import History
from bridle.engine.loop import Ending
from bridle.engine.redaction import Redactor
from bridle.engine.stream import ToolEmitter
from bridle.engine.turn_context import TurnContext, refresh_tools
from bridle.errors import BudgetReached
from bridle.events import (
    AgentActivity,
    AgentAttached,
    Event,
    ResponseCompleted,
    StopReason,
    Streamed,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolCallReady,
    ToolCallStarted,
    ToolResultEvent,
    TraceEvent,
    UsageReported,
)
from bridle.messages import (
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    Transcript,
)
from bridle.policy import Mode
from bridle.protocols.agent import Permission, RemainingBudget, ToolActivity
from bridle.protocols.codec import escape_event
from bridle.protocols.tool import ToolResult
from bridle.usage import Usage

if TYPE_CHECKING:
    from bridle.protocols.agent import BaseAgent

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(enc_hook=str).encode
_BATCH = 16  # pieces of text after which other tasks run
_MOST_QUOTED = 2000  # characters of an event that an agent cannot say


class AgentTurnInput(Struct):
    """What a foreign agent's turn needs beside its `TurnContext`."""

    agent: "BaseAgent"
    session_id: str
    number: int
    root: str
    history: History
    deadline: float | None = None
    prompts: tuple[Message, ...] = ()
    resumes: bool = False  # was the turn parked before?
    steer: Callable[[], tuple[Message, ...]] = tuple  # prompts that were sent meanwhile
    translate: Translate | None = None  # its tools' names, as ours

    @property
    def name(self) -> str:
        """What the log calls the agent."""
        return agent_name(self.agent)


class AgentSessionView:
    """One turn's view of its session, for the agent that runs the turn."""

    def __init__(self, turn: TurnContext, turn_input: AgentTurnInput, calls: ForeignCalls) -> None:
        self.prompt: tuple[Part, ...] = ()  # as it was sent, with its pictures
        self.day: DayBudget | None = None
        self._turn = turn
        self._input = turn_input
        self._calls = calls
        self._replies = Replies(turn.emit, turn_input.history, turn.redactor)
        self._mapper = ToolNameMapper(turn_input.translate, turn_input.root, lambda: turn.tools)
        self._emitter = ToolEmitter(self._take)
        self._ids: dict[str, str] = {}  # the agent's ids of calls: those of the log
        self._streams = False  # does the agent emit its text itself?
        self._tasks: set[asyncio.Task[None]] = set()  # that the turn still waits for
        self._counted_steps = 0  # replies that the budget has counted
        self._is_checking_day = False
        self._chunks = 0
        self._is_closed = False
        self.has_usage = self.has_cost = False  # did the agent report it on its way?
        self.usage = Usage()  # by what its replies say, if it reports nothing else

    @property
    def id(self) -> str:
        """The session's id."""
        return self._input.session_id

    @property
    def working_directory(self) -> str:
        """The root of the workspace."""
        return self._input.root

    @property
    def mode(self) -> Mode:
        """The session's mode, as it is now."""
        return self._turn.mode()

    @property
    def system(self) -> str:
        """The person's standing instructions, which go beside the agent's own system prompt."""
        return self._turn.system

    @property
    def remaining(self) -> RemainingBudget:
        """What this turn may still use."""
        budget = self._turn.budget
        return remaining_budget(budget, budget.before, self._input.deadline)

    @property
    def messages(self) -> Transcript:
        """The conversation as the log has it, for an agent that has none of its own."""
        return self._input.history.transcript

    @property
    def claude_session_id(self) -> str | None:
        """The id of the agent's own conversation, stored in the log."""
        return self._attached.session_id or None

    @claude_session_id.setter
    def claude_session_id(self, value: str | None) -> None:
        self._attach(str(value or ""), self._attached.state)

    @property
    def state(self) -> dict[str, Any]:
        """What else the agent stores in the log: a copy. Assign to it to store a new value."""
        return dict(self._attached.state)

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        copied = msgspec.json.decode(_encode(value), type=dict[str, Any])
        self._attach(self._attached.session_id, copied)

    @property
    def _attached(self) -> AgentAttached:
        name = self._input.name
        return self._input.history.attached.get(name) or AgentAttached(name)

    def attach(self) -> None:
        """Record that this agent runs the turns from here on, if it is new."""
        if self._input.name not in self._input.history.attached:
            self._turn.emit(AgentAttached(self._input.name))

    def _attach(self, session_id: str, state: dict[str, Any]) -> None:
        attached = AgentAttached(self._input.name, session_id, state)
        if attached != self._attached:
            self._emitter(attached)

    def emit(self, event: Event) -> None:
        """Record and broadcast an event. Can be called from any thread; ignored after the turn."""
        self._emitter(event)

    async def can_use_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> Permission:
        """Ask the gate. If it allows the call, the call's intent is durable."""
        if self.is_over:
            await asyncio.sleep(0)  # let a cancel reach an agent that asks again and again
            return Permission(False, OVER, stops=True)
        try:
            mapped = self._mapper.map_call(str(name), arguments)
            call = self._record_call(mapped.name, mapped.arguments, _call_id(context))
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            return Permission(False, f"not run: its arguments cannot be read: {error}")
        permission = await self._calls.permit(call)
        changed = permission.updated_input
        if permission and changed is None and call.arguments != mapped.arguments:
            changed = call.arguments
        if changed is not None:
            permission = msgspec.structs.replace(permission, updated_input=mapped.back(changed))
        return permission

    async def call(
        self, name: str, arguments: dict[str, Any], call_id: str = "", *, anew: bool = False
    ) -> ToolOutput:
        """Run our tool of that name, through the gate, and return its one result.

        `anew`: a command starts in the root, wherever the last one ended.
        """
        if self.is_over:
            await asyncio.sleep(0)
            return ToolOutput(call_id, OVER, is_error=True, name=str(name), outcome="refused")
        if anew:
            self._calls.reset_folder()
        known = self._ids.get(call_id, call_id)
        if self._calls.is_permitted(known, str(name), arguments):
            self._replies.note_result_read()
            return await self._calls.run_permitted(known)
        try:
            call = self._record_call(name, arguments, call_id)
        except (TypeError, ValueError, RecursionError) as error:
            text = f"not run: its arguments cannot be read: {error}"
            return ToolOutput(call_id, text, is_error=True, name=str(name), outcome="invalid")
        output = await self._calls.run(call)
        self._replies.note_result_read()
        return output

    def _record_call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolCall:
        """Record a call with arguments that nobody else holds."""
        if self._turn.sources:
            refresh_tools(self._turn)
        copied = msgspec.json.decode(_encode(arguments), type=dict[str, Any])
        call = self._replies.record_call(str(name), copied, call_id)
        self._ids[call_id or call.id] = call.id
        self.end_if_limit_reached()
        return call

    async def finish(
        self,
        call_id: str,
        text: str,
        *,
        ok: bool = True,
        data: Any = None,
        media: Sequence[Image | File] = (),
    ) -> str:
        """Report the result of a call; only the first report counts.

        Return what hooks add to it for the agent's model.
        """
        result = _result(ok, str(text), data, tuple(media))
        return "" if self._is_closed else await self._finish(call_id, result)

    async def _finish(self, call_id: str, result: ToolResult) -> str:
        known = self._ids.get(call_id, call_id)
        added = await self._calls.finish(known, result)
        if added is not None:
            self._replies.note_result_read()
        elif (call := self._replies.announced.pop(known, None)) is not None:
            self._calls.record_ungated(call, result)
            self._replies.note_result_read()
        elif not (self._calls.is_known(known) or self.is_over):
            message = "the agent reported the result of an unknown call"
            self._turn.emit(TraceEvent("stray_result", {"callId": call_id, "message": message}))
        return added or ""

    async def on_text_chunk(self, text: str) -> None:
        """Record more text, from an agent that does not emit it itself."""
        if isinstance(text, str) and text and not (self._streams or self.is_over):
            self._replies.stream(TextDelta(text))
        self._chunks += 1
        if self._chunks % _BATCH == 0:  # an agent that waits for nothing else lets others run here
            await asyncio.sleep(0)

    async def on_tool_activity(self, activity: ToolActivity | None) -> None:
        """Show what the agent is doing."""
        name = getattr(activity, "tool_name", "")
        description = getattr(activity, "description", "")
        self._emitter(AgentActivity(str(name or ""), str(description or "")))

    @property
    def is_over(self) -> bool:
        """Is everything ignored now, except what the agent has used?"""
        return self._is_closed or self._calls.over.done()

    async def settle(self) -> None:
        """Wait for results that hooks and undo still look at; later ones are ignored."""
        self._is_closed = True
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def end_reply(self, content: str) -> None:
        """Record what the agent has said as a reply."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._replies.conclude(content)

    def begin_answer(self) -> None:
        """Note that another answer follows, whose text and usage count by themselves."""
        self._replies.begin_answer()
        self.has_usage = self.has_cost = False
        self.usage = Usage()

    def close(self, content: str, reason: StopReason) -> None:
        """Record the agent's last words, and ignore everything from here on."""
        self._emitter.close()
        for call in self._replies.announced.values():  # never asked about, and not reported
            self._calls.record_unknown(call)
        self._replies.conclude(content, reason)

    def has_said(self, content: str) -> bool:
        """Is this in the conversation already?"""
        return self._replies.has_said(content)

    def remember(self, session_id: str | None) -> None:
        """Record the id of the agent's own conversation, as its response names it."""
        if session_id and session_id != self._attached.session_id:
            self._turn.emit(AgentAttached(self._input.name, session_id, self._attached.state))

    def _take(self, event: Any) -> None:
        """Handle one event that the agent emits."""
        if isinstance(event, UsageReported):
            self.spend(event)
        elif isinstance(event, AgentAttached) and event.agent == self._input.name:
            self._turn.emit(event)
        elif isinstance(event, ToolResultEvent):
            if not self._is_closed:
                self._report(event.output)
        elif not self.is_over:  # what it says of being stopped is not recorded
            self._record(event)

    def _record(self, event: Any) -> None:
        match event:
            case TextDelta() | ThinkingDelta():
                self._streams |= isinstance(event, TextDelta)
                self._replies.stream(event)
            case ResponseCompleted():
                self._replies.add(self._mapper.map_reply(event))
                self.usage = add_usage(self.usage, event.usage)
                self.end_if_limit_reached()
            case ToolCallReady():
                self._replies.note_ready(event.call)
                self._turn.emit(event)
            case TodosChanged() | Streamed():
                if isinstance(event, ToolCallStarted):
                    self._replies.note_started(event.call_id)
                self._turn.emit(event)
            case _:
                self._refuse(event)

    def spend(self, report: UsageReported) -> None:
        """Count what the agent says that it has used. A cost that it does not report is unknown."""
        report = sanitize_usage(report)
        self.has_usage = True
        self._replies.note_result_read()
        self.has_cost |= report.cost is not None
        self._turn.budget.spend(report.usage, report.cost, report.model)
        self._turn.emit(msgspec.structs.replace(report, priced=True, purpose="turn"))
        self.end_if_limit_reached()
        if self._turn.budget.day is not None and not self._is_checking_day:
            self._start(self._check_day())

    async def _check_day(self) -> None:
        """End the turn if other sessions have used the rest of the day meanwhile."""
        self._is_checking_day = True
        try:
            if self.day is not None:
                await self.day.check()
        except BudgetReached as limit:
            self._calls.end(Ending("budget", limit.message, limit.hint))
        finally:
            self._is_checking_day = False

    def end_if_limit_reached(self, ahead: int = 0) -> None:
        """End the turn if a limit is reached. `ahead`: steps that are to come."""
        budget = self._turn.budget
        budget.add_steps(self._replies.count - self._counted_steps)
        self._counted_steps = self._replies.count
        message, hint = limit_reached(budget, budget.before, ahead)
        if message:
            self._calls.end(Ending("budget", message, hint))

    def _refuse(self, event: Any) -> None:
        """Note an event that an agent cannot emit: it may not write other facts into the log."""
        text, redactor = repr(event), self._turn.redactor
        quoted = (text if redactor is None else redactor.text(text))[:_MOST_QUOTED]
        self._turn.emit(TraceEvent("unknown_event", quoted))

    def _report(self, output: ToolOutput) -> None:
        """Finish a call whose result was emitted. Hooks and undo may still have to look at it."""
        result = _result(not output.is_error, output.text, output.data, output.media)
        work = self._finish(output.call_id, result)
        if self._turn.middleware is not None:
            self._start(work)
        else:
            _run_without_waiting(work)  # so that the order of what it emits is the order of the log

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run this beside what the agent does; the turn waits for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _result(ok: bool, text: str, data: Any, media: tuple[Image | File, ...]) -> ToolResult:
    if ok:
        return ToolResult(True, text, data=data, media=media)
    return ToolResult(False, text, diagnostics=data, media=media)


def _run_without_waiting(work: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that awaits nothing that is not done, here and now."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("the coroutine was not done")


def _call_id(context: Any) -> str:
    """Return the call's id, which is handed in by itself or as a field."""
    if isinstance(context, dict):
        context = context.get("tool_use_id", "")
    call_id = context if isinstance(context, str) else getattr(context, "tool_use_id", "")
    return call_id if isinstance(call_id, str) else ""


# The replies of a foreign agent: its text, its thinking and its calls.
#
# An agent may report whole replies, or stream text and ask for one call after the other; either way
# the log reads as if our own loop had run the turn. A reply grows while its calls are open, and
# also if its calls were refused at once, because the model cannot have read that yet: a step is one
# request to the model.


class Replies:
    """The replies of one agent in one turn."""

    def __init__(
        self, emit: Callable[[Event], None], history: History, redactor: Redactor | None
    ) -> None:
        self._emit = emit
        self._history = history
        self._redactor = redactor
        self._texts: list[str] = []  # streamed, and in no reply yet
        self._thoughts: list[str] = []
        self._turn_texts: list[str] = []  # all text of the turn
        self._call_ids: set[str] = history.open_ids  # that are taken
        self._ready: set[str] = set()  # calls that were reported as complete
        self.announced: dict[str, ToolCall] = {}  # in a reply, and not asked about yet
        self._begins_step = True  # has the model read or said something since the newest call?
        self._started: set[str] = set()  # calls that it has begun to write
        self._same_step: set[str] = set()  # ... before the first of this step was asked about
        self.count = 0

    def stream(self, event: TextDelta | ThinkingDelta) -> None:
        """Record a piece of what the agent writes or thinks."""
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
            self._turn_texts.append(event.text)
        else:
            self._thoughts.append(event.text)
        self._begins_step = True
        self._emit(event)

    def note_started(self, call_id: str) -> None:
        """Note that the model has begun to write this call."""
        self._started.add(call_id)

    def note_result_read(self) -> None:
        """Note that the model has read a result, or is about to: what follows is another step."""
        self._begins_step = True

    def note_ready(self, call: ToolCall) -> None:
        """Note that the agent itself has reported this call as complete."""
        self._ready.add(call.id)

    def record_call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolCall:
        """Record a call that is asked about, unless a reply has it already, and return it."""
        known = self.announced.get(call_id)
        call = ToolCall(call_id, name, arguments)
        if known is not None and (known.name, known.arguments) == (call.name, call.arguments):
            return self.announced.pop(call_id)
        reply = ResponseCompleted("tool_use", Message("assistant", (self._with_unique_id(call),)))
        recorded = self._record(reply, grows=not self._begins_step or call_id in self._same_step)
        self._begins_step = False
        (call,) = recorded.message.tool_calls if recorded.message is not None else ()
        self.announced.pop(call.id, None)
        return call

    def add(self, reply: ResponseCompleted) -> None:
        """Record a whole reply, as the agent reports it."""
        message = reply.message
        if message is None or not message.parts:
            self._emit(reply)
            return
        if message.reasoning:
            self._thoughts.clear()
        if text := message.content.strip():
            self._texts.clear()  # it is in the reply
            if not self.has_said(text):
                self._turn_texts.append(text)
        parts = [
            self._with_unique_id(part) if isinstance(part, ToolCall) else part
            for part in message.parts
        ]
        self._record(replace(reply, message=replace(message, parts=tuple(parts))))
        self._begins_step = True

    def begin_answer(self) -> None:
        """Note that another answer follows, which may have the same words as the one before it."""
        self._turn_texts.clear()

    def has_said(self, content: str) -> bool:
        """Does the agent's text so far end with this?"""
        text = "".join(self._turn_texts).rstrip()
        return not content.strip() or text.endswith(content.strip())

    def conclude(self, content: str, reason: StopReason = "complete") -> None:
        """At the end of the turn, record what was streamed, and what was not, as a reply."""
        if not self.has_said(content):
            streamed = "".join(self._texts)
            if not content.startswith(streamed):  # other words than those that were streamed
                self._record_streamed(reason)
                streamed = ""
            self.stream(TextDelta(content[len(streamed) :]))
        self._record_streamed(reason)

    def _record_streamed(self, reason: StopReason) -> None:
        if "".join(self._texts).strip():
            self._record(ResponseCompleted(reason, Message("assistant")))

    def _record(self, reply: ResponseCompleted, *, grows: bool = False) -> ResponseCompleted:
        """Record a reply after what was streamed before it. `grows`: as a part of the last one."""
        assert reply.message is not None
        grows = grows or bool(self._history.open_calls)
        if not grows:
            self._same_step, self._started = self._started, set()
        parts = (*self._take_streamed(), *reply.message.parts)
        reply = replace(reply, message=Message("assistant", parts), grows=grows)
        try:
            _encode(parts)
        except UnicodeEncodeError:  # half a surrogate pair
            cleaned = escape_event(reply)
            assert isinstance(cleaned, ResponseCompleted)
            reply = cleaned
        if self._redactor is not None:  # what is judged is what the log says was asked for
            reply = self._redactor.value(reply)
        assert reply.message is not None
        for call in reply.message.tool_calls:
            self.announced[call.id] = call
            if call.id not in self._ready:
                self._emit(ToolCallReady(call))
        self.count += not grows
        self._emit(reply)
        return reply

    def _take_streamed(self) -> tuple[Part, ...]:
        thought, text = "".join(self._thoughts), "".join(self._texts)
        self._thoughts.clear()
        self._texts.clear()
        parts: tuple[Part, ...] = (Thinking(thought),) if thought.strip() else ()
        return (*parts, Text(text)) if text.strip() else parts

    def _with_unique_id(self, call: ToolCall) -> ToolCall:
        """Return the call with an id that no other call of the turn has."""
        name, number = call.id or "call", len(self._call_ids) + 1
        unique = call.id
        while not unique or unique in self._call_ids:
            unique, number = f"{name}-{number}", number + 1
        self._call_ids.add(unique)
        return call if unique == call.id else replace(call, id=unique)


class MappedCall(Struct, frozen=True):
    """A call as one of our tools, and how changed arguments become the agent's again."""

    name: str
    arguments: dict[str, Any]
    back: Back


class ToolNameMapper:
    """Maps an agent's names of tools to ours, so that the gate judges what it knows. Pure.

    `translate` is handed in (`EngineConfig.translate`); a name that it does not know stays as it
    is. `ours` returns the names of our own tools.
    """

    def __init__(
        self, translate: Translate | None, root: str, ours: Callable[[], Container[str]]
    ) -> None:
        self._translate = translate
        self._root = root
        self._ours = ours

    def map_call(self, name: str, arguments: Any) -> MappedCall:
        """Return the call as one of our tools. Raise `TypeError` … if its arguments are invalid."""
        if self._translate is not None and isinstance(arguments, dict) and name not in self._ours():
            mapped = self._translate(name, arguments, self._root)
            if mapped is not None:
                return MappedCall(*mapped)
        return MappedCall(name, arguments, _unchanged)

    def map_reply(self, reply: ResponseCompleted) -> ResponseCompleted:
        """Return a whole reply with its calls as calls of our tools."""
        if self._translate is None or reply.message is None or not reply.message.tool_calls:
            return reply
        parts = [
            self._map(part) if isinstance(part, ToolCall) else part for part in reply.message.parts
        ]
        return replace(reply, message=replace(reply.message, parts=tuple(parts)))

    def _map(self, call: ToolCall) -> ToolCall:
        try:
            mapped = self.map_call(call.name, call.arguments)
        except (TypeError, ValueError, AttributeError, RecursionError):
            return call  # the gate says so if it is asked
        if mapped.back is _unchanged:
            return call
        return ToolCall(call.id, mapped.name, mapped.arguments)


def _unchanged(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments
