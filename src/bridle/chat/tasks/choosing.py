"""Which of a user's tasks a request is about: by title, with those first that it could be. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from bridle.chat.matching import matches
from bridle.chat.tasks.offline_wish import Kind

Task = Mapping[str, Any]
_NOUNS = ("task", "tasks", "item", "todo")


def chosen(kind: Kind, subject: str, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that the words mean. What is done is completed last, what is open reopened last.

    One that is only nearly called that is never taken for one that is.
    """
    if kind not in ("complete", "reopen"):
        return _named(subject, tasks)
    likely = [one for one in tasks if bool(one.get("completed")) == (kind == "reopen")]
    if found := _named(subject, likely, close=False):
        return found
    found = _named(subject, tasks)
    return [one for one in found if one in likely] or found


def _named(subject: str, tasks: Sequence[Task], *, close: bool = True) -> list[Task]:
    titles = [str(one.get("title", "")) for one in tasks]
    return [tasks[place] for place in matches(subject, titles, _NOUNS, close=close)]


def tasks_of(data: Any) -> list[Task]:
    """The tasks in what a tool gave back: a list of them, or the one."""
    if not isinstance(data, dict):
        return []
    found = data.get("tasks")
    if isinstance(found, list):
        return [one for one in found if isinstance(one, dict)]
    return [data] if "title" in data else []
