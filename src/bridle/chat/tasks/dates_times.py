"""Times of day as people say them, and stretches of time that a clock measures. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from bridle.chat.tasks.dates_spoken import NUMBER, Unclear, number

_PARTS = {
    "noon": time(12),
    "midday": time(12),
    "morning": time(9),
    "afternoon": time(15),
    "evening": time(18),
    "night": time(20),
}
_HALVES = {"morning": "am", "afternoon": "pm", "evening": "pm", "night": "pm"}
_CLOCK = re.compile(
    r"(?:\bat |@ ?)?(?<![\d:/.-])\b(\d{1,2})(?:[:.](\d{2}))?(?::(\d{2}))? ?"
    r"(a\.?m\.?|p\.?m\.?)(?![a-z])"
)
_DAYTIME = re.compile(
    r"(?:\bat |@ ?|(?<=\d)t|\b)(?<![\d:/.-])(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,6})?)?(?![\d:])"
    r"(?: ?(?:h|hrs|hours|o'?clock)\b)?"
)
_HOUR = re.compile(
    r"(?:\bat |@ ?)(\d{1,2})(?: ?(?:h|o'?clock))?(?![\d:/.a-z-])|\b(\d{1,2}) o'?clock"
)
_PART = re.compile(
    r"\b(?:(?:in|at) (?:the )?)?(noon|midday|morning|afternoon|evening|(?<!to)night)\b"
)
_AHEAD = re.compile(
    rf"(?:in |after )(?:about )?({NUMBER}|half an?) ?(hours?|hrs?|h|minutes?|mins?|min|m)"
    rf"(?:(?: and)? ({NUMBER}) ?(minutes?|mins?|min|m))?"
)
_LATER = re.compile(rf"({NUMBER}|half an?) ?(hours?|hrs?|minutes?|mins?) (?:from now|later)")


@dataclass(frozen=True, slots=True)
class Said:
    """A time that was said; `late` is the midnight that ends a day."""

    clock: time
    late: bool = False

    def next_day(self, now: datetime) -> date:
        """The day of that time where none was said: today while it is ahead, else tomorrow."""
        today = now.date()
        if self.late or self.clock > now.time():
            return today
        return today + timedelta(days=1)

    def on(self, day: date) -> tuple[date, time]:
        """The day and the time, by the calendar."""
        return (day + timedelta(days=1), time(0)) if self.late else (day, self.clock)


def ahead_of(words: str, now: datetime) -> datetime | None:
    """The moment that "in 2 hours" or "30 minutes from now" means, if it is that."""
    found = _AHEAD.fullmatch(words) or _LATER.fullmatch(words)
    if found is None:
        return None
    minutes = _minutes(found[1], found[2])
    if found.re is _AHEAD and found[3]:
        minutes += _minutes(found[3], found[4])
    return now.astimezone(UTC) + timedelta(minutes=minutes)


def _minutes(count: str, unit: str) -> int:
    size = 60 if unit.startswith("h") else 1
    return size // 2 if count.startswith("half") else number(count) * size


def split_time(words: str) -> tuple[Said | None, str]:
    """The time in the words, and the words without it. Raise `Unclear`."""
    if re.search(r"\bmidnight\b", words):
        return _midnight(words)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}.*", words):
        words = f"{words[:10]} {words[11:]}"
    for pattern, read in ((_CLOCK, _twelve), (_DAYTIME, _twentyfour), (_HOUR, _bare)):
        if found := pattern.search(words):
            rest = _without(words, found)
            part = _PART.search(rest)
            half = _HALVES.get(part[1]) if part else "pm" if "tonight" in rest else None
            return Said(read(found, half)), _settled(_without(rest, part) if part else rest)
    if found := _PART.search(words):
        return Said(_PARTS[found[1]]), _settled(_without(words, found))
    if "tonight" in words:
        return Said(_PARTS["night"]), _settled(words)
    if re.search(r"\b(?:eod|end of (?:the )?(?:work(?:ing)? ?)?day|cob)\b", words):
        rest = re.sub(r"\b(?:eod|end of (?:the )?(?:work(?:ing)? ?)?day|cob)\b", " ", words)
        return None, " ".join(rest.split()) or "today"
    return None, words


def _settled(rest: str) -> str:
    """Tonight, and this evening, are today."""
    rest = re.sub(r"\btonight\b", "today", rest)
    rest = re.sub(r"\b(?:this|in)$", "", rest.strip())
    return " ".join(rest.split())


def _without(words: str, found: re.Match[str]) -> str:
    return " ".join(f"{words[: found.start()]} {words[found.end() :]}".split())


def _midnight(words: str) -> tuple[Said, str]:
    rest = re.sub(r"\b(?:at )?(?:12 )?midnight\b", " ", words)
    rest = " ".join(rest.split())
    if rest not in ("", "tonight", "today"):
        raise Unclear(
            "Midnight could be the start or the end of that day.",
            hint="Say '00:00' for its start or '23:59' for its end.",
        )
    return Said(time(0), late=True), "today"


def _twelve(found: re.Match[str], half: str | None) -> time:
    hour = int(found[1])
    if not 1 <= hour <= 12:
        raise _no_time(found[0])
    return _time(hour % 12 + (12 if found[4].startswith("p") else 0), found, found[0])


def _twentyfour(found: re.Match[str], half: str | None) -> time:
    hour = int(found[1])
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return _time(hour, found, found[0])


def _bare(found: re.Match[str], half: str | None) -> time:
    hour = int(found[1] or found[2])
    if half and 1 <= hour <= 12:
        return time(hour % 12 + (12 if half == "pm" else 0))
    if hour > 24:
        raise _no_time(found[0])
    if hour <= 12:
        raise Unclear(
            f"'{found[0].strip()}' could be morning or evening.",
            hint=f"Say '{hour or 12}am' or '{hour or 12}pm'.",
        )
    return _time(hour, None, found[0])


def _time(hour: int, found: re.Match[str] | None, said: str) -> time:
    minute = int(found[2] or 0) if found else 0
    second = int(found[3] or 0) if found else 0
    try:
        return time(hour, minute, second)
    except ValueError:
        raise _no_time(said) from None


def _no_time(said: str) -> Unclear:
    return Unclear(f"There is no such time as '{said.strip()}'.", hint="Say '5pm' or '17:00'.")
