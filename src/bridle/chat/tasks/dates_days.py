"""Which day some words mean, said on another day. Pure; weeks start on Monday.

A table of patterns, the first that fits the whole of the words counts. Days that are written
(14 March, 2026-03-14) are in `dates_written.py`.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta

from bridle.chat.tasks.dates_spoken import (
    MONTH,
    MONTHS,
    NUMBER,
    WEEKDAY,
    Unclear,
    month,
    number,
    unknown,
    weekday,
)
from bridle.chat.tasks.dates_written import written_day

_UNIT = r"(?:days?|weeks?|wks?|fortnights?|months?|years?|weekdays?|working days?|business days?)'?"
_HOLIDAYS = {  # those that are on the same day everywhere; any other is asked about
    "new year": (1, 1),
    "new years": (1, 1),
    "new years day": (1, 1),
    "valentines day": (2, 14),
    "halloween": (10, 31),
    "christmas eve": (12, 24),
    "xmas eve": (12, 24),
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "xmas": (12, 25),
    "xmas day": (12, 25),
    "boxing day": (12, 26),
    "new years eve": (12, 31),
    "new year eve": (12, 31),
}
Read = Callable[[re.Match[str], date], date]


def day_of(words: str, today: date) -> date | None:
    """The day, or nothing where the words mean none. Raise `Unclear` where they mean several."""
    for pattern, read in _TABLE:
        if found := pattern.fullmatch(words):
            return read(found, today)
    return written_day(words, today)


def add_months(day: date, count: int) -> date:
    """The same day so many months later; the last one where that month is shorter."""
    whole = day.year * 12 + day.month - 1 + count
    year, month = whole // 12, whole % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError("no such year")
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def shifted(day: date, count: int, unit: str) -> date:
    """So many days, weeks, months or years later."""
    if unit.startswith(("weekday", "working", "business")):
        return _working(day, count)
    if unit.startswith("day"):
        return day + timedelta(days=count)
    if unit.startswith("w"):
        return day + timedelta(weeks=count)
    if unit.startswith("fortnight"):
        return day + timedelta(weeks=2 * count)
    return add_months(day, count * (12 if unit.startswith("year") else 1))


def _working(day: date, count: int) -> date:
    if count > 5000:
        raise OverflowError("too many days to count")
    for _ in range(count):
        day += timedelta(days=1)
        while day.weekday() > 4:
            day += timedelta(days=1)
    return day


def _week(today: date) -> date:
    return today - timedelta(days=today.weekday())


def _ahead(found: re.Match[str], today: date) -> date:
    return shifted(today, number(found[1]), found[2])


def _from(found: re.Match[str], today: date) -> date:
    start = today if found[3] in ("now", "today") else day_of(found[3], today)
    if start is None:
        raise unknown(found[3])
    return shifted(start, number(found[1]), found[2])


def _ago(found: re.Match[str], today: date) -> date:
    return shifted(today, -number(found[1]), found[2])


def _coming(found: re.Match[str], today: date) -> date:
    wanted = weekday(found[1])
    if wanted == today.weekday():
        raise Unclear("Today is that day already.", hint=f"Say 'today' or 'next {found[1]}'.")
    return today + timedelta(days=(wanted - today.weekday()) % 7)


def _this(found: re.Match[str], today: date) -> date:
    day = _week(today) + timedelta(days=weekday(found[1]))
    if day < today:
        raise Unclear(f"This week's {found[1]} is over.", hint=f"Say 'next {found[1]}'.")
    return day


def _in_month(found: re.Match[str], today: date) -> date:
    """ "the first Monday of next month", "the last Friday in March"."""
    first = _month_of(found, 3, today)
    day = _weekday_of_month(found[1], weekday(found[2]), first)
    if day < today and found[4] and not found[5]:
        day = _weekday_of_month(found[1], weekday(found[2]), add_months(first, 12))
    return day if found[5] else _ahead_only(day, today)


def _weekday_of_month(place: str, wanted: int, first: date) -> date:
    last = add_months(first, 1) - timedelta(days=1)
    if place == "last":
        return last - timedelta(days=(last.weekday() - wanted) % 7)
    day = first + timedelta(days=(wanted - first.weekday()) % 7 + 7 * (int(place[0]) - 1))
    if day > last:
        raise Unclear("That month has no such day.")
    return day


def _ahead_only(day: date, today: date) -> date:
    if day < today:
        raise Unclear(f"That day, {day.isoformat()}, is over.", hint="Say which day you mean.")
    return day


def _month_of(found: re.Match[str], at: int, today: date) -> date:
    """The first day of a month, in three groups: "this" or "next", or its name, and its year."""
    which, name, year = found[at], found[at + 1], found[at + 2]
    if not name:
        return add_months(today.replace(day=1), which == "next")
    number = month(name)
    return date(int(year) if year else today.year + (number < today.month), number, 1)


def _month_end(found: re.Match[str], today: date) -> date:
    return add_months(_month_of(found, 1, today), 1) - timedelta(days=1)


def _month_start(found: re.Match[str], today: date) -> date:
    first = _month_of(found, 1, today)
    if found[3]:
        return first
    return add_months(first, 12) if first < today and found[2] else _ahead_only(first, today)


def _whole_month(found: re.Match[str], today: date) -> date:
    name = MONTHS[month(found[1]) - 1].title()
    raise Unclear(f"{name} has many days.", hint=f"Say which one, such as '15 {name}'.")


def _stretch(found: re.Match[str], today: date) -> date:
    raise Unclear("That is more than one day.", hint="Say which day, such as 'Friday' or '3 June'.")


def _holiday(found: re.Match[str], today: date) -> date:
    month, day = _HOLIDAYS[found[1]]
    year = int(found[2]) if found[2] else today.year + ((month, day) < (today.month, today.day))
    return date(year, month, day)


def _day_after(found: re.Match[str], today: date) -> date:
    start = day_of(found[1], today)
    if start is None:
        raise unknown(found[1])
    return start + timedelta(days=1)


def _end_of_day(found: re.Match[str], today: date) -> date:
    day = day_of(found[1], today)
    if day is None:
        raise unknown(found[1])
    return day


def _next(found: re.Match[str], today: date) -> date:
    return _week(today) + timedelta(days=7 + weekday(found[1] or found[2]))


def _last(found: re.Match[str], today: date) -> date:
    back = (today.weekday() - weekday(found[1])) % 7 or 7
    return today - timedelta(days=back)


def _weekend(found: re.Match[str], today: date) -> date:
    saturday = _week(today) + timedelta(days=5)
    if found[1] == "next":
        return saturday + timedelta(days=7)
    return max(saturday, today)


def _next_stretch(found: re.Match[str], today: date) -> date:
    return shifted(today, 1, found[1])


def _end(found: re.Match[str], today: date) -> date:
    start = _start_of(found[2], 1 if found[1] == "next" else 0, today)
    last = _start_of(found[2], 1, start) - timedelta(days=1)
    if found[2] == "week":  # for most people a week ends with its work
        friday = last - timedelta(days=2)
        return friday if friday >= today else last
    return last


def _start(found: re.Match[str], today: date) -> date:
    return _ahead_only(_start_of(found[2], 1 if found[1] == "next" else 0, today), today)


def _start_of(unit: str, ahead: int, today: date) -> date:
    if unit == "week":
        return _week(today) + timedelta(weeks=ahead)
    if unit == "month":
        return add_months(today.replace(day=1), ahead)
    return add_months(date(today.year, 1, 1), 12 * ahead)


def _day(count: int) -> Read:
    return lambda found, today: today + timedelta(days=count)


def _short(unit: str) -> Read:
    return lambda found, today: _start_of(unit, 1, today) - timedelta(days=1)


_OF = r"(?:of )?(?:this |(next) )?(?:the )?"
_MONTH_OF = rf"(?:(this|next)? ?month|({MONTH})(?: (\d{{4}}))?)"
_SOMEWHERE = "(?:early|late|mid|middle|sometime|later|of|in|-)"
_ROWS: tuple[tuple[str, Read], ...] = (
    (r"(?:today|now|this day|later today)", _day(0)),
    (r"(?:tomorrow|next day)", _day(1)),
    (r"(?:(?:a )?day after tomorrow|overmorrow)", _day(2)),
    (r"yesterday", _day(-1)),
    (r"(?:a )?day after (?!today$)(.+)", _day_after),
    (rf"(?:in|within|after) ({NUMBER}) ({_UNIT})(?: time)?", _ahead),
    (rf"({NUMBER}) ({_UNIT}) (?:from|after) (.+)", _from),
    (rf"({NUMBER}) ({_UNIT}) later", _ahead),
    (rf"({NUMBER}) ({_UNIT}) ago", _ago),
    (rf"(?:coming )?({WEEKDAY})", _coming),
    (rf"this (?:coming )?({WEEKDAY})", _this),
    (rf"(?:next ({WEEKDAY})|({WEEKDAY}) next week)", _next),
    (rf"last ({WEEKDAY})", _last),
    (r"(?:this |(next) )?weekend", _weekend),
    (r"next (week|month|year|fortnight)", _next_stretch),
    (rf"end {_OF}(week|month|year)", _end),
    (rf"(?:start|beginning|1st day) {_OF}(week|month|year)", _start),
    (rf"(?:very )?last day {_OF}(month|year)", _end),
    (r"eom", _short("month")),
    (r"eoy", _short("year")),
    (rf"(?:end|last day) of {_MONTH_OF}", _month_end),
    (rf"(?:start|beginning|1st day) of {_MONTH_OF}", _month_start),
    (rf"end of (today|tomorrow|{WEEKDAY})", _end_of_day),
    (rf"([1-5](?:st|nd|rd|th)|last) ({WEEKDAY}) (?:of|in) {_MONTH_OF}", _in_month),
    (rf"(?:in |this |next |of )*({MONTH})(?: \d{{4}})?", _whole_month),
    (rf"(?:{_SOMEWHERE} )*(?:this|next) (?:week|month|year)", _stretch),
    (rf"({'|'.join(sorted(_HOLIDAYS, key=len, reverse=True))})(?: (\d{{4}}))?", _holiday),
)

_TABLE = tuple((re.compile(pattern), read) for pattern, read in _ROWS)
