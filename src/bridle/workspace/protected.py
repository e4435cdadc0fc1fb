"""What care a path takes by its name alone: whether it exists or not, in whatever case or form.

Pure: words in, care out. Names are compared, not files, so that a protected file that is not there
yet is protected as well. Knows nothing of links; whoever asks has followed them
(`workspace/ground.py`), and asks for each name on the way. The names are in `protected_names.py`.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

from bridle.protocols.ground import Care
from bridle.workspace import protected_names as names

# What Unicode calls default-ignorable: some file systems compare names without it.
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_STRICT: dict[Care, int] = {"": 0, "ask": 1, "deny": 2}
_GIT_RUNS = frozenset(names.GIT_RUNS.split())
_SOURCE = frozenset(names.SOURCE.split())
_SHORT_NAMES = {"git~1": ".git", "git~2": ".git"}  # what one system also calls `.git`


class Protection(NamedTuple):
    """What care reading and writing take, and why, in words for a person."""

    reading: Care = ""
    writing: Care = ""
    why: str = ""


FREE = Protection()


def stricter(first: Protection, second: Protection) -> Protection:
    """The more careful of both for each; the reason is that of whoever forbids more."""
    if second == FREE:
        return first
    if first == FREE:
        return second
    reading = max(first.reading, second.reading, key=_STRICT.__getitem__)
    writing = max(first.writing, second.writing, key=_STRICT.__getitem__)
    lead = max(first, second, key=lambda one: _STRICT[one.reading] + _STRICT[one.writing])
    return Protection(reading, writing, lead.why)


@lru_cache(maxsize=1024)
def fold(name: str) -> str:
    """A name as the most forgiving file system would compare it."""
    if name.isascii():
        name = name.lower()
    else:
        name = _IGNORED.sub("", normalize("NFKC", normalize("NFKC", name).casefold()).casefold())
    name = name.partition(":")[0].rstrip(". ")  # streams, and ends that one system drops
    return _SHORT_NAMES.get(name, name)


@lru_cache(maxsize=1024)
def folded(path: str) -> str:
    """A path, each of its names folded."""
    return "/".join(map(fold, path.split("/")))


class _Name(NamedTuple):
    """A name with at most one `*`."""

    start: str
    end: str
    any: bool

    def fits(self, name: str) -> bool:
        """Is it that name, or one of those?"""
        if not self.any:
            return name == self.start
        long_enough = len(name) >= len(self.start) + len(self.end)
        return long_enough and name.startswith(self.start) and name.endswith(self.end)


def _name(text: str) -> _Name:
    start, star, end = text.replace("+", " ").partition("*")
    return _Name(start, end, bool(star))


class _Pattern(NamedTuple):
    """A pattern: its names one after the other, and whether all below the last belongs to it."""

    path: tuple[_Name, ...]
    below: bool
    care: Protection

    def of(self, found: Sequence[str]) -> Protection:
        """What it says of a path of these names."""
        if len(found) > len(self.path) and not self.below:
            return FREE
        if not all(map(_Name.fits, self.path, found)):
            return FREE
        if len(found) >= len(self.path):
            return self.care
        # A folder on the way to a protected one: whoever replaces it, replaces that as well.
        return Protection("", "ask", self.care.why)


class _Table:
    """Patterns, found by their first name."""

    def __init__(self, groups: Iterable[names.Group]) -> None:
        self.named: dict[str, list[_Pattern]] = {}
        self.starred: list[_Pattern] = []
        for group in groups:
            care = Protection(group.reading, group.writing, group.why)
            for text in group.patterns.split():
                below = text.endswith("/**")
                path = tuple(map(_name, text.removesuffix("/**").split("/")))
                pattern = _Pattern(path, below, care)
                if path[0].any:
                    self.starred.append(pattern)
                else:
                    self.named.setdefault(path[0].start, []).append(pattern)
        heads = [pattern.path[0] for pattern in self.starred]
        self.starts = tuple(head.start for head in heads if head.start)
        self.ends = tuple(head.end for head in heads if not head.start)

    def at(self, found: Sequence[str]) -> Protection:
        """What is said of a path that begins with these folded names."""
        care = FREE
        for pattern in self.named.get(found[0], ()):
            care = stricter(care, pattern.of(found))
        last = found[0] if len(found) == 1 else ""  # no pattern for a folder begins with a star
        if last.startswith(self.starts) or last.endswith(self.ends):
            for pattern in self.starred:
                care = stricter(care, pattern.of(found))
        return care


_inside = cache(lambda: _Table(names.INSIDE))  # made when they are first needed: 1 ms each
_home = cache(lambda: _Table(names.HOME))
_system = cache(lambda: _Table(names.SYSTEM))
_HARMLESS = tuple(map(_name, names.HARMLESS.split()))


@lru_cache(maxsize=1024)
def care_of(path: str) -> Protection:
    """The care of a path from the root of a workspace, `/` between its names."""
    found = [fold(part) for part in path.split("/") if part not in ("", ".")]
    care = FREE
    for at, name in enumerate(found):
        if name.endswith(".git"):
            care = stricter(care, _in_git(found[at + 1 :], name == ".git"))
        said = _inside().at(found[at:])
        if said is not FREE and not (at == len(found) - 1 and _is_harmless(name)):
            care = stricter(care, said)
    return care


def _is_harmless(name: str) -> bool:
    if any(one.fits(name) for one in _HARMLESS):
        return True
    stem, _, suffix = name.rpartition(".")
    return suffix in _SOURCE and stem.startswith(("credentials", ".credentials"))


def _in_git(below: Sequence[str], own: bool) -> Protection:
    """The care of what lies in a repository's folder; a bare one (`x.git`) may be just a folder."""
    if not (_GIT_RUNS.isdisjoint(below) and names.GIT_RUNS_BELOW.isdisjoint(pairwise(below))):
        return Protection("", "deny", names.GIT_WHY)
    if not own:
        return FREE
    return Protection("", "ask" if below else "deny", names.GIT_FILES_WHY)


@lru_cache(maxsize=1024)
def bare_folders(path: str) -> tuple[str, ...]:
    """The folders that would be repositories if this path were their `config` or their hooks."""
    found = path.split("/")
    return tuple("/".join(found[:at]) for at, part in enumerate(found) if fold(part) in _GIT_RUNS)


@lru_cache(maxsize=1024)
def care_outside(path: str, home: str) -> Protection:
    """The care of a real absolute path anywhere on the machine, for the person with that home."""
    found = [fold(part) for part in path.split("/") if part]
    if not found:
        return FREE
    care = _system().at(found)
    for depth in _homes(found, home):
        if len(found) > depth:
            care = stricter(care, _home().at(found[depth:]))
    return care


def _homes(found: Sequence[str], home: str) -> Iterable[int]:
    """How many names belong to a home folder, for each that the path may lie in: also others'."""
    own = [fold(part) for part in home.split("/") if part]
    if found[: len(own)] == own:
        yield len(own)
    if found[0] in ("home", "users"):
        yield 2
    elif found[0] == "root":
        yield 1
    elif found[:2] == ["var", "root"]:
        yield 2


def home_paths() -> list[str]:
    """The places in a home folder that hold credentials and have one name."""
    return _places(names.HOME)


def system_paths() -> list[str]:
    """The places of the system that hold credentials and have one name, from the top."""
    return _places(names.SYSTEM[:1])


def _places(groups: Iterable[names.Group]) -> list[str]:
    found = [text.removesuffix("/**") for group in groups for text in group.patterns.split()]
    return [text.replace("+", " ") for text in found if "*" not in text]
