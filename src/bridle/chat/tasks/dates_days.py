"""Which day some words mean, said on another day. Pure; weeks start on Monday.

A table of patterns, the first that fits the whole of the words counts. Days that are written
(14 March, 2026-03-14) are in `dates_written.py`.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta

from bridle.chat.tasks.dates_spoken import NUMBER, WEEKDAY, Unclear, number, unknown, weekday
from bridle.chat.tasks.dates_written import written_day

_UNIT = r"days?|weeks?|wks?|fortnights?|months?|years?|weekdays?|working days?|business days?"
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
    return _start_of(found[2], 1 if found[1] == "next" else 0, today)


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
_ROWS: tuple[tuple[str, Read], ...] = (
    (r"(?:today|now|this day)", _day(0)),
    (r"(?:tomorrow|tmrw|tmr|tomorow|next day)", _day(1)),
    (r"(?:(?:a )?day after tomorrow|overmorrow)", _day(2)),
    (r"yesterday", _day(-1)),
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
    (rf"(?:start|beginning|first day) {_OF}(week|month|year)", _start),
    (rf"(?:very )?last day {_OF}(month|year)", _end),
    (r"eom", _short("month")),
    (r"eoy", _short("year")),
)

_TABLE = tuple((re.compile(pattern), read) for pattern, read in _ROWS)
