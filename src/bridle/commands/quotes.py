"""The inside of `$'…'`: the escapes of ANSI C, as bash has them. Knows nothing of words."""

import re

_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|"
    r"u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c([A-Za-z])|(.))",
    re.DOTALL,
)
_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
NO_TEXT = "it holds an escape, $'\\…', that stands for no plain character"


class Unclear(Exception):
    """This is not understood with certainty; the words say what."""


def unescape(inner: str) -> str:
    """What the quoted characters stand for."""
    return _ESCAPE.sub(_character, inner) if "\\" in inner else inner


def _character(found: re.Match[str]) -> str:
    """The one character, where it is ASCII: beyond that it depends on the language set."""
    letter, octal, short, long, longest, control, other = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    if other is not None:
        if other in "xuUc":
            raise Unclear(NO_TEXT)
        return "\\" + other
    if control is not None:
        return chr(ord(control) & 0x1F)
    code = int(octal, 8) if octal is not None else int(short or long or longest, 16)
    if not 0 < code < 0x80:
        raise Unclear(NO_TEXT)
    return chr(code)
