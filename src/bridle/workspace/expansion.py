"""The names that a shell's pattern stands for: `*`, `?` and `[…]`, as bash and dash expand them.

Bounded, and never a guess: where shells differ, where the text could be read in two ways, or where
there is too much to look at, the answer is None. Knows nothing of commands.
"""

import os
import re
from collections.abc import Iterator
from fnmatch import translate

MOST_NAMES = 1_000
MOST_LOOKS = 20_000  # entries of folders that are looked at for one pattern
_WILD = re.compile(r"[*?\[]")
_QUOTED = re.compile(r"\[[*?\[]\]")
_CLASS = re.compile(r"\[[^/]*\[[.:=]")
_LONGEST = 4096


class _TooMuch(Exception):
    """There is more to look at than is worth it, or it cannot be said."""


def expand(pattern: str, cwd: str) -> tuple[str, ...] | None:
    """The words that the shell would make of it in that folder; the pattern itself where none."""
    if not _is_plain(pattern):
        return None
    looks = [MOST_LOOKS]
    top = "/" if pattern.startswith("/") else ""
    words = [top]
    parts = re.findall(r"([^/]+)(/*)", pattern[len(pattern) - len(pattern.lstrip("/")) :])
    try:
        for part, slashes in parts:
            words = list(_step(words, part, slashes, cwd, looks))
            if len(words) > MOST_NAMES:
                return None
    except _TooMuch:
        return None
    if words:
        return tuple(sorted(words))
    return None if _QUOTED.search(pattern) else (pattern,)  # quoted or not, nobody knows any more


def _is_plain(pattern: str) -> bool:
    """Is there one way to read it? Not with escapes, classes of characters, or without end."""
    if not pattern or len(pattern) > _LONGEST or "\\" in pattern or "\0" in pattern:
        return False
    return _CLASS.search(pattern) is None


def _step(words: list[str], part: str, slashes: str, cwd: str, looks: list[int]) -> Iterator[str]:
    """Each word with one more component: those that are there."""
    fits = _matcher(part) if _WILD.search(part) else None
    for word in words:
        if fits is None:
            _count(looks)
            if _is_there(_joined(cwd, word + part), bool(slashes)):
                yield word + part + slashes
            continue
        for name in _names(_joined(cwd, word), looks):
            if fits(name) and (not slashes or _is_there(_joined(cwd, word + name), True)):
                yield word + name + slashes


def _count(looks: list[int]) -> None:
    looks[0] -= 1
    if looks[0] < 0:
        raise _TooMuch


def _joined(cwd: str, word: str) -> str:
    return word if word.startswith("/") else f"{cwd}/{word}"


def _is_there(path: str, as_folder: bool) -> bool:
    try:
        return os.path.isdir(path) if as_folder else os.path.lexists(path)  # noqa: PTH112 - names of bytes that are no text
    except ValueError:
        return False


def _names(folder: str, looks: list[int]) -> Iterator[str]:
    """The names in a folder, `.` and `..` among them; none where it cannot be read."""
    yield from (".", "..")
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                _count(looks)
                yield entry.name
    except (OSError, ValueError):
        return


class _Component:
    """One component of a pattern. A name that depends on the locale ends it all."""

    def __init__(self, part: str) -> None:
        # A `^` negates in bash and not in dash; a range is read in the order of the characters.
        if "[^" in part:
            raise _TooMuch
        self._hidden = part.startswith(".")
        expression = translate(part)
        self._by_character = re.compile(expression).match
        self._by_byte = re.compile(translate(_bytes(part))).match

    def __call__(self, name: str) -> bool:
        if name.startswith(".") and not self._hidden:
            return False
        found = self._by_character(name) is not None
        if not name.isascii() and found != (self._by_byte(_bytes(name)) is not None):
            raise _TooMuch  # one locale counts characters, another bytes
        return found


def _matcher(part: str) -> _Component:
    try:
        return _Component(part)
    except (re.error, UnicodeEncodeError):
        raise _TooMuch from None


def _bytes(text: str) -> str:
    return os.fsencode(text).decode("latin-1")
