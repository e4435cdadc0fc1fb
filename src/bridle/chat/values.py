"""Values that go into a chat agent and its service and come out of them. Frozen, no I/O.

Messages of the history have one of two roles. Tool calls in the history are only displayed: they
are neither run nor trusted.
"""

import hashlib
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """Raise `ConfigError` unless it is a function that returns a session."""
    if not callable(factory):
        raise ConfigError(
            f"session_factory must be a function that returns a Session, not {factory!r:.80}",
            hint="Pass the function itself, such as get_session, without calling it.",
        )
    made = inspect.unwrap(factory)
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if any(is_one(made) for is_one in kinds):
        raise ConfigError(
            f"session_factory {made.__name__!r} yields or awaits: it does not return a Session",
            hint="Pass a plain function, such as: lambda: Session(engine)",
        )


@dataclass(frozen=True)
class AgentContext:
    """The user, the conversation, and its messages so far (oldest first).

    A turn that is run again with the same `turn_id` applies no change twice. If it is empty, each
    run is a turn of its own. `retried` says that another worker may have begun the turn.
    `timezone` and `language` are the user's; if the language is empty, it is detected from the
    message.
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
        """Build the context of a request. Only messages of a user or an assistant are used."""
        return cls(user_id, conversation_id, tuple(_messages(messages)))

    def __repr__(self) -> str:
        """Leave out the user's id and words, which do not belong in a log."""
        return f"AgentContext(user_id='[redacted]', messages={len(self.message_history)})"


@dataclass(frozen=True)
class ToolCallRecord:
    """A tool call: the model's parameters, the result, and how long it took."""

    tool_name: str
    parameters: dict[str, Any]
    result: dict[str, Any]
    duration_ms: int = 0

    @property
    def ok(self) -> bool:
        """Did the call succeed?"""
        return self.result.get("success") is True

    @property
    def code(self) -> str:
        """The code of the error; empty if there is none."""
        error = self.result.get("error")
        return str(error.get("code", "")) if isinstance(error, dict) else ""

    @property
    def error_message(self) -> str:
        """The sentence that says why the call failed; empty if it succeeded."""
        error = self.result.get("error")
        return str(error.get("message", "")) if isinstance(error, dict) else ""

    @property
    def data(self) -> Any:
        """The result's data, if the call succeeded."""
        return self.result.get("data")


@dataclass(frozen=True)
class AgentResult:
    """The result of a run. `dollars` is what the model cost; None if its price is unknown."""

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
    """A turn ran out of time. `result` has what was done until then, and says it."""

    def __init__(self, result: AgentResult) -> None:
        super().__init__(result.response)
        self.result = result

    @property
    def tool_calls(self) -> tuple[ToolCallRecord, ...]:
        """The calls that were made in time."""
        return self.result.tool_calls


def _messages(given: Iterable[Mapping[str, Any]]) -> Iterable[MessageHistory]:
    for item in given:
        role, content = item.get("role"), item.get("content")
        if role not in ROLES or not isinstance(content, str):
            _log.warning("a message of the history was left out: it is from neither side")
            continue
        calls = item.get("tool_calls") if role == "assistant" else None
        kept = tuple(dict(call) for call in calls or () if isinstance(call, Mapping))
        yield MessageHistory(role, content, _aware(item.get("timestamp")), kept or None)


def _aware(moment: Any) -> datetime:
    """Return a moment with a time zone. One without a zone is taken as UTC."""
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
    """Something that answers one message, such as `AgentRunner`."""

    async def run(
        self,
        context: AgentContext,
        message: str,
        *,
        on_text: Callable[[str], None] | None = None,
    ) -> AgentResult:
        """Answer it. If called again with the same `context.turn_id`, apply no change twice.

        `on_text` is only passed if somebody watches. It takes the beginning of the response, piece
        by piece, while the rest is not ready yet.
        """
        ...


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of the service. Zero messages a minute or dollars a day mean no limit.

    `lease` is for how many seconds a silent worker counts as alive, `waiting` how many messages may
    wait in one conversation, `at_once` how many turns one process runs in parallel, and `attempts`
    how many workers may die during one turn before it is answered with an apology. For `keep_days`
    a message that was sent with a key can be sent again without running twice.
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
    """The user's time zone and language, if they are known."""

    timezone: str = "UTC"
    language: str = ""


@dataclass(frozen=True)
class IncomingMessage:
    """A message as it arrived."""

    user_id: str = field(repr=False)
    message: str = field(repr=False)
    conversation_id: str | None = None
    key: str = ""
    setting: Locale = Locale()

    @property
    def body(self) -> str:
        """A hash of the message: the same key may only be used for the same message."""
        whole = f"{self.conversation_id or ''}\0{self.message}"
        return hashlib.sha256(whole.encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """The reply to a message. `replayed`: it was given before, for the same key."""

    response: str
    conversation_id: str
    message_id: str
    replayed: bool = False
    success: bool = True
    tool_calls: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class ConversationInfo:
    """A conversation without its messages."""

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
    """A part of a list, and the cursor of the next part; empty if this is the last."""

    items: tuple[T, ...]
    next: str = ""
