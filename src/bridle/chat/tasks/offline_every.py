"""Which tasks are meant where it is more than one: all, the done ones, those of a tag."""

import re
from dataclasses import replace

from bridle.chat.tasks.date_phrases import split_dates
from bridle.chat.tasks.offline_wish import Kind, Narrowing

_EVERY = re.compile(
    r"^(?:all|every|everything|each|them all)\b|^(?:my|the) (?:whole |entire )?(?:list|tasks)$"
    r"|^tasks$|^list$|^(?:my |the |all )*"
    r"(?:done|completed|finished|open|pending|unfinished|overdue|old) (?:tasks|ones|items)$"
    r"|^completed$|^(?:my |the |all )*tasks (?:tagged|with the tag|that are|which are|due)\b"
    r"|^(?:my |the |all )*(?:#\w[\w-]*|(?:high|low|medium)[ -]priority) tasks$",
    re.IGNORECASE,
)
_DONE = re.compile(r"\b(?:done|complete[d]?|finished|checked)\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:open|pending|unfinished|incomplete|not done|left|remaining|to do|todo|undone)\b", re.I
)
_IMPORTANT = re.compile(r"\b(?:most important|top priority)\b", re.IGNORECASE)
_STRETCHES = ("today", "tomorrow", "this week", "next week")
_NO_DAY = re.compile(r"(?:now|soon|asap|someday|whenever|later|first thing)", re.IGNORECASE)
_BEFORE_A_DAY = re.compile(r"^(?:(?:due|on|for|in|over|at|the)\s+)+(?=\S)", re.IGNORECASE)
_LEVEL = re.compile(r"\b(high|low|medium|urgent)(?:[ -]priority)?\b", re.IGNORECASE)
_TAG = re.compile(r"#(\w[\w-]*)|\btagged (?:with |as )?#?(\w[\w-]*)|\btag #?(\w[\w-]*)", re.I)
_KNOWN = re.compile(
    r"(?:a|all|and|any|are|as|at|dates?|done|due|each|entire|every|everything|for|from|have|in|is"
    r"|it|items?|left|list|my|no|not|now|of|off|old|on|ones?|open|our|overdue|past|please"
    r"|remaining|still|tag|tagged|tasks?|that|the|them|these|things?|this|those|to|to-?dos?|today|tomorrow|next"
    r"|undone|week|which|whole|with|without|incomplete|completed?|finished|checked|pending"
    r"|unfinished|late|urgent|(?:high|low|medium)(?:-priority)?|priority)"
)


def narrowed(text: str) -> Narrowing:
    """What a request for a list is narrowed to."""
    important = _IMPORTANT.search(text)
    status = "open" if _OPEN.search(text) else "done" if _DONE.search(text) else "all"
    level = _LEVEL.search(text)
    tag = _TAG.search(text)
    return Narrowing(
        status="open" if important and status == "all" else status,  # type: ignore[arg-type]
        due=_due(text, status == "done"),
        priority="High" if important else _named(level[1]) if level else "",
        tag=next(one for one in tag.groups() if one).lower() if tag else "",
    )


def read_every(what: str, kind: Kind) -> Narrowing | None:
    """The tasks that a request for many is about; None where it is about one."""
    words = what.strip(" .!?")
    if not _EVERY.search(words) or _says_more(words):
        return None
    found = narrowed(words)
    if found.status == "all" and kind in ("complete", "reopen"):
        status = "open" if kind == "complete" else "done"
        return replace(found, status=status)  # type: ignore[arg-type]
    return found


def _says_more(words: str) -> bool:
    """«all tasks about milk», «everything but the bike»: then it is not all of them."""
    rest = _TAG.sub("", words).casefold()
    return any(not _KNOWN.fullmatch(one) for one in re.findall(r"[\w'-]+", rest))


def _named(level: str) -> str:
    return {"high": "High", "urgent": "High", "medium": "Medium", "low": "Low"}[level.lower()]


def _due(text: str, done: bool) -> str:
    """When the tasks are due, as `list_tasks` takes it: a word of its own, or a day as said."""
    lower = text.lower()
    if "overdue" in lower or re.search(r"\b(?:late|past due)\b", lower):
        return "overdue"
    day = _BEFORE_A_DAY.sub("", split_dates(text).due or "").lower()
    if day in _STRETCHES:
        return day.replace(" ", "_")
    if day and not _NO_DAY.fullmatch(day) and not (done and "due" not in lower):
        return day
    if match := re.search(r"\b(today|tomorrow|this week|next week)\b", lower):
        return match[1].replace(" ", "_")
    return "none" if re.search(r"\b(?:no|without a?) ?(?:due )?dates?\b", lower) else "any"
