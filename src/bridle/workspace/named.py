"""The files of a folder that the words of a command name: what runs when the command is started.

Whoever may change such a file has the command do something else. A word may name it outright, as a
module, or as what its program looks for beside itself. Reads and compares; starts nothing.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from bridle.workspace.lookup import is_in_roots

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
