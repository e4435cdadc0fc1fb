"""Find which of a user's tasks a request means. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bridle.chat.matching import matches, normalize_title
from bridle.chat.tasks.intent import IntentKind

Task = Mapping[str, Any]
_WORDS = re.compile(r"\d{1,2}(?::\d\d)? ?[ap]m|[\w:]+")
_SILENT = frozenset(
    ("the", "one", "at", "on", "due", "that", "is", "which", "for", "task", "of", "please", "i")
) | frozenset(("mean", "meant", "date", "time", "s"))
_NOUNS = ("task", "tasks", "item", "todo")


def choose_tasks(kind: IntentKind, subject: str, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that the words mean: open ones to complete, done ones to reopen.

    If none of those match, the others count. A similar title never beats an exact one.
    """
    if kind not in ("complete", "reopen"):
        return _match_titles(subject, tasks)
    likely = [task for task in tasks if bool(task.get("completed")) == (kind == "reopen")]
    if found := _match_titles(subject, likely, close=False):
        return found
    found = _match_titles(subject, tasks)
    return [item for item in found if item in likely] or found


def _match_titles(subject: str, tasks: Sequence[Task], *, close: bool = True) -> list[Task]:
    titles = [str(task.get("title", "")) for task in tasks]
    return [tasks[place] for place in matches(subject, titles, _NOUNS, close=close)]


def choose_by_date(words: str, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that "the one at 3pm" or "the done one" means."""
    wanted = [word.replace(" ", "") for word in _WORDS.findall(words.casefold())]
    wanted = [target for target in wanted if target not in _SILENT]
    return [task for task in tasks if wanted and _task_words(task).issuperset(wanted)]


_SMALL_WORDS = frozenset(
    (
        *("a", "an", "and", "the", "my", "me", "of", "to", "for", "in", "on", "at", "with"),
        *("about", "one", "it", "that", "this", "is", "as", "i", "el", "la", "los", "las"),
        *("un", "una", "mi", "mis", "de", "del", "que", "para", "por", "con", "en", "y"),
    )
)


def find_equal_matches(message: str, chosen: Task, tasks: Sequence[Task]) -> tuple[str, list[Task]]:
    """Return the tasks that a message names at least as well as `chosen`, and by which words.

    Only the words of the titles count, in whichever language: a task whose whole title is in the
    message is named; otherwise one is, if the message has all the title words that name the other.
    If none of the words name it, an earlier message did, and `chosen` is the only one.
    """
    words = normalize_title(message).split()
    title = normalize_title(str(chosen.get("title", "")))
    if title and f" {title} " in f" {' '.join(words)} ":
        same = [task for task in tasks if normalize_title(str(task.get("title", ""))) == title]
        return title, same
    named = _title_words(words, chosen)
    if not named:
        return "", [chosen]
    query = " ".join(word for word in words if word in named)
    return query, [one for one in tasks if named <= _title_words(words, one)]


def thing_words(message: str) -> str:
    """Return a request without what stands around the thing: "milk" for "delete the milk task".

    It drops the first word, which mostly says what to do, and words that are not part of titles.
    """
    words = message.split()
    kept = words[1:] or words
    while len(kept) > 1 and kept[0].casefold() in _SMALL_WORDS:
        kept = kept[1:]
    while len(kept) > 1 and kept[-1].casefold().strip(".!?") in _NOUNS:
        kept = kept[:-1]
    return " ".join(kept)


def _title_words(words: Sequence[str], task: Task) -> set[str]:
    title = normalize_title(str(task.get("title", ""))).split()
    return (set(words) & set(title)) - _SMALL_WORDS


def _task_words(task: Task) -> set[str]:
    """Return words that distinguish a task from others with the same title."""
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
    """Return the tasks in a tool's result: a list of them, or the one."""
    if not isinstance(data, dict):
        return []
    found = data.get("tasks")
    if isinstance(found, list):
        return [item for item in found if isinstance(item, dict)]
    return [data] if "title" in data else []
