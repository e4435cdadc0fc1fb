"""The tables of the chat. Every row belongs to a user.

The foreign keys cover user and conversation together, so that no row can be in a conversation of
another user, whatever the code above does.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import JSON, DateTime, ForeignKeyConstraint, Index, UniqueConstraint
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field

from bridle.chat.db.session import OwnedRow


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Moment(TypeDecorator[datetime]):
    """A column for a moment in time, always in UTC.

    SQLite drops time zones, and PostgreSQL converts to its own.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Convert to UTC. Raise `ValueError` if the moment has no time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment in the database needs a time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Return the stored moment in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_MOMENT: Any = Moment


def new_id() -> str:
    """Return an id that cannot be guessed."""
    return str(uuid4())


def _of_a_conversation() -> ForeignKeyConstraint:
    """A foreign key to a conversation of the same user; rows are deleted with it."""
    here = ["user_id", "conversation_id"]
    there = ["chat_conversation.user_id", "chat_conversation.id"]
    return ForeignKeyConstraint(here, there, ondelete="CASCADE")


class Conversation(OwnedRow, table=True):
    """A conversation. `arrivals` counts the messages that were ever sent to it."""

    __tablename__ = "chat_conversation"
    __table_args__ = (UniqueConstraint("user_id", "id", name="uq_chat_conversation_owner"),)

    id: str = Field(default_factory=new_id, primary_key=True, max_length=36)
    title: str = Field(default="", max_length=200)
    arrivals: int = 0
    created_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)
    updated_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)


class StoredMessage(OwnedRow, table=True):
    """A message. In turn number n, the user's message has position 2n and the reply 2n + 1."""

    __tablename__ = "chat_message"
    __table_args__ = (
        UniqueConstraint("conversation_id", "position", name="uq_chat_message_position"),
        _of_a_conversation(),
    )

    id: str = Field(default_factory=new_id, primary_key=True, max_length=36)
    conversation_id: str = Field(max_length=36)
    position: int
    role: str = Field(max_length=20)  # user | assistant
    content: str
    tool_calls: list[dict[str, Any]] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)


class Turn(OwnedRow, table=True):
    """A message that waits for its reply: its place in the queue, and the worker that runs it."""

    __tablename__ = "chat_turn"
    __table_args__ = (
        UniqueConstraint("conversation_id", "arrival", name="uq_chat_turn_arrival"),
        UniqueConstraint("user_id", "key", name="uq_chat_turn_key"),
        Index("ix_chat_turn_open", "conversation_id", "state", "arrival"),
        _of_a_conversation(),
    )

    id: str = Field(default_factory=new_id, primary_key=True, max_length=36)
    conversation_id: str = Field(max_length=36)
    arrival: int
    key: str | None = Field(default=None, max_length=255)
    body: str = Field(max_length=64)  # a hash of what was asked
    state: str = Field(default="waiting", max_length=20)  # waiting | running | done
    worker: str = Field(default="", max_length=200)
    lease_until: float = 0.0
    fence: int = 0
    attempts: int = 0
    timezone: str = Field(default="UTC", max_length=64)
    language: str = Field(default="", max_length=35)
    success: bool = True  # of the reply, once there is one
    created_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)
    finished_at: datetime | None = Field(default=None, sa_type=_MOMENT)


class Task(OwnedRow, table=True):
    """A task. `due_has_time` distinguishes "on Friday" from "on Friday at five"."""

    __tablename__ = "chat_task"
    __table_args__ = (Index("ix_chat_task_list", "user_id", "completed", "id"),)

    id: int | None = Field(default=None, primary_key=True)
    title: str = Field(max_length=500)
    notes: str = ""
    priority: str = Field(default="Medium", max_length=20)  # Low | Medium | High
    due_at: datetime | None = Field(default=None, sa_type=_MOMENT)
    due_has_time: bool = False
    tags: list[str] = Field(default_factory=list, sa_type=JSON)
    completed: bool = False
    completed_at: datetime | None = Field(default=None, sa_type=_MOMENT)
    created_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)
    updated_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)


class PendingConfirmation(OwnedRow, table=True):
    """A question that waits for its exact phrase: at most one per conversation."""

    __tablename__ = "chat_confirmation"
    __table_args__ = (
        UniqueConstraint("user_id", "conversation_id", name="uq_chat_confirmation_one"),
    )

    id: str = Field(default_factory=new_id, primary_key=True, max_length=36)
    conversation_id: str = Field(max_length=200)
    action: str = Field(max_length=100)  # the tool that it would call
    phrase: str = Field(max_length=200)
    payload: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)
    expires_at: datetime = Field(sa_type=_MOMENT)


class Operation(OwnedRow, table=True):
    """A tool operation that was applied. If it is requested again, it gives the same result."""

    __tablename__ = "chat_operation"

    user_id: str = Field(primary_key=True, max_length=200)
    key: str = Field(primary_key=True, max_length=200)
    turn_id: str = Field(default="", max_length=200, index=True)
    tool: str = Field(max_length=100)
    arguments: str = Field(max_length=64)  # a hash of them
    result: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=_MOMENT)


class Spending(OwnedRow, table=True):
    """What a user has used up in one period."""

    __tablename__ = "chat_spent"

    user_id: str = Field(primary_key=True, max_length=200)
    period: str = Field(primary_key=True, max_length=40)  # such as minute:29300000 or day:20345
    messages: int = 0
    dollars: float = 0.0
    until: float = 0.0  # when the period ends; rows of the past are swept


TABLES: tuple[type[OwnedRow], ...] = (
    Conversation,
    StoredMessage,
    Turn,
    Task,
    PendingConfirmation,
    Operation,
    Spending,
)
