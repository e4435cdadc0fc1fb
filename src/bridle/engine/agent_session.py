"""The session as another agent sees it: where it says what happens, asks, and has our tools run.

Handed to `execute`, and deaf once the turn is over. What only a person or the engine says, an agent
cannot say. Knows nothing of how the agent is started or stopped.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bridle.engine.agent_calls import OVER, AgentCaller
from bridle.engine.agent_replies import Replies
from bridle.engine.agent_words import Words
from bridle.engine.allowance import DayRoom, added_up, believable, reached, room_of
from bridle.engine.engine_config import Translate
from bridle.engine.history import History
from bridle.engine.loop import Ending
from bridle.engine.tool_sources import refresh_tools
from bridle.engine.tool_state import ToolEmitter
from bridle.engine.turn_context import TurnContext
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
from bridle.messages import File, Image, Message, Part, ToolCall, ToolOutput, Transcript
from bridle.policy import Mode
from bridle.promises.agent import Permission, Room, ToolActivity
from bridle.promises.tool import ToolResult
from bridle.usage import Usage

if TYPE_CHECKING:
    from bridle.promises.agent import BaseAgent

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(enc_hook=str).encode
_BREATH = 16  # pieces of text after which others have their turn
_MOST_QUOTED = 2000  # characters of an event that an agent cannot say


class Assignment(Struct):
    """What an agent is to do, beside what every turn is handed."""

    agent: "BaseAgent"
    session_id: str
    number: int
    root: str
    history: History
    deadline: float | None = None
    prompts: tuple[Message, ...] = ()
    goes_on: bool = False  # was it parked before?
    steer: Callable[[], tuple[Message, ...]] = tuple  # prompts that were sent meanwhile
    translate: Translate | None = None  # its tools' names, as ours

    @property
    def name(self) -> str:
        """What the log calls the agent."""
        found = getattr(self.agent, "name", "")
        return found if isinstance(found, str) and found else type(self.agent).__name__


class LentSession:
    """One turn's view of its session, lent to the agent that carries it."""

    def __init__(self, turn: TurnContext, given: Assignment, caller: AgentCaller) -> None:
        self.prompt: tuple[Part, ...] = ()  # as it was sent, with its pictures
        self.day: DayRoom | None = None
        self._turn = turn
        self._given = given
        self._caller = caller
        self._replies = Replies(turn.emit, given.history, turn.redactor)
        self._words = Words(given.translate, given.root, lambda: turn.tools)
        self._voice = ToolEmitter(self._take)
        self._names: dict[str, str] = {}  # the agent's own ids of calls: how the log calls them
        self._streams = False  # does the agent emit its text itself?
        self._late: set[asyncio.Task[None]] = set()  # what the turn still waits for
        self._steps = turn.budget.steps  # of the turn before it was parked
        self._checking = False  # is the day's account being looked at?
        self._chunks = 0
        self._closed = False
        self.has_usage = self.has_cost = False  # did the agent say so, on its way?
        self.used = Usage()  # by what its replies say, should it report nothing else

    @property
    def id(self) -> str:
        """The session's id."""
        return self._given.session_id

    @property
    def working_directory(self) -> str:
        """The root of the workspace."""
        return self._given.root

    @property
    def mode(self) -> Mode:
        """The session's mode, as it is now."""
        return self._turn.mode()

    @property
    def system(self) -> str:
        """What the model is to be told of its work beside the agent's own words."""
        return self._turn.system

    @property
    def room(self) -> Room:
        """What this turn may still use."""
        return room_of(self._turn.budget, self._turn.budget.before, self._given.deadline)

    @property
    def messages(self) -> Transcript:
        """The conversation so far, as the log has it, for an agent that has none of its own."""
        return self._given.history.transcript

    @property
    def claude_session_id(self) -> str | None:
        """The agent's own conversation, as the log remembers it."""
        return self._attached.session_id or None

    @claude_session_id.setter
    def claude_session_id(self, value: str | None) -> None:
        self._attach(str(value or ""), self._attached.state)

    @property
    def state(self) -> dict[str, Any]:
        """What else the agent wants to find again: a copy; to set it is to have it recorded."""
        return dict(self._attached.state)

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        copied = msgspec.json.decode(_encode(value), type=dict[str, Any])
        self._attach(self._attached.session_id, copied)

    @property
    def _attached(self) -> AgentAttached:
        name = self._given.name
        return self._given.history.attached.get(name) or AgentAttached(name)

    def attach(self) -> None:
        """Say that this agent carries the turns from here on, if that was not so."""
        if self._given.name not in self._given.history.attached:
            self._turn.emit(AgentAttached(self._given.name))

    def _attach(self, session_id: str, state: dict[str, Any]) -> None:
        found = AgentAttached(self._given.name, session_id, state)
        if found != self._attached:
            self._voice(found)

    def emit(self, event: Event) -> None:
        """Have this recorded and shown. From any thread; after the turn nothing is heard."""
        self._voice(event)

    async def can_use_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> Permission:
        """Ask the gate; where it says yes, the call's intent is on disk."""
        if self.is_over:
            await asyncio.sleep(0)  # one that asks again and again is to hear its cancel
            return Permission(False, OVER, stops=True)
        try:
            spoken = self._words.ours(str(name), arguments)
            call = self._asked_for(spoken.name, spoken.arguments, _call_id(context))
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            return Permission(False, f"not run: its arguments cannot be read: {error}")
        permission = await self._caller.permit(call)
        changed = permission.updated_input
        if permission and changed is None and call.arguments != spoken.arguments:
            changed = call.arguments
        if changed is not None:
            permission = msgspec.structs.replace(permission, updated_input=spoken.back(changed))
        return permission

    async def call(
        self, name: str, arguments: dict[str, Any], call_id: str = "", *, anew: bool = False
    ) -> ToolOutput:
        """Have our tool of that name run, through the gate: its one result."""
        if self.is_over:
            await asyncio.sleep(0)
            return ToolOutput(call_id, OVER, is_error=True, name=str(name), outcome="refused")
        if anew:
            self._caller.begin_anew()
        known = self._names.get(call_id, call_id)
        if self._caller.is_allowed(known, str(name), arguments):  # asked about already
            self._replies.note_read()
            return await self._caller.carry_out(known)
        try:
            call = self._asked_for(name, arguments, call_id)
        except (TypeError, ValueError, RecursionError) as error:
            said = f"not run: its arguments cannot be read: {error}"
            return ToolOutput(call_id, said, is_error=True, name=str(name), outcome="invalid")
        output = await self._caller.call_tool(call)
        self._replies.note_read()
        return output

    def _asked_for(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolCall:
        """The call as the log has it, with arguments that nobody else holds."""
        if self._turn.sources:
            refresh_tools(self._turn)
        copied = msgspec.json.decode(_encode(arguments), type=dict[str, Any])
        call = self._replies.ask_for(str(name), copied, call_id)
        self._names[call_id or call.id] = call.id
        self.end_if_reached()
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
        """Say what came of a call, the first word stands: what hooks have added to it."""
        given, other = (data, None) if ok else (None, data)
        result = ToolResult(ok, str(text), given, other, tuple(media))
        if self._closed:
            return ""
        await self._finish(call_id, result)
        return self._caller.added(self._names.get(call_id, call_id))

    async def _finish(self, call_id: str, result: ToolResult) -> None:
        if await self._caller.finish(self._names.get(call_id, call_id), result):
            self._replies.note_read()
        else:
            self._answer_unasked(call_id, result)

    def _answer_unasked(self, call_id: str, result: ToolResult) -> None:
        """A result of a call that did not pass the gate, or was answered before."""
        name = self._names.get(call_id, call_id)
        if (call := self._replies.announced.pop(name, None)) is not None:
            self._caller.answer(call, result)
            self._replies.note_read()
        elif not (self._caller.knows(name) or self.is_over):
            said = "a result came for a call that nobody knows"
            self._turn.emit(TraceEvent("stray_result", {"callId": call_id, "message": said}))

    async def on_text_chunk(self, text: str) -> None:
        """Some more text, from an agent that does not emit it itself."""
        if isinstance(text, str) and text and not (self._streams or self.is_over):
            self._replies.stream(TextDelta(text))
        self._chunks += 1
        if self._chunks % _BREATH == 0:  # whoever waits for nothing else lets others run here
            await asyncio.sleep(0)

    async def on_tool_activity(self, activity: ToolActivity | None) -> None:
        """What the agent works with now."""
        name, words = getattr(activity, "tool_name", ""), getattr(activity, "description", "")
        self._voice(AgentActivity(str(name or ""), str(words or "")))

    @property
    def is_over(self) -> bool:
        """Is nothing heard any more but what the agent has used?"""
        return self._closed or self._caller.over.done()

    async def settle(self) -> None:
        """Wait for results that hooks and undo still look at; nothing more is heard after them."""
        self._closed = True
        if self._late:
            await asyncio.wait(self._late)

    async def end_reply(self, content: str) -> None:
        """Record what the agent has said as a reply."""
        if self._late:
            await asyncio.wait(self._late)
        self._replies.conclude(content)

    def begin_answer(self) -> None:
        """Another answer follows: its text and its usage count by themselves."""
        self._replies.begin_answer()
        self.has_usage = self.has_cost = False
        self.used = Usage()

    def close(self, content: str, reason: StopReason) -> None:
        """The agent is done: its last words, and then silence."""
        self._voice.close()
        for call in self._replies.announced.values():  # it never asked, and did not say
            self._caller.lose(call)
        self._replies.conclude(content, reason)

    def has_said(self, content: str) -> bool:
        """Is this in the conversation already?"""
        return self._replies.has_said(content)

    def remember(self, session_id: str | None) -> None:
        """The agent's own conversation, as its response names it."""
        if session_id and session_id != self._attached.session_id:
            self._turn.emit(AgentAttached(self._given.name, session_id, self._attached.state))

    def _take(self, event: Any) -> None:
        """One thing that the agent says."""
        if isinstance(event, UsageReported):
            self.spend(event)
        elif isinstance(event, AgentAttached) and event.agent == self._given.name:
            self._turn.emit(event)
        elif isinstance(event, ToolResultEvent):
            if not self._closed:
                self._report(event.output)
        elif not self.is_over:  # what it says of being stopped is no news
            self._hear(event)

    def _hear(self, event: Any) -> None:
        match event:
            case TextDelta() | ThinkingDelta():
                self._streams |= isinstance(event, TextDelta)
                self._replies.stream(event)
            case ResponseCompleted():
                self._replies.add(self._words.reply(event))
                self.used = added_up(self.used, event.usage)
                self.end_if_reached()
            case ToolCallReady():
                self._replies.note_ready(event.call)
                self._turn.emit(event)
            case TodosChanged() | Streamed():
                if isinstance(event, ToolCallStarted):
                    self._replies.note_begun(event.call_id)
                self._turn.emit(event)
            case _:
                self._refuse(event)

    def spend(self, report: UsageReported) -> None:
        """What the agent has used, as it says; a price that it does not know is unknown."""
        report = believable(report)
        self.has_usage = True
        self._replies.note_read()
        self.has_cost |= report.cost is not None
        self._turn.budget.spend(report.usage, report.cost, report.model)
        self._turn.emit(msgspec.structs.replace(report, priced=True, purpose="turn"))
        self.end_if_reached()
        if self._turn.budget.day is not None and not self._checking:
            self._later(self._check_day())

    async def _check_day(self) -> None:
        """Other sessions may have used the rest of the day meanwhile."""
        self._checking = True
        try:
            if self.day is not None:
                await self.day.check()
        except BudgetReached as limit:
            self._caller.end(Ending("budget", limit.message, limit.hint))
        finally:
            self._checking = False

    def end_if_reached(self, ahead: int = 0) -> None:
        """Where a limit is reached, the turn is over. `ahead`: steps that are to come."""
        budget = self._turn.budget
        budget.steps = self._steps + self._replies.count
        said, hint = reached(budget, budget.before, ahead)
        if said:
            self._caller.end(Ending("budget", said, hint))

    def _refuse(self, event: Any) -> None:
        """An agent says what it does; it does not write other facts into the log."""
        said, redactor = repr(event), self._turn.redactor
        quoted = (said if redactor is None else redactor.text(said))[:_MOST_QUOTED]
        self._turn.emit(TraceEvent("unknown_event", quoted))

    def _report(self, output: ToolOutput) -> None:
        """A result that was emitted: hooks and undo may still have to look at it."""
        ok, data = not output.is_error, output.data
        given, other = (data, None) if ok else (None, data)
        result = ToolResult(ok, output.text, given, other, output.media)
        if self._turn.middleware is not None:
            self._later(self._finish(output.call_id, result))
        elif self._caller.finish_plainly(self._names.get(output.call_id, output.call_id), result):
            self._replies.note_read()
        else:
            self._answer_unasked(output.call_id, result)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done beside what the agent does; its turn waits for it."""
        task = asyncio.ensure_future(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)


def _call_id(context: Any) -> str:
    """The call's id, as it was handed in."""
    if isinstance(context, dict):
        context = context.get("tool_use_id", "")
    found = context if isinstance(context, str) else getattr(context, "tool_use_id", "")
    return found if isinstance(found, str) else ""
