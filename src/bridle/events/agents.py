"""What happens where another agent carries a turn, or a turn hands work to a child session."""

from typing import Any

from bridle.events.base import Reason, Recorded, Streamed
from bridle.usage import ExecutionMetrics


class AgentActivity(Streamed, frozen=True):
    """The agent works with this tool now; without a name, with none."""

    tool_name: str = ""
    description: str = ""


class AgentAttached(Recorded, frozen=True, tag="agent"):
    """From here on this agent carries the session's turns, in that conversation of its own.

    `session_id` is the agent's, empty where it has none, or has none any more. `state` is whatever
    else it wants to find again, such as what its conversation had cost so far.
    """

    agent: str
    session_id: str = ""
    state: dict[str, Any] = {}


class AgentResponded(Recorded, frozen=True, tag="agent_response"):
    """The agent's own account of a turn. `content` stands here where no message says it."""

    agent: str
    turn: int
    session_id: str = ""
    content: str = ""
    cost: float = 0.0
    duration_ms: int = 0
    num_turns: int = 0
    tools_used: tuple[str, ...] = ()
    is_error: bool = False


class ChildOf(Recorded, frozen=True, tag="child_of"):
    """This session was begun by a call of another one."""

    parent: str
    call_id: str = ""


class ChildStarted(Recorded, frozen=True, tag="child_start"):
    """A call handed work to a session of its own, whose log has the rest."""

    call_id: str
    session_id: str
    agent: str = ""
    prompt: str = ""
    mode: str = ""


class ChildEnded(Recorded, frozen=True, tag="child_end"):
    """... which is over; what it used is counted here, too."""

    call_id: str
    session_id: str
    reason: Reason
    metrics: ExecutionMetrics = ExecutionMetrics()
