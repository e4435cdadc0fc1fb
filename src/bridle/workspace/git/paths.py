"""Files of a workspace that git runs or obeys because its configuration names them.

`core.hooksPath` leads git to hooks outside of `.git/hooks`; `include.path` and `includeIf.*.path`
to more configuration. The repository's own configuration and the person's are read for them, here
and without git, because git would already obey what it reads. Whether a condition of an `includeIf`
holds is not asked: it may hold later. A repository inside the workspace (a submodule, or a clone)
has a configuration of its own, which counts for what is in it.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bridle.workspace.fs import is_below
from bridle.workspace.git.config import parse
from bridle.workspace.sensitive_paths import FREE, Protection, folded, stricter

HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
    *("prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout"),
    *("post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive"),
    *("post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite"),
    *("sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist"),
    *("p4-post-changelist", "p4-pre-submit", "post-index-change"),
)
_IS_HOOK = Protection("", "ask", "git runs it as a hook: core.hooksPath leads there")
_IS_CONFIG = Protection("", "deny", "git reads it as its configuration, which can run programs")
_ON_THE_WAY = Protection("", "ask", "it contains a file that git's configuration names")
_MOST_BYTES = 1 << 20  # of a configuration
_MOST_FILES = 50  # that are read
_MOST_LEVELS = 64  # of folders above a workspace
_MOST_NESTED = 200  # repositories inside a workspace whose configuration is remembered

Mark = tuple[int, int, int] | None


class GitPaths(NamedTuple):
    """Real paths and paths as they are spelled: folders of hooks, and files of configuration."""

    hooks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def care(self, path: str, root: str) -> Protection:
        """The care that an absolute path in that workspace takes."""
        if not (self.hooks or self.files):
            return FREE
        path, root = folded(path), folded(root)
        care = FREE
        for file in map(folded, self.files):
            care = stricter(care, _IS_CONFIG if path == file else _leading(path, file, root))
        for folder in map(folded, self.hooks):
            if is_below(root, folder):  # all of the workspace lies in it: its hooks have names
                above, _, name = path.rpartition("/")
                care = stricter(care, _IS_HOOK if above == folder and name in HOOKS else FREE)
            else:
                is_hook = is_below(path, folder)
                care = stricter(care, _IS_HOOK if is_hook else _leading(path, folder, root))
        return care

    def files_in(self, root: str) -> tuple[str, ...]:
        """The files of configuration in the workspace, named from its root."""
        return _inside(self.files, root)

    def hooks_in(self, root: str, repository: str = "") -> tuple[str, ...]:
        """The folders of hooks in the workspace, named from its root.

        If the repository's own top folder is one (`repository`; by default that is the root), the
        hooks are named one by one.
        """
        found: list[str] = []
        for folder in self.hooks:
            beside = is_below(repository or root, folder)
            found += [f"{folder}/{name}" for name in HOOKS] if beside else [folder]
        return _inside(found, root)


def _inside(paths: Sequence[str], root: str) -> tuple[str, ...]:
    own = f"{root.rstrip('/')}/"
    return tuple(dict.fromkeys(one.removeprefix(own) for one in paths if one.startswith(own)))


def _leading(path: str, protected: str, root: str) -> Protection:
    """A folder on the way: whoever replaces it replaces what is protected as well."""
    return _ON_THE_WAY if path != root and is_below(protected, path) else FREE


class GitConfiguration:
    """What git's configuration names for one workspace, read again when a file of it changed."""

    def __init__(self, root: str, home: str) -> None:
        self._root = root
        self._home = home
        self._marks: dict[str, Mark] | None = None
        self._paths = GitPaths()
        self._nested: dict[str, GitConfiguration] = {}

    def nested(self, folder: str) -> "GitConfiguration":
        """The configuration of the repository whose top is that folder inside the workspace."""
        if folder not in self._nested:
            if len(self._nested) >= _MOST_NESTED:
                self._nested.clear()
            self._nested[folder] = GitConfiguration(folder, self._home)
        return self._nested[folder]

    def care(self, path: str) -> Protection:
        """The care that an absolute path takes for this repository and those on the way to it."""
        care = self.paths.care(path, self._root)
        folder = path if is_below(path, self._root) else self._root
        while folder and folder != self._root:
            if os.path.lexists(f"{folder}/.git"):
                care = stricter(care, self.nested(folder).paths.care(path, folder))
            folder = folder.rpartition("/")[0]
        return care

    @property
    def paths(self) -> GitPaths:
        """As it stands now."""
        if self._marks is None or any(_mark(path) != mark for path, mark in self._marks.items()):
            reader = _Reader(self._home)
            self._paths = reader.read(self._root)
            self._marks = reader.marks
        return self._paths


class _Reader:
    """Reads the files once. `marks` are the times of every file that was looked at."""

    def __init__(self, home: str) -> None:
        self._home = home
        self.marks: dict[str, Mark] = {}
        self._hooks: list[str] = []
        self._files: list[str] = []

    def read(self, root: str) -> GitPaths:
        """The paths for a workspace."""
        top, own = self._repository(root)
        for file in self._of_the_person():
            if os.path.realpath(file) != file:  # a link, perhaps to a folder of settings
                self._files.append(file)
            self._read(file, top)
        for file in own:
            self._read(file, top)
        return GitPaths(_spelled_and_real(self._hooks), _spelled_and_real(self._files))

    def _of_the_person(self) -> list[str]:
        settings = os.environ.get("XDG_CONFIG_HOME") or f"{self._home}/.config"
        named = os.environ.get("GIT_CONFIG_GLOBAL")
        own = [named] if named else [f"{settings}/git/config", f"{self._home}/.gitconfig"]
        return ["/etc/gitconfig", *own]

    def _repository(self, root: str) -> tuple[str, Sequence[str]]:
        """The folder of the repository that the workspace lies in, and its configuration."""
        folder = root
        for _ in range(_MOST_LEVELS):
            place = f"{folder}/.git"
            self.marks[place] = _mark(place)
            if Path(place).is_file():
                place = _joined(folder, self._line(place).removeprefix("gitdir:").strip())
            if Path(place).is_dir():
                common = _joined(place, self._line(f"{place}/commondir"))
                return folder, (f"{common}/config", f"{place}/config.worktree")
            if folder == "/":
                break
            folder = _above(folder)
        return root, ()

    def _line(self, path: str) -> str:
        return self._text(path).strip("\r\n ")

    def _read(self, file: str, top: str) -> None:
        """One file of configuration, and those that it includes."""
        if file in self.marks or len(self.marks) > _MOST_FILES:
            return
        for section, key, value in self._settings(file):
            if (section, key) == ("core", "hookspath"):
                self._hooks.append(self._path(value, top))
            elif section in ("include", "includeif") and key == "path":
                included = self._path(value, _above(file))
                self._files.append(included)
                self._read(included, top)

    def _settings(self, file: str) -> Iterator[tuple[str, str, str]]:
        """Its settings, up to the line that git would refuse: then git does nothing at all."""
        try:
            for one in parse(self._text(file)):
                if one.value:
                    yield one.section, one.key, one.value
        except ValueError:
            return

    def _path(self, value: str, base: str) -> str:
        """A path as git reads it: from that folder, or from the person's home."""
        if value.startswith("~/"):
            return os.path.normpath(self._home + value[1:])
        return _joined(base, value)

    def _text(self, path: str) -> str:
        self.marks[path] = _mark(path)
        try:
            if not Path(path).is_file():
                return ""
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            with os.fdopen(handle, "rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", "surrogateescape")
        except OSError:
            return ""


def _spelled_and_real(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*paths, *map(os.path.realpath, paths)]))


def _joined(base: str, path: str) -> str:
    return os.path.normpath(path if path.startswith("/") else f"{base}/{path}")


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _mark(path: str) -> Mark:
    """What changes when a file does; of a folder only which one it is."""
    try:
        status = os.stat(path)  # noqa: PTH116 - some for each path that is judged: a Path costs more
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode, status.st_ino, 0)
    return (status.st_mtime_ns, status.st_ino, status.st_size)
