"""Days that are written down: 2026-03-14, 14 March, March 14th 2026, 14.3., 3/14, the 15th. Pure.

Without a year it is the next such day. Where day and month could be swapped it is unclear.
"""

import re
from calendar import monthrange
from datetime import date

from bridle.chat.tasks.dates_spoken import MONTH, MONTHS, WEEKDAY, WEEKDAYS, Unclear, month, weekday

_TH = r"(?:st|nd|rd|th)?"
_NAMED = rf"(?:(?P<name>{WEEKDAY}) )?"
_ISO = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")
_DAY_MONTH = re.compile(
    rf"{_NAMED}(?P<d>\d{{1,2}}){_TH}(?: of)? (?P<m>{MONTH})(?: (?P<y>\d{{4}}))?"
)
_MONTH_DAY = re.compile(rf"{_NAMED}(?P<m>{MONTH}) (?P<d>\d{{1,2}}){_TH}(?: (?P<y>\d{{4}}))?")
_DOTS = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.(\d{4}))?")
_SLASHES = re.compile(r"(\d{1,2})[/-](\d{1,2})(?:[/-](\d{4}|\d{2}))?")
_ORDINAL = re.compile(
    rf"{_NAMED}(?P<d>\d{{1,2}})(?:st|nd|rd|th)(?P<month> of (?:this |(?P<n>next) )?month)?"
)


def written_day(words: str, today: date) -> date | None:
    """The day that is written there, or nothing. Raise `Unclear`."""
    if found := _ISO.fullmatch(words):
        return _day(int(found[1]), int(found[2]), int(found[3]))
    if found := _DAY_MONTH.fullmatch(words) or _MONTH_DAY.fullmatch(words):
        day = _dated(found["y"], month(found["m"]), int(found["d"]), today)
        return _checked(day, found["name"])
    if found := _DOTS.fullmatch(words):
        return _dated(found[3], int(found[2]), int(found[1]), today)
    if found := _SLASHES.fullmatch(words):
        return _swapped(found, today)
    if found := _ORDINAL.fullmatch(words):
        day = _ordinal(int(found["d"]), bool(found["n"]), today)
        if found["month"] and not found["n"] and day.month != today.month:
            raise Unclear("That day of this month is over.", hint="Say which day you mean.")
        return _checked(day, found["name"])
    return None


def _swapped(found: re.Match[str], today: date) -> date:
    first, second = int(found[1]), int(found[2])
    year = f"20{found[3]}" if found[3] and len(found[3]) == 2 else found[3]
    if first <= 12 and second <= 12 and first != second:
        ways = f"'{first} {MONTHS[second - 1].title()}' or '{second} {MONTHS[first - 1].title()}'"
        if 0 in (first, second):
            raise _no_day()
        raise Unclear(f"'{found[0]}' could be two different days.", hint=f"Say {ways}.")
    at, day = (first, second) if second > 12 else (second, first)
    return _dated(year, at, day, today)


def _dated(year: str | None, at: int, day: int, today: date) -> date:
    """In the year that is said, or the next such day."""
    if year:
        return _day(int(year), at, day)
    if not 1 <= at <= 12:
        raise _no_day()
    passed = (at, day) < (today.month, today.day)
    return _day(today.year + passed, at, day)


def _ordinal(day: int, following: bool, today: date) -> date:
    """The next 15th; where a month is too short for it, that of the month after."""
    if not 1 <= day <= 31:
        raise _no_day()
    whole = today.year * 12 + today.month - 1 + (1 if following or day < today.day else 0)
    while day > monthrange(whole // 12, whole % 12 + 1)[1]:
        if following:
            raise _no_day()
        whole += 1
    return _day(whole // 12, whole % 12 + 1, day)


def _day(year: int, at: int, day: int) -> date:
    try:
        return date(year, at, day)
    except ValueError:
        raise _no_day(year, at, day) from None


def _no_day(year: int = 0, at: int = 0, day: int = 0) -> Unclear:
    if (at, day) == (2, 29) and year:
        said = f"There is no 29 February in {year}."
        return Unclear(said, hint=f"Say '28 February {year}' or '1 March {year}'.")
    return Unclear("There is no such day in the calendar.")


def _checked(day: date, name: str | None) -> date:
    """Where a weekday stands beside it, the two have to agree."""
    if name and weekday(name) != day.weekday():
        known = WEEKDAYS[weekday(name)].title()
        raise Unclear(
            f"{day.isoformat()} is a {day:%A}, not a {known}.", hint="Say one or the other."
        )
    return day
