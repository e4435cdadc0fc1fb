"""Where programs are found by their name alone: the PATH, and who can have put a program there.

A folder of the workspace that is on the PATH, such as an activated environment, holds what a call
may have written: what runs unasked and unconfined is never taken from there. Nor from a folder that
has no absolute name, which is another one wherever a program runs.
"""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

# programs that run one command of a line or a script after the other
SHELLS = (
    *("bash", "sh", "dash", "ash", "rbash", "ksh", "ksh93", "mksh", "zsh", "fish", "csh", "tcsh"),
    *("yash", "elvish", "nu", "pwsh", "xonsh"),
)
_USUAL = "/usr/local/bin:/usr/bin:/bin"


def folders(roots: Sequence[str] = ()) -> tuple[str, ...]:
    """The folders of the PATH, in order, but for those without an absolute name or in a root."""
    found = os.environ.get("PATH", _USUAL).split(os.pathsep)
    return tuple(one for one in found if one.startswith("/") and not is_in_roots(one, roots))


def find_program(name: str, roots: Sequence[str] = (), more: Sequence[str] = ()) -> str | None:
    """A program that nobody can have put there from inside the roots; `more` are other places."""
    for path in (*(f"{folder}/{name}" for folder in folders(roots)), *more):
        if _is_program(path) and not is_in_roots(path, roots):
            return path
    return None


def here() -> tuple[str, ...]:
    """The folder one is in, as a root; none where it is gone."""
    try:
        return (os.getcwd(),)  # noqa: PTH109 - a name is all that is wanted
    except OSError:
        return ()


def is_local(name: str, roots: Sequence[str]) -> bool:
    """Would the PATH lead to a program of that name in one of the roots?"""
    if not name or "/" in name:
        return False
    marked = _marked(os.environ.get("PATH", _USUAL), tuple(roots))
    if not marked:  # as most are
        return False
    return next((inside for folder, inside in marked if _is_program(f"{folder}/{name}")), False)


@lru_cache(maxsize=64)
def _marked(path: str, roots: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """The folders up to the last that lies in a root, each with whether it does."""
    found = [
        (one, is_in_roots(one, roots)) for one in path.split(os.pathsep) if one.startswith("/")
    ]
    while found and not found[-1][1]:
        found.pop()
    return tuple(found)


def is_in_roots(path: str, roots: Sequence[str]) -> bool:
    """Does it lie in a root, by its own name or by where its links lead?"""
    return any(one in _above(spelled) for spelled in _spelled(path) for one in roots)


def _spelled(path: str) -> Iterator[str]:
    yield os.path.normpath(path)
    yield os.path.realpath(path)


def _above(path: str) -> Iterator[str]:
    """The path and every folder that it lies in."""
    while True:
        yield path
        path, before = os.path.dirname(path), path  # noqa: PTH120 - judged for every command: plain text
        if path == before:
            return


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)  # noqa: PTH113 - as above
