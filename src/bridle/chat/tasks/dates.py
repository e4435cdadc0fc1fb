"""Dates as people say them: "tomorrow", "next Friday 5pm", "in 3 days", "end of month".

`understand(text, now)` reads one, in the zone of `now`, and says a day, or a day with a time. What
could mean two things is not guessed: `Unclear` says what to write instead. Pure; it asks no clock.

Choices that people differ on, made once: "next Friday" is the Friday of the next week (weeks start
on Monday), "Friday" the first one after today; "next week" is seven days from now; without a year
it is the next such day. A time that the clocks leave out, or show twice, is not guessed either,
unless the offset stands beside it.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from bridle.chat.tasks.dates_days import day_of, shifted
from bridle.chat.tasks.dates_spoken import MONTH, ORDINALS, SLIPS, WEEKDAYS, Unclear, unknown
from bridle.chat.tasks.dates_times import ahead_of, day_and_time, split_time

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
    """A day in the user's zone; `moment`, in UTC, where a time was said, too."""

    day: date
    moment: datetime | None = None

    def to_wire(self) -> str:
        """ISO 8601: a day, or a moment in UTC."""
        return self.day.isoformat() if self.moment is None else self.moment.isoformat()


def understand(text: str, now: datetime) -> When:
    """What the words mean, said at `now`. Raise `Unclear`."""
    if now.tzinfo is None:
        raise ValueError("dates are understood in a zone")
    words = _plain(text)
    if not words:
        raise Unclear("No date was given.")
    try:
        return _understood(words, now, text)
    except (OverflowError, OSError) as error:  # beyond year 9999
        raise Unclear("That date is further away than any calendar goes.") from error


def moved(due: str, count: int, unit: str) -> str:
    """A date as results say it, so many days or hours later, as words. Raise `Unclear`."""
    moment, has_time = datetime.fromisoformat(due), len(due) > 10
    try:
        if unit.startswith(("hour", "minute")):
            if not has_time:
                raise Unclear("No time was given.", hint="Say a day and a time.")
            seconds = count * (3600 if unit.startswith("hour") else 60)
            return (moment.astimezone(UTC) + timedelta(seconds=seconds)).isoformat()
        day = shifted(moment.date(), count, unit)
    except (OverflowError, ValueError) as error:
        raise Unclear("That date is further away than any calendar goes.") from error
    return f"{day} {moment:%H:%M}" if has_time else f"{day}"


def completed(earlier: str, answer: str) -> str:
    """The date with what an answer says of it: what the answer leaves out, the earlier words say.

    "friday at 5" and "5pm" is "friday 5pm"; "3/4 at noon" and "3 April" is "3 April noon".
    """
    try:
        earlier, answer = _plain(earlier), _plain(answer)
    except Unclear:  # too long for a date; whoever reads it says so
        return answer
    answer = f"at {answer}" if re.fullmatch(r"\d{1,2}", answer) else answer
    day, clock = day_and_time(earlier)
    new_day, new_clock = day_and_time(answer)
    if _HALF.fullmatch(answer):
        return f"{day} {clock} {answer}".strip()
    return " ".join(f"{_without_filling(new_day) or day} {new_clock or clock}".split())


def on_its_day(text: str, due: str | None, now: datetime) -> str:
    """Add the day that a task is due to words that name only a time, such as "7pm".

    `due` is as results say it. Only a day after today is added: otherwise "7pm" means the next 7pm.
    """
    if due is None or date.fromisoformat(due[:10]) <= now.date():
        return text
    try:
        day, clock = day_and_time(_plain(text))
    except Unclear:  # too long for a date; whoever reads it says so
        return text
    return text if not clock or _without_filling(day) else f"{due[:10]} {clock}"


def is_half(text: str) -> bool:
    """Do the words only say in which half of the day a time is: "pm", "in the evening"?"""
    return _HALF.fullmatch(text.strip(" .!?")) is not None


def _understood(words: str, now: datetime, text: str) -> When:
    if exact := _ISO.fullmatch(words):
        return _exact(exact, now)
    if _REPEATS.search(words):
        raise Unclear(
            "I can't repeat a task.", hint="Say when it is due next, such as 'next Monday'."
        )
    if moment := ahead_of(words, now):  # "in 2 hours": by the clock, not by the calendar
        return When(moment.astimezone(now.tzinfo).date(), moment.astimezone(UTC))
    said, rest = split_time(words)
    rest = _without_filling(rest)
    today = now.date()
    if not rest and said is None:
        raise unknown(text)
    try:
        day = day_of(rest, today) if rest else said.next_day(now) if said else None
    except ValueError as error:  # a year that no calendar has
        raise Unclear("There is no such day in the calendar.") from error
    if day is None:
        if _SEVERAL.search(words):
            raise Unclear("That could be more than one day or time.", hint="Say one of them.")
        raise unknown(text)
    if said is None:
        return When(day)
    day, clock = said.on(day)
    return When(day, _moment(day, clock, now))


def _without_filling(words: str) -> str:
    return " ".join(_FILLING.sub(" ", words).split())


def _plain(text: str) -> str:
    """Lower case, digits of any script as 0–9, no punctuation that says nothing."""
    if len(text) > LONGEST:
        raise Unclear("That is too long for a date.")
    shown = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    digits = "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in shown)
    words = " ".join(re.sub(r"[,;!?\"“”()]|\.(?=\s|$)", " ", digits).split())
    for pattern, right in _SPELLINGS:
        words = pattern.sub(right, words)
    words = _DASHED.sub(r"\1 \2 ", words.replace("–", "-"))
    return " ".join(_ORDINAL.sub(lambda match: _numbered(ORDINALS[match[0]]), words).split())


def _numbered(place: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    ending = "th" if 10 < place < 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _exact(found: re.Match[str], now: datetime) -> When:
    """A moment with its offset: nothing to guess."""
    offset = "+00:00" if found[3] in ("z", "utc") else found[3]
    clock = found[2] if found[2].index(":") == 2 else f"0{found[2]}"
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{clock}{offset}")
        day = moment.astimezone(now.tzinfo).date()
        return When(day, moment.astimezone(UTC))
    except ValueError as error:
        raise Unclear("There is no such day or time in the calendar.") from error


def _moment(day: date, clock: time, now: datetime) -> datetime:
    """That time on that day in the zone of `now`; the clocks may leave it out, or show it twice."""
    first = datetime.combine(day, clock, now.tzinfo)
    second = first.replace(fold=1)
    if first.utcoffset() == second.utcoffset():
        return first.astimezone(UTC)
    shown = f"{clock:%H:%M}"
    if first.astimezone(UTC).astimezone(now.tzinfo).replace(tzinfo=None, fold=0) != (
        first.replace(tzinfo=None)
    ):
        raise Unclear(
            f"The clocks skip {shown} on {day.isoformat()}.",
            hint="Say an hour earlier or later.",
        )
    early, late = (_offset(one) for one in (first, second))
    raise Unclear(
        f"The clocks show {shown} twice on {day.isoformat()}.",
        hint=f"Say which: {day.isoformat()} {shown}{early} or {day.isoformat()} {shown}{late}.",
    )


def _offset(moment: datetime) -> str:
    said = moment.strftime("%z")
    return f"{said[:3]}:{said[3:5]}"


__all__ = ["Unclear", "When", "completed", "is_half", "moved", "understand"]
