"""A change by one query, without loading the row first: of the owner's rows only, as ever."""

from typing import Any

from sqlalchemy import CursorResult

from bridle.chat.data.owned import OwnedSession

_PLAINLY = {"synchronize_session": False}  # nothing of it is in the session


def changed(session: OwnedSession, statement: Any) -> int:
    """How many rows it changed."""
    found = session.execute(statement, execution_options=_PLAINLY)
    return found.rowcount if isinstance(found, CursorResult) else 0


def returned(session: OwnedSession, statement: Any) -> Any:
    """What the one row that it changed gives back; None where it changed none."""
    return session.execute(statement, execution_options=_PLAINLY).scalar_one_or_none()
