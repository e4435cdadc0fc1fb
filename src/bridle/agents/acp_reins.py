"""What an ACP turn is held by: the session that it was handed, and the gate.

Somebody else's session may have an id, a folder, a mode and a place for the agent's own id, and
nothing more; what it cannot do is left out here, and where there is no gate nothing is allowed.
"""

from collections.abc import Callable
from typing import Any

from bridle.events import Event, TextDelta, TraceEvent
from bridle.messages import ToolOutput
from bridle.promises.agent import OnTextChunk, OnToolActivity, Permission, ToolActivity

NO_GATE = "nobody can be asked here, so nothing is allowed"


class Reins:
    """The session and the callbacks of one run."""

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

    async def say(self, event: Event) -> None:
        """Have it recorded and shown."""
        if self._emit is not None:
            self._emit(event)
        elif isinstance(event, TextDelta) and self._on_text_chunk is not None:
            await self._on_text_chunk(event.text)

    async def tell(self, kind: str, words: str, **detail: Any) -> None:
        """Tell the person something that they should know."""
        await self.say(TraceEvent(kind, {**detail, "message": words}))

    async def show(self, activity: ToolActivity | None) -> None:
        """Which tool is at work."""
        if self._on_tool_activity is not None:
            await self._on_tool_activity(activity)

    async def permit(self, name: str, arguments: dict[str, Any], call_id: str) -> Permission:
        """May the agent do this by its own means? Somebody else's gate may answer in their way."""
        if self._can_use_tool is None:
            return Permission(False, NO_GATE, call_id=call_id)
        found = await self._can_use_tool(name, arguments, call_id)
        if isinstance(found, Permission):
            return found if found.call_id else Permission(**_fields(found, call_id))
        behavior = getattr(found, "behavior", None)
        return Permission(behavior == "allow" if behavior else bool(found), call_id=call_id)

    async def run(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolOutput:
        """Have our tool run."""
        call = getattr(self.session, "call", None)
        if call is None:
            return ToolOutput(call_id, NO_GATE, is_error=True, name=name)
        output: ToolOutput = await call(name, arguments, call_id, anew=True)
        return output

    async def finish(self, call_id: str, text: str, *, ok: bool = True, data: Any = None) -> None:
        """What came of a call that was allowed."""
        if (finish := getattr(self.session, "finish", None)) is not None:
            await finish(call_id, text, ok=ok, data=data)

    @property
    def state(self) -> dict[str, Any]:
        """What was kept of this agent with the session."""
        return dict(getattr(self.session, "state", None) or {})

    def keep(self, **changes: Any) -> None:
        """Keep these, too."""
        state = self.state
        if hasattr(self.session, "state") and any(state.get(k) != v for k, v in changes.items()):
            self.session.state = {**state, **changes}


def _fields(found: Permission, call_id: str) -> dict[str, Any]:
    return {
        "allowed": found.allowed,
        "message": found.message,
        "updated_input": found.updated_input,
        "call_id": call_id,
        "word": found.word,
        "stops": found.stops,
    }
