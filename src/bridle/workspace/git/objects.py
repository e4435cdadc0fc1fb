"""Objects of a git repository: is a content in it, and is it in some of its commits?

A command can write anything into the repository of its workspace. So only commits count whose names
were noted before, and only objects whose content has the hash that they are named by.
"""

import hashlib
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bridle.workspace.git.worktree import linked_repository
from bridle.workspace.programs import find_program

_TABLE = 8  # bytes before the first table of an index
_NAME = 20  # bytes of an object's name
_MAX_POINTER = 4096  # bytes of a `.git` that is a file
_SECONDS = 5.0  # for reading commits
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe could be there, and block
_MAX_BYTES = 64 << 20  # of a commit or a folder
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def has_blob(root: str, path: str, data: bytes) -> bool:
    """Is a content in the repository that this path belongs to? Does not run git."""
    objects = _objects_folder(root, path)
    if not objects:
        return False
    name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
    loose = f"{objects}/{name.hex()[:2]}/{name.hex()[2:]}"
    return os.path.lexists(loose) or any(_is_in_pack(pack, name) for pack in _packs(objects))


def current_commits(root: str, roots: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the commits of HEAD and all refs; none if git or a repository is missing.

    `roots` are the folders of the workspace: git is not taken from there.
    """
    if _top(root) is None:
        return ()
    words = _git_words(roots, "show-ref", "--head", "--hash")
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            words,
            cwd=root,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
        return tuple(dict.fromkeys(done.stdout.decode("ascii").split()))
    return ()


def committed_paths(
    root: str, commits: Sequence[str], contents: Mapping[str, bytes], roots: Sequence[str]
) -> set[str]:
    """Return the paths that had this content in one of these commits, or in an earlier one.

    The search takes a few seconds at most, and begins with these commits.
    """
    top = _top(root)
    if top is None or not commits or not contents:
        return set()
    paths: set[str] = set()
    with suppress(OSError, ValueError), _ObjectReader(root, roots) as objects:
        left = {
            path: (
                os.fsencode(os.path.relpath(f"{root}/{path}", top)).split(b"/"),
                _hash(b"blob", data, commits[0]),
            )
            for path, data in contents.items()
        }
        waiting, seen = deque(commits), set(commits)
        while waiting and left:
            tree, parents = objects.commit(waiting.popleft())
            new = {
                path for path, (names, blob) in left.items() if objects.find(tree, names) == blob
            }
            paths |= new
            left = {path: wanted for path, wanted in left.items() if path not in new}
            waiting.extend(parent for parent in parents if parent not in seen)
            seen.update(parents)
    return paths


class _ObjectReader:
    """Reads objects through git, which is stopped after a while: it may never answer."""

    def __init__(self, root: str, roots: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        words = _git_words(roots, "cat-file", "--batch")
        self._git = subprocess.Popen(
            words, cwd=root, env=_ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        self._deadline = time.monotonic() + _SECONDS
        self._timer = threading.Timer(_SECONDS, self._git.kill)
        self._timer.daemon = True
        self._folders: dict[str, dict[bytes, str]] = {}

    def __enter__(self) -> "_ObjectReader":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._git.kill()
        with suppress(OSError):
            self._git.communicate()

    def commit(self, name: str) -> tuple[str, list[str]]:
        """Return the tree of a commit and its parents; of a tag, what it names as a parent."""
        kind, data = self._read(name)
        if kind not in (b"commit", b"tag"):
            return "", []
        header = [line.partition(b" ") for line in data.partition(b"\n\n")[0].split(b"\n")]
        fields = [(key, value.decode("ascii", "replace")) for key, _, value in header]
        tree = next((value for key, value in fields if key == b"tree"), "")
        return tree, [value for key, value in fields if key in (b"parent", b"object")]

    def find(self, tree: str, names: list[bytes]) -> str:
        """Return the name of the object at a path in a tree, or empty if there is none."""
        for name in names:
            if tree not in self._folders:
                self._folders[tree] = self._folder(tree)
            tree = self._folders[tree].get(name, "")
        return tree

    def _folder(self, tree: str) -> dict[bytes, str]:
        kind, data = self._read(tree)
        entries: dict[bytes, str] = {}
        position, size = 0, len(tree) // 2
        while kind == b"tree" and position < len(data):
            end = data.index(b"\0", position)
            entries[data[position:end].partition(b" ")[2]] = data[end + 1 : end + 1 + size].hex()
            position = end + 1 + size
        return entries

    def _read(self, name: str) -> tuple[bytes, bytes]:
        """Return kind and content; empty if it is missing or does not have the hash of its name.

        Raise `ValueError` once git has been stopped.
        """
        assert self._git.stdin is not None and self._git.stdout is not None
        if not name.isalnum():
            return b"", b""
        if time.monotonic() > self._deadline:
            raise ValueError("there was not enough time")
        self._git.stdin.write(name.encode() + b"\n")
        self._git.stdin.flush()
        header = self._git.stdout.readline().split()
        if len(header) != 3:
            return b"", b""
        kind, size = header[1], int(header[2])
        if size > _MAX_BYTES:
            raise ValueError("it is too large")
        data = self._git.stdout.read(size + 1)[:-1]
        return (kind, data) if _hash(kind, data, name) == name else (b"", b"")


def _hash(kind: bytes, data: bytes, like: str) -> str:
    """Return the name of an object, as long as the name `like`."""
    make = hashlib.sha1 if len(like) == 2 * _NAME else hashlib.sha256
    return make(kind + b" %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _git_words(roots: Sequence[str], *words: str) -> list[str]:
    """Return a command of a git outside the workspace. The folder may belong to anybody."""
    program = find_program("git", roots) or "/usr/bin/git"
    return [program, "--no-replace-objects", "-c", "safe.directory=*", *words]


def _top(root: str) -> str | None:
    """Return the top folder of the repository that a folder lies in."""
    folders = (root, *map(str, Path(root).parents))
    return next((folder for folder in folders if os.path.lexists(f"{folder}/.git")), None)


def _objects_folder(root: str, path: str) -> str:
    """Return the folder of objects of the repository that a path belongs to, or empty."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        entry = Path(root, folder, ".git")
        if entry.is_dir() and not entry.is_symlink():
            return str(entry / "objects")
        if entry.is_file() and not entry.is_symlink():
            if folder:
                return _objects_of_submodule(root, entry)
            shared = linked_repository(root).readable
            return f"{shared[0]}/objects" if shared else ""
    outer = (parent / ".git/objects" for parent in Path(root).parents)
    return str(next((folder for folder in outer if folder.is_dir()), ""))


def _objects_of_submodule(root: str, pointer: Path) -> str:
    """Return the folder of objects that a `.git` file names, if both are in the workspace."""
    try:
        with pointer.open("rb") as file:
            line = os.fsdecode(file.read(_MAX_POINTER)).strip()
    except OSError:
        return ""
    folder = os.path.realpath(pointer.parent / line.removeprefix("gitdir:").strip())
    return f"{folder}/objects" if folder.startswith(f"{os.path.realpath(root)}/") else ""


def _packs(objects: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(f"{objects}/pack") as entries:
        yield from [entry.path for entry in entries if entry.name.endswith(".idx")]


def _is_in_pack(index: str, name: bytes) -> bool:
    """Look the name up: 256 counts by its first byte, then all names in order."""
    with suppress(OSError), open(os.open(index, _FILE), "rb", buffering=0) as file:  # noqa: PTH123 - a handle

        def read(size: int, at: int) -> bytes:
            return os.pread(file.fileno(), size, at)

        def count(byte: int) -> int:
            """Return how many names begin with that byte or a smaller one."""
            return int.from_bytes(read(4, _TABLE + 4 * byte))

        if read(_TABLE, 0) != b"\xfftOc\0\0\0\x02":
            return False
        low, high = count(name[0] - 1) if name[0] else 0, count(name[0])
        names = _TABLE + 4 * 256
        while low < high:
            middle = (low + high) // 2
            other = read(_NAME, names + _NAME * middle)
            if other == name:
                return True
            low, high = (middle + 1, high) if other < name else (low, middle)
    return False
