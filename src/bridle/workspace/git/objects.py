"""What a git repository holds: a file of this content, and the files of its commits.

A command can write anything into the repository of its workspace. So what counts as committed is
found from the names of commits that were noted before, and nothing is believed that does not have
the hash it is named by.
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
_LONGEST = 4096  # bytes of a `.git` that is a file
_SECONDS = 5.0  # for reading commits
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe could be there, and never answer
_MOST_BYTES = 64 << 20  # of a commit or a folder
_SAFE = {
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def has_blob(root: str, path: str, data: bytes) -> bool:
    """Is it in the repository that this path belongs to? Found out without running git."""
    objects = _objects(root, path)
    if not objects:
        return False
    name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
    loose = f"{objects}/{name.hex()[:2]}/{name.hex()[2:]}"
    return os.path.lexists(loose) or any(_is_in_pack(pack, name) for pack in _packs(objects))


def commits_now(root: str, roots: Sequence[str]) -> tuple[str, ...]:
    """The names of what HEAD and all refs lead to. Empty if git or the repository is missing.

    `roots` are the folders of the workspace: git is not taken from there.
    """
    if _top(root) is None:
        return ()
    words = _git_words(roots, "show-ref", "--head", "--hash")
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            words,
            cwd=root,
            env=_SAFE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
        return tuple(dict.fromkeys(done.stdout.decode("ascii").split()))
    return ()


def committed(
    root: str, commits: Sequence[str], contents: Mapping[str, bytes], roots: Sequence[str]
) -> set[str]:
    """The paths that had this content in one of these commits, or in one before them.

    Commits are looked through for a few seconds, these first.
    """
    top = _top(root)
    if top is None or not commits or not contents:
        return set()
    found: set[str] = set()
    with suppress(OSError, ValueError), _Objects(root, roots) as objects:
        left = {
            path: (
                os.fsencode(os.path.relpath(f"{root}/{path}", top)).split(b"/"),
                _hash(b"blob", data, commits[0]),
            )
            for path, data in contents.items()
        }
        waiting, seen = deque(commits), set(commits)
        while waiting and left:
            tree, others = objects.commit(waiting.popleft())
            new = {
                path for path, (names, blob) in left.items() if objects.find(tree, names) == blob
            }
            found |= new
            left = {path: wanted for path, wanted in left.items() if path not in new}
            waiting.extend(one for one in others if one not in seen)
            seen.update(others)
    return found


class _Objects:
    """Reads objects through git, which is stopped after a while: it might wait for ever."""

    def __init__(self, root: str, roots: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        words = _git_words(roots, "cat-file", "--batch")
        self._git = subprocess.Popen(
            words, cwd=root, env=_SAFE, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        self._end = time.monotonic() + _SECONDS
        self._timer = threading.Timer(_SECONDS, self._git.kill)
        self._timer.daemon = True
        self._folders: dict[str, dict[bytes, str]] = {}

    def __enter__(self) -> "_Objects":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._git.kill()
        with suppress(OSError):
            self._git.communicate()

    def commit(self, name: str) -> tuple[str, list[str]]:
        """Its folder, and the commits before it; of a tag, what it names."""
        kind, data = self._read(name)
        if kind not in (b"commit", b"tag"):
            return "", []
        header = [line.partition(b" ") for line in data.partition(b"\n\n")[0].split(b"\n")]
        named = [(key, value.decode("ascii", "replace")) for key, _, value in header]
        tree = next((value for key, value in named if key == b"tree"), "")
        return tree, [value for key, value in named if key in (b"parent", b"object")]

    def find(self, tree: str, names: list[bytes]) -> str:
        """The name of what lies in that folder under these names; empty if there is nothing."""
        for name in names:
            if tree not in self._folders:
                self._folders[tree] = self._folder(tree)
            tree = self._folders[tree].get(name, "")
        return tree

    def _folder(self, tree: str) -> dict[bytes, str]:
        kind, data = self._read(tree)
        found: dict[bytes, str] = {}
        at, size = 0, len(tree) // 2
        while kind == b"tree" and at < len(data):
            end = data.index(b"\0", at)
            found[data[at:end].partition(b" ")[2]] = data[end + 1 : end + 1 + size].hex()
            at = end + 1 + size
        return found

    def _read(self, name: str) -> tuple[bytes, bytes]:
        """Kind and content; nothing if it is missing or not what its name says.

        Raise `ValueError` once git has been stopped.
        """
        assert self._git.stdin is not None and self._git.stdout is not None
        if not name.isalnum():
            return b"", b""
        if time.monotonic() > self._end:
            raise ValueError("there was not enough time")
        self._git.stdin.write(name.encode() + b"\n")
        self._git.stdin.flush()
        said = self._git.stdout.readline().split()
        if len(said) != 3:
            return b"", b""
        kind, size = said[1], int(said[2])
        if size > _MOST_BYTES:
            raise ValueError("it is too large")
        data = self._git.stdout.read(size + 1)[:-1]
        return (kind, data) if _hash(kind, data, name) == name else (b"", b"")


def _hash(kind: bytes, data: bytes, like: str) -> str:
    """The name of an object in a repository that has names like that."""
    make = hashlib.sha1 if len(like) == 2 * _NAME else hashlib.sha256
    return make(kind + b" %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _git_words(roots: Sequence[str], *words: str) -> list[str]:
    """git, but not one that lies in the workspace. Whose folders those are does not matter here."""
    program = find_program("git", roots) or "/usr/bin/git"
    return [program, "--no-replace-objects", "-c", "safe.directory=*", *words]


def _top(root: str) -> str | None:
    """The folder of the repository that this one lies in."""
    folders = (root, *map(str, Path(root).parents))
    return next((one for one in folders if os.path.lexists(f"{one}/.git")), None)


def _objects(root: str, path: str) -> str:
    """The folder of objects of the repository that this path belongs to."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        mark = Path(root, folder, ".git")
        if mark.is_dir() and not mark.is_symlink():
            return str(mark / "objects")
        if mark.is_file() and not mark.is_symlink():
            if folder:
                return _objects_of_submodule(root, mark)
            shared = linked_repository(root).readable
            return f"{shared[0]}/objects" if shared else ""
    outer = (one / ".git/objects" for one in Path(root).parents)
    return str(next((one for one in outer if one.is_dir()), ""))


def _objects_of_submodule(root: str, mark: Path) -> str:
    """The folder of objects that a `.git` file names, if both are inside the workspace."""
    try:
        with mark.open("rb") as file:
            line = os.fsdecode(file.read(_LONGEST)).strip()
    except OSError:
        return ""
    folder = os.path.realpath(mark.parent / line.removeprefix("gitdir:").strip())
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
            """How many names begin with that byte or a smaller one."""
            return int.from_bytes(read(4, _TABLE + 4 * byte))

        if read(_TABLE, 0) != b"\xfftOc\0\0\0\x02":
            return False
        low, high = count(name[0] - 1) if name[0] else 0, count(name[0])
        names = _TABLE + 4 * 256
        while low < high:
            middle = (low + high) // 2
            there = read(_NAME, names + _NAME * middle)
            if there == name:
                return True
            low, high = (middle + 1, high) if there < name else (low, middle)
    return False
