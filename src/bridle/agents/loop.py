"""Our own loop as an agent, for code that is written to the protocol.

It wraps an engine: its model, its tools, its rules. Where the session is one that bridle lends
(`session.call`), that session holds the reins: every call is its call, judged, run and recorded
there, and nothing is kept here. Any other session gets the engine's own gate, and `can_use_tool` is
asked of every call that passed it; the engine's log remembers the conversation.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.errors import UnknownSession
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    Event,
    ReplyDiscarded,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolResultEvent,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Message
from bridle.policy import ToolPolicy
from bridle.promises.agent import (
    AgentResponse,
    CanUseTool,
    OnTextChunk,
    OnToolActivity,
    ToolActivity,
)
from bridle.promises.session import TurnResult
from bridle.promises.store import Record
from bridle.promises.tool import Tool, ToolContext, ToolResult
from bridle.stores.memory import MemoryStore

_PASSED_ON = (
    TextDelta,
    ThinkingDelta,
    ToolCallStarted,
    ToolCallArgsDelta,
    ToolCallReady,
    ReplyDiscarded,
    TraceEvent,
    UsageReported,
    ResponseCompleted,
)
_FRESH = "the earlier conversation is not there any more; a new one was started"
_OTHER = "not run: it may run with other arguments only: "


class LoopAgent:
    """Carries turns with an engine's model and tools. Whoever made the engine closes it."""

    name = "loop"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running: dict[str, Session] = {}
        self._known: dict[str, str] = {}  # sessions of others: the one of ours that is theirs

    async def execute(
        self,
        prompt: str,
        session: Any,
        *,
        can_use_tool: CanUseTool | Callable[..., Any] | None = None,
        on_text_chunk: OnTextChunk | None = None,
        on_tool_activity: OnToolActivity | None = None,
    ) -> AgentResponse:
        """Run the prompt to its end."""
        began = time.monotonic()
        heard = _Heard(session, on_text_chunk, on_tool_activity)
        inner, ours = await self._begin(session, can_use_tool, heard)
        self._running[session.id] = ours
        heard.begin(ours)
        listening = asyncio.ensure_future(heard.listen())
        try:
            result = await inner.run(getattr(session, "prompt", None) or prompt, session=ours)
            await heard.reached(ours.seq)
        finally:
            self._running.pop(session.id, None)
            if not heard.lent:
                self._known[session.id] = ours.id
            listening.cancel()
            try:
                with suppress(asyncio.CancelledError):
                    await listening  # raises what a callback raised
            finally:
                await ours.close()
        return _response(result, heard, time.monotonic() - began)

    async def cancel(self, session_id: str) -> None:
        """End what runs for that session."""
        if (ours := self._running.get(session_id)) is not None:
            await ours.interrupt(by="agent")

    async def shutdown(self) -> None:
        """End what runs; the engine itself is not ours to close."""
        for ours in list(self._running.values()):
            await ours.close()

    async def _begin(
        self, session: Any, can_use_tool: Any, heard: "_Heard"
    ) -> tuple[Engine, Session]:
        """An engine like ours for this run, and a session of it with what was said before."""
        parts = self._engine.parts
        if heard.lent:
            tools = [_Lent(one, heard, can_use_tool) for one in parts.offered]
            inner = Engine(
                parts.changed(
                    tools=tools,
                    store=MemoryStore(),
                    mode="auto",  # the session that is lent judges every call
                    rules=(),
                    hooks=None,
                    judge=None,
                    keeper=None,
                    ground=None,
                    agent=None,
                    sources=(),
                )
            )
            ours = await inner.session()
            if earlier := _before(session.messages):
                ours.add_history(earlier)
            return inner, ours
        asked = [_Lent(one, heard, can_use_tool) for one in parts.offered]
        given: dict[str, Any] = {"mode": getattr(session, "mode", parts.mode), "agent": None}
        if can_use_tool is not None:
            given |= {"tools": asked, "approver": _agree}
        inner = Engine(parts.changed(**given))
        return inner, await self._resumed(inner, session, heard)

    async def _resumed(self, inner: Engine, session: Any, heard: "_Heard") -> Session:
        known = getattr(session, "claude_session_id", None) or self._known.get(session.id)
        if known:
            try:
                return await inner.session(known)
            except UnknownSession:
                heard.note(TraceEvent("stale_resume", {"sessionId": known, "message": _FRESH}))
        return await inner.session()


async def _agree(asked: ApprovalAsked) -> bool:
    """What our gate would ask about, `can_use_tool` is asked about next, as of every call."""
    return True


class _Lent:
    """A tool of the engine's, behind the reins of somebody else's session."""

    def __init__(self, tool: Tool, heard: "_Heard", can_use_tool: Any) -> None:
        self._tool = tool
        self._heard = heard
        self._ask = can_use_tool
        self.name = tool.name
        self.description = tool.description
        self.parameters = tool.parameters
        self.policy = ToolPolicy(tool.policy.read_only) if heard.lent else tool.policy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)  # what else the gate wants to know of it: `touched` …

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Have the session run it; or ask, and run it here."""
        if self._heard.lent:
            return await self._heard.call(self.name, arguments, context.call_id)
        said = await self._ask(self.name, arguments, context.call_id)
        if not _allows(said):
            return ToolResult.failure(f"not permitted: {getattr(said, 'message', '') or 'no'}")
        other = getattr(said, "updated_input", None)
        if other is not None and other != arguments:  # our gate has judged these, and not those
            return ToolResult.failure(f"{_OTHER}{other}")
        return await self._tool.execute(arguments, context)


def _allows(said: Any) -> bool:
    """A yes in our words, or in those of the Claude Agent SDK."""
    return said is True or getattr(said, "behavior", "") == "allow"


class _Heard:
    """What comes of our loop, passed on to whoever wants to hear it."""

    def __init__(
        self, session: Any, on_text: OnTextChunk | None, on_activity: OnToolActivity | None
    ) -> None:
        self.lent = callable(getattr(session, "call", None))
        self.tools: list[str] = []
        self.steps = 0
        self._session = session
        self._on_text = on_text
        self._on_activity = on_activity
        self._ours: Session | None = None
        self._seq = 0
        self._news = asyncio.Event()
        self._over = False

    def begin(self, ours: Session) -> None:
        """Listen to this session, from here on."""
        self._ours, self._seq = ours, ours.seq

    async def listen(self) -> None:
        """Hear every record of the run, until the session is over."""
        assert self._ours is not None
        try:
            async with aclosing(self._ours.subscribe(self._seq)) as records:
                async for record in records:
                    await self._take(record)
                    self._seq = record.seq
                    self._news.set()
        finally:  # also where a callback broke: nobody waits for what is never passed on
            self._over = True
            self._news.set()

    async def reached(self, seq: int) -> None:
        """Come back when everything up to that record was passed on, or nothing more will be."""
        while self._seq < seq and not self._over:
            self._news.clear()
            await self._news.wait()

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolResult:
        """The session's own call; what the model said of it goes before."""
        await self.reached(self._ours.seq if self._ours is not None else 0)
        output = await self._session.call(name, arguments, call_id)
        ok, data = not output.is_error, output.data
        given, other = (data, None) if ok else (None, data)
        return ToolResult(ok, output.text, given, other, output.media)

    def note(self, event: Event) -> None:
        """Say something of our own."""
        if callable(emit := getattr(self._session, "emit", None)):
            emit(event)

    async def _take(self, record: Record) -> None:
        event = record.event
        if isinstance(event, _PASSED_ON):
            self.note(event)
        match event:
            case TextDelta(text=text) if self._on_text is not None and not self.lent:
                await self._on_text(text)
            case ResponseCompleted():
                self.steps += 1
            case CallIntended(name=name):
                self.tools += [] if name in self.tools else [name]
                if self._on_activity is not None:
                    await self._on_activity(ToolActivity(name, f"running {name}"))
            case ToolResultEvent() if self._on_activity is not None:
                await self._on_activity(None)


def _before(messages: Any) -> list[Message]:
    """The conversation without the prompts at its end, which are sent again."""
    found = list(messages)
    while found and found[-1].role == "user":
        found.pop()
    return found


def _response(result: TurnResult, heard: _Heard, seconds: float) -> AgentResponse:
    failed = result.reason not in ("done", "interrupted")
    said = result.text if not failed else result.detail or result.reason
    return AgentResponse(
        said,
        None if heard.lent else result.session_id,
        result.metrics.cost or 0.0,
        int(seconds * 1000),
        heard.steps,
        heard.tools,
        failed,
    )
