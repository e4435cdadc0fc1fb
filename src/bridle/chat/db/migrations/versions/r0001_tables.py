"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from bridle.chat.db.tables import Moment

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    _conversations()
    _messages()
    _turns()
    _tasks()
    _confirmations()
    _operations()
    _spent()


def _text(name: str, length: int | None = None, **more: Any) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), **({"nullable": False} | more))


def _moment(name: str, **more: Any) -> sa.Column[Any]:
    return sa.Column(name, Moment(), **({"nullable": False} | more))


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _of_a_conversation() -> sa.ForeignKeyConstraint:
    here = ["user_id", "conversation_id"]
    there = ["chat_conversation.user_id", "chat_conversation.id"]
    return sa.ForeignKeyConstraint(here, there, ondelete="CASCADE")


def _by_user(table: str) -> None:
    op.create_index(f"ix_{table}_user_id", table, ["user_id"])


def _conversations() -> None:
    op.create_table(
        "chat_conversation",
        _text("user_id", 200),
        _text("id", 36, primary_key=True),
        _text("title", 200),
        _number("arrivals"),
        _moment("created_at"),
        _moment("updated_at"),
        sa.UniqueConstraint("user_id", "id", name="uq_chat_conversation_owner"),
    )
    _by_user("chat_conversation")


def _messages() -> None:
    op.create_table(
        "chat_message",
        _text("user_id", 200),
        _text("id", 36, primary_key=True),
        _text("conversation_id", 36),
        _number("position"),
        _text("role", 20),
        _text("content"),
        sa.Column("tool_calls", sa.JSON(), nullable=True),
        _moment("created_at"),
        _of_a_conversation(),
        sa.UniqueConstraint("conversation_id", "position", name="uq_chat_message_position"),
    )
    _by_user("chat_message")


def _turns() -> None:
    op.create_table(
        "chat_turn",
        _text("user_id", 200),
        _text("id", 36, primary_key=True),
        _text("conversation_id", 36),
        _number("arrival"),
        _text("key", 255, nullable=True),
        _text("body", 64),
        _text("state", 20),
        _text("worker", 200),
        sa.Column("lease_until", sa.Float(), nullable=False),
        _number("fence"),
        _number("attempts"),
        _text("timezone", 64),
        _text("language", 35),
        sa.Column("success", sa.Boolean(), nullable=False),
        _moment("created_at"),
        _moment("finished_at", nullable=True),
        _of_a_conversation(),
        sa.UniqueConstraint("conversation_id", "arrival", name="uq_chat_turn_arrival"),
        sa.UniqueConstraint("user_id", "key", name="uq_chat_turn_key"),
    )
    op.create_index("ix_chat_turn_open", "chat_turn", ["conversation_id", "state", "arrival"])
    _by_user("chat_turn")


def _tasks() -> None:
    op.create_table(
        "chat_task",
        _text("user_id", 200),
        sa.Column("id", sa.Integer(), primary_key=True),
        _text("title", 500),
        _text("notes"),
        _text("priority", 20),
        _moment("due_at", nullable=True),
        sa.Column("due_has_time", sa.Boolean(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("completed", sa.Boolean(), nullable=False),
        _moment("completed_at", nullable=True),
        _moment("created_at"),
        _moment("updated_at"),
    )
    op.create_index("ix_chat_task_list", "chat_task", ["user_id", "completed", "id"])
    _by_user("chat_task")


def _confirmations() -> None:
    op.create_table(
        "chat_confirmation",
        _text("user_id", 200),
        _text("id", 36, primary_key=True),
        _text("conversation_id", 200),
        _text("action", 100),
        _text("phrase", 200),
        sa.Column("payload", sa.JSON(), nullable=False),
        _moment("created_at"),
        _moment("expires_at"),
        sa.UniqueConstraint("user_id", "conversation_id", name="uq_chat_confirmation_one"),
    )
    _by_user("chat_confirmation")


def _operations() -> None:
    op.create_table(
        "chat_operation",
        _text("user_id", 200, primary_key=True),
        _text("key", 200, primary_key=True),
        _text("turn_id", 200),
        _text("tool", 100),
        _text("arguments", 64),
        sa.Column("result", sa.JSON(), nullable=False),
        _moment("created_at"),
    )
    op.create_index("ix_chat_operation_turn_id", "chat_operation", ["turn_id"])


def _spent() -> None:
    op.create_table(
        "chat_spent",
        _text("user_id", 200, primary_key=True),
        _text("period", 40, primary_key=True),
        _number("messages"),
        sa.Column("dollars", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
    )
