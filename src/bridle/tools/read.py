"""The tool `read`: a file's lines with their numbers, a folder's names, a small picture."""

import base64
from typing import Any

from bridle.errors import ToolError
from bridle.messages import Image
from bridle.policy import ToolPolicy
from bridle.promises.tool import Files, ToolContext, ToolResult
from bridle.tools.nearby import missing
from bridle.tools.prose import Prose
from bridle.tools.threads import in_thread
from bridle.workspace import pictures
from bridle.workspace.text import one_line

MOST_BYTES = 20 * 1024 * 1024
LINES = 2000
_LINE = 2000  # characters of one line
_TEXT = 100_000  # characters of one answer
_NAMES = 1000


class Read:
    """Reads a file of the workspace."""

    name = "read"
    description = Prose("read")
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, or a folder."},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line. From 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines."},
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Read it, in a thread: the file may be large or far away."""
        first, count = int(arguments.get("offset", 1)), int(arguments.get("limit", LINES))
        return await in_thread(_read, context.workspace, arguments["path"], first, count)


def _read(files: Files, path: str, first: int, count: int) -> ToolResult:
    if files.is_folder(path):
        return _folder(files, path)
    if not files.exists(path):
        raise missing(files, path)
    data = files.read(path, MOST_BYTES + 1)
    media = pictures.media_type_of(data)
    if media:
        return _image(files.relative(path), data, media)
    return _lines(files.relative(path), data, first, count)


def _folder(files: Files, path: str) -> ToolResult:
    names = files.names(path)
    shown = [one_line(name, 300) for name in names[:_NAMES]]
    if len(names) > _NAMES:
        shown.append(f"[… and {len(names) - _NAMES:,} more]")
    text = "\n".join(shown) or "(the folder is empty)"
    return ToolResult.success({"path": files.relative(path), "names": len(names)}, text=text)


def _image(path: str, data: bytes, media: str) -> ToolResult:
    if len(data) > pictures.MOST_BYTES:
        raise ToolError(f"`{path}` is a picture of {len(data):,} bytes: too large to be shown.")
    text = f"`{path}` is a picture ({media}, {len(data):,} bytes); it is attached."
    picture = Image(media, base64.b64encode(data).decode())
    return ToolResult(True, text, {"path": path, "media": media}, media=(picture,))


def decoded(path: str, data: bytes) -> tuple[str, str]:
    """The text of a file, and what has to be said about it. Raise `ToolError` for binary data."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace"), "the file is UTF-16"
    if b"\0" in data[:8192]:
        raise ToolError(
            f"`{path}` is a binary file ({len(data):,} bytes); it is not shown. "
            "Use shell with a program that knows the format."
        )
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        note = f"the file is not valid UTF-8 (byte {error.start}); bad bytes are shown as \ufffd"
        return data.decode("utf-8", errors="replace"), note


def _lines(path: str, data: bytes, first: int, count: int) -> ToolResult:
    cut = len(data) > MOST_BYTES
    text, note = decoded(path, data[:MOST_BYTES])
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if first > max(len(lines), 1):
        raise ToolError(f"`{path}` has {len(lines):,} lines; line {first:,} is beyond its end.")
    shown, last = _numbered(lines, first, min(first + count - 1, len(lines)))
    notes = [note] if note else []
    if "\r\n" in text:
        notes.append("lines end in CRLF")
    if cut:
        notes.append(f"only the first {MOST_BYTES // (1 << 20)} MB are read")
    if last < len(lines):
        notes.append(f"lines {first}-{last} of {len(lines):,}; go on with offset={last + 1}")
    if not lines:
        shown = ["(the file is empty)"]
    text = "\n".join(shown + [f"[{note}]" for note in notes])
    return ToolResult.success(
        {"path": path, "from": first, "to": last, "lines": len(lines)}, text=text
    )


def _numbered(lines: list[str], first: int, last: int) -> tuple[list[str], int]:
    """Lines with their numbers, as many as fit, and the number of the last one."""
    shown: list[str] = []
    size = 0
    for number in range(first, last + 1):
        line = lines[number - 1].removesuffix("\r")
        if len(line) > _LINE:
            line = f"{line[:_LINE]}[… the line has {len(line):,} characters]"
        size += len(line) + 8
        if size > _TEXT and shown:
            return shown, number - 1
        shown.append(f"{number:>6}\t{line}")
    return shown, last
