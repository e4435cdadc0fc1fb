"""The tool `list`: the entries of a folder as a tree, without ignored ones, within limits."""

from pathlib import Path
from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.thread_pool import in_thread
from bridle.tools.workspace_files import MAX_ENTRIES, Entry, first_entries, missing_file_error
from bridle.workspace.ignore import IgnoreRules, Rule, parse_ignore
from bridle.workspace.text import one_line

_DEPTH = 2  # unless the model asks for another
_MAX_LINES = 1000
_MAX_IN_FOLDER = 200  # entries of one folder, except of the one that was asked for
_MAX_GITIGNORE = 256 * 1024  # bytes of one .gitignore
_KINDS = {"link": " (link)", "other": " (device, pipe or socket)", "folder": "/"}


class List:
    """Shows the entries of a folder of the workspace."""

    name = "list"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The folder. Default: the workspace."},
            "depth": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10,
                "description": "How many levels. Default: 2.",
            },
            "ignored": {"type": "boolean", "description": "Include what .gitignore excludes."},
        },
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """List it, in a thread."""
        depth, ignored = int(arguments.get("depth", _DEPTH)), arguments.get("ignored", False)
        listing = _Listing(context.workspace, with_ignored=ignored)
        return await in_thread(listing.result, arguments.get("path", "."), depth)


class _Listing:
    """The lines of one tree so far."""

    def __init__(self, files: Files, *, with_ignored: bool) -> None:
        self._files = files
        self._with_ignored = with_ignored
        self._lines: list[str] = []
        self._count = 0
        self._is_cut = False

    def result(self, path: str, depth: int) -> ToolResult:
        """Return the tree of a folder. Raise `ToolError`."""
        files = self._files
        top = files.relative(path)
        if not files.exists(path):
            raise missing_file_error(files, path)
        if not files.is_folder(path):
            raise ToolError(f"`{one_line(top, 200)}` is a file; use read.")
        self._add_folder("" if top == "." else top, self._rules_above(top), depth, 0)
        if self._is_cut:
            self._lines.append(f"[cut at {_MAX_LINES:,} lines; list a folder of it, or use glob]")
        text = "\n".join(self._lines) or "(the folder is empty, or all of it is ignored)"
        return ToolResult.success({"path": top, "entries": self._count}, text=text)

    def _add_folder(self, folder: str, above: IgnoreRules, depth: int, level: int) -> None:
        rules = IgnoreRules(folder, self._read_gitignore(folder), above)
        prefix = f"{folder}/" if folder else ""

        def is_listed(entry: Entry) -> bool:
            if entry.name == ".git":
                return False
            if self._with_ignored:
                return True
            return not rules.ignore(prefix + entry.name, entry.kind == "folder")

        limit = _MAX_LINES if level == 0 else _MAX_IN_FOLDER
        try:
            entries, count = first_entries(self._files, folder or ".", limit, is_listed)
        except ToolError:  # it is gone, or we may not read it
            self._add_line(level, "(cannot be read)")
            return
        self._count += count
        for entry in entries:
            size = f"  {_format_size(entry.size)}" if entry.size >= 0 else ""
            self._add_line(level, one_line(entry.name, 300) + _KINDS.get(entry.kind, "") + size)
            if self._is_cut:
                return
            if entry.kind == "folder" and depth > 1:
                self._add_folder(prefix + entry.name, rules, depth - 1, level + 1)
        if count > limit:
            rest = f"over {MAX_ENTRIES:,}" if count > MAX_ENTRIES else f"{count - limit:,}"
            self._lines.append("  " * level + f"[… and {rest} more]")

    def _add_line(self, level: int, text: str) -> None:
        if len(self._lines) < _MAX_LINES:
            self._lines.append("  " * level + text)
        else:
            self._is_cut = True

    def _rules_above(self, top: str) -> IgnoreRules:
        rules = IgnoreRules("", [])
        parts = [] if top == "." else top.split("/")
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth])
            rules = IgnoreRules(folder, self._read_gitignore(folder), rules)
        return rules

    def _read_gitignore(self, folder: str) -> list[Rule]:
        path = f"{folder}/.gitignore" if folder else ".gitignore"
        try:
            data = self._files.read(path, _MAX_GITIGNORE)
        except ToolError:
            return []
        return parse_ignore(data.decode(errors="replace"))


def _format_size(size: int) -> str:
    """Return a number of bytes in few characters."""
    if size < 1000:
        return f"{size} B"
    power = min((len(str(size)) - 1) // 3, 4)
    return f"{size / 1000**power:.1f} {'BKMGT'[power]}B"
