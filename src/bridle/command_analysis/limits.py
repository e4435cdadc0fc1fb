"""What is too much to be read, seen without reading it. Over a limit nothing is parsed at all."""

import re
from itertools import accumulate, islice

CHARACTERS = 10_000
COMMANDS = 50
DEPTH = 20
TOKENS = 300  # of a plain line; beyond that a second reading takes too long
PIECES = 100  # of one word: quotes, escapes and what lies between
_COSTLY_ONES = 100
_HERE_TEXTS = 10
_MARKS = 500  # of another line: blanks and signs, but for those in here-texts

TOO_LONG = f"it is longer than {CHARACTERS:,} characters"
TOO_MANY = f"it holds more than {COMMANDS} commands"
TOO_DEEP = f"it is nested more than {DEPTH} deep"
TOO_BUSY = f"it has more than {TOKENS} words and signs"
TOO_SPLIT = f"it has a word of more than {PIECES} pieces"

_HERE_TEXT = re.compile(
    r"<<-?[ \t]*(['\"\\]?)([A-Za-z0-9_]+)\1[^\n]*\n(.*?\n)??\t*\2(?=\n|\Z)", re.S
)
_MARK = re.compile(r"[ \t\n]+|[^\w \t\n]")
_LIVE = re.compile(r"[$`]|<<")
_COSTLY = re.compile(r"\$\[|<<|`")  # a tree takes the square of their number
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


def is_tangled(text: str) -> bool:
    """Would a tree of this take too long? Here-texts count only for what the shell expands."""
    if len(text) <= _MARKS:
        return False
    if text.count("<<") <= _HERE_TEXTS:  # each of them is a search through the whole text
        text = _HERE_TEXT.sub(lambda found: " ".join(_LIVE.findall(found.group())), text)
    return _has_more(_MARK, text, _MARKS) or _has_more(_COSTLY, text, _COSTLY_ONES)


def _has_more(pattern: re.Pattern[str], text: str, most: int) -> bool:
    return next(islice(pattern.finditer(text), most, None), None) is not None
