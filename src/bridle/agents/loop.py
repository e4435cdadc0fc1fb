"""Our own loop as an agent, for code that is written to the agent protocol.

It wraps an engine: its model, its tools, its rules. If the session is one of bridle's (it has
`call`), every tool call becomes a call of that session, which judges, runs and records it, and
nothing is stored here. For any other session the engine's own gate decides, `can_use_tool` is asked
about every call that passed it, and the engine's log holds the conversation.
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
from bridle.protocols.agent import (
    AgentResponse,
    CanUseTool,
    OnTextChunk,
    OnToolActivity,
    ToolActivity,
)
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Record
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.stores.memory_store import MemoryStore

_FORWARDED = (
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


class LoopAgent:
    """Runs turns with an engine's model and tools. Whoever made the engine closes it."""

    name = "loop"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running: dict[str, Session] = {}
        self._inner_ids: dict[str, str] = {}  # of sessions that are not bridle's, by their ids

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
        started = time.monotonic()
        output = _Output(session, on_text_chunk, on_tool_activity)
        if output.is_ours:
            engine, inner = await self._open_inside(session, output)
        else:
            engine, inner = await self._open_alone(session, can_use_tool, output)
            self._inner_ids[session.id] = inner.id
        self._running[session.id] = inner
        output.attach(inner)
        forwarding = asyncio.ensure_future(output.forward())
        try:
            result = await engine.run(getattr(session, "prompt", None) or prompt, session=inner)
            await output.wait_for(inner.seq)
        finally:
            self._running.pop(session.id, None)
            forwarding.cancel()
            try:
                with suppress(asyncio.CancelledError):
                    await forwarding  # raises what a callback raised
            finally:
                await inner.close()
        return _response(result, output, time.monotonic() - started)

    async def cancel(self, session_id: str) -> None:
        """Interrupt the turn of that session."""
        if (inner := self._running.get(session_id)) is not None:
            await inner.interrupt(by="agent")

    async def shutdown(self) -> None:
        """End every turn; the engine itself is not ours to close."""
        for inner in list(self._running.values()):
            await inner.close()

    async def _open_inside(self, session: Any, output: "_Output") -> tuple[Engine, Session]:
        """Return an engine whose tools are calls of one of bridle's sessions, with its history."""
        parts = self._engine.parts
        engine = Engine(
            parts.changed(
                tools=[_SessionTool(tool, output) for tool in parts.offered],
                store=MemoryStore(),
                mode="auto",  # the outer session judges every call
                rules=(),
                hooks=None,
                judge=None,
                undo=None,
                machine=None,
                agent=None,
                sources=(),
            )
        )
        inner = await engine.session()
        if earlier := _without_last_prompts(session.messages):
            inner.add_history(earlier)
        return engine, inner

    async def _open_alone(
        self, session: Any, can_use_tool: Any, output: "_Output"
    ) -> tuple[Engine, Session]:
        """Return an engine with the same gate, and the conversation of an outside session."""
        parts = self._engine.parts
        changes: dict[str, Any] = {"mode": getattr(session, "mode", parts.mode), "agent": None}
        if can_use_tool is not None:
            asking = [_AskingTool(tool, can_use_tool) for tool in parts.offered]
            changes |= {"tools": asking, "approver": _approve}
        engine = Engine(parts.changed(**changes))
        known = getattr(session, "claude_session_id", None) or self._inner_ids.get(session.id)
        if known:
            try:
                return engine, await engine.session(known)
            except UnknownSession:
                message = "the earlier conversation no longer exists; a new one was started"
                output.emit(TraceEvent("stale_resume", {"sessionId": known, "message": message}))
        return engine, await engine.session()


async def _approve(question: ApprovalAsked) -> bool:
    """Approve what the gate asks about: `can_use_tool` is asked next, as about every call."""
    return True


class _WrappedTool:
    """A tool of the engine that runs with a permission from outside."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.name = tool.name
        self.description = tool.description
        self.parameters = tool.parameters
        self.policy = tool.policy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)  # what else the gate asks a tool for, such as `touched`


class _SessionTool(_WrappedTool):
    """A tool that is a call of the outer session."""

    def __init__(self, tool: Tool, output: "_Output") -> None:
        super().__init__(tool)
        self._output = output
        self.policy = ToolPolicy(tool.policy.read_only)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Have the outer session run it."""
        return await self._output.call(self.name, arguments, context.call_id)


class _AskingTool(_WrappedTool):
    """A tool that runs if `can_use_tool` allows it."""

    def __init__(self, tool: Tool, can_use_tool: Any) -> None:
        super().__init__(tool)
        self._can_use_tool = can_use_tool

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Ask, and run it."""
        answer = await self._can_use_tool(self.name, arguments, context.call_id)
        if answer is not True and getattr(answer, "behavior", "") != "allow":
            message = getattr(answer, "message", "") or "no"
            return ToolResult.failure(f"not run: {message}")
        changed = getattr(answer, "updated_input", None)
        if changed is not None and changed != arguments:  # the gate has not judged these
            return ToolResult.failure(f"not run: it may run only with other arguments: {changed}")
        return await self._tool.execute(arguments, context)


class _Output:
    """Forwards what our loop does to the outer session and the callbacks."""

    def __init__(
        self, session: Any, on_text: OnTextChunk | None, on_activity: OnToolActivity | None
    ) -> None:
        self.is_ours = callable(getattr(session, "call", None))  # is it one of bridle's?
        self.tools_used: list[str] = []
        self.steps = 0
        self._session = session
        self._on_text = on_text
        self._on_activity = on_activity
        self._inner: Session | None = None
        self._seq = 0
        self._progress = asyncio.Event()
        self._is_over = False

    def attach(self, inner: Session) -> None:
        """Forward what this session records from now on."""
        self._inner, self._seq = inner, inner.seq

    async def forward(self) -> None:
        """Forward every record until the session is closed."""
        assert self._inner is not None
        try:
            async with aclosing(self._inner.subscribe(self._seq)) as records:
                async for record in records:
                    await self._forward_record(record)
                    self._seq = record.seq
                    self._progress.set()
        finally:  # also if a callback raised: nothing is forwarded any more
            self._is_over = True
            self._progress.set()

    async def wait_for(self, seq: int) -> None:
        """Wait until everything up to that record was forwarded, or forwarding has ended."""
        while self._seq < seq and not self._is_over:
            self._progress.clear()
            await self._progress.wait()

    async def call(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolResult:
        """Make a call of the outer session, after what the model said before it."""
        await self.wait_for(self._inner.seq if self._inner is not None else 0)
        output = await self._session.call(name, arguments, call_id)
        if output.is_error:
            return ToolResult(False, output.text, diagnostics=output.data, media=output.media)
        return ToolResult(True, output.text, data=output.data, media=output.media)

    def emit(self, event: Any) -> None:
        """Have the outer session record an event, if it can."""
        if callable(emit := getattr(self._session, "emit", None)):
            emit(event)

    async def _forward_record(self, record: Record) -> None:
        event = record.event
        if isinstance(event, _FORWARDED):
            self.emit(event)
        match event:
            case TextDelta(text=text) if self._on_text is not None and not self.is_ours:
                await self._on_text(text)
            case ResponseCompleted():
                self.steps += 1
            case CallIntended(name=name):
                if name not in self.tools_used:
                    self.tools_used.append(name)
                if self._on_activity is not None:
                    await self._on_activity(ToolActivity(name, f"running {name}"))
            case ToolResultEvent() if self._on_activity is not None:
                await self._on_activity(None)


def _without_last_prompts(messages: Any) -> list[Message]:
    """Return the conversation without the prompts at its end, which are sent again."""
    earlier = list(messages)
    while earlier and earlier[-1].role == "user":
        earlier.pop()
    return earlier


def _response(result: TurnResult, output: _Output, seconds: float) -> AgentResponse:
    failed = result.reason not in ("done", "interrupted")
    return AgentResponse(
        content=(result.detail or result.reason) if failed else result.text,
        session_id=None if output.is_ours else result.session_id,
        cost=result.metrics.cost or 0.0,
        duration_ms=int(seconds * 1000),
        num_turns=output.steps,
        tools_used=output.tools_used,
        is_error=failed,
    )
