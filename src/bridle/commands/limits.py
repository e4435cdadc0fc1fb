"""What is too much to be read, seen without reading it. Over a limit nothing is parsed at all."""

import re
from itertools import accumulate

CHARACTERS = 10_000
COMMANDS = 50
DEPTH = 20

TOO_LONG = f"it is longer than {CHARACTERS:,} characters"
TOO_MANY = f"it holds more than {COMMANDS} commands"
TOO_DEEP = f"it is nested more than {DEPTH} deep"

_NOT_BRACKETS = re.compile(r"[^(){}]+")
_STEPS = {"(": 1, "{": 1, ")": -1, "}": -1}


class OverLimit(Exception):
    """It is too much; the words say of what."""


def check(text: str) -> None:
    """Refuse what is too long, or opens brackets too deep, quoted or not."""
    if len(text) > CHARACTERS:
        raise OverLimit(TOO_LONG)
    if text.count("(") + text.count("{") <= DEPTH:
        return
    brackets = _NOT_BRACKETS.sub("", text)
    if max(accumulate(map(_STEPS.__getitem__, brackets))) > DEPTH:
        raise OverLimit(TOO_DEEP)
