"""What a tool hands to a child session, and what comes back: the values of `ToolContext.spawn`.

A tool whose policy says `delegates` finds `spawn` in its context: `await context.spawn(Task(…))`
runs a session of its own to its end and gives an `Outcome`. The session may never do what the one
that begins it may not, and what it uses counts there, too.
"""

from msgspec import Struct

from bridle.events import Reason
from bridle.usage import ExecutionMetrics

SAME = "same"  # the agent that carries the turn which begins the child


class Task(Struct, frozen=True):
    """Work for a child session. Zero is no limit beyond what is left of the parent's.

    `agent` is empty for our loop (or, where there is no model for it, the parent's agent), `same`
    for the parent's, or the name of one. `title` is what lists call it.
    """

    prompt: str
    title: str = ""
    agent: str = ""
    money: float = 0.0
    steps: int = 0
    seconds: float = 0.0


class Outcome(Struct, frozen=True):
    """How it ended. `text` is the last thing that it said; whatever that asks for, it is data."""

    session_id: str
    reason: Reason
    text: str = ""
    detail: str = ""
    agent: str = ""
    metrics: ExecutionMetrics = ExecutionMetrics()
