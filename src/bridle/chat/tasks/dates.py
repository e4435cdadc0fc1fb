"""Dates as people write them: "tomorrow", "next Friday 5pm", "in 3 days", "end of month".

`parse_date(text, now)` reads one in the time zone of `now` and returns a day, or a day with a time.
It never guesses: if the words could mean two things, `UnclearDate` says what to write instead.
Pure; it does not look at the clock.

Choices that people differ on, made once: "next Friday" is the Friday of the next week (weeks start
on Monday), "Friday" the first one after today; "next week" is seven days from now; without a year
it is the next such day. A time that the clocks skip or show twice is not guessed either, unless
the UTC offset is given.
"""

import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from bridle.chat.tasks.date_words import (
    MONTH,
    MONTHS,
    NUMBER,
    ORDINALS,
    SLIPS,
    WEEKDAY,
    WEEKDAYS,
    UnclearDate,
    month,
    number,
    parse_duration,
    split_day_and_time,
    split_time,
    unknown_date,
    weekday,
)

_TH = r"(?:st|nd|rd|th)?"
_NAMED = rf"(?:(?P<name>{WEEKDAY}) )?"
_ISO_DAY = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")
_DAY_MONTH = re.compile(
    rf"{_NAMED}(?P<d>\d{{1,2}}){_TH}(?: of)? (?P<m>{MONTH})(?: (?P<y>\d{{4}}))?"
)
_MONTH_DAY = re.compile(rf"{_NAMED}(?P<m>{MONTH}) (?P<d>\d{{1,2}}){_TH}(?: (?P<y>\d{{4}}))?")
_DOTS = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.(\d{4}))?")
_SLASHES = re.compile(r"(\d{1,2})[/-](\d{1,2})(?:[/-](\d{4}|\d{2}))?")
_ORDINAL_DAY = re.compile(
    rf"{_NAMED}(?P<d>\d{{1,2}})(?:st|nd|rd|th)(?P<month> of (?:this |(?P<n>next) )?month)?"
)


def parse_written_day(words: str, today: date) -> date | None:
    """Return the day that is written, or None. Raise `UnclearDate`."""
    if found := _ISO_DAY.fullmatch(words):
        return _check_date(int(found[1]), int(found[2]), int(found[3]))
    if found := _DAY_MONTH.fullmatch(words) or _MONTH_DAY.fullmatch(words):
        day = _day_in_year(found["y"], month(found["m"]), int(found["d"]), today)
        return _check_weekday(day, found["name"])
    if found := _DOTS.fullmatch(words):
        return _day_in_year(found[3], int(found[2]), int(found[1]), today)
    if found := _SLASHES.fullmatch(words):
        return _day_with_slashes(found, today)
    if found := _ORDINAL_DAY.fullmatch(words):
        day = _ordinal(int(found["d"]), bool(found["n"]), today)
        if found["month"] and not found["n"] and day.month != today.month:
            raise UnclearDate("That day of this month is over.", hint="Say which day you mean.")
        return _check_weekday(day, found["name"])
    return None


def _day_with_slashes(found: re.Match[str], today: date) -> date:
    first, second = int(found[1]), int(found[2])
    year = f"20{found[3]}" if found[3] and len(found[3]) == 2 else found[3]
    if first <= 12 and second <= 12 and first != second:
        ways = f"'{first} {MONTHS[second - 1].title()}' or '{second} {MONTHS[first - 1].title()}'"
        if 0 in (first, second):
            raise _no_day()
        raise UnclearDate(f"'{found[0]}' could be two different days.", hint=f"Say {ways}.")
    at, day = (first, second) if second > 12 else (second, first)
    return _day_in_year(year, at, day, today)


def _day_in_year(year: str | None, at: int, day: int, today: date) -> date:
    """Return the day in that year, or the next such day."""
    if year:
        return _check_date(int(year), at, day)
    if not 1 <= at <= 12:
        raise _no_day()
    passed = (at, day) < (today.month, today.day)
    return _check_date(today.year + passed, at, day)


def _ordinal(day: int, following: bool, today: date) -> date:
    """Return the next such day of a month, skipping months that are too short."""
    if not 1 <= day <= 31:
        raise _no_day()
    whole = today.year * 12 + today.month - 1 + (1 if following or day < today.day else 0)
    while day > monthrange(whole // 12, whole % 12 + 1)[1]:
        if following:
            raise _no_day()
        whole += 1
    return _check_date(whole // 12, whole % 12 + 1, day)


def _check_date(year: int, at: int, day: int) -> date:
    try:
        return date(year, at, day)
    except ValueError:
        raise _no_day(year, at, day) from None


def _no_day(year: int = 0, at: int = 0, day: int = 0) -> UnclearDate:
    if (at, day) == (2, 29) and year:
        said = f"There is no 29 February in {year}."
        return UnclearDate(said, hint=f"Say '28 February {year}' or '1 March {year}'.")
    return UnclearDate("There is no such day in the calendar.")


def _check_weekday(day: date, name: str | None) -> date:
    """Raise `UnclearDate` if the weekday beside a date is wrong."""
    if name and weekday(name) != day.weekday():
        known = WEEKDAYS[weekday(name)].title()
        raise UnclearDate(
            f"{day.isoformat()} is a {day:%A}, not a {known}.", hint="Say only one of them."
        )
    return day


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


def parse_day(words: str, today: date) -> date | None:
    """Return the day that the words mean, or None. Raise `UnclearDate` if it could be several."""
    for pattern, read in _TABLE:
        if found := pattern.fullmatch(words):
            return read(found, today)
    return parse_written_day(words, today)


def add_months(day: date, count: int) -> date:
    """Return the same day some months later; the last day if that month is shorter."""
    whole = day.year * 12 + day.month - 1 + count
    year, month = whole // 12, whole % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError("no such year")
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def shift_day(day: date, count: int, unit: str) -> date:
    """Return the day some days, weeks, months or years later."""
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
    return shift_day(today, number(found[1]), found[2])


def _from(found: re.Match[str], today: date) -> date:
    start = today if found[3] in ("now", "today") else parse_day(found[3], today)
    if start is None:
        raise unknown_date(found[3])
    return shift_day(start, number(found[1]), found[2])


def _ago(found: re.Match[str], today: date) -> date:
    return shift_day(today, -number(found[1]), found[2])


def _coming(found: re.Match[str], today: date) -> date:
    wanted = weekday(found[1])
    if wanted == today.weekday():
        raise UnclearDate("Today is that day already.", hint=f"Say 'today' or 'next {found[1]}'.")
    return today + timedelta(days=(wanted - today.weekday()) % 7)


def _this(found: re.Match[str], today: date) -> date:
    day = _week(today) + timedelta(days=weekday(found[1]))
    if day < today:
        raise UnclearDate(f"This week's {found[1]} is over.", hint=f"Say 'next {found[1]}'.")
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
        raise UnclearDate("That month has no such day.")
    return day


def _ahead_only(day: date, today: date) -> date:
    if day < today:
        raise UnclearDate(f"That day, {day.isoformat()}, is over.", hint="Say which day you mean.")
    return day


def _month_of(found: re.Match[str], at: int, today: date) -> date:
    """Return the first day of a month, from three groups: "this" or "next", its name, its year."""
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
    raise UnclearDate(f"{name} has many days.", hint=f"Say which one, such as '15 {name}'.")


def _stretch(found: re.Match[str], today: date) -> date:
    raise UnclearDate(
        "That is more than one day.", hint="Say which day, such as 'Friday' or '3 June'."
    )


def _holiday(found: re.Match[str], today: date) -> date:
    month, day = _HOLIDAYS[found[1]]
    year = int(found[2]) if found[2] else today.year + ((month, day) < (today.month, today.day))
    return date(year, month, day)


def _day_after(found: re.Match[str], today: date) -> date:
    start = parse_day(found[1], today)
    if start is None:
        raise unknown_date(found[1])
    return start + timedelta(days=1)


def _end_of_day(found: re.Match[str], today: date) -> date:
    day = parse_day(found[1], today)
    if day is None:
        raise unknown_date(found[1])
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
    return shift_day(today, 1, found[1])


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


def _days_from_today(count: int) -> Read:
    return lambda found, today: today + timedelta(days=count)


def _short(unit: str) -> Read:
    return lambda found, today: _start_of(unit, 1, today) - timedelta(days=1)


_OF = r"(?:of )?(?:this |(next) )?(?:the )?"
_MONTH_OF = rf"(?:(this|next)? ?month|({MONTH})(?: (\d{{4}}))?)"
_SOMEWHERE = "(?:early|late|mid|middle|sometime|later|of|in|-)"
_ROWS: tuple[tuple[str, Read], ...] = (
    (r"(?:today|now|this day|later today)", _days_from_today(0)),
    (r"(?:tomorrow|next day)", _days_from_today(1)),
    (r"(?:(?:a )?day after tomorrow|overmorrow)", _days_from_today(2)),
    (r"yesterday", _days_from_today(-1)),
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

LONGEST = 100  # characters of a date
_FILLING = re.compile(
    r"\b(?:no|not) later than\b|\bat the (?:very )?latest\b|\bor so\b|\bif (?:possible|i can)\b"
    r"|\b(?:maybe|perhaps|possibly|hopefully|ideally|preferably)\b"
    r"|\b(?:by|due|until|till|before|on|over|the|at|@|for|about|around)\b|@"
)
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})[t ](\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s*(z|utc|[+-]\d{2}:?\d{2})"
)
_ORDINAL = re.compile(rf"\b({'|'.join(sorted(ORDINALS, key=len, reverse=True))})\b")
_DASHED = re.compile(rf"\b(\d{{1,2}})-({MONTH})(?:-(?=\d{{4}}))?")
_SPELLED = {
    **SLIPS,
    r"first thing(?: in the morning)?": "morning",
    r"new year'?s'?": "new years",
    r"valentine'?s'?(?: day)?": "valentines day",
}
_SPELLINGS = [(re.compile(rf"\b{words}(?!\w)"), right) for words, right in _SPELLED.items()]
_REPEATS = re.compile(
    r"\b(?:every|each|daily|weekly|fortnightly|monthly|yearly|annually|weekends|recurring"
    r"|nightly|hourly|quarterly|bi-?weekly|(?:once|twice|times) (?:a|per)"
    r"|mornings|evenings|nights|afternoons|"
    + "|".join(f"{name}s" for name in WEEKDAYS)
    + r")\b|^weekdays$"
)
_SEVERAL = re.compile(r"\b(?:or|and|between|to|through)\b|\d-\d|[a-z]-[a-z]")
_HALF = re.compile(
    r"(?:in the |at )?(?:am|pm|a\.m|p\.m|morning|afternoon|evening|night)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class When:
    """A day in the user's time zone; with a `moment` in UTC if it has a time."""

    day: date
    moment: datetime | None = None

    def to_wire(self) -> str:
        """Return a day or a moment in UTC, in ISO 8601."""
        return self.day.isoformat() if self.moment is None else self.moment.isoformat()


def parse_date(text: str, now: datetime) -> When:
    """Parse a date that was written at `now`. Raise `UnclearDate`."""
    if now.tzinfo is None:
        raise ValueError("`now` needs a time zone")
    words = _normalize(text)
    if not words:
        raise UnclearDate("No date was given.")
    try:
        return _parse(words, now, text)
    except (OverflowError, OSError) as error:  # beyond year 9999
        raise UnclearDate("That date is too far away.") from error


def move_date(due: str, count: int, unit: str) -> str:
    """Move a date of a result by some days or hours, and return it. Raise `UnclearDate`."""
    moment, has_time = datetime.fromisoformat(due), len(due) > 10
    try:
        if unit.startswith(("hour", "minute")):
            if not has_time:
                raise UnclearDate("No time was given.", hint="Say a day and a time.")
            seconds = count * (3600 if unit.startswith("hour") else 60)
            return (moment.astimezone(UTC) + timedelta(seconds=seconds)).isoformat()
        day = shift_day(moment.date(), count, unit)
    except (OverflowError, ValueError) as error:
        raise UnclearDate("That date is too far away.") from error
    return f"{day} {moment:%H:%M}" if has_time else f"{day}"


def complete_date(earlier: str, answer: str) -> str:
    """Complete an earlier, unclear date with an answer.

    "friday at 5" and "5pm" is "friday 5pm"; "3/4 at noon" and "3 April" is "3 April noon".
    """
    try:
        earlier, answer = _normalize(earlier), _normalize(answer)
    except UnclearDate:  # too long for a date; whoever reads it says so
        return answer
    answer = f"at {answer}" if re.fullmatch(r"\d{1,2}", answer) else answer
    day, clock = split_day_and_time(earlier)
    new_day, new_clock = split_day_and_time(answer)
    if _HALF.fullmatch(answer):
        return f"{day} {clock} {answer}".strip()
    return " ".join(f"{_without_filling(new_day) or day} {new_clock or clock}".split())


def keep_day(text: str, due: str | None, now: datetime) -> str:
    """Add the day that a task is due to words that name only a time, such as "7pm".

    `due` is as in results. Only a day after today is added: otherwise "7pm" means the next 7pm.
    """
    if due is None or date.fromisoformat(due[:10]) <= now.date():
        return text
    try:
        day, clock = split_day_and_time(_normalize(text))
    except UnclearDate:  # too long for a date; whoever reads it says so
        return text
    return text if not clock or _without_filling(day) else f"{due[:10]} {clock}"


def is_day_half(text: str) -> bool:
    """Do the words only name a half of the day, such as "pm" or "in the evening"?"""
    return _HALF.fullmatch(text.strip(" .!?")) is not None


def _parse(words: str, now: datetime, text: str) -> When:
    if exact := _ISO.fullmatch(words):
        return _parse_exact(exact, now)
    if _REPEATS.search(words):
        raise UnclearDate(
            "I can't repeat a task.", hint="Say when it is due next, such as 'next Monday'."
        )
    if moment := parse_duration(words, now):  # "in 2 hours": by the clock, not by the calendar
        return When(moment.astimezone(now.tzinfo).date(), moment.astimezone(UTC))
    said, rest = split_time(words)
    rest = _without_filling(rest)
    today = now.date()
    if not rest and said is None:
        raise unknown_date(text)
    try:
        day = parse_day(rest, today) if rest else said.next_day(now) if said else None
    except ValueError as error:  # a year that no calendar has
        raise UnclearDate("There is no such day in the calendar.") from error
    if day is None:
        if _SEVERAL.search(words):
            raise UnclearDate("That could be more than one day or time.", hint="Say one of them.")
        raise unknown_date(text)
    if said is None:
        return When(day)
    day, clock = said.on(day)
    return When(day, _to_moment(day, clock, now))


def _without_filling(words: str) -> str:
    return " ".join(_FILLING.sub(" ", words).split())


def _normalize(text: str) -> str:
    """Return lower case with ASCII digits and without punctuation."""
    if len(text) > LONGEST:
        raise UnclearDate("That is too long for a date.")
    shown = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    digits = "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in shown
    )
    words = " ".join(re.sub(r"[,;!?\"“”()]|\.(?=\s|$)", " ", digits).split())
    for pattern, right in _SPELLINGS:
        words = pattern.sub(right, words)
    words = _DASHED.sub(r"\1 \2 ", words.replace("–", "-"))
    return " ".join(
        _ORDINAL.sub(lambda match: _with_ordinal_ending(ORDINALS[match[0]]), words).split()
    )


def _with_ordinal_ending(place: int) -> str:
    """Return 1st, 2nd, 3rd, 4th."""
    ending = "th" if 10 < place < 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _parse_exact(found: re.Match[str], now: datetime) -> When:
    """Parse a moment with a UTC offset."""
    offset = "+00:00" if found[3] in ("z", "utc") else found[3]
    clock = found[2] if found[2].index(":") == 2 else f"0{found[2]}"
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{clock}{offset}")
        day = moment.astimezone(now.tzinfo).date()
        return When(day, moment.astimezone(UTC))
    except ValueError as error:
        raise UnclearDate("There is no such day or time in the calendar.") from error


def _to_moment(day: date, clock: time, now: datetime) -> datetime:
    """Return a time of a day. Raise `UnclearDate` if the clocks skip it or show it twice."""
    first = datetime.combine(day, clock, now.tzinfo)
    second = first.replace(fold=1)
    if first.utcoffset() == second.utcoffset():
        return first.astimezone(UTC)
    shown = f"{clock:%H:%M}"
    if first.astimezone(UTC).astimezone(now.tzinfo).replace(tzinfo=None, fold=0) != (
        first.replace(tzinfo=None)
    ):
        raise UnclearDate(
            f"The clocks skip {shown} on {day.isoformat()}.",
            hint="Say an hour earlier or later.",
        )
    early, late = (_utc_offset(one) for one in (first, second))
    raise UnclearDate(
        f"The clocks show {shown} twice on {day.isoformat()}.",
        hint=f"Say which: {day.isoformat()} {shown}{early} or {day.isoformat()} {shown}{late}.",
    )


def _utc_offset(moment: datetime) -> str:
    said = moment.strftime("%z")
    return f"{said[:3]}:{said[3:5]}"
