"""What the conversation before says of a message such as «the second one» or «delete it». Pure.

Only two things are read from it: which of our own questions was put last, and which titles our own
sentences named. What they stand for is looked up in the user's list again.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from bridle.chat.guard_titles import shown
from bridle.chat.replies import FALLBACK
from bridle.chat.tasks.choosing import Task
from bridle.chat.tasks.date_phrases import is_dated
from bridle.chat.tasks.dates import completed, is_half
from bridle.chat.tasks.offline_adding import read_bare_task
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
_LINE = re.compile(r"^(\d{1,5})\. ([☐✓]) (.+)$", re.MULTILINE)
_MORE = re.compile(
    r"(?:(?:show|list|see|give)(?: me)? )?(?:(?:the |some )?(?:more|next|rest|others)"
    r"|(?:the )?(?:next|other|remaining) (?:ones|tasks|page)|more tasks|what else(?: is there)?)"
    r"|go on|continue|and the rest",
    re.IGNORECASE,
)
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


def answered_date(message: str, before: Past) -> Wish | None:
    """What the user wanted when we asked for the date, with the date that this message makes clear.

    Tasks that were added all the same are left out of it.
    """
    answer = message.strip(" .!?")
    if not (is_dated(answer) or is_half(answer) or re.fullmatch(r"\d{1,2}", answer)):
        return None
    answers, place = [answer], len(before)
    while place >= 2 and before[place - 1][0] == "assistant" and before[place - 2][0] == "user":
        reply, said = before[place - 1][1], before[place - 2][1]
        if not _asks_when(reply):
            return None
        wish = understood(said)
        if wish.kind == "unknown":
            wish = read_bare_task(said) or wish
        if wish.kind == "list" and wish.every is not None:
            due = wish.every.due
            for words in reversed(answers):
                due = completed(due, words)
            return replace(wish, every=replace(wish.every, due=due))
        wanted = [one for one in (wish.fields, *wish.more) if one.due or one.later]
        left = [one for one in wanted if f"'{one.title}'" not in reply]
        if wish.kind in ("add", "update") and left:
            due = left[0].due or ""
            for answer in reversed(answers):
                due = completed(due, answer)
            first = replace(left[0], due=due, later=None)
            subject = first.title or "" if wish.kind == "add" else wish.subject
            return replace(wish, subject=subject, fields=first, more=())
        answers.append(said)
        place -= 2
    return None


def _asks_when(reply: str) -> bool:
    """Is that our question for the date, in any language?"""
    replies = task_replies()
    asked = (
        replies.say(name, "invalid", missing=replies.say(name, "missing_date"))
        for name in replies.languages
    )
    return any(one in reply for one in asked)


def was_listed(before: Past, tasks: Sequence[Task]) -> dict[int, Task]:
    """The tasks of the newest list that we showed, by their numbers in it."""
    for role, words in reversed(before):
        if role == "assistant" and (lines := _LINE.findall(words)):
            return _again(lines, list(tasks))
    return {}


def more_of_the_list(message: str, before: Past) -> tuple[Wish, int] | None:
    """Which list "more" goes on with, and how many of it were shown."""
    if not _MORE.fullmatch(message.strip(" .!?")):
        return None
    shown = 0
    for (_, said), (role, reply) in zip(before[-2::-2], before[::-2], strict=False):
        lines = _LINE.findall(reply)
        if role != "assistant" or not lines:
            return None
        shown = shown or int(lines[-1][0])
        if not _MORE.fullmatch(said.strip(" .!?")):
            wish = understood(said)
            return (wish, shown) if wish.kind == "list" else None
    return None


def last_title(before: Past) -> str:
    """The title that we named last."""
    for role, words in reversed(before):
        if role != "assistant":
            continue
        for key in _NAMING:
            if match := _said(key, words):
                renamed = _new_title(words[match.end("title") :]) if key == "task_updated" else ""
                return renamed or match["title"]
    return ""


def _new_title(words: str) -> str:
    """The new title in what we said of a change; a quote and a full stop can be part of it."""
    ends = r"(?=[.,،]|$|\s(?:and|y)\s|\s?و)"
    for pattern in _patterns("change_title"):
        if match := re.search(pattern.pattern + ends, words, re.DOTALL):
            return match["value"]
    return ""


def undone(before: Past) -> str:
    """The title of what «undo that» means: a task that was completed just now, and nothing else."""
    said = next((words for role, words in reversed(before) if role == "assistant"), "")
    match = _said("task_completed", said)
    return match["title"] if match else ""


def _again(lines: Sequence[tuple[str, str, str]], tasks: list[Task]) -> dict[int, Task]:
    """Each line's task; of several with one title, each once."""
    found: dict[int, Task] = {}
    for number, _, words in lines:
        for task in tasks:
            name = shown(task.get("title", ""), 90)
            if name in (words, _DUE.sub("", words)):
                found[int(number)] = task
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
