"""The tool `glob`: files whose path matches a pattern."""

import re
from pathlib import Path
from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.thread_pool import in_thread
from bridle.tools.workspace_files import workspace_of
from bridle.workspace.ignore import FileTree, Matcher, compile_glob
from bridle.workspace.text import one_line

_MAX_FILES = 1000  # listed


class Glob:
    """Finds files of the workspace by name."""

    name = "glob"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "Such as **/*.py."},
            "path": {"type": "string", "description": "The folder to search. Default: all."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }

    def touched(self, arguments: dict[str, Any]) -> tuple[str, ...]:
        """Return the folder that is searched, and the root if the pattern may lead anywhere."""
        path = str(arguments.get("path", "."))
        return (path, ".") if _leaves_folder(str(arguments.get("pattern", ""))) else (path,)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Search, in a thread."""
        path = arguments.get("path", ".")
        return await in_thread(_find, context.workspace, arguments["pattern"], path)


def glob_matcher(pattern: str) -> Matcher:
    """Return the pattern as a function. Raise `ToolError` if it is not valid."""
    try:
        return compile_glob(pattern)
    except (ValueError, re.error) as error:
        raise ToolError(f"The pattern `{one_line(pattern)}` cannot be used: {error}.") from error


def _leaves_folder(pattern: str) -> bool:
    return pattern.startswith("/") or ".." in pattern.split("/")


def _find(files: Files, pattern: str, path: str) -> ToolResult:
    workspace = workspace_of(files)
    if not workspace.is_folder(path):
        raise ToolError(f"`{one_line(path, 200)}` is not a folder of the workspace.")
    top = workspace.relative(path)
    if _leaves_folder(pattern):
        whole = pattern if pattern.startswith("/") else f"{top}/{pattern}"
        pattern = "/" + workspace.relative(whole)  # raises if it leads out of the workspace
        top = "."
    matches = glob_matcher(pattern)
    skip = 0 if top == "." else len(top) + 1
    tree = FileTree(workspace, top)
    paths = [path for path in tree if matches(path[skip:])]
    lines = [one_line(path, 1000) for path in paths[:_MAX_FILES]]
    if len(paths) > _MAX_FILES:
        lines.append(f"[… and {len(paths) - _MAX_FILES:,} more; use a narrower pattern]")
    if tree.stopped:
        lines.append(f"[{tree.stopped}]")
    text = "\n".join(lines) or f"No file matches `{one_line(pattern)}`. Ignored files are left out."
    return ToolResult.success({"count": len(paths)}, text=text)
