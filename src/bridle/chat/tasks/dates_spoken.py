"""The words of dates: names of days and months, numbers, and the error for what is unclear."""

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


class Unclear(AgentError):
    """Words that are not a date, or could be more than one. `hint` says what to write instead."""

    def __init__(self, message: str, *, hint: str = _EXAMPLES) -> None:
        super().__init__("invalid", message, hint=hint)

    @property
    def sentence(self) -> str:
        """What happened and what to do, for a person."""
        return f"{self.message} {self.hint}".strip()


class Unknown(Unclear):
    """Words that are not known to be a date at all."""


def unknown(text: str) -> Unclear:
    """Nobody knows what day that is."""
    return Unknown(f"I don't know which day '{one_line(text, 60)}' is.")


def number(word: str) -> int:
    """How many: in digits or in words."""
    return int(word) if word.isdecimal() else NUMBERS[word]


def weekday(word: str) -> int:
    """Monday is 0."""
    return next(at for at, name in enumerate(WEEKDAYS) if name[:3] == word[:3])


def month(word: str) -> int:
    """January is 1."""
    return next(at for at, name in enumerate(MONTHS, 1) if name[:3] == word[:3])
