"""Files of a workspace that git runs or obeys because its configuration names them.

`core.hooksPath` leads git to hooks outside of `.git/hooks`; `include.path` and `includeIf.*.path`
lead to more configuration. The repository's own configuration and the person's are read for them,
without git, which would already obey what it reads. Whether the condition of an `includeIf` is true
does not matter: it may become true. A repository inside the workspace (a submodule, or a clone) has
a configuration of its own, which counts for what is in it.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bridle.workspace.fs import is_below
from bridle.workspace.git.config import parse_config
from bridle.workspace.sensitive_paths import FREE, Protection, fold_path

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
_CONTAINS = Protection("", "ask", "it contains a file that git's configuration names")
_MAX_BYTES = 1 << 20  # of a configuration
_MAX_FILES = 50  # that are read
_MAX_LEVELS = 64  # of folders above a workspace
_MAX_NESTED = 200  # repositories inside a workspace whose configuration is remembered

Stamp = tuple[int, int, int] | None  # tells one version of a file from another; None: no file


class GitPaths(NamedTuple):
    """Folders of hooks and files of configuration: as they are named, and their real paths."""

    hooks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def protection_of(self, path: str, root: str) -> Protection:
        """Return the protection of an absolute path in that workspace."""
        if not (self.hooks or self.files):
            return FREE
        path, root = fold_path(path), fold_path(root)
        protection = FREE
        for file in map(fold_path, self.files):
            protection = protection.plus(
                _IS_CONFIG if path == file else _container_protection(path, file, root)
            )
        for folder in map(fold_path, self.hooks):
            if is_below(root, folder):  # all of the workspace lies in it: its hooks have names
                above, _, name = path.rpartition("/")
                is_hook = above == folder and name in HOOKS
                protection = protection.plus(_IS_HOOK if is_hook else FREE)
            elif is_below(path, folder):
                protection = protection.plus(_IS_HOOK)
            else:
                protection = protection.plus(_container_protection(path, folder, root))
        return protection

    def files_in(self, root: str) -> tuple[str, ...]:
        """Return the files of configuration in the workspace, from its root."""
        return _paths_from(root, self.files)

    def hooks_in(self, root: str, repository: str = "") -> tuple[str, ...]:
        """Return the folders of hooks in the workspace, from its root.

        If the repository's own top folder is one (`repository`; by default that is the root), the
        hooks are named one by one.
        """
        paths: list[str] = []
        for folder in self.hooks:
            contains_all = is_below(repository or root, folder)
            paths += [f"{folder}/{name}" for name in HOOKS] if contains_all else [folder]
        return _paths_from(root, paths)


def _paths_from(root: str, paths: Sequence[str]) -> tuple[str, ...]:
    start = f"{root.rstrip('/')}/"
    return tuple(
        dict.fromkeys(path.removeprefix(start) for path in paths if path.startswith(start))
    )


def _container_protection(path: str, protected: str, root: str) -> Protection:
    """Protect a folder that contains a protected path: replacing it replaces that path as well."""
    return _CONTAINS if path != root and is_below(protected, path) else FREE


class GitConfiguration:
    """What git's configuration names for one workspace. A file that has changed is read again."""

    def __init__(self, root: str, home: str) -> None:
        self._root = root
        self._home = home
        self._stamps: dict[str, Stamp] | None = None
        self._paths = GitPaths()
        self._nested: dict[str, GitConfiguration] = {}

    def nested(self, folder: str) -> "GitConfiguration":
        """Return the configuration of the repository at that folder inside the workspace."""
        if folder not in self._nested:
            if len(self._nested) >= _MAX_NESTED:
                self._nested.clear()
            self._nested[folder] = GitConfiguration(folder, self._home)
        return self._nested[folder]

    def protection_of(self, path: str) -> Protection:
        """Return the protection of an absolute path, by this repository and those around it."""
        protection = self.paths.protection_of(path, self._root)
        folder = path if is_below(path, self._root) else self._root
        while folder and folder != self._root:
            if os.path.lexists(f"{folder}/.git"):
                nested = self.nested(folder).paths
                protection = protection.plus(nested.protection_of(path, folder))
            folder = folder.rpartition("/")[0]
        return protection

    @property
    def paths(self) -> GitPaths:
        """The paths that the configuration names now."""
        stamps = self._stamps
        if stamps is None or any(_stamp(path) != stamp for path, stamp in stamps.items()):
            reader = _Reader(self._home)
            self._paths = reader.read(self._root)
            self._stamps = reader.stamps
        return self._paths


class _Reader:
    """Reads the configuration once. `stamps` has every file that was looked at."""

    def __init__(self, home: str) -> None:
        self._home = home
        self.stamps: dict[str, Stamp] = {}
        self._hooks: list[str] = []
        self._files: list[str] = []

    def read(self, root: str) -> GitPaths:
        """Return the paths for a workspace."""
        top, own_files = self._find_repository(root)
        for file in self._personal_files():
            if os.path.realpath(file) != file:  # a link, perhaps to a folder of settings
                self._files.append(file)
            self._read_file(file, top)
        for file in own_files:
            self._read_file(file, top)
        return GitPaths(_with_real_paths(self._hooks), _with_real_paths(self._files))

    def _personal_files(self) -> list[str]:
        settings = os.environ.get("XDG_CONFIG_HOME") or f"{self._home}/.config"
        named = os.environ.get("GIT_CONFIG_GLOBAL")
        files = [named] if named else [f"{settings}/git/config", f"{self._home}/.gitconfig"]
        return ["/etc/gitconfig", *files]

    def _find_repository(self, root: str) -> tuple[str, Sequence[str]]:
        """Return the top folder of the workspace's repository, and its files of configuration."""
        folder = root
        for _ in range(_MAX_LEVELS):
            place = f"{folder}/.git"
            self.stamps[place] = _stamp(place)
            if Path(place).is_file():
                place = _join(folder, self._read_line(place).removeprefix("gitdir:").strip())
            if Path(place).is_dir():
                common = _join(place, self._read_line(f"{place}/commondir"))
                return folder, (f"{common}/config", f"{place}/config.worktree")
            if folder == "/":
                break
            folder = _parent(folder)
        return root, ()

    def _read_file(self, file: str, top: str) -> None:
        """Read one file of configuration, and those that it includes."""
        if file in self.stamps or len(self.stamps) > _MAX_FILES:
            return
        for section, key, value in self._settings(file):
            if (section, key) == ("core", "hookspath"):
                self._hooks.append(self._to_path(value, top))
            elif section in ("include", "includeif") and key == "path":
                included = self._to_path(value, _parent(file))
                self._files.append(included)
                self._read_file(included, top)

    def _settings(self, file: str) -> Iterator[tuple[str, str, str]]:
        """Yield settings up to a line that git would refuse: then git does nothing at all."""
        try:
            for setting in parse_config(self._read_text(file)):
                if setting.value:
                    yield setting.section, setting.key, setting.value
        except ValueError:
            return

    def _to_path(self, value: str, base: str) -> str:
        """Return a path as git reads it: from that folder, or from the person's home."""
        if value.startswith("~/"):
            return os.path.normpath(self._home + value[1:])
        return _join(base, value)

    def _read_line(self, path: str) -> str:
        return self._read_text(path).strip("\r\n ")

    def _read_text(self, path: str) -> str:
        self.stamps[path] = _stamp(path)
        try:
            if not Path(path).is_file():
                return ""
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            with os.fdopen(handle, "rb") as file:
                return file.read(_MAX_BYTES).decode("utf-8", "surrogateescape")
        except OSError:
            return ""


def _with_real_paths(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*paths, *map(os.path.realpath, paths)]))


def _join(base: str, path: str) -> str:
    return os.path.normpath(path if path.startswith("/") else f"{base}/{path}")


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _stamp(path: str) -> Stamp:
    """Return what changes when a file does; of a folder, only which one it is."""
    try:
        status = os.stat(path)  # noqa: PTH116 - some for each path that is judged: a Path costs more
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode, status.st_ino, 0)
    return (status.st_mtime_ns, status.st_ino, status.st_size)
