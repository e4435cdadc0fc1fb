"""How the tool `write` writes a file: whole, in one step, and only over what the model knows."""

from typing import Any

from bridle.errors import ToolError
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.encoding import Coding, decode, shown
from bridle.tools.nearby import unified
from bridle.tools.opening import status
from bridle.tools.seen import WHOLE, Seen, mark_of, mark_of_large, mark_on_disk
from bridle.workspace.text import one_line, quantity

_COMPARED = 1_000_000  # bytes of the old file that are compared


def write(context: ToolContext[Any], path: str, content: str) -> ToolResult:
    """Write it, and say what became different. Raise `ToolError`."""
    files = context.workspace
    where = one_line(files.relative(path), 200)
    data = Coding().encode(content, where)
    old = known_before(context, path)
    files.write(path, data)
    Seen(context).remember(path, mark_on_disk(files, path, data))
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    notes = [f"{'new, ' if old is None else ''}{quantity(lines, 'line')}"]
    before = ""
    if old is not None:
        before, changes = _before(where, old, content)
        notes += changes
    diff = unified(where, before, content) if old is None or len(old) < _COMPARED else ""
    said = f"Wrote `{where}` ({'; '.join(notes)})."
    return ToolResult.success({"path": files.relative(path), "diff": diff}, text=said)


def known_before(context: ToolContext[Any], path: str) -> bytes | None:
    """What the file holds that is to be replaced. Raise `ToolError` unless the model knows it."""
    files, seen = context.workspace, Seen(context)
    if files.is_folder(path):
        raise ToolError(f"`{one_line(files.relative(path), 200)}` is a folder; name a file.")
    if not files.exists(path):
        return None
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
