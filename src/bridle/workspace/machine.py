"""What has to be known of the machine to judge a call, for a real folder: places, patterns, git.

Implements `protocols.machine.Machine`. Looks at things as they stand at the moment of the
question, remembers nothing but what git's configuration says, and never raises. What is opened
later is enforced by `paths.py`, not by what was said here.
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
from bridle.workspace.sensitive_paths import (
    FREE,
    Protection,
    bare_folders,
    folded,
    home_paths,
    protection_of,
    protection_outside,
    stricter,
    system_paths,
)
from bridle.workspace.workspace import Workspace

# The names that a shell's pattern stands for: `*`, `?` and `[…]`, as bash and dash expand them.

MOST_NAMES = 1_000
_MOST_ENTRIES_SEEN = 20_000  # entries of folders that are looked at for one pattern
_WILD = re.compile(r"[*?\[]")
_QUOTED = re.compile(r"\[[*?\[]\]")
_CLASS = re.compile(r"\[[^/]*\[[.:=]")
_LONGEST_PATTERN = 4096


class _TooMuch(Exception):
    """There is more to look at than is worth it, or it cannot be said."""


def expand(pattern: str, cwd: str) -> tuple[str, ...] | None:
    """The words that the shell would make of it in that folder; the pattern itself where none."""
    if not _is_plain(pattern):
        return None
    looks = [_MOST_ENTRIES_SEEN]
    top = "/" if pattern.startswith("/") else ""
    words = [top]
    parts = re.findall(r"([^/]+)(/*)", pattern[len(pattern) - len(pattern.lstrip("/")) :])
    try:
        for part, slashes in parts:
            words = list(_expand_component(words, part, slashes, cwd, looks))
            if len(words) > MOST_NAMES:
                return None
    except _TooMuch:
        return None
    if words:
        return tuple(sorted(words))
    return None if _QUOTED.search(pattern) else (pattern,)  # quoted or not, nobody knows any more


def _is_plain(pattern: str) -> bool:
    """Is there one way to read it? Not with escapes, classes of characters, or without end."""
    if not pattern or len(pattern) > _LONGEST_PATTERN or "\\" in pattern or "\0" in pattern:
        return False
    return _CLASS.search(pattern) is None


def _expand_component(
    words: list[str], part: str, slashes: str, cwd: str, looks: list[int]
) -> Iterator[str]:
    """Each word with one more component: those that are there."""
    fits = _matcher(part) if _WILD.search(part) else None
    for word in words:
        if fits is None:
            _count(looks)
            if _is_there(_joined(cwd, word + part), bool(slashes)):
                yield word + part + slashes
            continue
        for name in _names_in(_joined(cwd, word), looks):
            if fits(name) and (not slashes or _is_there(_joined(cwd, word + name), True)):
                yield word + name + slashes


def _count(looks: list[int]) -> None:
    looks[0] -= 1
    if looks[0] < 0:
        raise _TooMuch


def _joined(cwd: str, word: str) -> str:
    return word if word.startswith("/") else f"{cwd}/{word}"


def _is_there(path: str, as_folder: bool) -> bool:
    try:
        return os.path.isdir(path) if as_folder else os.path.lexists(path)  # noqa: PTH112 - names of bytes that are no text
    except ValueError:
        return False


def _names_in(folder: str, looks: list[int]) -> Iterator[str]:
    """The names in a folder, `.` and `..` among them; none where it cannot be read."""
    yield from (".", "..")
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                _count(looks)
                yield entry.name
    except (OSError, ValueError):
        return


class _Component:
    """One component of a pattern. A name that depends on the locale ends it all."""

    def __init__(self, part: str) -> None:
        # A `^` negates in bash and not in dash; a range is read in the order of the characters.
        if "[^" in part:
            raise _TooMuch
        self._hidden = part.startswith(".")
        self._part = part
        self._part_in_bytes = part if part.isascii() else _as_latin1(part)

    def __call__(self, name: str) -> bool:
        if name.startswith(".") and not self._hidden:
            return False
        found = _expression(self._part).match(name) is not None
        if not name.isascii():
            in_bytes = _expression(self._part_in_bytes).match(_as_latin1(name)) is not None
            if found != in_bytes:
                raise _TooMuch  # one locale counts characters, another bytes
        return found


@lru_cache(maxsize=256)
def _expression(part: str) -> re.Pattern[str]:
    """Made for the first name that it is held against: to make one is dear."""
    try:
        return re.compile(translate(part))
    except re.error:
        raise _TooMuch from None


def _matcher(part: str) -> _Component:
    try:
        return _Component(part)
    except UnicodeEncodeError:
        raise _TooMuch from None


def _as_latin1(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


# Where a path leads, for judging it: every link followed by reading it, nothing opened.

_LONGEST_PATH = 4096  # bytes of a path that the kernel takes
MOST_HOPS = 40  # links followed for one path; the kernel's own limit
# They swallow what is written, or are the command's own input and output.
_SWALLOWING = ("null", "zero", "full", "random", "urandom")
_OWN_STREAMS = ("stdin", "stdout", "stderr", "fd/0", "fd/1", "fd/2")
DEVICES = frozenset(f"/dev/{name}" for name in (*_SWALLOWING, *_OWN_STREAMS))


class ResolvedPath(NamedTuple):
    """Where a path leads.

    `status` is what is there (None: nothing yet, or a folder that was gone up to). `passed` are the
    paths that links on the way had made of it. `doubt` says why it is not certain.
    """

    path: str
    status: os.stat_result | None
    passed: tuple[str, ...] = ()
    doubt: str = ""


def follow(start: str, path: str) -> ResolvedPath:
    """From `start`, a real absolute path, along `path`, whose names stand apart by `/`."""
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
        status, target, trouble = _look(current)
        doubt = doubt or trouble
        if target is None:
            continue
        if current in DEVICES or (current.startswith("/proc/") and current.count("/") > 2):
            # What the kernel shows of a process is another for each process: nothing to follow.
            return ResolvedPath("/".join([current, *reversed(pending)]), None, tuple(passed))
        if len(passed) == MOST_HOPS:
            return ResolvedPath(current, status, tuple(passed), "its links lead in a circle")
        pending += target.split("/")[::-1]
        current = "" if target.startswith("/") else current.rpartition("/")[0]
        passed.append(os.path.normpath("/".join([current, *reversed(pending)]) or "/"))
    return ResolvedPath(current or "/", status, tuple(passed), doubt)


def _look(path: str) -> tuple[os.stat_result | None, str | None, str]:
    """What is there, where it leads if it is a link, and what went wrong."""
    try:
        status = os.lstat(path)
        target = str(Path(path).readlink()) if stat.S_ISLNK(status.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None, None, ""
    except (OSError, ValueError) as error:
        if (
            getattr(error, "errno", 0) == errno.ENAMETOOLONG
            and len(os.fsencode(path)) < _LONGEST_PATH
        ):
            return None, None, ""  # a name in it is too long for a file: there is none
        return None, None, "it cannot be looked at"
    return status, target, ""


# What lies below a folder that a search through all of it would give away: by names, bounded.

MOST_ENTRIES = 20_000
_PASSED = frozenset({".git", "node_modules", "site-packages"})


def delicate_below(top: str, most: int = MOST_ENTRIES) -> tuple[str, ...] | None:
    """Paths from that folder that take care to read, and links; None where there is too much."""
    found: list[str] = []
    waiting = [""]
    left = most
    takes_care = _remembering()
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{top}/{folder}") as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return None
                    path = f"{folder}{entry.name}"
                    if entry.is_symlink() or takes_care(entry.name, path):
                        found.append(path)
                    elif entry.name not in _PASSED and entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/")
        except (OSError, ValueError):
            continue  # who may not look into it, or finds it gone, reads nothing there
    return tuple(found)


def _remembering() -> Callable[[str, str], bool]:
    """Whether a name takes care to read; most names come often. Few depend on their folder."""
    known: dict[str, bool] = {}

    def takes_care(name: str, path: str) -> bool:
        if path.startswith((".config/", ".docker/")) or "/.config/" in path or "/.docker/" in path:
            return protection_of(path).reading != ""
        if name not in known:
            known[name] = protection_of(name).reading != ""
        return known[name]

    return takes_care


# A file with several names (hard links): is one of the others a name that nobody may touch?

MOST_LOOKS = 2_000  # files that are compared
_MOST_A_FOLDER = 200
_TOOLS = "node_modules site-packages .venv venv .tox .nox .pnpm-store .yarn .git target vendor"
_LINKED_BY_TOOLS = frozenset(_TOOLS.split())
_CREDENTIALS = Protection("deny", "deny", "it is another name of a file that holds credentials")
_OTHERS = Protection("ask", "ask", "the file has other names, and they may be outside (hard link)")


def is_planted(path: str, status: os.stat_result, homes: Iterable[str], root: str) -> Protection:
    """The care of a file that has several names."""
    own = (status.st_dev, status.st_ino)
    if any((one.st_dev, one.st_ino) == own for one in _credentials(homes)):
        return _CREDENTIALS
    return FREE if not _LINKED_BY_TOOLS.isdisjoint(path[len(root) :].split("/")) else _OTHERS


def _credentials(homes: Iterable[str]) -> Iterator[os.stat_result]:
    """The files that hold credentials, as far as they are few."""
    looks = 0
    places = [f"{home.rstrip('/')}/{path}" for home in homes for path in home_paths()]
    for place in [*places, *(f"/{path}" for path in system_paths())]:
        for status in _files(place):
            yield status
            looks += 1
            if looks > MOST_LOOKS:
                return


def _files(place: str) -> Iterator[os.stat_result]:
    """The file at a place, or the files in the folder there and below it, the first of them."""
    waiting = [place]
    looks = 0
    while waiting and looks < _MOST_A_FOLDER:
        path = waiting.pop()
        looks += 1
        try:
            status = Path(path).stat()
            if stat.S_ISREG(status.st_mode):
                yield status
            elif stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    below = [one.path for one in entries if not one.is_symlink()]
                waiting += below[:_MOST_A_FOLDER]
        except OSError:
            continue


_OWN = Protection("deny", "deny", "it is bridle's own: settings, rules, logs")
_LONGEST = 4 * 4096  # bytes; the kernel counts only one name of the four that may be joined


class LocalMachine:
    """A workspace and what lies around it.

    `own` are bridle's folders (settings, state), which nobody else reads or writes. `temporary`
    returns the folder that commands have for themselves; it is called for the first path outside
    of the workspace, since the folder may have to be made.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        home: str = "",
        own: Sequence[str | Path] = (),
        temporary: Callable[[], str] | None = None,
    ) -> None:
        self._roots = workspace.roots
        self._home = home or _home()
        self._homes = tuple({self._home, os.path.realpath(self._home)})
        self._find_temporary = temporary
        spelled = {os.path.abspath(one) for one in own}  # noqa: PTH100 - as given, links and all
        self._own = tuple(map(folded, spelled | {os.path.realpath(one) for one in spelled}))
        self._repositories = Repositories(self._home)
        self._git = {root: GitConfiguration(root, self._home) for root in self._roots}
        self._named = lru_cache(1024)(self._care_of_name)  # words alone: it cannot grow stale

    @property
    def root(self) -> str:
        """The real path of the workspace."""
        return self._roots[0]

    @cached_property
    def _temporary(self) -> str:
        return os.path.realpath(self._find_temporary()) if self._find_temporary else ""

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
        root = self._root_of(found.path)
        if found.path in DEVICES or (root is None and is_below(found.path, self._temporary)):
            return Place(found.path, False, temporary=True)
        care = self._care(whole, found, root)
        shown = found.path if root is None else self._shown(found.path, root)
        return Place(shown, root is not None, care.reading, care.writing, care.why)

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """The names that a pattern stands for; None where it cannot be said."""
        return expand(pattern, cwd or self.root)

    def sensitive_files(self, folder: str, cwd: str) -> tuple[str, ...] | None:
        """What takes care to read below a folder, and the links there; None for too much."""
        whole = folder if folder.startswith("/") else f"{cwd or self.root}/{folder}"
        return delicate_below(self._follow(whole).path) if _is_possible(whole) else ()

    def is_repository_safe(self, cwd: str) -> bool:
        """Can git read the repository of that folder without its configuration running code?"""
        return not self.danger_reason(cwd)

    def danger_reason(self, cwd: str) -> str:
        """What in the repository of that folder could run code, in words; empty where nothing."""
        return self._repositories.danger_reason(follow("/", cwd or self.root).path)

    def is_local_program(self, name: str) -> bool:
        """Would a program of that name be one that lies in the workspace?"""
        return is_local(name, self._roots)

    def _follow(self, whole: str) -> ResolvedPath:
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

    def _care(self, whole: str, found: ResolvedPath, root: str | None) -> Protection:
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
        care = protection_of(path[len(root) :]) if root is not None else FREE
        for home in self._homes:
            care = stricter(care, protection_outside(path, home))
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
