"""A user's tasks as the list beside the chat shows them. Blocks; runs in a worker thread."""

import base64
import binascii
from datetime import UTC
from typing import Any, Literal

from sqlalchemy import case, func
from sqlmodel import col, select

from bridle.chat.data import OwnedSession, Task
from bridle.chat.tasks.results import to_wire
from bridle.server.chatting.faults import refused
from bridle.server.chatting.views import Tasks, TaskView

Status = Literal["all", "open", "done"]
Stamp = tuple[Any, ...]
_DIGITS = 10


def stamp(session: OwnedSession) -> Stamp:
    """Something that is another after every change of the user's tasks."""
    asked = select(func.count(col(Task.id)), func.max(col(Task.updated_at)), func.max(col(Task.id)))
    return tuple(session.exec(asked).one())


def tasks(session: OwnedSession, status: Status, cursor: str, limit: int) -> Tasks:
    """One page. Raise `Refused` for a cursor that was never given."""
    asked = select(Task).order_by(col(Task.id)).limit(limit + 1)
    if status != "all":
        asked = asked.where(col(Task.completed).is_(status == "done"))
    if cursor:
        asked = asked.where(col(Task.id) > _read(cursor))
    rows = list(session.exec(asked))
    shown = rows[:limit]
    more = _write(shown[-1].id or 0) if rows[limit:] else ""
    done = func.sum(case((col(Task.completed).is_(True), 1), else_=0))
    every, ended = session.exec(select(func.count(col(Task.id)), done)).one()
    return Tasks(tuple(map(_view, shown)), every - (ended or 0), ended or 0, more)


def _view(task: Task) -> TaskView:
    said = to_wire(task, UTC)
    return TaskView(**{**said, "tags": tuple(said["tags"])})


def _write(number: int) -> str:
    return base64.urlsafe_b64encode(str(number).encode()).decode().rstrip("=")


def _read(cursor: str) -> int:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        found = ""
    if not (found.isdecimal() and found.isascii()) or len(found) > _DIGITS:
        raise refused(
            "invalid_request", "This page cannot be found.", "Please start from the first one."
        )
    return min(int(found), 2**31 - 1)
