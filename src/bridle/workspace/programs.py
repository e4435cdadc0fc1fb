"""Where programs are found, and which files of a folder the words of a command name.

Who may change such a file can make the command do something else. A word may name it as it is, as a
module, or as a file that its program looks for. Starts nothing.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

# Programs by their name alone: the PATH, without folders in which a command could put a program.

# programs that run the commands of a line or a script one after the other
SHELLS = (
    *("bash", "sh", "dash", "ash", "rbash", "ksh", "ksh93", "mksh", "zsh", "fish", "csh", "tcsh"),
    *("yash", "elvish", "nu", "pwsh", "xonsh"),
)
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def path_folders(roots: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the absolute folders of the PATH, in order, without those in one of the roots."""
    folders = os.environ.get("PATH", _DEFAULT_PATH).split(os.pathsep)
    return tuple(
        folder for folder in folders if folder.startswith("/") and not is_in_roots(folder, roots)
    )


def find_program(name: str, roots: Sequence[str] = (), more: Sequence[str] = ()) -> str | None:
    """Find a program that is not in one of the roots. `more` are other paths to look at."""
    for path in (*(f"{folder}/{name}" for folder in path_folders(roots)), *more):
        if _is_program(path) and not is_in_roots(path, roots):
            return path
    return None


def working_folder() -> tuple[str, ...]:
    """Return the current folder as a sequence of roots, which is empty if it was removed."""
    try:
        return (os.getcwd(),)  # noqa: PTH109 - a name is all that is wanted
    except OSError:
        return ()


def is_local(name: str, roots: Sequence[str]) -> bool:
    """Would the PATH lead to a program of that name in one of the roots?"""
    if not name or "/" in name:
        return False
    folders = _folders_up_to_roots(os.environ.get("PATH", _DEFAULT_PATH), tuple(roots))
    return next((inside for folder, inside in folders if _is_program(f"{folder}/{name}")), False)


@lru_cache(maxsize=64)
def _folders_up_to_roots(path: str, roots: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Return the folders up to the last one that lies in a root, each with whether it does."""
    folders = [folder for folder in path.split(os.pathsep) if folder.startswith("/")]
    pairs = [(folder, is_in_roots(folder, roots)) for folder in folders]
    while pairs and not pairs[-1][1]:
        pairs.pop()
    return tuple(pairs)


def is_in_roots(path: str, roots: Sequence[str]) -> bool:
    """Does it lie in a root, by its own name or by where its links lead?"""
    return any(
        root in _parents(name)
        for name in (os.path.normpath(path), os.path.realpath(path))
        for root in roots
    )


def _parents(path: str) -> Iterator[str]:
    """Yield the path and every folder that it lies in."""
    while True:
        yield path
        path, before = os.path.dirname(path), path  # noqa: PTH120 - judged for every command: plain text
        if path == before:
            return


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)  # noqa: PTH113 - as above


# Files that the words of a command name.

_SEPARATORS = re.compile(r"[\s\"'=;|&()<>,:\[\]]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_RUNNERS = {
    "npm": "package.json",
    "pnpm": "package.json",
    "yarn": "package.json",
    "bun": "package.json",
    "make": "Makefile",
    "just": "justfile",
}
_ENTRY_POINTS = ("__main__.py", "__init__.py", "index.js", "package.json")
_MAX_NAME = 1_000  # characters
_CHUNK = 1 << 20


def mentioned_files(
    words: Iterable[str], folder: str, root: str, *, exact: bool = False
) -> tuple[str, ...]:
    """Return the files that a command names, from the root and in order. It runs in `folder`.

    With `exact`, only files that are named as they are. A word that is the folder itself names what
    the command works on, and not a file in it.
    """
    real, plain = os.path.realpath(root), os.path.normpath(Path(root).absolute())
    whole = (real, plain, os.path.normpath(folder))
    paths: set[str] = set()
    for piece in _pieces(words):
        if os.path.normpath(Path(folder, piece)) not in whole:
            names = (piece,) if exact else _possible_names(piece)
            paths.update(filter(None, (_path_in_root(folder, name, real, plain) for name in names)))
    return tuple(sorted(paths))


def _path_in_root(folder: str, name: str, real: str, plain: str) -> str:
    """Return the path of a file from the root, or empty if there is no such file in the root."""
    whole = os.path.normpath(os.path.join(folder, name))  # noqa: PTH118 - hundreds at a start
    if not os.path.isfile(whole):  # noqa: PTH113 - as above; nearly none is
        return ""
    for root in (real, plain):
        if whole.startswith(f"{root}/"):
            return whole[len(root) + 1 :]
    return os.path.relpath(os.path.realpath(whole), real) if is_in_roots(whole, (real,)) else ""


def fingerprints(paths: Iterable[str], root: str) -> Mapping[str, str]:
    """Return a hash of each file; for a link that leads out of the root, where it leads."""
    return {path: _fingerprint(path, root) for path in paths}


def outside_target(path: str, root: str) -> str:
    """Return the real path of a file of the root if that is outside the root; else empty."""
    real = os.path.realpath(Path(root, path))
    return "" if is_in_roots(real, (os.path.realpath(root),)) else real


def _fingerprint(path: str, root: str) -> str:
    if target := outside_target(path, root):
        return f"leads to {target}"
    content = sha256()
    try:
        with Path(root, path).open("rb") as file:
            while data := file.read(_CHUNK):
                content.update(data)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return content.hexdigest()


def _pieces(words: Iterable[str]) -> Iterator[str]:
    """Yield the words, and their parts between separators."""
    pieces = (piece for word in words for piece in (word, *_SEPARATORS.split(word)))
    for piece in dict.fromkeys(pieces):
        if piece and len(piece) <= _MAX_NAME and "\0" not in piece:
            yield piece


def _possible_names(piece: str) -> Iterator[str]:
    """Yield every name that it may stand for, of a file below the folder or elsewhere."""
    plain = str(Path(piece).expanduser()) if piece.startswith("~/") else piece
    yield from (plain, f"{plain}.js", *(f"{plain}/{name}" for name in _ENTRY_POINTS))
    if not plain.startswith("/"):
        yield from (f"node_modules/.bin/{plain}", f"node_modules/{plain}/package.json")
    if _MODULE.fullmatch(plain):
        module = plain.replace(".", "/")
        yield from (f"{module}.py", *(f"{module}/{name}" for name in _ENTRY_POINTS[:2]))
    if project_file := _RUNNERS.get(plain):
        yield project_file
