"""The fields of a task: clean and check what is written, and format what is returned. Pure.

A title is one line without control or invisible characters. If it is too long it is refused, never
cut: nobody should find half of what they wrote.
"""

import re
import unicodedata
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from bridle.chat.db import Task
from bridle.chat.tasks.date_words import MONTH, UnclearDate, UnknownDate, month
from bridle.chat.tasks.dates import When, add_months, parse_date
from bridle.chat.tools.toolbox import ToolFailed
from bridle.workspace.text import neutral, one_line

TITLE, NOTES, TAG, TAGS = 200, 4_000, 50, 20  # characters; the last: how many
PRIORITIES = ("Low", "Medium", "High")
_SYNONYMS = {"low": "Low", "medium": "Medium", "high": "High", "normal": "Medium"}
_SYNONYMS |= {"med": "Medium", "urgent": "High", "important": "High", "critical": "High"}
_DROPPED = frozenset({"Cc", "Cs", "Cf", "Co", "Cn", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"
_MARKS = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
NO_DUE = frozenset({"none", "no", "never", "no date", "nothing", "clear", "remove"})


def clean_text(text: str, *, keep: str = "") -> str:
    """Remove control and invisible characters, except those in `keep`."""
    kept = "".join(
        character if _is_kept(character, keep) else " " if character in "\n\r\t\v\f" else ""
        for character in text
    )
    kept = unicodedata.normalize("NFC", kept)
    return kept if neutral(kept, keep=keep) == kept else _MARKS.sub("", kept)


def _is_kept(one: str, keep: str) -> bool:
    return one in keep or one in _JOINERS or unicodedata.category(one) not in _DROPPED


def parse_title(text: str) -> str:
    """Return a valid title. Raise `ToolFailed`."""
    found = " ".join(clean_text(text).split())
    if not found:
        raise ToolFailed("invalid_input", "A task needs a title.", field="title")
    return _check_length(found, TITLE, "title")


def parse_notes(text: str) -> str:
    """Return valid notes, which may have several lines. Raise `ToolFailed`."""
    return _check_length(clean_text(text.replace("\r\n", "\n"), keep="\n").strip(), NOTES, "notes")


def parse_tags(tags: list[str]) -> list[str]:
    """Return the tags, each once, in lower case, without #. Raise `ToolFailed`."""
    found = [" ".join(clean_text(tag).split()).lstrip("#").strip().casefold() for tag in tags]
    kept = list(dict.fromkeys(tag for tag in found if tag))
    if len(kept) > TAGS:
        raise ToolFailed("invalid_input", f"A task can have at most {TAGS} tags.", field="tags")
    return [_check_length(tag, TAG, "tags") for tag in kept]


def parse_priority(text: str) -> str:
    """Return one of the three priorities. Raise `ToolFailed`."""
    found = _SYNONYMS.get(" ".join(text.casefold().split()).removesuffix(" priority"))
    if found is None:
        said = f"'{one_line(text, 40)}' is not a priority. Use Low, Medium or High."
        raise ToolFailed("invalid_priority", said, field="priority")
    return found


def parse_due(text: str, now: datetime) -> When | None:
    """Parse a due date in the time zone of `now`. Return None if the words remove it."""
    if " ".join(text.casefold().split()) in NO_DUE:
        return None
    try:
        return parse_date(text, now)
    except UnclearDate as error:
        hint = "" if isinstance(error, UnknownDate) else error.sentence
        raise ToolFailed("invalid_date", error.sentence, field="due", hint=hint) from error


_BY = re.compile(r"(?:due )?(?:(?P<until>by|until|till|up to)|(?P<before>before)) ")


def parse_days(text: str, now: datetime) -> tuple[date | None, date]:
    """Parse a span of days, such as "friday", "next week" or "by 24 December".

    Weeks end on Sunday. Of this week and this month it is the rest. Without a first day it is
    everything up to the last. Raise `ToolFailed`.
    """
    words, today = " ".join(text.casefold().split()), now.date()
    sunday = today + timedelta(days=6 - today.weekday())
    stretch = re.fullmatch(r"(?:the )?(this |next )?(week|weekend|month)", words)
    if stretch is not None:
        later = stretch[1] == "next "
        if stretch[2] == "month":
            first = add_months(today.replace(day=1), later)
            return max(first, today), add_months(first, 1) - timedelta(days=1)
        last = sunday + timedelta(weeks=later)
        first = last - timedelta(days=1 if stretch[2] == "weekend" else 6)
        return max(first, today), last
    if named := re.fullmatch(rf"(?:in )?({MONTH})(?: (\d{{4}}))?", words):
        number = month(named[1])
        year = int(named[2] or today.year + (number < today.month))
        first = date(min(max(1, year), 9998), number, 1)
        return first, add_months(first, 1) - timedelta(days=1)
    when = parse_due(words, now)
    if when is None or re.fullmatch(r"next (?:year|fortnight)", words):
        said = "That is more than one day."
        raise ToolFailed("invalid_date", said, field="due", hint="Say a day, a week or a month.")
    if match := _BY.match(words):
        return None, when.day - timedelta(days=bool(match["before"]))
    return when.day, when.day


def set_due(task: Task, when: When | None) -> None:
    """Set the due date. A day is stored as its midnight in UTC, so it is the same in any zone."""
    task.due_has_time = when is not None and when.moment is not None
    task.due_at = None if when is None else when.moment or midnight(when)


def midnight(when: When) -> datetime:
    """Return the moment by which a day without a time is stored."""
    return datetime.combine(when.day, time(0), UTC)


def to_wire(task: Task, zone: tzinfo) -> dict[str, Any]:
    """Return a task as it appears in results, with times in the user's time zone."""
    return {
        "id": task.id,
        "title": task.title,
        "notes": task.notes,
        "priority": task.priority,
        "due": _due(task, zone),
        "tags": list(task.tags),
        "completed": task.completed,
        "completed_at": _moment(task.completed_at, zone),
        "created_at": _moment(task.created_at, zone),
    }


def _due(task: Task, zone: tzinfo) -> str | None:
    if task.due_at is None or task.due_has_time:
        return _moment(task.due_at, zone)
    return task.due_at.astimezone(UTC).date().isoformat()


def _moment(moment: datetime | None, zone: tzinfo) -> str | None:
    if moment is None:
        return None
    try:
        return moment.astimezone(zone).isoformat(timespec="seconds")
    except OverflowError:  # at the ends of the calendar
        return moment.isoformat(timespec="seconds")


def _check_length(text: str, limit: int, field: str) -> str:
    if len(text) > limit:
        said = f"It is too long: it has {len(text)} characters, and at most {limit} fit."
        raise ToolFailed("invalid_input", said, field=field, hint=said)
    return text
