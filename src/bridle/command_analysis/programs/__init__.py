"""The table of known programs. Each entry has examples, which a test judges."""

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from bridle.command_analysis.argv import Arg, Program
from bridle.command_analysis.programs import development, files, system, text, vcs
from bridle.policy import Does

PROGRAMS: dict[str, Program] = {
    **files.TABLE,
    **text.TABLE,
    **system.TABLE,
    **vcs.TABLE,
    **development.TABLE,
}
_VERSION = re.compile(
    r"((?:python|pip|pypy|perl|php|lua|ruby|node|gcc|g\+\+|clang|clang\+\+)3?)-?[\d.]*"
)
_MAX_NAME = 64  # characters; a longer name is not looked up, so that the caches stay small
# Flags of python before `-m MODULE` that change nothing about the module, except that -I leaves out
# modules of the current folder.
_NEUTRAL_FLAGS = frozenset({"-u", "-B", "-I", "-O", "-q", "-s", "-E"})
_WORKSPACE_CODE = "python may run code of the workspace"


def find(name: str) -> Program | None:
    """Return the entry of the program with that name (`python3.12` is a `python3`)."""
    return _find(name) if len(name) <= _MAX_NAME else None


@lru_cache(maxsize=1024)
def _find(name: str) -> Program | None:
    entry = PROGRAMS.get(name)
    if entry is None and (version := _VERSION.fullmatch(name)):
        entry = PROGRAMS.get(version[1]) or PROGRAMS.get(version[1].removesuffix("3"))
    return entry


def find_entry(name: str, words: Sequence[Arg]) -> tuple[Program | None, Sequence[Arg]]:
    """Return the entry of a program and its words. For `python -m x` they are those of `x`."""
    if is_activation(name, [word.text for word in words]):
        return system.ACTIVATION, words
    entry = find(name)
    if entry is PROGRAMS["node"] and len(words) == 2 and words[0].text == "--check":
        return development.NODE_CHECK, words
    if entry is None or entry is not PROGRAMS["python"]:
        return entry, words
    if words and words[0].text in ("manage.py", "./manage.py"):
        return PROGRAMS["manage.py"], words[1:]
    isolated = False
    for index, word in enumerate(words):
        if word.text == "-m" and index + 1 < len(words):
            module_name = words[index + 1].text
            module = _module(module_name, isolated) if len(module_name) <= _MAX_NAME else None
            return (entry, words) if module is None else (module, words[index + 2 :])
        if word.text not in _NEUTRAL_FLAGS:
            break
        isolated = isolated or word.text == "-I"
    return entry, words


def is_builtin(name: str) -> bool:
    """Return whether the shell itself does this, and not a program."""
    return name in system.BUILTINS


def is_activation(name: str, words: Sequence[str]) -> bool:
    """Return whether it is `source .venv/bin/activate`, which does not change the folder."""
    if name not in ("source", ".") or len(words) != 1:
        return False
    return words[0].endswith(("/bin/activate", "/Scripts/activate"))


@lru_cache(maxsize=256)
def _module(name: str, isolated: bool) -> Program | None:
    """Return the entry of a module that python runs, None if it is not known."""
    entry = development.MODULES.get(name)
    if entry is None:  # a module with the name of a program may be something else (`test`)
        entry = PROGRAMS.get(name)
        if entry is None or (entry.does != "builds" and name != "pip"):
            return None
    return entry if isolated else _with_workspace_code(entry)


def _with_workspace_code(entry: Program) -> Program:
    """Return the entry of a module that a file of the workspace may replace."""
    subcommands = {name: _with_workspace_code(inner) for name, inner in entry.subcommands.items()}
    if entry.does != "reads" and not subcommands:
        return entry
    does: Does = "builds" if entry.does == "reads" else entry.does
    return replace(
        entry,
        does=does,
        reason=entry.reason or _WORKSPACE_CODE,
        subcommands=subcommands,
        harmless_alone="",
    )
