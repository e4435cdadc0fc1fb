"""The protocol of agents that run turns, and what they get. Public as `bridle.agents.base`.

An agent knows a prompt, a session and three callbacks. It does not know the engine, the log or the
interface. What it does by its own means it asks about first (`can_use_tool`); what it has our tools
do (`session.call`) goes through the gate by itself.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from bridle.events import Event
from bridle.messages import File, Image, ToolOutput
from bridle.policy import Mode


class AgentResponse(Struct, frozen=True):
    """The result of a prompt. `session_id` is the agent's own; `cost` is that of this run."""

    content: str
    session_id: str | None = None
    cost: float = 0.0
    duration_ms: int = 0
    num_turns: int = 0
    tools_used: list[str] = field(default_factory=list)
    is_error: bool = False


class ToolActivity(Struct, frozen=True):
    """A tool that the agent is using now; `None` instead of it means that none is running."""

    tool_name: str
    description: str


class Permission(Struct, frozen=True):
    """The gate's answer about a call. It is true if the call may run; its intent is durable then.

    If a hook changed the call, `updated_input` has the arguments to run it with. `message` says why
    it may not run, for the model; `word` is what the person added. `stops`: the turn is over.
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
        """The same in the terms of the Claude Agent SDK."""
        return "allow" if self.allowed else "deny"


class RemainingBudget(Struct, frozen=True):
    """What a turn may still use; None means no limit. `deadline` is in the event loop's time."""

    steps: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    deadline: float | None = None


class CanUseTool(Protocol):
    """Asks the gate whether a call of the agent's own may run, and waits for a person if needed.

    `name` and `arguments` are those of our tool of the same kind if there is one (`shell`, `edit`,
    `write` …), so that it is judged by what it does; any other name is asked about. `context` is
    the call's id, or has it as `tool_use_id`.
    """

    async def __call__(
        self, name: str, arguments: dict[str, Any], context: Any = None, /
    ) -> Permission: ...


OnTextChunk = Callable[[str], Coroutine[Any, Any, None]]
OnToolActivity = Callable[[ToolActivity | None], Coroutine[Any, Any, None]]


class AgentSession(Protocol):
    """The session as an agent sees it. Somebody else's may have only the first four."""

    @property
    def id(self) -> str: ...
    @property
    def working_directory(self) -> str: ...
    @property
    def mode(self) -> Mode: ...

    claude_session_id: str | None
    """The id of the agent's own conversation, stored in the log; assign to it to store another."""

    state: dict[str, Any]
    """What else the agent stores in the log; assign to it to store a new value."""

    @property
    def system(self) -> str:
        """The person's standing instructions, which go beside the agent's own system prompt."""
        ...

    @property
    def remaining(self) -> RemainingBudget:
        """What this turn may still use."""
        ...

    def emit(self, event: Event) -> None:
        """Have an event recorded and shown: streamed text, thoughts, usage, whole replies."""
        ...

    async def call(
        self, name: str, arguments: dict[str, Any], call_id: str = "", *, anew: bool = False
    ) -> ToolOutput:
        """Have our tool of that name run, through the gate, and return its one result.

        Our shell starts in the folder in which its last command ended; with `anew`, in the root.
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
        """Report the result of a call that was allowed. Without a report it is unknown.

        Return what the model is to read after the result, such as a hook's note.
        """
        ...


@runtime_checkable
class BaseAgent(Protocol):
    """Runs a turn from its prompt to its end."""

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
        """End the turn of that session soon; `execute` then returns, or raises."""
        ...

    async def shutdown(self) -> None:
        """End every process, connection and task."""
        ...
