"""The names that a shell's pattern stands for: `*`, `?` and `[…]`, as bash and dash expand them.

Bounded, and never a guess: where shells differ, where the text could be read in two ways, or where
there is too much to look at, the answer is None. Knows nothing of commands.
"""

import os
import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

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
        self._part = part
        self._part_in_bytes = part if part.isascii() else _bytes(part)

    def __call__(self, name: str) -> bool:
        if name.startswith(".") and not self._hidden:
            return False
        found = _expression(self._part).match(name) is not None
        if not name.isascii():
            in_bytes = _expression(self._part_in_bytes).match(_bytes(name)) is not None
            if found != in_bytes:
                raise _TooMuch  # one locale counts characters, another bytes
        return found


@lru_cache(maxsize=256)
def _expression(part: str) -> re.Pattern[str]:
    """Made for the first name that it is held against: to make one is dear."""
    try:
        return re.compile(translate(part))
    except re.error:
        raise _TooMuch from None


def _matcher(part: str) -> _Component:
    try:
        return _Component(part)
    except UnicodeEncodeError:
        raise _TooMuch from None


def _bytes(text: str) -> str:
    return os.fsencode(text).decode("latin-1")
