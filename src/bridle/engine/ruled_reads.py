"""A command that reads everything below a folder, where a rule keeps some of it from being read.

The rule names files, and the command only the folder: so the folder is looked through, bounded, and
each file that a rule is about becomes an act of the command. Decides nothing.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bridle.engine.hidden import hidden_by
from bridle.policy import Act, Facts, Rule

if TYPE_CHECKING:
    from bridle.promises.ground import Ground

_SEARCHERS = frozenset({"rg", "ripgrep", "ag", "ack"})
_GREPS = frozenset({"grep", "egrep", "fgrep", "zgrep"})
_LONG = ("--recursive", "--dereference-recursive", "--directories=recurse")
_PROGRAMS = _SEARCHERS | _GREPS | {"diff", "git"}
_BEGINNING, _LONGEST = 200, 10_000  # characters
_GIVEN = ("-e", "-f", "--regexp", "--file")  # ... unless it is said in another way
_MOST = 20_000  # entries that are looked at
_NAMED = 20  # files that become acts: one is enough to forbid it
_CROWDED = "a rule keeps some files from being read, and {} has too many to look for them"


def with_ruled_reads(
    facts: Facts, ground: "Ground | None", rules: tuple[Rule, ...], cwd: str
) -> Facts:
    """The facts of a command, with what it would read that a rule is about."""
    hides = hidden_by(rules) if ground is not None else None
    if ground is None or hides is None or facts.floor:
        return facts
    found: list[Act] = []
    guards = [facts.guard]
    for act in facts.acts:
        for folder in () if act.is_path else _swept(act, cwd or ground.root):
            paths = _kept(folder, ground.root, hides)
            if paths is None:
                guards.append(_CROWDED.format(folder))
            for path in paths or ():
                found.append(Act(("shell", "read"), path, "reads", is_path=True, minor=True))
    said = "; ".join(filter(None, guards))
    return facts if not found and said == facts.guard else _more(facts, found, said)


def _more(facts: Facts, found: list[Act], guard: str) -> Facts:
    return replace(facts, acts=(*facts.acts, *found), guard=guard)


def _swept(act: Act, cwd: str) -> Iterator[str]:
    """The folders of which a command reads every file; none where it is no such command."""
    here = Path(cwd, act.within)
    if act.subject[:_BEGINNING].partition(" ")[0].rpartition("/")[2] not in _PROGRAMS:
        return
    words = _words(act.subject)
    if words is None:
        yield str(here)
    if not words or not _is_sweeping(words):
        return
    named = [word for word in words[1:] if word[:1] != "-"]
    if words[0] != "diff" and not any(word.startswith(_GIVEN) for word in words):
        named = named[1:]  # the first is what is looked for
    yield from [str(here / one) for one in named if (here / one).is_dir()] or [str(here)]


def _words(line: str) -> list[str] | None:
    """The words of a command as it is spelled for rules; None where that takes too long to say."""
    import shlex

    try:
        return shlex.split(line) if len(line) <= _LONGEST else None
    except ValueError:
        return None


def _is_sweeping(words: list[str]) -> bool:
    name = words[0].rpartition("/")[2] if words else ""
    if name in _SEARCHERS or words[:2] == ["git", "grep"]:
        return True
    return name in (*_GREPS, "diff") and any(map(_is_deep, words[1:]))


def _is_deep(word: str) -> bool:
    short = word[:1] == "-" and word[:2] != "--"
    return word in _LONG or word == "recurse" or (short and ("r" in word or "R" in word))


def _kept(folder: str, root: str, hides: Callable[[str], bool]) -> list[str] | None:
    """Files below the folder that a rule is about, from the root; None where there are too many."""
    found: list[str] = []
    left = _MOST
    for above, _, names in os.walk(os.path.realpath(folder)):
        inside = os.path.relpath(above, os.path.realpath(root))
        left -= len(names) + 1
        if left < 0:
            return None
        paths = (name if inside == "." else f"{inside}/{name}" for name in names)
        found += [path for path in paths if hides(path)]
        if len(found) >= _NAMED:
            break
    return found
