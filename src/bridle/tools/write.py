"""The tool `write`: a whole file, new or replaced, in one step."""

from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.promises.tool import ToolContext, ToolResult
from bridle.tools.encoding import Coding, decode, shown
from bridle.tools.nearby import unified
from bridle.tools.opening import status
from bridle.tools.prose import Prose
from bridle.tools.seen import WHOLE, Seen, mark_of, mark_of_large, mark_on_disk
from bridle.tools.threads import in_thread
from bridle.workspace.text import one_line

_COMPARED = 1_000_000  # bytes of the old file that are compared


class Write:
    """Writes a file of the workspace."""

    name = "write"
    description = Prose("write")
    policy = ToolPolicy(edits=True, files=True)
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
        return await in_thread(_write, context, arguments["path"], arguments["content"])


def _write(context: ToolContext[Any], path: str, content: str) -> ToolResult:
    files, seen = context.workspace, Seen(context)
    where = one_line(files.relative(path), 200)
    data = Coding().encode(content, where)
    if files.is_folder(path):
        raise ToolError(f"`{where}` is a folder; name a file.")
    old = _known(context, seen, path) if files.exists(path) else None
    files.write(path, data)
    seen.remember(path, mark_on_disk(files, path, data))
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    notes = [f"{'new, ' if old is None else ''}{lines:,} lines"]
    before = ""
    if old is not None:
        before, changes = _before(where, old, content)
        notes += changes
    diff = unified(where, before, content) if old is None or len(old) < _COMPARED else ""
    said = f"Wrote `{where}` ({'; '.join(notes)})."
    return ToolResult.success({"path": files.relative(path), "diff": diff}, text=said)


def _known(context: ToolContext[Any], seen: Seen, path: str) -> bytes:
    """What the file holds that is to be replaced. Raise `ToolError` unless the model knows it."""
    files = context.workspace
    found = status(files, path)
    if found is not None and found.st_size > WHOLE:
        seen.require(path, mark_of_large(found))
        return files.read(path, _COMPARED)
    data = files.read(path)
    seen.require(path, mark_of(data))
    return data


def _before(where: str, old: bytes, content: str) -> tuple[str, list[str]]:
    """The old text, and what of its form the new one does not keep."""
    try:
        text, coding = decode(where, old)
    except ToolError:
        return "", ["it was a binary file"]
    notes = []
    if coding != Coding():
        marked = coding.codec == "utf-8" and coding.mark
        notes.append(f"it was {'UTF-8 with a mark' if marked else coding.codec}, and is UTF-8 now")
    was, now = "\r\n" in text, "\r\n" in content
    if was != now and "\n" in content:
        ends = ("CRLF", "LF") if was else ("LF", "CRLF")
        notes.append(f"line ends changed from {ends[0]} to {ends[1]}")
    return shown(text), notes
