"""The promise every agent keeps that carries turns, and what it is handed. Public as `agents/base`.

An agent knows a prompt, a session and three callbacks. It does not know the engine, the log or the
face. What it does by its own means it asks about first (`can_use_tool`); what it has our tools do
(`session.call`) is asked about for it.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from bridle.events import Event
from bridle.messages import File, Image, ToolOutput
from bridle.policy import Mode


class AgentResponse(Struct, frozen=True):
    """What came of a prompt. `session_id` is the agent's own; `cost` is what this run cost."""

    content: str
    session_id: str | None = None
    cost: float = 0.0
    duration_ms: int = 0
    num_turns: int = 0
    tools_used: list[str] = field(default_factory=list)
    is_error: bool = False


class ToolActivity(Struct, frozen=True):
    """A tool that the agent is using now; `None` in its place means that none is running."""

    tool_name: str
    description: str


class Permission(Struct, frozen=True):
    """What the gate says of a call: true where it may run, and its intent is on disk.

    Where a hook changed the call, `updated_input` is what is to be run instead. `message` says why
    not, for the model; `word` is what the person added. `stops`: there is no going on after it.
    """

    allowed: bool
    message: str = ""
    updated_input: dict[str, Any] | None = None
    call_id: str = ""
    word: str = ""
    stops: bool = False

    def __bool__(self) -> bool:
        return self.allowed

    @property
    def behavior(self) -> Literal["allow", "deny"]:
        """The same in the words of the Claude Agent SDK."""
        return "allow" if self.allowed else "deny"


class Room(Struct, frozen=True):
    """What a turn may still use; None is no limit. `deadline` is in the event loop's time."""

    steps: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    deadline: float | None = None


class CanUseTool(Protocol):
    """Asks the gate whether a call of the agent's own may run, and waits for a person if need be.

    `name` and `arguments` are those of our tool of the same kind where there is one (`shell`,
    `edit`, `write` …), so that it is judged by what it does; what has another name is asked about.
    `context` is the call's id, or has it as `tool_use_id`.
    """

    async def __call__(
        self, name: str, arguments: dict[str, Any], context: Any = None, /
    ) -> Permission: ...


OnTextChunk = Callable[[str], Coroutine[Any, Any, None]]
OnToolActivity = Callable[[ToolActivity | None], Coroutine[Any, Any, None]]


class AgentSession(Protocol):
    """The session as an agent sees it. Somebody else's may have the first four alone."""

    @property
    def id(self) -> str: ...
    @property
    def working_directory(self) -> str: ...
    @property
    def mode(self) -> Mode: ...

    claude_session_id: str | None
    """The agent's own conversation, as the log remembers it; to set it is to have it recorded."""

    state: dict[str, Any]
    """What else the agent wants to find again; to set it is to have it recorded."""

    @property
    def system(self) -> str:
        """What the model is to be told of its work beside the agent's own words."""
        ...

    @property
    def room(self) -> Room:
        """What this turn may still use."""
        ...

    def emit(self, event: Event) -> None:
        """Have this recorded and shown: what it streams, thinks, uses, and its whole replies."""
        ...

    async def call(
        self, name: str, arguments: dict[str, Any], call_id: str = "", *, anew: bool = False
    ) -> ToolOutput:
        """Have our tool of that name run, through the gate: its one result, which is recorded.

        Our shell goes on in the folder in which its last command ended; `anew`: in the root.
        """
        ...

    async def finish(
        self,
        call_id: str,
        text: str,
        *,
        ok: bool = True,
        data: Any = None,
        media: Sequence[Image | File] = (),
    ) -> str:
        """Say what came of a call that was allowed. One of which nothing is said is unknown.

        What comes back is for the model to read after the result, such as a hook's word.
        """
        ...


@runtime_checkable
class BaseAgent(Protocol):
    """Carries a turn from its prompt to its end."""

    async def execute(
        self,
        prompt: str,
        session: Any,
        *,
        can_use_tool: Callable[..., Any] | None = None,
        on_text_chunk: OnTextChunk | None = None,
        on_tool_activity: OnToolActivity | None = None,
    ) -> AgentResponse:
        """Run the prompt to its end. `session` is an `AgentSession`, or looks like one."""
        ...

    async def cancel(self, session_id: str) -> None:
        """End what runs for that session, soon; `execute` then returns, or raises."""
        ...

    async def shutdown(self) -> None:
        """Leave nothing behind: no process, no connection, no task."""
        ...
