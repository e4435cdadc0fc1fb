"""What has to be known of the machine to judge a call, for a real folder: places, patterns, git.

Implements `protocols.ground.Ground`. Looks at things as they stand at the moment of the
question, remembers nothing but what git's configuration says, and never raises. What is opened
later is enforced by `paths.py`, not by what was said here.
"""

import os
import stat
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from bridle.protocols.ground import Place
from bridle.workspace.delicate import delicate_below
from bridle.workspace.expansion import expand
from bridle.workspace.fs import is_below
from bridle.workspace.git_paths import GitConfiguration
from bridle.workspace.links import DEVICES, Found, follow
from bridle.workspace.lookup import is_local
from bridle.workspace.paths import Workspace
from bridle.workspace.planted import is_planted
from bridle.workspace.protected import (
    FREE,
    Protection,
    bare_folders,
    care_of,
    care_outside,
    folded,
    stricter,
)
from bridle.workspace.repository import Repositories

_OWN = Protection("deny", "deny", "it is bridle's own: settings, rules, logs")
_LONGEST = 4 * 4096  # bytes; the kernel counts only one name of the four that may be joined


class Ground:
    """A workspace and what lies around it.

    `own` are bridle's folders (settings, state), which nobody else reads or writes; `temporary` is
    the folder that commands have for themselves.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        home: str = "",
        own: Sequence[str | Path] = (),
        temporary: str = "",
    ) -> None:
        self._roots = workspace.roots
        self._home = home or _home()
        self._homes = tuple({self._home, os.path.realpath(self._home)})
        self._temporary = os.path.realpath(temporary) if temporary else ""
        spelled = {os.path.abspath(one) for one in own}  # noqa: PTH100 - as given, links and all
        self._own = tuple(map(folded, spelled | {os.path.realpath(one) for one in spelled}))
        self._repositories = Repositories(self._home)
        self._git = {root: GitConfiguration(root, self._home) for root in self._roots}
        self._named = lru_cache(1024)(self._care_of_name)  # words alone: it cannot grow stale

    @property
    def root(self) -> str:
        """The real path of the workspace."""
        return self._roots[0]

    @property
    def home(self) -> str:
        """The person's home folder, which `~` stands for."""
        return self._home

    def place(self, path: str, cwd: str) -> Place:
        """Where a path leads that is named in that folder. An empty folder stands for the root."""
        whole = path if path.startswith("/") else f"{cwd or self.root}/{path}"
        if not whole.startswith("/") or not _is_possible(whole):
            return Place(path, False, "deny", "deny", "it is no path that the system knows")
        if path in DEVICES:  # by this name; what its links lead to is another for each process
            return Place(path, False, temporary=True)
        found = self._follow(whole)
        if found.path in DEVICES or is_below(found.path, self._temporary):
            return Place(found.path, False, temporary=True)
        root = self._root_of(found.path)
        care = self._care(whole, found, root)
        shown = found.path if root is None else self._shown(found.path, root)
        return Place(shown, root is not None, care.reading, care.writing, care.why)

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """The names that a pattern stands for; None where it cannot be said."""
        return expand(pattern, cwd or self.root)

    def delicate(self, folder: str, cwd: str) -> tuple[str, ...] | None:
        """What takes care to read below a folder, and the links there; None for too much."""
        whole = folder if folder.startswith("/") else f"{cwd or self.root}/{folder}"
        return delicate_below(self._follow(whole).path) if _is_possible(whole) else ()

    def is_tame(self, cwd: str) -> bool:
        """Can git read the repository of that folder without its configuration running code?"""
        return not self.why_wild(cwd)

    def why_wild(self, cwd: str) -> str:
        """What in the repository of that folder could run code, in words; empty where nothing."""
        return self._repositories.why_wild(follow("/", cwd or self.root).path)

    def local(self, name: str) -> bool:
        """Would a program of that name be one that lies in the workspace?"""
        return is_local(name, self._roots)

    def _follow(self, whole: str) -> Found:
        """The roots are real paths, so the way to them need not be walked."""
        for root in self._roots:
            if root != "/" and is_below(whole, root):
                return follow(root, whole[len(root) :])
        return follow("/", whole)

    def _root_of(self, path: str) -> str | None:
        for root in self._roots:
            if is_below(path, root):
                return root
        return None

    def _shown(self, path: str, root: str) -> str:
        """From the root; a path in another root stays absolute."""
        return (path[len(root) :].lstrip("/") or ".") if root == self.root else path

    def _care(self, whole: str, found: Found, root: str | None) -> Protection:
        """The strictest care of any name that the path has on its way."""
        care = self._named(found.path)
        if found.passed:
            for name in (os.path.normpath(whole), *found.passed):
                care = stricter(care, self._named(name))
        if found.doubt:
            care = stricter(care, Protection("ask", "ask", found.doubt))
        if root is None:
            return care
        git = self._git[root]
        care = stricter(care, git.care(found.path))
        for name in (os.path.normpath(whole), *found.passed) if found.passed else ():
            care = stricter(care, git.care(name))
        if found.status is not None and _has_other_names(found.status):
            care = stricter(care, is_planted(found.path, found.status, self._homes, root))
        return stricter(care, _in_bare(found.path, root))

    def _care_of_name(self, path: str) -> Protection:
        """The care of one absolute path by its name."""
        root = self._root_of(path)
        care = care_of(path[len(root) :]) if root is not None else FREE
        for home in self._homes:
            care = stricter(care, care_outside(path, home))
        for own in self._own:
            if is_below(folded(path), own) and not (root and is_below(folded(root), own)):
                care = stricter(care, _OWN)
        return care


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:  # nobody knows whose home
        return "/"


def _is_possible(path: str) -> bool:
    if path.isascii():
        return "\0" not in path and len(path) <= _LONGEST
    try:
        return "\0" not in path and len(os.fsencode(path)) <= _LONGEST
    except UnicodeEncodeError:
        return False


def _has_other_names(status: os.stat_result) -> bool:
    return status.st_nlink > 1 and stat.S_ISREG(status.st_mode)


def _in_bare(path: str, root: str) -> Protection:
    """The care of a `config` or a hook in a folder that git would take for a repository."""
    for folder in bare_folders(path[len(root) :]):
        beside = [os.path.lexists(f"{root}{folder}/{name}") for name in ("HEAD", "objects")]
        if all(beside):
            return Protection("", "deny", "it makes git run programs")
    return FREE
