"""Where the command of a hook runs, and what it may name: no file that a call could have written.

A hook runs with all of the person's rights and outside the sandbox. So it runs in the folder of the
file that it stands in, which no call may write, and a command that names a file of the workspace,
or that has a build of it run, is refused. What a person hides from this look is their own doing.
"""

import os
import re
from collections.abc import Iterator
from os.path import realpath
from pathlib import Path

from bridle.config.hooks import CommandLine
from bridle.config.paths import hooks_file

WORKSPACE = "BRIDLE_WORKSPACE"  # the variable that tells a hook where the workspace is
HINT = "Keep the script beside the file of hooks, in `.bridle/` or in a folder of your own."
_BETWEEN = re.compile(r"""[\s'"`;|&<>()=,]+""")
_ROOT = re.compile(rf"\$(?:{WORKSPACE}\b|\{{{WORKSPACE}\}})")


def folder_of(line: CommandLine) -> str:
    """Where it runs: beside its file; one that is from no file, where nothing lies."""
    file, _, _ = line.origin.rpartition(":")
    return realpath(Path(file).parent) if file else "/"


def why_not(line: CommandLine, root: str) -> str:
    """Why that command may not be run as a hook in that workspace; empty where it may."""
    root, folder = realpath(root), folder_of(line)
    kept = _is_kept(folder, root)
    if _is_below(folder, root) and not kept:
        return "its file lies in the workspace, where a call may change it"
    words = tuple(dict.fromkeys(_words(line.run, root)))
    places = {word: _place(word, folder) for word in words}
    for word, place in places.items():
        if place != root and _is_below(place, root) and not _is_beside(place, folder, kept):
            return f"it names {word}, which a call may change"
    if kept or root in places.values():  # it works there, or looks for what lies above it
        for word in filter(_builds, words):
            return f"it has {word} run, and that runs what files of the workspace say"
    for word in words if root in places.values() else ():
        if not word.startswith("/") and os.path.isfile(f"{root}/{word}"):  # noqa: PTH113 - never raises
            return f"it names {word}, which a call may change"
    return ""


def _builds(word: str) -> bool:
    """Is it the name of a program that runs what the files say that it finds?"""
    from bridle.command_analysis import known

    entry = known.find(word.rpartition("/")[2])
    if entry is None:
        return False
    return "builds" in {entry.does, *(verb.does for verb in entry.verbs.values())}


def _place(word: str, folder: str) -> str:
    """Where a word leads, if it is a path."""
    if word.startswith("~/"):
        word = os.environ.get("HOME", "") + word[1:]
    return realpath(word if word.startswith("/") else f"{folder}/{word}")


def _words(run: str | tuple[str, ...], root: str) -> Iterator[str]:
    """Whatever could be a word of it for a shell, where one is run at all."""
    for one in (run,) if isinstance(run, str) else run:
        text = _ROOT.sub(lambda _: root, one)
        if not isinstance(run, str):
            yield text
        yield from filter(None, _BETWEEN.split(text))


def _is_kept(folder: str, root: str) -> bool:
    """Is it a folder that no call may write: `.bridle` of the workspace, or the person's own?"""
    if folder == f"{root}/.bridle":
        return True
    own = realpath(hooks_file(os.environ).parent)
    return _is_below(folder, root) and folder == own


def _is_beside(place: str, folder: str, kept: bool) -> bool:
    """Directly in the folder of the file: what lies deeper nobody saw when it was trusted."""
    return (
        kept
        and _is_below(place, folder)
        and (place.rpartition("/")[0] == folder or not os.path.lexists(place))
    )


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
