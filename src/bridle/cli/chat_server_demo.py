"""Two users to look at the chat with: Ana, who has a lot to do, and Ben, who sees none of it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

from bridle.chat.db import Database, Task

USERS = ("ana", "ben")
_DAYS = {"today": 0, "tomorrow": 1, "later": 4}
_TASKS: dict[str, tuple[dict[str, Any], ...]] = {
    "ana": (
        {"title": "Buy milk", "tags": ["shopping"]},
        {"title": "Call the dentist", "priority": "High", "due": "tomorrow"},
        {"title": "Call Grandma", "due": "later"},
        {"title": "Water the plants", "completed": True},
        {"title": "Book the train to Lisbon", "notes": "Window seat", "tags": ["travel"]},
    ),
    "ben": (
        {"title": "Fix the bike", "priority": "High"},
        {"title": "Return the library books", "due": "today"},
        {"title": "Write to Ana", "completed": True},
    ),
}


@contextmanager
def demo_database(given: str | None, *, tasks: bool = True) -> Iterator[str]:
    """A database, with tasks of both where they are wanted; one without a name is gone after."""
    with tempfile.TemporaryDirectory(prefix="bridle-chat-") as folder:
        url = given or str(Path(folder) / "chat.db")
        database = Database(url)
        try:
            database.migrate()
            for user in USERS if tasks else ():
                _fill(database, user)
        finally:
            database.close()
        yield url


def _fill(database: Database, user: str) -> None:
    from sqlmodel import select

    with database.session_for(user) as session, session.begin():
        if session.exec(select(Task).limit(1)).first() is not None:
            return
        session.add_all([_task(user, said) for said in _TASKS[user]])


def _task(user: str, said: dict[str, Any]) -> Task:
    now = datetime.now(UTC)
    due = said.get("due")
    task = Task(user_id=user, **{name: value for name, value in said.items() if name != "due"})
    if due is not None:
        day = now.date() + timedelta(days=_DAYS[due])
        task.due_at = datetime.combine(day, time(0), UTC)
    if task.completed:
        task.completed_at = now
    return task
