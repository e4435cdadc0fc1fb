"""Find which of a user's tasks a request means. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bridle.chat.matching import matches
from bridle.chat.tasks.intent import IntentKind

Task = Mapping[str, Any]
_WORDS = re.compile(r"\d{1,2}(?::\d\d)? ?[ap]m|[\w:]+")
_SILENT = frozenset(
    ("the", "one", "at", "on", "due", "that", "is", "which", "for", "task", "of", "please", "i")
) | frozenset(("mean", "meant", "date", "time", "s"))
_NOUNS = ("task", "tasks", "item", "todo")


def choose_tasks(kind: IntentKind, subject: str, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that the words mean. What is done is completed last, what is open reopened last.

    One that is only nearly called that is never taken for one that is.
    """
    if kind not in ("complete", "reopen"):
        return _match_titles(subject, tasks)
    likely = [one for one in tasks if bool(one.get("completed")) == (kind == "reopen")]
    if found := _match_titles(subject, likely, close=False):
        return found
    found = _match_titles(subject, tasks)
    return [one for one in found if one in likely] or found


def _match_titles(subject: str, tasks: Sequence[Task], *, close: bool = True) -> list[Task]:
    titles = [str(one.get("title", "")) for one in tasks]
    return [tasks[place] for place in matches(subject, titles, _NOUNS, close=close)]


def choose_by_date(words: str, tasks: Sequence[Task]) -> list[Task]:
    """Of some tasks that were shown, those that "the one at 3pm" or "the done one" means."""
    wanted = [one.replace(" ", "") for one in _WORDS.findall(words.casefold())]
    wanted = [one for one in wanted if one not in _SILENT]
    return [one for one in tasks if wanted and _task_words(one).issuperset(wanted)]


def _task_words(task: Task) -> set[str]:
    """Words by which a person tells a task from others of the same title."""
    words = {*_WORDS.findall(str(task.get("title", "")).casefold())}
    words.add("done" if task.get("completed") else "open")
    try:
        due = datetime.fromisoformat(str(task.get("due")))
    except ValueError:
        return words
    words |= {*f"{due:%A %a %d %B %b %Y}".casefold().split(), str(due.day)}
    words |= {f"{due.day}{ending}" for ending in ("st", "nd", "rd", "th")}
    if len(str(task.get("due"))) > 10:
        hour, half = due.hour % 12 or 12, f"{due:%p}".casefold()
        words |= {f"{due:%H:%M}", f"{hour}:{due:%M}", f"{hour}:{due:%M}{half}"}
        words |= {str(hour), str(due.hour), f"{hour}{half}"} if due.minute == 0 else set()
        words |= {"noon"} if (due.hour, due.minute) == (12, 0) else set()
    return words


def tasks_in(data: Any) -> list[Task]:
    """The tasks in what a tool gave back: a list of them, or the one."""
    if not isinstance(data, dict):
        return []
    found = data.get("tasks")
    if isinstance(found, list):
        return [one for one in found if isinstance(one, dict)]
    return [data] if "title" in data else []
