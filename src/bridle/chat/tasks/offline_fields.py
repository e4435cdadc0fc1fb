"""Dates, priorities, tags and notes in what a person says of a task, taken out of its words.

What stands in quotes is left alone. Where a date is said is `date_phrases`; whether it is clear is
the tool's to say.
"""

import re

from bridle.chat.tasks.date_phrases import split_dates
from bridle.chat.tasks.offline_wish import Fields

_LEVEL = r"(?:high|low|medium|normal|top|urgent|highest|lowest)"
_PRIORITY = re.compile(
    rf"[,;]?\s*(?:\b(?:with|at|as|of|in|and)\s+)?(?:\b(?:a|an|the)\s+)?"
    rf"(?:\b({_LEVEL})[ -]priority\b|\bpriority(?:\s+(?:is|of|to)|\s*[:=])?\s+(\w+)\b)",
    re.IGNORECASE,
)
_TAGGED = re.compile(
    r"[,;]?\s*\b(?:and\s+)?(?:tagged(?: with| as)?|with (?:the )?tags?|tags?:)\s+"
    r"([\w#-]+(?:(?:\s*,\s*|\s+and\s+)[\w#-]+)*)",
    re.IGNORECASE,
)
_HASH = re.compile(r"(?:^|(?<=\s))#(?!\d+\b)(\w[\w-]*)")
_NOTES = re.compile(r"[,;.]?\s*\b(?:with (?:the |a )?)?notes?\s*(?::|saying)\s*(.+)$", re.I | re.S)
_MARKED = re.compile(
    r"[,;]?\s+(?:and\s+)?(?:(?:which|that|it)\s+is\s+)?\(?\b(?:due(?: date)?|deadline)\b"
    r"(?:\s*(?:is|by|on|at|:))?\s+([^()]{1,60}?)\)?$",
    re.IGNORECASE,
)


def read_fields(words: str) -> tuple[str, Fields]:
    """The words without what was said beside the title, and that."""
    words, notes = _taken(_NOTES, words)
    tags: list[str] = []
    if match := _TAGGED.search(words):
        tags += re.split(r"\s*,\s*|\s+and\s+", match[1])
        words = _without(words, match)
    tags += _HASH.findall(words)
    words = _HASH.sub("", words)
    priority = None
    if match := _PRIORITY.search(words):
        priority = _level(match[1] or match[2])
        words = _without(words, match)
    words, due = read_due(" ".join(words.split()))
    named = tuple(tag.strip("#").lower() for tag in tags if tag.strip("#"))
    return words.strip(" ,;"), Fields(None, notes, priority, due, named or None)


def read_due(words: str) -> tuple[str, str | None]:
    """The words without the dates in them, and the dates as they were said."""
    if match := _MARKED.search(words):
        dated = split_dates(words[: match.start()])
        return dated.rest, " ".join([*dated.phrases, match[1].strip(" .,;!?")])
    dated = split_dates(words)
    return dated.rest, dated.due


def _level(word: str) -> str:
    low = word.lower()
    return {"top": "high", "highest": "high", "urgent": "high", "lowest": "low"}.get(low, low)


def _taken(pattern: re.Pattern[str], words: str) -> tuple[str, str | None]:
    match = pattern.search(words)
    if match is None:
        return words, None
    return words[: match.start()].strip(), match[1].strip()


def _without(words: str, match: re.Match[str]) -> str:
    return f"{words[: match.start()]} {words[match.end() :]}".strip()
