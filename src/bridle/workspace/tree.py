"""All files below a folder, as git would see them: without `.git`, without what is ignored.

Goes through the workspace's own handles, folder by folder, and follows no link. Bounded: `stopped`
says when not everything was seen.
"""

import re
from collections.abc import Iterator

from bridle.errors import ToolError
from bridle.workspace.globs import Matcher, compile_glob
from bridle.workspace.paths import Workspace

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
