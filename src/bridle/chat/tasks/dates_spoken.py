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
_NUMBERS = (
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
)
NUMBERS = {name: value for value, name in enumerate(_NUMBERS)}
NUMBERS |= {"a": 1, "an": 1, "twenty": 20, "thirty": 30, "couple": 2, "a couple of": 2}

WEEKDAY = "|".join(f"{name}|{name[:3]}" for name in WEEKDAYS) + "|tues|thur|thurs"
MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS) + "|sept"
NUMBER = r"\d{1,4}|a couple of|" + "|".join(sorted(NUMBERS, key=len, reverse=True))
_EXAMPLES = "Try something like 'tomorrow', 'next Friday 5pm', 'in 3 days' or '2026-03-14'."


class Unclear(AgentError):
    """Words that are no date, or more than one. `hint` says what to write instead."""

    def __init__(self, message: str, *, hint: str = _EXAMPLES) -> None:
        super().__init__("invalid", message, hint=hint)

    @property
    def sentence(self) -> str:
        """What happened and what to do, for a person."""
        return f"{self.message} {self.hint}".strip()


def unknown(text: str) -> Unclear:
    """Nobody knows what day that is."""
    return Unclear(f"I don't know which day '{one_line(text, 60)}' is.")


def number(word: str) -> int:
    """How many: in digits or in words."""
    return int(word) if word.isdecimal() else NUMBERS[word]


def weekday(word: str) -> int:
    """Monday is 0."""
    return next(at for at, name in enumerate(WEEKDAYS) if name[:3] == word[:3])


def month(word: str) -> int:
    """January is 1."""
    return next(at for at, name in enumerate(MONTHS, 1) if name[:3] == word[:3])
