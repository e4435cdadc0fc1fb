"""The table of known programs: data, with examples that a test runs.

Read when a command is first judged, not before.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module

from msgspec.structs import replace

from bridle.command_analysis.argv import Arg, Known
from bridle.policy import Does

_VERSION = re.compile(
    r"((?:python|pip|pypy|perl|php|lua|ruby|node|gcc|g\+\+|clang|clang\+\+)3?)-?[\d.]*"
)
_TABLES = (
    "looking",
    "text",
    "scripts",
    "system",
    "shell",
    "vcs",
    "builds",
    "languages",
    "changing",
    "network",
)


@lru_cache(maxsize=1)
def table() -> dict[str, Known]:
    """Every entry, by the name of the program."""
    found: dict[str, Known] = {}
    for name in _TABLES:
        found |= import_module(f"{__name__}.{name}").TABLE
    return found


def modules() -> dict[str, Known]:
    """Entries for what `python -m` runs, where no program has that name."""
    found: dict[str, Known] = import_module(f"{__name__}.languages").MODULES
    return found


def find(name: str) -> Known | None:
    """What is known of the program of that name (`python3.12` is a `python3`)."""
    return _find(name) if len(name) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _find(name: str) -> Known | None:
    entry = table().get(name)
    if entry is None and (found := _VERSION.fullmatch(name)):
        entry = table().get(found[1]) or table().get(found[1].removesuffix("3"))
    return entry


def is_builtin(name: str) -> bool:
    """Is it the shell itself that does this, and no program?"""
    return name in import_module(f"{__name__}.shell").BUILTINS


def is_activation(name: str, words: Sequence[str]) -> bool:
    """Is it `source .venv/bin/activate`, which stays in its folder?"""
    if name not in ("source", ".") or len(words) != 1:
        return False
    return words[0].endswith(("/bin/activate", "/Scripts/activate"))


def find_entry(name: str, words: Sequence[Arg]) -> tuple[Known | None, Sequence[Arg]]:
    """What is known of a program, and the words that are its own: `python -m x` is an `x`."""
    entry = find(name)
    if is_activation(name, [word.text for word in words]):
        return import_module(f"{__name__}.shell").ACTIVATION, words
    if entry is table()["node"] and len(words) == 2 and words[0].text == "--check":
        return import_module(f"{__name__}.languages").NODE_CHECK, words
    if entry is None or entry is not table()["python"]:
        return entry, words
    if words and words[0].text in ("manage.py", "./manage.py"):
        return table()["manage.py"], words[1:]
    isolated = False
    for at, word in enumerate(words):
        if word.text == "-m" and at + 1 < len(words):
            named = words[at + 1].text
            module = _module(named, isolated) if len(named) <= _LONGEST else None
            return (entry, words) if module is None else (module, words[at + 2 :])
        if word.text not in _CALM:
            break
        isolated = isolated or word.text == "-I"
    return entry, words


_LONGEST = 64  # characters of a name that is worth remembering
_CALM = frozenset({"-u", "-B", "-I", "-O", "-q", "-s", "-E"})


@lru_cache(maxsize=256)
def _module(name: str, isolated: bool) -> Known | None:
    """A module that python runs: one of its own in the folder may stand in for any."""
    entry = modules().get(name)
    if entry is None:  # a module that has a program's name need not be that program (`test`)
        entry = table().get(name)
        if entry is None or (entry.does != "builds" and name != "pip"):
            return None
    return entry if isolated else _local(entry)


def _local(entry: Known) -> Known:
    """The same, where code of the workspace may stand in for it."""
    verbs = {name: _local(verb) for name, verb in entry.verbs.items()}
    if entry.does != "reads" and not verbs:
        return entry
    does: Does = "builds" if entry.does == "reads" else entry.does
    return replace(entry, does=does, reason=entry.reason or _OWN, verbs=verbs, alone="")


_OWN = "python may run code of the workspace"
