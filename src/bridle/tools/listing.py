"""How the tool `list` shows a folder: as a tree, without what is ignored, in bounds."""

from typing import Any

from bridle.errors import ToolError
from bridle.protocols.tool import Files, ToolResult
from bridle.tools.nearby import missing
from bridle.tools.opening import LOOKED, Entry, first_entries
from bridle.workspace.text import one_line
from bridle.workspace.tree import Ignored, parse_ignore

LINES = 1000
_IN_ONE = 200  # entries of one folder, unless it is the one that was asked for
_IGNORE_LIMIT = 256 * 1024  # bytes of one .gitignore
_KINDS = {"link": " (link)", "other": " (device, pipe or socket)", "folder": "/"}


class Listing:
    """One look: the lines so far, and what had to be left out."""

    def __init__(self, files: Files, *, everything: bool) -> None:
        self._files = files
        self._everything = everything
        self._lines: list[str] = []
        self._count = 0
        self._is_cut = False

    def result(self, path: str, depth: int) -> ToolResult:
        """The tree below a folder."""
        files = self._files
        top = files.relative(path)
        if not files.exists(path):
            raise missing(files, path)
        if not files.is_folder(path):
            raise ToolError(f"`{one_line(top, 200)}` is a file; use read.")
        self._add("" if top == "." else top, self._rules_above(top), depth, 0)
        if self._is_cut:
            self._lines.append(f"[cut at {LINES:,} lines; list a folder of it, or use glob]")
        text = "\n".join(self._lines) or "(the folder is empty, or all of it is ignored)"
        return ToolResult.success({"path": top, "entries": self._count}, text=text)

    def _add(self, folder: str, above: Ignored, depth: int, level: int) -> None:
        rules = Ignored(folder, self._read(folder), above)
        prefix = f"{folder}/" if folder else ""

        def wanted(entry: Entry) -> bool:
            if entry.name == ".git":
                return False
            return self._everything or not rules.covers(prefix + entry.name, entry.kind == "folder")

        most = LINES if level == 0 else _IN_ONE
        try:
            entries, count = first_entries(self._files, folder or ".", most, wanted)
        except ToolError:  # gone, or not ours to read
            self._line(level, "(cannot be read)")
            return
        self._count += count
        for entry in entries:
            self._line(level, _shown(entry))
            if self._is_cut:
                return
            if entry.kind == "folder" and depth > 1:
                self._add(prefix + entry.name, rules, depth - 1, level + 1)
        if count > most:
            rest = f"over {LOOKED:,}" if count > LOOKED else f"{count - most:,}"
            self._lines.append("  " * level + f"[… and {rest} more]")

    def _line(self, level: int, text: str) -> None:
        if len(self._lines) < LINES:
            self._lines.append("  " * level + text)
        else:
            self._is_cut = True

    def _rules_above(self, top: str) -> Ignored:
        rules = Ignored("", [])
        parts = [] if top == "." else top.split("/")
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth])
            rules = Ignored(folder, self._read(folder), rules)
        return rules

    def _read(self, folder: str) -> list[Any]:
        path = f"{folder}/.gitignore" if folder else ".gitignore"
        try:
            data = self._files.read(path, _IGNORE_LIMIT)
        except ToolError:
            return []
        return parse_ignore(data.decode(errors="replace"))


def _shown(entry: Entry) -> str:
    name = one_line(entry.name, 300) + _KINDS.get(entry.kind, "")
    return f"{name}  {_size(entry.size)}" if entry.size >= 0 else name


def _size(size: int) -> str:
    """So many bytes, in few characters."""
    if size < 1000:
        return f"{size} B"
    power = min((len(str(size)) - 1) // 3, 4)
    return f"{size / 1000**power:.1f} {'BKMGT'[power]}B"
