"""What judging a call needs to know of this machine: where paths lead, patterns, programs, git.

`LocalMachine` implements `protocols.machine.Machine` for a real workspace. It looks at things as
they are when it is asked, remembers nothing but what git's configuration says, and never raises.
What is opened later is checked again by `handles.py`.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import translate
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from bridle.protocols.machine import Place
from bridle.workspace.fs import is_below
from bridle.workspace.git.paths import GitConfiguration
from bridle.workspace.git.repository import Repositories
from bridle.workspace.programs import is_local
from bridle.workspace.safe_open import MAX_LINKS
from bridle.workspace.sensitive_paths import (
    FREE,
    Protection,
    fold_path,
    home_credential_paths,
    machine_protection,
    possible_repositories,
    protection_of,
    system_credential_paths,
)
from bridle.workspace.workspace import Workspace

_OWN = Protection("deny", "deny", "it is bridle's own: settings, rules, logs")
_CREDENTIALS = Protection("deny", "deny", "it is another name of a file that holds credentials")
_HARD_LINK = Protection(
    "ask", "ask", "the file has other names, and they may be outside (hard link)"
)
_MAX_PATH = 4096  # bytes of a path that the kernel takes
_MAX_JOINED = 4 * 4096  # bytes; the kernel counts only one name of the four that may be joined
# Devices that swallow what is written, or are the command's own input and output.
_SWALLOWING = ("null", "zero", "full", "random", "urandom")
_OWN_STREAMS = ("stdin", "stdout", "stderr", "fd/0", "fd/1", "fd/2")
DEVICES = frozenset(f"/dev/{name}" for name in (*_SWALLOWING, *_OWN_STREAMS))


class LocalMachine:
    """A workspace and what lies around it.

    `own` are bridle's folders (settings, state), which nobody else reads or writes. `temporary`
    returns the folder that commands have for themselves; it is called for the first path outside
    of the workspace, since the folder may have to be made. `root` is the real path of the
    workspace, `home` the person's home folder, which `~` stands for.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        home: str = "",
        own: Sequence[str | Path] = (),
        temporary: Callable[[], str] | None = None,
    ) -> None:
        self.root = workspace.root
        self.home = home or _home_folder()
        self._roots = workspace.roots
        self._homes = tuple({self.home, os.path.realpath(self.home)})
        self._find_temporary = temporary
        given = {os.path.abspath(path) for path in own}  # noqa: PTH100 - as given, links and all
        self._own = tuple(map(fold_path, given | {os.path.realpath(path) for path in given}))
        # the name alone decides, so what is remembered stays true
        self._protection_of_name = lru_cache(1024)(self._look_up_name)

    def place(self, path: str, cwd: str, *, read_only: bool = False) -> Place:
        """Return where a path leads that is named in `cwd`; empty stands for the root.

        With `read_only`, what restricts only writing is not looked up, and `writing` is `deny`.
        """
        whole = path if path.startswith("/") else f"{cwd or self.root}/{path}"
        if not whole.startswith("/") or not _is_possible(whole):
            return Place(path, False, "deny", "deny", "it is not a path that the system knows")
        if path in DEVICES:  # by this name; what its links lead to is another for each process
            return Place(path, False, temporary=True)
        target = self._follow(whole)
        root = self._root_of(target.path)
        if target.path in DEVICES or (root is None and is_below(target.path, self._temporary)):
            return Place(target.path, False, temporary=True)
        reading, writing, why = self._protection(whole, target, root, read_only=read_only)
        shown = target.path
        if root == self.root:  # a path in another root stays absolute
            shown = shown[len(root) :].lstrip("/") or "."
        return Place(shown, root is not None, reading, "deny" if read_only else writing, why)

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """Return the names that a pattern stands for, or None if that is unclear."""
        return expand(pattern, cwd or self.root)

    def sensitive_files(self, folder: str, cwd: str) -> tuple[str, ...] | None:
        """Return the sensitive files and the links below a folder, or None if it is too large."""
        whole = folder if folder.startswith("/") else f"{cwd or self.root}/{folder}"
        return sensitive_files(self._follow(whole).path) if _is_possible(whole) else ()

    def is_repository_safe(self, cwd: str) -> bool:
        """Can git read the repository of a folder without its configuration running code?"""
        return self._repositories.is_safe(follow_links("/", cwd or self.root).path)

    def is_local_program(self, name: str) -> bool:
        """Would a program that is called by this name be one that lies in the workspace?"""
        return is_local(name, self._roots)

    @cached_property
    def _temporary(self) -> str:
        return os.path.realpath(self._find_temporary()) if self._find_temporary else ""

    @cached_property
    def _repositories(self) -> Repositories:
        return Repositories(self.home)

    @cached_property
    def _git(self) -> dict[str, GitConfiguration]:
        return {root: GitConfiguration(root, self.home) for root in self._roots}

    def _follow(self, whole: str) -> "LinkTarget":
        """Follow the links of a path. The roots are real paths, which need not be followed."""
        for root in self._roots:
            if root != "/" and is_below(whole, root):
                return follow_links(root, whole[len(root) :])
        return follow_links("/", whole)

    def _root_of(self, path: str) -> str | None:
        for root in self._roots:
            if is_below(path, root):
                return root
        return None

    def _protection(
        self, whole: str, target: "LinkTarget", root: str | None, *, read_only: bool
    ) -> Protection:
        """Return the strictest protection of all names that a path has on its way."""
        names = (os.path.normpath(whole), *target.passed) if target.passed else ()
        protection = self._protection_of_name(target.path)
        for name in names:
            protection = protection.plus(self._protection_of_name(name))
        if target.doubt:
            protection = protection.plus(Protection("ask", "ask", target.doubt))
        if root is None:
            return protection
        status = target.status
        if status is not None and status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            protection = protection.plus(
                hard_link_protection(target.path, status, self._homes, root)
            )
        if read_only:
            return protection
        for name in (target.path, *names):
            protection = protection.plus(self._git[root].protection_of(name))
        for folder in possible_repositories(target.path[len(root) :]):
            # a `config` or a hook in a folder that git would take for a repository
            if all(os.path.lexists(f"{root}{folder}/{name}") for name in ("HEAD", "objects")):
                protection = protection.plus(Protection("", "deny", "it makes git run programs"))
        return protection

    def _look_up_name(self, path: str) -> Protection:
        """Return the protection of one absolute path by its name."""
        root = self._root_of(path)
        protection = protection_of(path[len(root) :]) if root is not None else FREE
        for home in self._homes:
            protection = protection.plus(machine_protection(path, home))
        for own in self._own:
            if is_below(fold_path(path), own) and not (root and is_below(fold_path(root), own)):
                protection = protection.plus(_OWN)
        return protection


def _home_folder() -> str:
    try:
        return str(Path.home())
    except RuntimeError:  # the user has none
        return "/"


def _is_possible(path: str) -> bool:
    """Can this be a path at all?"""
    if "\0" in path:
        return False
    try:
        return len(os.fsencode(path)) <= _MAX_JOINED
    except UnicodeEncodeError:
        return False


# Where a path leads: every link is read and followed, nothing is opened.


class LinkTarget(NamedTuple):
    """Where a path leads.

    `status` is what is there, or None if there is nothing, or a folder that `..` led up to.
    `passed` are the paths that links on the way led to. `doubt` says why it is not certain.
    """

    path: str
    status: os.stat_result | None
    passed: tuple[str, ...] = ()
    doubt: str = ""


def follow_links(start: str, path: str) -> LinkTarget:
    """Follow a path from `start`, a real absolute path."""
    current = "" if start == "/" else start
    pending = path.split("/")[::-1]
    passed: list[str] = []
    status: os.stat_result | None = None
    doubt = ""
    while pending:
        name = pending.pop()
        if name in ("", "."):
            continue
        if name == "..":
            current, status = current.rpartition("/")[0], None
            continue
        current = f"{current}/{name}"
        status, target, problem = _read_entry(current)
        doubt = doubt or problem
        if target is None:
            continue
        if current in DEVICES or (current.startswith("/proc/") and current.count("/") > 2):
            # What the kernel shows of a process is different for each process: nothing to follow.
            return LinkTarget("/".join([current, *reversed(pending)]), None, tuple(passed))
        if len(passed) == MAX_LINKS:
            return LinkTarget(current, status, tuple(passed), "its links lead in a circle")
        pending += target.split("/")[::-1]
        current = "" if target.startswith("/") else current.rpartition("/")[0]
        passed.append(os.path.normpath("/".join([current, *reversed(pending)]) or "/"))
    return LinkTarget(current or "/", status, tuple(passed), doubt)


def _read_entry(path: str) -> tuple[os.stat_result | None, str | None, str]:
    """Return the status of a path, where it leads if it is a link, and what went wrong."""
    try:
        status = os.lstat(path)
        target = str(Path(path).readlink()) if stat.S_ISLNK(status.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None, None, ""
    except (OSError, ValueError) as error:
        is_name_too_long = getattr(error, "errno", 0) == errno.ENAMETOOLONG
        if is_name_too_long and len(os.fsencode(path)) < _MAX_PATH:
            return None, None, ""  # there is no file with such a long name
        return None, None, "it cannot be looked at"
    return status, target, ""


# The names that a shell's pattern stands for: `*`, `?` and `[…]`, as bash and dash expand them.

MAX_NAMES = 1_000
_MAX_LOOKS = 20_000  # entries of folders that are looked at for one pattern
_MAX_PATTERN = 4096
_WILDCARD = re.compile(r"[*?\[]")
_QUOTED = re.compile(r"\[[*?\[]\]")
_CLASS = re.compile(r"\[[^/]*\[[.:=]")


class _Unclear(Exception):
    """There is too much to look at, or the answer is not certain."""


def expand(pattern: str, cwd: str) -> tuple[str, ...] | None:
    """Return the words that the shell would make of a pattern, or the pattern if nothing matches.

    None if there are too many, or if shells do not agree.
    """
    if not _is_plain(pattern):
        return None
    looks = [_MAX_LOOKS]
    words = ["/" if pattern.startswith("/") else ""]
    parts = re.findall(r"([^/]+)(/*)", pattern[len(pattern) - len(pattern.lstrip("/")) :])
    try:
        for part, slashes in parts:
            words = list(_expand_component(words, part, slashes, cwd, looks))
            if len(words) > MAX_NAMES:
                return None
    except _Unclear:
        return None
    if words:
        return tuple(sorted(words))
    return None if _QUOTED.search(pattern) else (pattern,)  # it may have been quoted


def _is_plain(pattern: str) -> bool:
    """Is there one way to read it? Not if it is very long, or has escapes or character classes."""
    if not pattern or len(pattern) > _MAX_PATTERN or "\\" in pattern or "\0" in pattern:
        return False
    return _CLASS.search(pattern) is None


def _expand_component(
    words: list[str], part: str, slashes: str, cwd: str, looks: list[int]
) -> Iterator[str]:
    """Yield each word with one more component, for the paths that exist."""
    component = _component(part) if _WILDCARD.search(part) else None
    for word in words:
        if component is None:
            _count_look(looks)
            if _exists(_join(cwd, word + part), as_folder=bool(slashes)):
                yield word + part + slashes
            continue
        for name in _names_in(_join(cwd, word), looks):
            if not component.matches(name):
                continue
            if not slashes or _exists(_join(cwd, word + name), as_folder=True):
                yield word + name + slashes


def _count_look(looks: list[int]) -> None:
    looks[0] -= 1
    if looks[0] < 0:
        raise _Unclear


def _join(cwd: str, word: str) -> str:
    return word if word.startswith("/") else f"{cwd}/{word}"


def _exists(path: str, *, as_folder: bool) -> bool:
    try:
        return os.path.isdir(path) if as_folder else os.path.lexists(path)  # noqa: PTH112 - names of bytes that are not text
    except ValueError:
        return False


def _names_in(folder: str, looks: list[int]) -> Iterator[str]:
    """Yield the names in a folder, also `.` and `..`; no others if it cannot be read."""
    yield from (".", "..")
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                _count_look(looks)
                yield entry.name
    except (OSError, ValueError):
        return


class _Component:
    """One component of a pattern. A name for which the locale matters raises `_Unclear`."""

    def __init__(self, part: str) -> None:
        # A `^` negates in bash and not in dash; a range depends on the order of the characters.
        if "[^" in part:
            raise _Unclear
        self._has_dot = part.startswith(".")
        self._part = part
        self._part_in_bytes = part if part.isascii() else _as_latin1(part)

    def matches(self, name: str) -> bool:
        if name.startswith(".") and not self._has_dot:
            return False
        matches = _expression(self._part).match(name) is not None
        if not name.isascii():
            in_bytes = _expression(self._part_in_bytes).match(_as_latin1(name)) is not None
            if matches != in_bytes:
                raise _Unclear  # one locale counts characters, another bytes
        return matches


@lru_cache(maxsize=256)
def _expression(part: str) -> re.Pattern[str]:
    """Compile a component when the first name is compared with it: that is expensive."""
    try:
        return re.compile(translate(part))
    except re.error:
        raise _Unclear from None


def _component(part: str) -> _Component:
    try:
        return _Component(part)
    except UnicodeEncodeError:
        raise _Unclear from None


def _as_latin1(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


# Sensitive files below a folder that is searched: by their names, up to a limit.

MAX_ENTRIES = 20_000
_SKIPPED = frozenset({".git", "node_modules", "site-packages"})


def sensitive_files(top: str, most: int = MAX_ENTRIES) -> tuple[str, ...] | None:
    """Return paths of sensitive files and links below a folder, or None if it has too many."""
    paths: list[str] = []
    waiting = [""]
    left = most
    is_sensitive = _sensitive_test()
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{top}/{folder}") as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return None
                    path = f"{folder}{entry.name}"
                    if entry.is_symlink() or is_sensitive(entry.name, path):
                        paths.append(path)
                    elif entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/")
        except (OSError, ValueError):
            continue  # what we cannot list, a search cannot read
    return tuple(paths)


def _sensitive_test() -> Callable[[str, str], bool]:
    """Return a test whether a name is sensitive to read. It remembers names: most come often."""
    known: dict[str, bool] = {}

    def is_sensitive(name: str, path: str) -> bool:
        # of few names the folder matters, too
        if path.startswith((".config/", ".docker/")) or "/.config/" in path or "/.docker/" in path:
            return protection_of(path).reading != ""
        if name not in known:
            known[name] = protection_of(name).reading != ""
        return known[name]

    return is_sensitive


# A file with several names (hard links): is another of its names one that nobody may touch?

_MAX_COMPARED = 2_000  # files
_MAX_OF_FOLDER = 200
_TOOLS = "node_modules site-packages .venv venv .tox .nox .pnpm-store .yarn .git target vendor"
_LINKED_BY_TOOLS = frozenset(_TOOLS.split())


def hard_link_protection(
    path: str, status: os.stat_result, homes: Iterable[str], root: str
) -> Protection:
    """Return the protection of a file that has several names."""
    own = (status.st_dev, status.st_ino)
    if any((other.st_dev, other.st_ino) == own for other in _credential_files(homes)):
        return _CREDENTIALS
    return FREE if not _LINKED_BY_TOOLS.isdisjoint(path[len(root) :].split("/")) else _HARD_LINK


def _credential_files(homes: Iterable[str]) -> Iterator[os.stat_result]:
    """Yield the status of files that hold credentials, up to a limit."""
    count = 0
    paths = [f"{home.rstrip('/')}/{path}" for home in homes for path in home_credential_paths()]
    for path in [*paths, *(f"/{path}" for path in system_credential_paths())]:
        for status in _files_at(path):
            yield status
            count += 1
            if count > _MAX_COMPARED:
                return


def _files_at(top: str) -> Iterator[os.stat_result]:
    """Yield the status of a file, or of the first files in a folder and below it."""
    waiting = [top]
    count = 0
    while waiting and count < _MAX_OF_FOLDER:
        path = waiting.pop()
        count += 1
        try:
            status = Path(path).stat()
            if stat.S_ISREG(status.st_mode):
                yield status
            elif stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    below = [entry.path for entry in entries if not entry.is_symlink()]
                waiting += below[:_MAX_OF_FOLDER]
        except OSError:
            continue
