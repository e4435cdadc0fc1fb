"""What goes into the chat service and what comes out of it. Plain values, no I/O."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from bridle.chat.values import AgentContext, AgentResult

T = TypeVar("T")


class Runner(Protocol):
    """Whoever answers one message, such as `AgentRunner`."""

    async def run(self, context: AgentContext, message: str) -> AgentResult:
        """Answer it. Called again with the same `context.turn_id`, it applies nothing twice."""
        ...


@dataclass(frozen=True)
class ServiceLimits:
    """Bounds of the service. Zero messages a minute or dollars a day: no limit.

    `lease` is how long a silent worker is believed in, `waiting` how many messages may stand in
    line for one conversation, `at_once` how many turns one process runs side by side, `attempts`
    how many workers may die over one message before it is answered with an apology. `keep_days` is
    for how long a message that was sent with a key can be sent again without running twice.
    """

    message: int = 10_000
    history: int = 20
    page: int = 100
    seconds: float = 30.0
    lease: float = 15.0
    waiting: int = 200
    at_once: int = 32
    accepted: int = 2_000
    attempts: int = 5
    messages_a_minute: int = 60
    dollars_a_day: float = 0.0
    keep_days: float = 30.0


@dataclass(frozen=True)
class Setting:
    """Where and in which language the user is, as far as it is known."""

    timezone: str = "UTC"
    language: str = ""


@dataclass(frozen=True)
class Asked:
    """One message as it came in."""

    user_id: str = field(repr=False)
    message: str = field(repr=False)
    conversation_id: str | None = None
    key: str = ""
    setting: Setting = Setting()

    @property
    def body(self) -> str:
        """A hash of what was asked: the same key may only come with the same."""
        whole = f"{self.conversation_id or ''}\0{self.message}"
        return hashlib.sha256(whole.encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """The answer to a message. `replayed`: it had been given before, for the same key."""

    response: str
    conversation_id: str
    message_id: str
    replayed: bool = False
    success: bool = True
    tool_calls: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class ConversationInfo:
    """One conversation of a list."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class MessageInfo:
    """One message of a conversation."""

    id: str
    role: str
    content: str
    created_at: datetime
    tool_calls: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list, and the cursor of the next part; empty where this was the last."""

    items: tuple[T, ...]
    next: str = ""
