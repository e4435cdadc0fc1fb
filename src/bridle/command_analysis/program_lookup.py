"""Which program a first word names: itself, one of the system's by its path, or somebody's own."""

import re
from posixpath import join, normpath

from bridle.command_analysis.effects import Effect
from bridle.command_analysis.known import find
from bridle.command_analysis.paths import Reach, shown
from bridle.command_analysis.unwrap import WRAPPERS

_STANDARD = frozenset(
    {
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/sbin",
        "/usr/sbin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
        "/opt/local/bin",
    }
)
_LOCAL = re.compile(r"(?:.*/)?(?:\.?venv/bin|\.?env/bin|node_modules/\.bin|vendor/bin)").fullmatch
_BUILDERS = frozenset({"gradlew", "mvnw", "configure", "manage.py"})


def program_of(word: str, reach: Reach) -> tuple[str, Effect | None]:
    """The program's name, and what it does at least, going by where it lies."""
    if "/" not in word:
        name, least = _in_any_case(word)
        if least is None and reach.ground.local(word):
            least = Effect("builds", f"runs the workspace's own {shown(word)}")
        return name, least
    path = normpath(word)
    folder, _, name = path.rpartition("/")
    if folder in _STANDARD:
        return name, None
    place = reach.place(word)
    reach.runs_program(place)
    if _LOCAL(folder) and _is_named_inside(path, reach):
        return name, Effect("builds", f"runs {shown(path)}, installed in the workspace")
    if place.inside and name in _BUILDERS:
        return name, Effect("builds", f"runs the workspace's own {name}")
    if place.inside:
        return word, Effect("changes", f"runs {shown(place.path)}, a program of the workspace")
    real, _, named = place.path.rpartition("/")
    runs = Effect("changes", f"runs {shown(place.path)}, outside the workspace")
    return (named if real in _STANDARD else name), runs


def from_root(word: str, reach: Reach) -> str:
    """A program's relative path as it is from the root, for what is allowed in one folder only."""
    if "/" not in word or word.startswith("/") or reach.folder == reach.ground.root:
        return word
    place = reach.place(word)
    named = place.path if place.inside else normpath(join(reach.folder, word))
    path = named.removeprefix(f"{reach.ground.root}/")
    return path if "/" in path else f"./{path}"


def _is_named_inside(path: str, reach: Reach) -> bool:
    """A venv's python is a link that leads out; it is the workspace's own choice all the same."""
    return normpath(join(reach.folder, path)).startswith(f"{reach.ground.root}/")


def _in_any_case(word: str) -> tuple[str, Effect | None]:
    """Where names are case-blind, `RM` is `rm`; nothing is allowed for such a spelling."""
    low = word.lower()
    if low == word or find(word) is not None or (find(low) is None and low not in WRAPPERS):
        return word, None
    return low, Effect("changes", f"{shown(word)} may be {shown(low)}")
