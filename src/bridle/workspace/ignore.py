"""All files below a folder as git sees them: without `.git`, and without ignored files.

Reads folder by folder through the workspace, and follows no link. There is a limit: `stopped` says
if not everything was looked at.
"""

import re
from collections.abc import Callable, Iterator
from fnmatch import translate

from bridle.errors import ToolError
from bridle.workspace.workspace import Workspace

# Patterns for paths, as .gitignore and shells write them: `*`, `?`, `[…]`, `**`, `{a,b}`. Pure.

Matcher = Callable[[str], bool]

MAX_ALTERNATIVES = 64
MAX_PATTERN = 4096  # characters, as the kernel has it for a path


def compile_glob(pattern: str, *, braces: bool = True) -> Matcher:
    """Return a test for relative paths. Raise `ValueError` for a bad pattern.

    Without `braces` they stand for themselves, as in .gitignore.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"the pattern has more than {MAX_PATTERN} characters")
    alternatives = expand_braces(pattern) if braces else [pattern]
    matchers = [_compile(alternative) for alternative in alternatives]
    if len(matchers) == 1:
        return matchers[0]
    return lambda path: any(matches(path) for matches in matchers)


def expand_braces(pattern: str) -> list[str]:
    """Expand `a.{py,md}` to `a.py` and `a.md`. Braces that do not close stand for themselves."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        current = waiting.pop()
        group = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if group is None:
            done.append(current)
        else:
            before, after = current[: group.start()], current[group.end() :]
            waiting += [before + choice + after for choice in reversed(group[1].split(","))]
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ValueError(f"the pattern has more than {MAX_ALTERNATIVES} alternatives")
    return done


def _compile(pattern: str) -> Matcher:
    parts = [part for part in pattern.strip("/").split("/") if part not in ("", ".")]
    if "/" not in pattern and len(parts) == 1 and parts[0] != "**":
        matches = _compile_segment(parts[0])
        return lambda path: matches(path.rpartition("/")[2])
    if parts and parts[-1] == "**":  # `a/**` is what lies below a, not a itself
        parts.append("*")
    segments = [None if part == "**" else _compile_segment(part) for part in parts]
    return lambda path: _matches(segments, path.split("/"))


def _compile_segment(part: str) -> Matcher:
    """Compile one component. `\\x` stands for x; fnmatch's expressions take linear time."""
    plain = re.sub(r"\\(.)", lambda pair: f"[{pair[1]}]" if pair[1] in "*?[" else pair[1], part)
    match = re.compile(translate(plain)).match
    return lambda name: match(name) is not None


def _matches(segments: list[Matcher | None], names: list[str]) -> bool:
    """Do all segments match all names? None stands for any number of names."""
    positions = {0}
    for segment in segments:
        if segment is None:
            positions = set(range(min(positions), len(names) + 1))
        else:
            positions = {at + 1 for at in positions if at < len(names) and segment(names[at])}
        if not positions:
            return False
    return len(names) in positions


MAX_ENTRIES = 200_000
_IGNORE_LIMIT = 256 * 1024  # bytes of one .gitignore
_MAX_RULES = 2_000

Rule = tuple[Matcher, bool, bool]  # matches, only folders, ignores (or includes again)


def parse_ignore(text: str) -> list[Rule]:
    """Return the rules of one .gitignore, in order; the last one that matches decides."""
    rules: list[Rule] = []
    for line in text.splitlines()[:_MAX_RULES]:
        pattern = _strip_end(line)
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
            continue  # a rule that cannot be parsed ignores nothing
    return rules


def _strip_end(line: str) -> str:
    """Remove white space at the end, except a space after a backslash."""
    text = line.rstrip()
    return text + line[len(text) : len(text) + 1] if text.endswith("\\") else text


class IgnoreRules:
    """The rules of a folder and of the folders above it."""

    def __init__(self, base: str, rules: list[Rule], above: "IgnoreRules | None" = None) -> None:
        self._base = base
        self._rules = rules
        self._above = above

    def ignore(self, path: str, is_folder: bool) -> bool:
        """Is the path, relative to the root, ignored? The nearest rule that matches decides."""
        level: IgnoreRules | None = self
        while level is not None:
            below = path[len(level._base) + 1 :] if level._base else path
            for matches, only_folders, ignores in reversed(level._rules):
                if (is_folder or not only_folders) and matches(below):
                    return ignores
            level = level._above
        return False


class FileTree:
    """The files below a folder. Iterate over it; then `stopped` says why it ended early, if so."""

    def __init__(self, workspace: Workspace, top: str = ".", most: int = MAX_ENTRIES) -> None:
        self._workspace = workspace
        self._top = workspace.relative(top)
        self._most = most
        self.stopped = ""

    def __iter__(self) -> Iterator[str]:
        """Yield relative paths of regular files, a folder's own files before its folders."""
        count = 0
        waiting = [("" if self._top == "." else self._top, self._rules_above())]
        while waiting:
            folder, above = waiting.pop()
            try:
                entries = self._workspace.entries(folder or ".", self._most - count)
            except ToolError:
                continue  # it is gone, or we may not read it
            count += len(entries)
            rules = above
            if entries.cut or (".gitignore", "file") in entries:
                rules = IgnoreRules(folder, self._read(folder), above)
            prefix = f"{folder}/" if folder else ""
            for name, kind in entries:
                if kind == "file" and not rules.ignore(prefix + name, False):
                    yield prefix + name
            if entries.cut:
                self.stopped = f"more than {self._most:,} entries; the rest was not looked at"
                return
            waiting += [
                (prefix + name, rules)
                for name, kind in reversed(entries)
                if kind == "folder" and name != ".git" and not rules.ignore(prefix + name, True)
            ]

    def _rules_above(self) -> IgnoreRules:
        """Return the rules of every folder from the root to the one above the top."""
        rules = IgnoreRules("", [])
        if self._top == ".":
            return rules
        parts = self._top.split("/")
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth])
            rules = IgnoreRules(folder, self._read(folder), rules)
        return rules

    def _read(self, folder: str) -> list[Rule]:
        path = f"{folder}/.gitignore" if folder else ".gitignore"
        try:
            data = self._workspace.read(path, _IGNORE_LIMIT)
        except ToolError:
            return []
        return parse_ignore(data.decode(errors="replace"))
