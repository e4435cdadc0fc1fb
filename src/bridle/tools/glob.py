"""The tool `glob`: files whose path fits a pattern."""

import re
from typing import TYPE_CHECKING, Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Files, ToolContext, ToolResult
from bridle.tools.prose import Prose
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.workspace.globs import Matcher

MOST = 1000  # files listed


class Glob:
    """Finds files of the workspace by name."""

    name = "glob"
    description = Prose("glob")
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "Such as **/*.py."},
            "path": {"type": "string", "description": "The folder to look in. Default: all."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }

    def touched(self, arguments: dict[str, Any]) -> tuple[str, ...]:
        """The folder that is looked through; a pattern that goes its own way has all of it."""
        path = str(arguments.get("path", "."))
        return (path, ".") if _goes_its_own_way(str(arguments.get("pattern", ""))) else (path,)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Walk and compare, in a thread."""
        from bridle.tools.threads import in_thread

        path = arguments.get("path", ".")
        return await in_thread(_find, context.workspace, arguments["pattern"], path)


def matcher(pattern: str) -> "Matcher":
    """The pattern as a function. Raise `ToolError` for one that cannot be read."""
    from bridle.workspace.globs import compile_glob

    try:
        return compile_glob(pattern)
    except (ValueError, re.error) as error:
        raise ToolError(f"The pattern `{one_line(pattern)}` cannot be read: {error}.") from error


def _goes_its_own_way(pattern: str) -> bool:
    return pattern.startswith("/") or ".." in pattern.split("/")


def _find(files: Files, pattern: str, path: str) -> ToolResult:
    from bridle.tools.opening import on_disk
    from bridle.workspace.tree import Tree

    workspace = on_disk(files)
    if not workspace.is_folder(path):
        raise ToolError(f"`{one_line(path, 200)}` is not a folder of the workspace.")
    top = workspace.relative(path)
    if _goes_its_own_way(pattern):
        whole = pattern if pattern.startswith("/") else f"{top}/{pattern}"
        pattern = "/" + workspace.relative(whole)  # says no to what leads out
        top = "."
    fits = matcher(pattern)
    skip = 0 if top == "." else len(top) + 1
    tree = Tree(workspace, top)
    found = [file for file in tree if fits(file[skip:])]
    lines = [one_line(file, 1000) for file in found[:MOST]]
    if len(found) > MOST:
        lines.append(f"[… and {len(found) - MOST:,} more; use a narrower pattern]")
    if tree.stopped:
        lines.append(f"[{tree.stopped}]")
    text = "\n".join(lines) or f"No file fits `{one_line(pattern)}`. Ignored files are left out."
    return ToolResult.success({"count": len(found)}, text=text)
