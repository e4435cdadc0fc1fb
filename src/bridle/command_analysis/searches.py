"""Programs that read everything in a folder, and so the credentials and other files in it.

What lies there is asked of the ground, once for a folder and a command line.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from posixpath import join, normpath

from bridle.command_analysis.argv import Arg, Given
from bridle.command_analysis.paths import Reach, shown
from bridle.policy import Search

_MOST = 16  # folders of one line
_DEEP = "-r -R --recursive --dereference-recursive"
_GIVEN = "-e -f --regexp --file"
_LOOSE = (
    "-u -uu -uuu --unrestricted -. --hidden --no-ignore --no-ignore-vcs --no-ignore-dot "
    "--no-ignore-parent --no-ignore-global --no-ignore-exclude --no-ignore-files"
)
_UNSURE = re.compile(r"[][{}\\]").search
_SOURCE = re.compile(
    r"\*\.(?:py|pyi|js|jsx|ts|tsx|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|md|rst|css|html)"
).fullmatch


def recursive(name: str, given: Given, reach: Reach) -> list[str]:
    """grep through folders."""
    ways = given.values("-d", "--directories")
    if not given.has(_DEEP) and not any("recurse".startswith(way) for way in ways):
        return []
    where = given.operands if given.has(_GIVEN) else given.operands[1:]
    sieves = [flag for flag in given.flags if flag.name in _SIEVES]
    names = tuple(given.values("--include")) if sieves and sieves[0].name == "--include" else ()
    return [reason for arg in where or [Arg(".")] for reason in sweep(arg, names, reach)]


_SIEVES = ("--include", "--exclude", "--exclude-from")


def folders(name: str, given: Given, reach: Reach) -> list[str]:
    """Of two folders every file is read that is in both."""
    if len(given.operands) != 2:
        return []
    return [reason for arg in given.operands for reason in sweep(arg, (), reach)]


def unhidden(name: str, given: Given, reach: Reach) -> list[str]:
    """rg leaves hidden and ignored files out, unless it is told not to, or is given their names."""
    globs = [glob for glob in given.values("-g", "--glob", "--iglob") if glob[:1] != "!"]
    if not globs and not given.has(_LOOSE):
        return []
    first = 0 if given.has(f"{_GIVEN} --files") else 1
    names = tuple(glob.rpartition("/")[2].replace("**", "*") or "*" for glob in globs)
    where = given.operands[first:] or [Arg(".")]
    return [reason for arg in where for reason in sweep(arg, names, reach)]


def sweep(folder: Arg, names: tuple[str, ...], reach: Reach, *, links: bool = False) -> list[str]:
    """Everything in a folder is read that has such a name: what takes care, and why it asks.

    With `links`, they are followed as well.
    """
    if names and not links and all(map(_SOURCE, names)):
        return []  # nobody keeps a key in one of these, and looking takes longer than the rest
    found = _below(folder, reach)
    if found is None:
        return [f"{shown(folder.text)} has too many files to look for credentials in them"]
    reasons = []
    leads_out = links or (bool(found) and not reach.place(folder.text).inside)
    for path in found:
        if is_wanted(path.rpartition("/")[2], names):
            place = reach.place(f"{folder.text}/{path}")
            if place.inside or leads_out:
                reasons.append(reach.judged_read(place))
    return list(filter(None, reasons))[:1]


def _below(folder: Arg, reach: Reach) -> tuple[str, ...] | None:
    swept = reach.notes.swept
    key = reach.folder, folder.text
    if key not in swept:
        if len(swept) >= _MOST or None in swept.values():
            return None
        swept[key] = reach.ground.delicate(folder.text, reach.folder)
    return swept[key]


def is_wanted(name: str, names: tuple[str, ...]) -> bool:
    """A pattern narrows only where everybody reads it alike."""
    if not names or any(map(_UNSURE, names)):
        return True
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in names)


def note_search(name: str, args: Sequence[Arg], reach: Reach) -> None:
    """Note a command that reads every file of a folder; rules may be about some of them."""
    program = name.rpartition("/")[2]
    words = [arg.text for arg in args]
    if program in _COMPARING or program in _GREPS:
        if not any(map(_is_recursive, words)):
            return
    elif program not in _SEARCHING:
        return
    paths = [word for word in words if word[:1] != "-"]
    if program not in _COMPARING and not any(word.startswith(_PATTERN_FLAGS) for word in words):
        paths = paths[1:]  # the first is what is looked for
    folder = reach.folder
    reach.notes.searches.append(
        Search(folder, tuple(normpath(join(folder, path)) for path in paths))
    )


_SEARCHING = frozenset({"rg", "ripgrep", "ag", "ack", "git grep"})
_GREPS = frozenset({"grep", "egrep", "fgrep", "zgrep"})
_COMPARING = frozenset({"diff"})
_PATTERN_FLAGS = ("-e", "-f", "--regexp", "--file")
_RECURSIVE = ("--recursive", "--dereference-recursive", "--directories=recurse", "recurse")


def _is_recursive(word: str) -> bool:
    is_short = word[:1] == "-" and word[:2] != "--"
    return word in _RECURSIVE or (is_short and ("r" in word or "R" in word))
