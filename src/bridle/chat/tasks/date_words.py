"""The words of dates and times of day: names, numbers, and how people say a time. Pure.

An hour from 1 to 12 without am or pm is ambiguous and is never guessed: "at 5", "half past 3",
"9:30". Written as on a 24-hour clock it is clear: "09:30", "10:30", "17:00".
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from bridle.errors import AgentError
from bridle.workspace.text import one_line

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_SMALL = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty")
NUMBERS = {name: value for value, name in enumerate(_SMALL)}
NUMBERS |= {name: 20 + 10 * place for place, name in enumerate(_TENS)}
NUMBERS |= {
    f"{ten}{between}{one}": NUMBERS[ten] + NUMBERS[one]
    for ten in _TENS
    for one in _SMALL[1:10]
    for between in ("-", " ")
}
CLOCK_NUMBERS = dict(NUMBERS)  # "a" and "a couple" are no hours
NUMBERS |= {"a": 1, "an": 1, "couple": 2, "a couple of": 2, "a couple": 2}
_FIRST = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
)
ORDINALS = {name: place for place, name in enumerate(_FIRST, 1)}
ORDINALS |= {f"twenty{between}{_FIRST[one]}": 21 + one for one in range(9) for between in "- "}
ORDINALS |= {"thirtieth": 30, "thirty-first": 31, "thirty first": 31}

SLIPS = {  # of the finger
    "tommorow": "tomorrow",
    "tommorrow": "tomorrow",
    "tomorow": "tomorrow",
    "tomorrrow": "tomorrow",
    "tmrw": "tomorrow",
    "tmr": "tomorrow",
    "tomorro": "tomorrow",
    "2morrow": "tomorrow",
    "tonite": "tonight",
    "2nite": "tonight",
    "2night": "tonight",
    "teusday": "tuesday",
    "tusday": "tuesday",
    "wensday": "wednesday",
    "wednsday": "wednesday",
    "wendesday": "wednesday",
    "thrusday": "thursday",
    "thurday": "thursday",
    "firday": "friday",
    "saterday": "saturday",
    "satuday": "saturday",
}
WEEKDAY = "|".join(f"{name}|{name[:3]}" for name in WEEKDAYS) + "|tues|weds|thur|thurs"
MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS) + "|sept"
NUMBER = r"\d{1,4}|" + "|".join(sorted(NUMBERS, key=len, reverse=True))
_EXAMPLES = "Try something like 'tomorrow', 'next Friday 5pm', 'in 3 days' or '2026-03-14'."


class UnclearDate(AgentError):
    """The words are not a date, or could be several. `hint` says what to write instead."""

    def __init__(self, message: str, *, hint: str = _EXAMPLES) -> None:
        super().__init__("invalid", message, hint=hint)

    @property
    def sentence(self) -> str:
        """What is wrong and what to do, for a person."""
        return f"{self.message} {self.hint}".strip()


class UnknownDate(UnclearDate):
    """The words are not known as a date."""


def unknown_date(text: str) -> UnclearDate:
    """Return the error for words that are not known as a date."""
    return UnknownDate(f"I don't know which day '{one_line(text, 60)}' is.")


def number(word: str) -> int:
    """Return a number that is written in digits or words."""
    return int(word) if word.isdecimal() else NUMBERS[word]


def weekday(word: str) -> int:
    """Return the number of a weekday; Monday is 0."""
    return next(at for at, name in enumerate(WEEKDAYS) if name[:3] == word[:3])


def month(word: str) -> int:
    """Return the number of a month; January is 1."""
    return next(at for at, name in enumerate(MONTHS, 1) if name[:3] == word[:3])


_PARTS = {
    "noon": time(12),
    "midday": time(12),
    "morning": time(9),
    "afternoon": time(15),
    "evening": time(18),
    "night": time(20),
}
# which hours of a 12-hour clock each part of the day can mean, and the half of the day
_HALVES = {
    "morning": ("am", range(1, 12)),
    "afternoon": ("pm", (12, *range(1, 8))),
    "evening": ("pm", range(4, 12)),
    "night": ("pm", range(6, 12)),
}
_HOURS = "|".join(name for name, value in CLOCK_NUMBERS.items() if 1 <= value <= 12)
_MINUTES = "|".join(sorted(CLOCK_NUMBERS, key=len, reverse=True))
_SPOKEN = re.compile(  # "5 to 7" is left out: it could be a stretch of time
    r"(?:\bat |@ ?)?(?<!from )\b"
    rf"(?:(half|(?:a )?quarter|{_MINUTES}|\d{{1,2}}(?= min| past| after))"
    rf"(?: minutes?)? (past|after|to|before|til|till) (\d{{1,2}}|{_HOURS}|noon|midday))"
    r"(?![\d:/.-])\b"
    r"(?: ?(a\.?m\.?|p\.?m\.?)(?![a-z])| o'?clock)?"
)
_CLOCK = re.compile(
    rf"(?:\bat |@ ?)?(?<![\d:/.-])\b(\d{{1,2}}|{_HOURS})(?:[:.](\d{{2}}))?(?::(\d{{2}}))?"
    r"(?: ?(a\.?m\.?|p\.?m\.?)|(?<=\d)(a|p))(?![a-z])(?: o'?clock)?"
)
_DAYTIME = re.compile(
    r"(?:\bat |@ ?|(?<=\d)t|\b)(?<![\d:/.-])(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,6})?)?(?![\d:])"
    r"(?: ?(?:h|hrs|hours|o'?clock)\b)?"
)
_HOUR = re.compile(
    rf"(?:\bat |@ ?)(\d{{1,2}}|{_HOURS})(?: ?(?:h|o'?clock)\b)?(?![\d:/.a-z'-])"
    rf"(?! (?:{_MINUTES}|\d)\b)"
    rf"|\b(\d{{1,2}}|{_HOURS})(?: ?h| o'?clock)\b"
    rf"|\b(\d{{1,2}}|{_HOURS})(?= (?:in the|at) (?:morning|afternoon|evening|night)\b)"
)
_PART = re.compile(
    r"\b(?:(?:in|at) (?:the )?)?(noon|midday|morning|afternoon|evening|(?<!to)night)\b"
)
_DAY_END = re.compile(
    r"\b(?:eod|cob|close of business|end of (?:the )?(?:(?:work(?:ing)?|business) ?)?day)\b"
)
_AHEAD = re.compile(
    rf"(?:in |after )(?:about )?({NUMBER}|half an?) ?(hours?|hrs?|h|minutes?|mins?|min|m)"
    rf"(?:(?: and)? ({NUMBER}) ?(minutes?|mins?|min|m))?(?:'? time)?"
)
_LATER = re.compile(rf"({NUMBER}|half an?) ?(hours?|hrs?|minutes?|mins?) (?:from now|later)")


@dataclass(frozen=True, slots=True)
class SpokenTime:
    """A time of day; `late` is the midnight that ends a day."""

    clock: time
    late: bool = False

    def next_day(self, now: datetime) -> date:
        """Return the day of a time without a day: today if it is still ahead, else tomorrow."""
        today = now.date()
        if self.late or self.clock > now.time():
            return today
        return today + timedelta(days=1)

    def on(self, day: date) -> tuple[date, time]:
        """Return the calendar day and the time."""
        return (day + timedelta(days=1), time(0)) if self.late else (day, self.clock)


def parse_duration(words: str, now: datetime) -> datetime | None:
    """Return the moment that "in 2 hours" or "30 minutes from now" means, or None."""
    match = _AHEAD.fullmatch(words) or _LATER.fullmatch(words)
    if match is None:
        return None
    minutes = _minutes(match[1], match[2])
    if match.re is _AHEAD and match[3]:
        minutes += _minutes(match[3], match[4])
    return now.astimezone(UTC) + timedelta(minutes=minutes)


def _minutes(count: str, unit: str) -> int:
    size = 60 if unit.startswith("h") else 1
    return size // 2 if count.startswith("half") else number(count) * size


def split_time(words: str) -> tuple[SpokenTime | None, str]:
    """Return the time in the words, and the words without it. Raise `UnclearDate`."""
    if re.search(r"\bmidnight\b", words):
        return _midnight(words)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}.*", words):
        words = f"{words[:10]} {words[11:]}"
    for pattern, read in (
        (_SPOKEN, _spoken_clock),
        (_CLOCK, _twelve),
        (_DAYTIME, _twentyfour),
        (_HOUR, _bare_hour),
    ):
        if match := pattern.search(words):
            rest = _without(words, match)
            part = next((one for one in _PART.finditer(rest) if one[1] in _HALVES), None)
            half = part[1] if part else "night" if "tonight" in rest else ""
            return SpokenTime(read(match, half)), _tonight_is_today(
                _without(rest, part) if part else rest
            )
    if match := _PART.search(words):
        return SpokenTime(_PARTS[match[1]]), _tonight_is_today(_without(words, match))
    if "tonight" in words:
        return SpokenTime(_PARTS["night"]), _tonight_is_today(words)
    if _DAY_END.search(words):
        rest = re.sub(r"\b(?:by|before|at|until|till|the|on)\b", " ", _DAY_END.sub(" ", words))
        return None, " ".join(rest.split()) or "today"
    return None, words


def split_day_and_time(words: str) -> tuple[str, str]:
    """Split words into those of the day and those of the time, even if they are unclear."""
    for pattern in (_SPOKEN, _CLOCK, _DAYTIME, _HOUR):
        if match := pattern.search(words):
            rest = _without(words, match)
            if part := _PART.search(rest):
                return _without(rest, part), f"{match[0]} {part[0]}"
            return rest, match[0]
    if match := _PART.search(words) or re.search(r"\b(?:at )?(?:12 )?midnight\b", words):
        return _without(words, match), match[0]
    return words, ""


def _tonight_is_today(rest: str) -> str:
    """Replace "tonight" and "this" (evening) by "today"."""
    rest = re.sub(r"\btonight\b|\bthis$", "today", rest.strip())
    rest = re.sub(r"\bin$", "", rest)
    return " ".join(rest.split())


def _without(words: str, match: re.Match[str]) -> str:
    return " ".join(f"{words[: match.start()]} {words[match.end() :]}".split())


def _midnight(words: str) -> tuple[SpokenTime, str]:
    rest = re.sub(r"\b(?:at )?(?:12 )?midnight\b", " ", words)
    rest = " ".join(rest.split())
    if rest not in ("", "tonight", "today", "by", "before"):
        raise UnclearDate(
            "Midnight could be the start or the end of that day.",
            hint="Say '00:00' for its start or '23:59' for its end.",
        )
    return SpokenTime(time(0), late=True), "today"


def _spoken_clock(match: re.Match[str], half: str) -> time:
    """ "quarter to nine", "half past 3", "20 past four pm"."""
    said = match[0].strip()
    word, before = match[1].removeprefix("a "), match[2] not in ("past", "after")
    minutes = {"half": 30, "quarter": 15}.get(word) or _count(word)
    named = match[3] in ("noon", "midday")
    hour = 12 if named else _count(match[3])
    if not 0 < minutes < 60 or (before and word == "half") or not 1 <= hour <= 24:
        raise _no_time(said)
    whole = (hour % 12 if hour <= 12 and not named else hour) * 60
    whole = (whole - minutes if before else whole + minutes) % (24 * 60)
    if not named and hour <= 12:
        early, minute = whole // 60 % 12, whole % 60
        shown = f"{early or 12}:{minute:02d}"
        marked = "" if hour == 12 and before else match[4] or ""  # "quarter to 12 pm" is unclear
        whole = (early + 12 * _is_late(early or 12, half, marked, said, shown)) * 60 + minute
    return _time(whole // 60, whole % 60, 0, said)


def _twelve(match: re.Match[str], half: str) -> time:
    hour = _count(match[1])
    if not 1 <= hour <= 12:
        raise _no_time(match[0])
    marked = match[4] or match[5]
    agree = not half or (_HALVES[half][0][0] == marked[0] and (hour < 12 or half == "afternoon"))
    if not agree:
        raise _no_time(f"{match[0].strip()} {half}")
    late = marked.startswith("p")
    return _time(hour % 12 + 12 * late, int(match[2] or 0), int(match[3] or 0), match[0])


def _twentyfour(match: re.Match[str], half: str) -> time:
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if minute > 59 or second > 59:
        raise _no_time(match[0])
    if half and 1 <= hour <= 12 and not match[1].startswith("0"):
        shown = f"{hour}:{match[2]}"
        hour = hour % 12 + 12 * _is_late(hour, half, "", match[0], shown)
    elif half and hour // 12 != (_HALVES[half][0] == "pm"):
        raise _no_time(f"{match[0].strip()} {half}")
    elif 1 <= hour <= 9 and len(match[1]) == 1:
        _is_late(hour, "", "", match[0], f"{hour}:{match[2]}")
    return _time(hour, minute, second, match[0])


def _bare_hour(match: re.Match[str], half: str) -> time:
    hour = _count(match[1] or match[2] or match[3])
    if hour > 24:
        raise _no_time(match[0])
    if 1 <= hour <= 12:
        return time(hour % 12 + 12 * _is_late(hour, half, "", match[0], str(hour)))
    if hour == 0:
        _is_late(12, "", "", match[0], "12")
    return _time(hour, 0, 0, match[0])


def _is_late(hour: int, half: str, marked: str, said: str, shown: str) -> bool:
    """Is an hour of a 12-hour clock in the second half of the day? Raise `UnclearDate`."""
    if marked:
        return marked.startswith("p")
    if half and hour in _HALVES[half][1]:
        return _HALVES[half][0] == "pm"
    if half:
        raise _no_time(f"{said.strip()} {'at' if half == 'night' else 'in the'} {half}")
    raise UnclearDate(
        f"'{said.strip()}' could be morning or evening.",
        hint=f"Say '{shown}am' or '{shown}pm'.",
    )


def _count(word: str) -> int:
    return int(word) if word.isdecimal() else CLOCK_NUMBERS[word]


def _time(hour: int, minute: int, second: int, said: str) -> time:
    try:
        return time(hour, minute, second)
    except ValueError:
        raise _no_time(said) from None


def _no_time(said: str) -> UnclearDate:
    return UnclearDate(f"There is no such time as '{said.strip()}'.", hint="Say '5pm' or '17:00'.")
