"""The files of a folder that the words of a command name: what runs when the command is started.

Whoever may change such a file has the command do something else. A word may name it outright, as a
module, or as what its program looks for beside itself. Reads and compares; starts nothing.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

# Where programs are found by their name alone: the PATH, and who can have put a program there.

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


def working_folder() -> tuple[str, ...]:
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


_BETWEEN = re.compile(r"[\s\"'=;|&()<>,:\[\]]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_RUNNERS = {
    "npm": "package.json",
    "pnpm": "package.json",
    "yarn": "package.json",
    "bun": "package.json",
    "make": "Makefile",
    "just": "justfile",
}
_BELOW = ("__main__.py", "__init__.py", "index.js", "package.json")
_LONGEST = 1_000  # characters of a name
_CHUNK = 1 << 20


def named_files(
    words: Iterable[str], folder: str, root: str, *, outright: bool = False
) -> tuple[str, ...]:
    """Their paths from the root, in order. `folder` is where the command runs.

    `outright`: only those that are named as they are. A word that is the folder itself names what
    a command works on, and no file of it.
    """
    real, plain = os.path.realpath(root), os.path.normpath(Path(root).absolute())
    homes = (real, plain, os.path.normpath(folder))
    found: set[str] = set()
    for piece in _pieces(words):
        if os.path.normpath(Path(folder, piece)) not in homes:
            names = (piece,) if outright else _meant(piece)
            found.update(filter(None, (_in_root(folder, name, real, plain) for name in names)))
    return tuple(sorted(found))


def _in_root(folder: str, name: str, real: str, plain: str) -> str:
    """The path from the root of the file of that name; empty where it is none of the root's."""
    spelled = os.path.normpath(os.path.join(folder, name))  # noqa: PTH118 - hundreds at a start
    if not os.path.isfile(spelled):  # noqa: PTH113 - as above; nearly none is
        return ""
    path = _from(spelled, (real, plain))
    if not path and is_in_roots(spelled, (real,)):
        path = os.path.relpath(os.path.realpath(spelled), real)
    return path


def fingerprints(paths: Iterable[str], root: str) -> Mapping[str, str]:
    """What each of them holds, as a number; of one that leads out of the root, where it leads."""
    return {path: _fingerprint(path, root) for path in paths}


def leads_out(path: str, root: str) -> str:
    """Where a file of the root really lies, when that is elsewhere; nobody writes it from here."""
    real = os.path.realpath(Path(root, path))
    return "" if is_in_roots(real, (os.path.realpath(root),)) else real


def _fingerprint(path: str, root: str) -> str:
    if away := leads_out(path, root):
        return f"leads to {away}"
    mark = sha256()
    try:
        with Path(root, path).open("rb") as file:
            while data := file.read(_CHUNK):
                mark.update(data)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return mark.hexdigest()


def _from(path: str, roots: Iterable[str]) -> str:
    """The path from a root in which it lies by its words; empty where it lies in none."""
    for root in roots:
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return ""


def _pieces(words: Iterable[str]) -> Iterator[str]:
    """The words, and what stands in them between signs."""
    pieces = (piece for word in words for piece in (word, *_BETWEEN.split(word)))
    for piece in dict.fromkeys(pieces):
        if piece and len(piece) <= _LONGEST and "\0" not in piece:
            yield piece


def _meant(piece: str) -> Iterator[str]:
    """Every name that it may stand for, of a file below the folder or elsewhere."""
    plain = str(Path(piece).expanduser()) if piece.startswith("~/") else piece
    yield from (plain, f"{plain}.js", *(f"{plain}/{one}" for one in _BELOW))
    if not plain.startswith("/"):
        yield from (f"node_modules/.bin/{plain}", f"node_modules/{plain}/package.json")
    if _MODULE.fullmatch(plain):
        module = plain.replace(".", "/")
        yield from (f"{module}.py", *(f"{module}/{one}" for one in _BELOW[:2]))
    if beside := _RUNNERS.get(plain):
        yield beside
