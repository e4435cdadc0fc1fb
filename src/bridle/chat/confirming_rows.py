"""The rows of waiting questions: read and written by short transactions, in a worker thread.

Every query names the user, also where the session is scoped to that user already: a session
factory of somebody's own may not be.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlmodel import Session, select

from bridle.chat.confirming import Question
from bridle.chat.data.engines import READS
from bridle.chat.data.owned import owned_session
from bridle.chat.data.tables import PendingConfirmation as Row

Factory = Callable[[], Any]


def find(factory: Factory, user_id: str, conversation_id: str) -> Question | None:
    """The question that waits there."""
    with _owned(factory, user_id) as session:
        session.connection(execution_options={READS: True})  # keeps nobody waiting who writes
        row = _row(session, user_id, conversation_id)
        return None if row is None else _question(row)


def put(factory: Factory, who: tuple[str, str], asked: Question, seconds: float) -> None:
    """Write it, in the place of the one that waited."""
    user_id, conversation_id = who
    now = datetime.now(UTC)
    with _owned(factory, user_id) as session:
        row = _row(session, user_id, conversation_id)
        if row is not None:
            session.delete(row)
            session.flush()
        session.add(
            Row(
                user_id=user_id,
                conversation_id=conversation_id,
                action=str(asked.calls[0]["tool"]),
                phrase=asked.phrase,
                payload={
                    "text": asked.text,
                    "calls": list(asked.calls),
                    "titles": asked.titles,
                    "turn": "",
                    "asked_by": asked.asked_by,
                },
                created_at=now,
                expires_at=now + timedelta(seconds=seconds),
            )
        )
        session.commit()


def take(factory: Factory, user_id: str, question_id: str, turn: str) -> bool:
    """Mark it as answered by that turn, unless another did; the same turn may take it again."""
    with _owned(factory, user_id) as session:
        wanted = select(Row).where(Row.id == question_id, Row.user_id == user_id)
        row = session.exec(wanted.with_for_update()).first()
        if row is None or row.payload.get("turn") not in ("", turn):
            return False
        row.payload = {**row.payload, "turn": turn}
        session.add(row)
        session.commit()
        return True


def release(factory: Factory, user_id: str, question_id: str) -> None:
    """Have it wait again: it was answered, and could not be done."""
    with _owned(factory, user_id) as session:
        wanted = select(Row).where(Row.id == question_id, Row.user_id == user_id)
        row = session.exec(wanted.with_for_update()).first()
        if row is not None:
            row.payload = {**row.payload, "turn": ""}
            session.add(row)
            session.commit()


def drop(factory: Factory, user_id: str, question_id: str) -> None:
    """Take it away."""
    with _owned(factory, user_id) as session:
        row = session.exec(select(Row).where(Row.id == question_id, Row.user_id == user_id)).first()
        if row is not None:
            session.delete(row)
            session.commit()


def _owned(factory: Factory, user_id: str) -> Session:
    return owned_session(factory(), user_id)


def _row(session: Session, user_id: str, conversation_id: str) -> Row | None:
    here = Row.user_id == user_id, Row.conversation_id == conversation_id
    return session.exec(select(Row).where(*here)).first()


def _question(row: Row) -> Question:
    held = row.payload
    return Question(
        row.phrase,
        str(held.get("text", "")),
        tuple(held.get("calls", ())),
        dict(held.get("titles", {})),
        row.id,
        str(held.get("turn", "")),
        str(held.get("asked_by", "")),
        row.expires_at,
    )
