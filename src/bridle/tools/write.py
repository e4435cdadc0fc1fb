"""The tool `write`: a whole file, new or replaced, in one step."""

from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.promises.tool import Files, ToolContext, ToolResult
from bridle.tools.nearby import unified
from bridle.tools.prose import Prose
from bridle.tools.threads import in_thread

_COMPARED = 1_000_000  # bytes of the old file that are compared


class Write:
    """Writes a file of the workspace."""

    name = "write"
    description = Prose("write")
    policy = ToolPolicy(edits=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file; missing folders are made."},
            "content": {"type": "string", "description": "All of what the file shall hold."},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Write it, in a thread."""
        return await in_thread(_write, context.workspace, arguments["path"], arguments["content"])


def _write(files: Files, path: str, content: str) -> ToolResult:
    data = encoded(content)
    if files.is_folder(path):
        raise ToolError(f"`{files.relative(path)}` is a folder; name a file.")
    old = files.read(path, _COMPARED) if files.exists(path) else None
    files.write(path, data)
    where = files.relative(path)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    before = "" if old is None else old.decode(errors="replace")
    diff = unified(where, before, content) if old is None or len(old) < _COMPARED else ""
    said = f"Wrote `{where}` ({'new, ' if old is None else ''}{lines:,} lines)."
    return ToolResult.success({"path": where, "diff": diff}, text=said)


def encoded(content: str) -> bytes:
    """The text as UTF-8. Raise `ToolError` for half of a surrogate pair."""
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The content is not valid text: a lone surrogate at character {error.start}."
        ) from error
