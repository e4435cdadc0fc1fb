"""All files below a folder, as git would see them: without `.git`, without what is ignored.

Goes through the workspace's own handles, folder by folder, and follows no link. Bounded: `stopped`
says when not everything was seen.
"""

import re
from collections.abc import Callable, Iterator
from fnmatch import translate

from bridle.errors import ToolError
from bridle.workspace.workspace import Workspace

# Patterns for paths, as .gitignore and shells write them: `*`, `?`, `[…]`, `**`, `{a,b}`. Pure.

Matcher = Callable[[str], bool]

MOST_ALTERNATIVES = 64
LONGEST = 4096  # characters, as the kernel has it for a path


def compile_glob(pattern: str, *, braces: bool = True) -> Matcher:
    """A function that says whether a relative path fits. Raise `ValueError` for a bad pattern.

    Without `braces` they stand for themselves, as in .gitignore.
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"the pattern has more than {LONGEST} characters")
    alternatives = expand_braces(pattern) if braces else [pattern]
    matchers = [_compile(alternative) for alternative in alternatives]
    if len(matchers) == 1:
        return matchers[0]
    return lambda path: any(fits(path) for fits in matchers)


def expand_braces(pattern: str) -> list[str]:
    """`a.{py,md}` as `a.py` and `a.md`; braces that do not close stand for themselves."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        current = waiting.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if found is None:
            done.append(current)
        else:
            before, after = current[: found.start()], current[found.end() :]
            waiting += [before + choice + after for choice in reversed(found[1].split(","))]
        if len(done) + len(waiting) > MOST_ALTERNATIVES:
            raise ValueError(f"the pattern has more than {MOST_ALTERNATIVES} alternatives")
    return done


def _compile(pattern: str) -> Matcher:
    parts = [part for part in pattern.strip("/").split("/") if part not in ("", ".")]
    if "/" not in pattern and len(parts) == 1 and parts[0] != "**":
        fits = _segment(parts[0])
        return lambda path: fits(path.rpartition("/")[2])
    if parts and parts[-1] == "**":  # `a/**` is what lies below a, not a itself
        parts.append("*")
    segments = [None if part == "**" else _segment(part) for part in parts]
    return lambda path: _fit(segments, path.split("/"))


def _segment(part: str) -> Matcher:
    """One component. `\\x` stands for x itself; fnmatch's own expressions do not blow up."""
    plain = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], part)
    match = re.compile(translate(plain)).match
    return lambda name: match(name) is not None


def _fit(segments: list[Matcher | None], names: list[str]) -> bool:
    """All segments against all names; None stands for any number of names."""
    reached = {0}
    for segment in segments:
        if segment is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and segment(names[at])}
        if not reached:
            return False
    return len(names) in reached


MOST_ENTRIES = 200_000
_IGNORE_LIMIT = 256 * 1024  # bytes of one .gitignore
_MOST_RULES = 2_000

Rule = tuple[Matcher, bool, bool]  # fits, only folders, ignores (or takes back)


def parse_ignore(text: str) -> list[Rule]:
    """The rules of one .gitignore, in order; the last one that fits decides."""
    rules: list[Rule] = []
    for line in text.splitlines()[:_MOST_RULES]:
        pattern = _trimmed(line)
        if not pattern or pattern.startswith("#"):
            continue
        ignores = not pattern.startswith("!")
        pattern = pattern if ignores else pattern[1:]
        folders = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        if pattern.startswith(("\\#", "\\!")):
            pattern = pattern[1:]
        try:
            rules.append((compile_glob(pattern, braces=False), folders, ignores))
        except (ValueError, re.error):
            continue  # a rule that nobody can read ignores nothing
    return rules


def _trimmed(line: str) -> str:
    """Without the space at its end, but for one that a backslash keeps."""
    kept = line.rstrip()
    return kept + line[len(kept) : len(kept) + 1] if kept.endswith("\\") else kept


class Ignored:
    """The rules of a folder and of the folders above it."""

    def __init__(self, base: str, rules: list[Rule], above: "Ignored | None" = None) -> None:
        self._base = base
        self._rules = rules
        self._above = above

    def covers(self, path: str, is_folder: bool) -> bool:
        """Is the path, relative to the root, ignored? The nearest rule that fits decides."""
        level: Ignored | None = self
        while level is not None:
            below = path[len(level._base) + 1 :] if level._base else path
            for fits, only_folders, ignores in reversed(level._rules):
                if (is_folder or not only_folders) and fits(below):
                    return ignores
            level = level._above
        return False


class Tree:
    """The files below a folder. Iterate; then `stopped` says why, if it ended early."""

    def __init__(self, workspace: Workspace, top: str = ".", most: int = MOST_ENTRIES) -> None:
        self._workspace = workspace
        self._top = workspace.relative(top)
        self._most = most
        self.stopped = ""

    def __iter__(self) -> Iterator[str]:
        """Relative paths of regular files, a folder's own files before its folders."""
        seen = 0
        waiting = [("" if self._top == "." else self._top, self._rules_above())]
        while waiting:
            folder, above = waiting.pop()
            try:
                entries = self._workspace.entries(folder or ".", self._most - seen)
            except ToolError:
                continue  # gone, or not ours to read
            seen += len(entries)
            rules = above
            if entries.cut or (".gitignore", "file") in entries:
                rules = Ignored(folder, self._read(folder), above)
            prefix = f"{folder}/" if folder else ""
            for name, kind in entries:
                if kind == "file" and not rules.covers(prefix + name, False):
                    yield prefix + name
            if entries.cut:
                self.stopped = f"more than {self._most:,} entries; the rest was not looked at"
                return
            waiting += [
                (prefix + name, rules)
                for name, kind in reversed(entries)
                if kind == "folder" and name != ".git" and not rules.covers(prefix + name, True)
            ]

    def _rules_above(self) -> Ignored:
        """The rules of every folder from the root to the one above the top."""
        rules = Ignored("", [])
        if self._top == ".":
            return rules
        parts = self._top.split("/")
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth])
            rules = Ignored(folder, self._read(folder), rules)
        return rules

    def _read(self, folder: str) -> list[Rule]:
        path = f"{folder}/.gitignore" if folder else ".gitignore"
        try:
            data = self._workspace.read(path, _IGNORE_LIMIT)
        except ToolError:
            return []
        return parse_ignore(data.decode(errors="replace"))
