"""Paths that are named where nobody knows what becomes of them: credentials are seen all the same.

For the words of a program that is not known, or that hands its words on, and for small scripts that
do more than print. Never used to allow anything.
"""

import re
from collections.abc import Iterator, Sequence

from bridle.commands.options import Arg
from bridle.commands.program import Known
from bridle.commands.reach import Reach

_MOST = 32  # words that are looked at
_LONGEST = 512  # characters of one
_VALUE = re.compile(r"[^=@]*[=@](.+)|-[A-Za-z](.+)", re.DOTALL)
_AWK = re.compile(r'(>>?|<)\s*"([^"\n]{1,512})"')
_SED = re.compile(
    r"(?:^|[\s;{}/!$,\d|#gpIiMme])([rRwW])[ \t]*([^\s;{}][^\n;}]{0,512})", re.MULTILINE
)


def look(entry: Known | None, words: Sequence[Arg], reach: Reach) -> None:
    """The words of a command; what its entry says of each of them has been said already."""
    if entry is not None and not (_hands_on(entry) or _is_strange(entry, words)):
        return
    for word in words[:_MOST]:
        for text in _spellings(word):
            reach.judged_read(reach.place(text))


def _hands_on(entry: Known) -> bool:
    """Does it take words that only the program itself knows the meaning of?"""
    return entry.does != "reads" and not entry.verbs and entry.operands.endswith("text*")


def _is_strange(entry: Known, words: Sequence[Arg]) -> bool:
    """Is what follows no verb that the program is known by (`openssl rsa`)?"""
    verb = next((word.text for word in words if not word.text.startswith("-")), "")
    return entry.does != "reads" and bool(entry.verbs) and verb not in entry.verbs


def _spellings(word: Arg) -> Iterator[str]:
    """The paths that a word may hold: `x`, `--in=x`, `-ix`, `@x`."""
    if not word.known or not 1 < len(word.text) <= _LONGEST:
        return
    if not word.text.startswith("-") and "=" not in word.text:
        yield word.text
    if found := _VALUE.fullmatch(word.text):
        yield found[1] or found[2]


def look_awk(program: str, reach: Reach) -> None:
    """The files that an awk program names behind `>` and `<`."""
    for sign, path in _AWK.findall(program):
        _touch(path, sign != "<", reach)


def look_sed(script: str, reach: Reach) -> None:
    """The files that a sed script names behind `w` and `r`."""
    for letter, path in _SED.findall(script):
        _touch(path.strip(), letter in "wW", reach)


def _touch(path: str, writes: bool, reach: Reach) -> None:
    if writes:
        reach.writes(Arg(path))
    else:
        reach.reads(Arg(path))
