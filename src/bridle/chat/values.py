"""Values that go into a chat agent and its service and come out of them. Frozen, no I/O.

Messages of the history have one of two roles. Tool calls in the history are only displayed: they
are neither run nor trusted.
"""

import hashlib
import inspect
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from bridle.errors import ConfigError

_log = logging.getLogger(__name__)

ROLES = ("user", "assistant")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class MessageHistory:
    """One message of the conversation so far."""

    role: str
    content: str
    timestamp: datetime = field(default_factory=_now)
    tool_calls: tuple[dict[str, Any], ...] | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"a message is from 'user' or 'assistant', not from {self.role!r}")
        if not isinstance(self.content, str):
            raise TypeError(f"a message's content is text, not {type(self.content).__name__}")
        object.__setattr__(self, "timestamp", _aware(self.timestamp))
        if self.tool_calls is not None:
            object.__setattr__(self, "tool_calls", tuple(dict(one) for one in self.tool_calls))


def check_session_factory(factory: object) -> None:
    """Is it a function that returns a session? Raise `ConfigError`, before anybody waits for it."""
    if not callable(factory):
        raise ConfigError(
            f"session_factory has to be a function that returns a Session, not {factory!r:.80}",
            hint="Hand in the function itself, such as get_session, without calling it.",
        )
    made = inspect.unwrap(factory)
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if any(is_one(made) for is_one in kinds):
        raise ConfigError(
            f"session_factory {made.__name__!r} yields or awaits: it does not return a Session",
            hint="Hand in a plain function, such as: lambda: Session(engine)",
        )


@dataclass(frozen=True)
class AgentContext:
    """Who asks, in which conversation, and what was said before (oldest first).

    `turn_id` names the turn: a turn that is tried again under the same name applies nothing twice.
    Empty, each run is a turn of its own. `retried` says that a worker may have begun it before.
    `timezone` and `language` are the user's; an empty language is the one that the message is
    written in, as far as that can be told.
    """

    user_id: str
    conversation_id: str
    message_history: tuple[MessageHistory, ...] = ()
    turn_id: str = ""
    timezone: str = "UTC"
    language: str = ""
    now: datetime | None = None
    retried: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.user_id, str) or not self.user_id:
            raise ValueError("a context needs the id of the user whose request it is")
        object.__setattr__(self, "message_history", tuple(self.message_history))

    @classmethod
    def from_request(
        cls, user_id: str, conversation_id: str, messages: Sequence[Mapping[str, Any]]
    ) -> "AgentContext":
        """The context of a request. What is no message of a user or an assistant is left out."""
        return cls(user_id, conversation_id, tuple(_messages(messages)))

    def __repr__(self) -> str:
        """Without the user's id and words, which have no place in a log."""
        return f"AgentContext(user_id='[redacted]', messages={len(self.message_history)})"


@dataclass(frozen=True)
class ToolCallRecord:
    """A tool call that was made: the model's parameters, what came back, how long it took."""

    tool_name: str
    parameters: dict[str, Any]
    result: dict[str, Any]
    duration_ms: int = 0

    @property
    def ok(self) -> bool:
        """Did it do what it was asked for?"""
        return self.result.get("success") is True

    @property
    def code(self) -> str:
        """The code of the error; empty where there is none."""
        error = self.result.get("error")
        return str(error.get("code", "")) if isinstance(error, dict) else ""

    @property
    def error_message(self) -> str:
        """The sentence that says why not; empty where it worked."""
        error = self.result.get("error")
        return str(error.get("message", "")) if isinstance(error, dict) else ""

    @property
    def data(self) -> Any:
        """What came back, where it worked."""
        return self.result.get("data")


@dataclass(frozen=True)
class AgentResult:
    """What a run came to. `dollars` is what the model cost; None where its price is unknown."""

    success: bool
    response: str
    tool_calls: tuple[ToolCallRecord, ...] = ()
    error: str | None = None
    dollars: float | None = 0.0

    @property
    def has_tool_calls(self) -> bool:
        """Was any tool called?"""
        return len(self.tool_calls) > 0


class TurnTimeout(TimeoutError):
    """The time of a turn is over. `result` holds what was done until then, and says it."""

    def __init__(self, result: AgentResult) -> None:
        super().__init__(result.response)
        self.result = result

    @property
    def tool_calls(self) -> tuple[ToolCallRecord, ...]:
        """The calls that were made before the time was over."""
        return self.result.tool_calls


def _messages(given: Iterable[Mapping[str, Any]]) -> Iterable[MessageHistory]:
    for one in given:
        role, content = one.get("role"), one.get("content")
        if role not in ROLES or not isinstance(content, str):
            _log.warning("a message of the history was left out: it is from neither side")
            continue
        calls = one.get("tool_calls") if role == "assistant" else None
        kept = tuple(dict(call) for call in calls or () if isinstance(call, Mapping))
        yield MessageHistory(role, content, _aware(one.get("timestamp")), kept or None)


def _aware(moment: Any) -> datetime:
    """A moment with its zone: one without is UTC, as it always was in databases."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        return _now()
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


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
class Locale:
    """Where and in which language the user is, as far as it is known."""

    timezone: str = "UTC"
    language: str = ""


@dataclass(frozen=True)
class IncomingMessage:
    """One message as it came in."""

    user_id: str = field(repr=False)
    message: str = field(repr=False)
    conversation_id: str | None = None
    key: str = ""
    setting: Locale = Locale()

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
