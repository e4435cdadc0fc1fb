"""Queries over the user's tasks. The session knows whose they are."""

from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal

from sqlalchemy import and_, func, not_, or_
from sqlmodel import col, select

from bridle.chat.db import Task
from bridle.chat.db.session import prepare_insert, table_of
from bridle.chat.tasks.fields import parse_days
from bridle.chat.tools.toolbox import Call, ToolFailed

Status = Literal["all", "open", "done"]
_LARGEST = 2**31 - 1
_SEARCHED = 5_000  # tasks that one search looks at, the newest
_NEW = prepare_insert(Task)
_COLUMNS = tuple(one.name for one in table_of(Task).c if one.name not in ("id", "user_id"))


def insert_task(call: Call, task: Task) -> Task:
    """Insert a new task and set its id."""
    kept = _NEW.execute(call.session, {one: getattr(task, one) for one in _COLUMNS})
    task.id = (kept.inserted_primary_key or (None,))[0]
    return task


def find_task(call: Call, task_id: int) -> Task:
    """Return the user's task of that id. Raise `ToolFailed`, also for another user's task."""
    task = call.session.get(Task, task_id) if 0 < task_id <= _LARGEST else None
    if task is None:
        raise ToolFailed("not_found", "There is no such task in your list.", field="task_id")
    return task


def find_tasks(call: Call, task_ids: list[int]) -> list[Task]:
    """Return all of the tasks, in the order of the list. Raise `ToolFailed` if one is missing."""
    wanted = {one for one in task_ids if 0 < one <= _LARGEST}
    asked = select(Task).where(col(Task.id).in_(sorted(wanted))).order_by(col(Task.id))
    tasks = list(call.session.exec(asked))
    if len(tasks) != len(set(task_ids)):
        missing = len(set(task_ids)) - len(tasks)
        said = f"{missing} of these tasks are not in your list; nothing was changed."
        raise ToolFailed("not_found", said, field="task_ids")
    return tasks


def select_tasks(call: Call, filters: list[Any], limit: int) -> tuple[list[Task], int]:
    """Return the oldest matching tasks, and how many match in all."""
    asked = select(Task).where(*filters).order_by(col(Task.id)).limit(limit)
    tasks = list(call.session.exec(asked))
    if len(tasks) < limit:
        return tasks, len(tasks)
    return tasks, call.session.exec(select(func.count(col(Task.id))).where(*filters)).one()


def build_filters(call: Call, status: Status, due: str, priority: str) -> list[Any]:
    """Return the conditions of a query. Raise `ToolFailed` if `due` is not clear."""
    wanted: list[Any] = []
    if status != "all":
        wanted.append(col(Task.completed).is_(status == "done"))
    if priority:
        wanted.append(col(Task.priority) == priority)
    if due == "none":
        wanted.append(col(Task.due_at).is_(None))
    elif due == "overdue":
        wanted += [col(Task.completed).is_(False), _before(call.now, call.now.date())]
    elif due != "any":
        first, last = parse_days(due.replace("_", " "), call.now)
        end = datetime.combine(last + timedelta(days=1), time(0), call.now.tzinfo)
        wanted.append(_before(end, last + timedelta(days=1)))
        if first is not None:
            start = datetime.combine(first, time(0), call.now.tzinfo)
            wanted.append(not_(_before(start, first)))
    return wanted


def _before(moment: datetime, day: Any) -> Any:
    """Is it due before a moment or, if it has no time, before a day?"""
    timed = and_(col(Task.due_has_time).is_(True), col(Task.due_at) < moment.astimezone(UTC))
    midnight = datetime.combine(day, time(0), UTC)
    return or_(timed, and_(col(Task.due_has_time).is_(False), col(Task.due_at) < midnight))


def search(call: Call, words: str, status: Status) -> list[Task]:
    """Return tasks with all of the words in title, notes or tags, in any case and script."""
    wanted = words.casefold().split()
    filters = build_filters(call, status, "any", "")
    asked = select(Task).where(*filters).order_by(col(Task.id).desc()).limit(_SEARCHED)
    tasks = [row for row in call.session.exec(asked) if _has(row, wanted)]
    return tasks[::-1]


def select_by_tag(call: Call, filters: list[Any], tag: str, limit: int) -> tuple[list[Task], int]:
    """Return the oldest matching tasks with the tag, and how many there are."""
    asked = select(Task).where(*filters).order_by(col(Task.id))
    tasks = [row for row in call.session.exec(asked) if tag in row.tags]
    return tasks[:limit], len(tasks)


def _has(task: Task, wanted: list[str]) -> bool:
    text = "\n".join((task.title, task.notes, *task.tags)).casefold()
    return all(target in text for target in wanted)
