"""What a turn of an ACP agent uses of bridle: the session that it was handed, and the callbacks.

Somebody else's session may have an id, a folder, a mode and a place for the agent's own id, and
nothing more. What it cannot do is left out here, and without a gate nothing is allowed.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bridle.events import Event, TextDelta, TraceEvent
from bridle.messages import ToolOutput
from bridle.protocols.agent import OnTextChunk, OnToolActivity, Permission, ToolActivity

_NO_GATE = "no one can be asked here, so nothing is allowed"


class Host:
    """The session and the callbacks of one turn."""

    def __init__(
        self,
        session: Any,
        can_use_tool: Callable[..., Any] | None,
        on_text_chunk: OnTextChunk | None,
        on_tool_activity: OnToolActivity | None,
    ) -> None:
        self.session = session
        self.root = str(session.working_directory)
        self._can_use_tool = can_use_tool
        self._on_text_chunk = on_text_chunk
        self._on_tool_activity = on_tool_activity
        self._emit: Callable[[Event], None] | None = getattr(session, "emit", None)

    async def emit(self, event: Event) -> None:
        """Have the event recorded and shown."""
        if self._emit is not None:
            self._emit(event)
        elif isinstance(event, TextDelta) and self._on_text_chunk is not None:
            await self._on_text_chunk(event.text)

    async def notify(self, kind: str, message: str, **detail: Any) -> None:
        """Show the person a message."""
        await self.emit(TraceEvent(kind, {**detail, "message": message}))

    async def show_activity(self, activity: ToolActivity | None) -> None:
        """Show which tool is running."""
        if self._on_tool_activity is not None:
            await self._on_tool_activity(activity)

    async def request_permission(
        self, name: str, arguments: dict[str, Any], call_id: str
    ) -> Permission:
        """Ask the gate whether the agent may do this by itself.

        Somebody else's callback may answer with another class, or with a plain bool.
        """
        if self._can_use_tool is None:
            return Permission(False, _NO_GATE, call_id=call_id)
        answer = await self._can_use_tool(name, arguments, call_id)
        if isinstance(answer, Permission):
            return answer if answer.call_id else replace(answer, call_id=call_id)
        behavior = getattr(answer, "behavior", None)
        return Permission(behavior == "allow" if behavior else bool(answer), call_id=call_id)

    async def run_tool(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolOutput:
        """Run one of our own tools."""
        call = getattr(self.session, "call", None)
        if call is None:
            return ToolOutput(call_id, _NO_GATE, is_error=True, name=name)
        output: ToolOutput = await call(name, arguments, call_id, anew=True)
        return output

    async def finish(self, call_id: str, text: str, *, ok: bool = True, data: Any = None) -> None:
        """Report the result of a call that was allowed."""
        if (finish := getattr(self.session, "finish", None)) is not None:
            await finish(call_id, text, ok=ok, data=data)

    @property
    def state(self) -> dict[str, Any]:
        """What the session stores for this agent: a copy."""
        return dict(getattr(self.session, "state", None) or {})

    def update_state(self, **changes: Any) -> None:
        """Store these values with the session."""
        state = self.state
        if hasattr(self.session, "state") and any(state.get(k) != v for k, v in changes.items()):
            self.session.state = {**state, **changes}
