"""What the conversation before says of a message such as «the second one» or «delete it». Pure.

Only two things are read from it: which of our own questions was put last, and which titles our own
sentences named. What they stand for is looked up in the user's list again.
"""

import re
from collections.abc import Sequence
from functools import cache

from bridle.chat.guard_titles import shown
from bridle.chat.replies import FALLBACK
from bridle.chat.tasks.choosing import Task
from bridle.chat.tasks.offline_wish import Wish
from bridle.chat.tasks.offline_words import understood
from bridle.chat.tasks.sentences import task_replies

Past = Sequence[tuple[str, str]]
_NAMING = (
    "task_created",
    "task_completed",
    "task_reopened",
    "task_deleted",
    "task_updated",
    "confirm_delete",
)
_LINE = re.compile(r"^\d{1,3}\. ([☐✓]) (.+)$", re.MULTILINE)
_DUE = re.compile(r" \([^()]*\)$")


def was_asked(before: Past) -> tuple[Wish, str] | None:
    """What the user wanted when we asked which task, and the words that fit several."""
    if len(before) < 2 or before[-1][0] != "assistant":
        return None
    match = _said("ambiguous", before[-1][1])
    if match is None:
        return None
    said = next((words for role, words in reversed(before[:-1]) if role == "user"), "")
    wish = understood(said)
    return (wish, match["query"]) if wish.is_action else None


def was_listed(before: Past, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of the newest list that we showed, in its order."""
    for role, words in reversed(before):
        if role == "assistant" and (lines := _LINE.findall(words)):
            return _again(lines, list(tasks))
    return []


def last_title(before: Past) -> str:
    """The title that we named last."""
    for role, words in reversed(before):
        if role != "assistant":
            continue
        for key in _NAMING:
            if match := _said(key, words):
                return match["title"]
    return ""


def undone(before: Past) -> str:
    """The title of what «undo that» means: a task that was completed just now, and nothing else."""
    said = next((words for role, words in reversed(before) if role == "assistant"), "")
    match = _said("task_completed", said)
    return match["title"] if match else ""


def _again(lines: Sequence[tuple[str, str]], tasks: list[Task]) -> list[Task]:
    """Each line's task; of several with one title, each once."""
    found: list[Task] = []
    for _, words in lines:
        for task in tasks:
            name = shown(task.get("title", ""), 90)
            if name in (words, _DUE.sub("", words)):
                found.append(task)
                tasks.remove(task)
                break
    return found


def _said(key: str, words: str) -> re.Match[str] | None:
    """Where a text holds that sentence of ours, in whichever language we said it."""
    found = (pattern.search(words) for pattern in _patterns(key))
    return next((match for match in found if match), None)


@cache
def _patterns(key: str) -> tuple[re.Pattern[str], ...]:
    """A sentence in every language, as something to be found again; English first."""
    replies = task_replies()
    names = sorted(replies.languages, key=lambda name: name != FALLBACK)
    return tuple(map(_pattern, dict.fromkeys(replies.find(name, key) or "" for name in names)))


def _pattern(sentence: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", sentence)
    names = [f"(?P<{word}>.+?)" if at % 2 else re.escape(word) for at, word in enumerate(pieces)]
    return re.compile("".join(names), re.DOTALL)
