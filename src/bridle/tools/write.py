"""The tool `write`: a whole file, new or replaced in one step, but no file that was not read."""

from pathlib import Path
from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.encoding import Encoding, decode, replace_bad_bytes
from bridle.tools.thread_pool import in_thread
from bridle.tools.unified_diff import unified_diff
from bridle.tools.workspace_files import (
    MAX_COMPARED,
    content_state,
    file_state,
    file_status,
    remember_file,
    require_known_file,
    status_state,
)
from bridle.workspace.text import one_line, quantity

_MAX_DIFFED = 1_000_000  # bytes of the old file


class Write:
    """Writes a file of the workspace."""

    name = "write"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(edits=True, files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file; missing folders are created."},
            "content": {"type": "string", "description": "The whole content of the file."},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    }

    async def precheck(self, arguments: dict[str, Any], context: ToolContext[Any]) -> None:
        """Raise `ToolError` if the path is a folder, or a file that was not read."""
        await in_thread(_old_content, context, arguments["path"])

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Write it, in a thread."""
        return await in_thread(_write, context, arguments["path"], arguments["content"])


def _write(context: ToolContext[Any], path: str, content: str) -> ToolResult:
    files = context.workspace
    name = one_line(files.relative(path), 200)
    data = Encoding().encode(content, name)
    old = _old_content(context, path)
    files.write(path, data)
    remember_file(context, path, file_state(files, path, data))
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    notes = [f"{'new, ' if old is None else ''}{quantity(lines, 'line')}"]
    before = ""
    if old is not None:
        before, changes = _compare_form(name, old, content)
        notes += changes
    diff = unified_diff(name, before, content) if old is None or len(old) < _MAX_DIFFED else ""
    text = f"Wrote `{name}` ({'; '.join(notes)})."
    return ToolResult.success({"path": files.relative(path), "diff": diff}, text=text)


def _old_content(context: ToolContext[Any], path: str) -> bytes | None:
    """Return the content to be replaced, None if the file is new.

    Raise `ToolError` unless the model knows it.
    """
    files = context.workspace
    if files.is_folder(path):
        raise ToolError(f"`{one_line(files.relative(path), 200)}` is a folder; name a file.")
    if not files.exists(path):
        return None
    status = file_status(files, path)
    if status is not None and status.st_size > MAX_COMPARED:
        require_known_file(context, path, status_state(status))
        return files.read(path, _MAX_DIFFED)
    data = files.read(path)
    require_known_file(context, path, content_state(data))
    return data


def _compare_form(name: str, old: bytes, content: str) -> tuple[str, list[str]]:
    """Return the old text, and notes if the encoding or the line ends change."""
    try:
        text, encoding = decode(name, old)
    except ToolError:
        return "", ["it was a binary file"]
    notes = []
    if encoding != Encoding():
        has_bom = encoding.codec == "utf-8" and encoding.bom
        before = "UTF-8 with a byte order mark" if has_bom else encoding.codec
        notes.append(f"it was {before}, and is UTF-8 now")
    had_crlf, has_crlf = "\r\n" in text, "\r\n" in content
    if had_crlf != has_crlf and "\n" in content:
        change = "CRLF to LF" if had_crlf else "LF to CRLF"
        notes.append(f"line ends changed from {change}")
    return replace_bad_bytes(text), notes
