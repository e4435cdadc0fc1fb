"""Dates, priorities, tags and notes in what a person says of a task, taken out of its words.

What stands in quotes is left alone. A date is what `dates` understands at the end of the words;
whether it is right is the tool's to say.
"""

import re
from datetime import UTC, datetime

from bridle.chat.tasks.dates import understand
from bridle.chat.tasks.dates_spoken import Unclear
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
_STARTS = re.compile(
    r"(?:due|by|on|at|before|until|till|for|this|next|in|end|today|tonight|tomorrow|tmrw"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
    r"|jan\w*|feb\w*|march|mar|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*"
    r"|\d{4}-\d\d-\d\d\S*|\d{1,2}[./]\d{1,2}\S*|\d{1,2}(?:st|nd|rd|th)|noon|midnight)[,.]?",
    re.IGNORECASE,
)
_TOKENS = 7


def read_fields(words: str, now: datetime | None = None) -> tuple[str, Fields]:
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
    words, due = read_due(" ".join(words.split()), now)
    named = tuple(tag.strip("#").lower() for tag in tags if tag.strip("#"))
    return words.strip(" ,;"), Fields(None, notes, priority, due, named or None)


def read_due(words: str, now: datetime | None = None) -> tuple[str, str | None]:
    """The words without the date at their end, and the date, as it was said."""
    now = now or datetime.now(UTC)
    if match := _MARKED.search(words):
        said = match[1].strip()
        if _means_a_day(said, now) or not _STARTS.match(match[0].strip(" ,;(")):
            return words[: match.start()].strip(), said
        return words[: match.start()].strip(), said
    tokens = words.split()
    for start in range(max(1, len(tokens) - _TOKENS), len(tokens)):
        said = " ".join(tokens[start:]).strip(".,;!")
        if _STARTS.fullmatch(tokens[start]) and _means_a_day(said, now):
            return " ".join(tokens[:start]).strip(" ,;"), said
    return words, None


def _means_a_day(words: str, now: datetime) -> bool:
    try:
        understand(words, now)
    except (Unclear, ValueError):
        return False
    return True


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
