"""The tool `edit`: an exact piece of a file replaced by another."""

from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.promises.tool import Files, ToolContext, ToolResult
from bridle.tools.nearby import like, missing, unified
from bridle.tools.prose import Prose
from bridle.tools.threads import in_thread
from bridle.tools.write import encoded

_PLACES = 10  # line numbers that are listed
_AROUND = 3  # lines shown around the change


class Edit:
    """Changes a part of a file of the workspace."""

    name = "edit"
    description = Prose("edit")
    policy = ToolPolicy(edits=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file."},
            "old": {"type": "string", "description": "The text to replace, exactly as it stands."},
            "new": {"type": "string", "description": "What shall stand there instead."},
            "all": {"type": "boolean", "description": "Replace every place. Default: false."},
        },
        "required": ["path", "old", "new"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Change it, in a thread."""
        old, new, everywhere = arguments["old"], arguments["new"], arguments.get("all", False)
        return await in_thread(_edit, context.workspace, arguments["path"], (old, new), everywhere)


def _edit(files: Files, path: str, change: tuple[str, str], everywhere: bool) -> ToolResult:
    where = files.relative(path)
    text = _text(files, path)
    old, new = _with_its_line_ends(text, *_sensible(where, change))
    count = text.count(old)
    if count == 0:
        raise _not_found(where, text, old)
    if count > 1 and not everywhere:
        raise _not_unique(where, text, old, count)
    changed = text.replace(old, new)
    files.write(path, encoded(changed))
    at = text.index(old)
    line = text.count("\n", 0, at) + 1
    times = f"{count} places" if count > 1 else f"line {line}"
    said = f"Changed `{where}` at {times}:\n{_around(changed, line, new.count(chr(10)) + 1)}"
    return ToolResult.success({"path": where, "diff": unified(where, text, changed)}, text=said)


def _text(files: Files, path: str) -> str:
    if files.is_folder(path):
        raise ToolError(f"`{files.relative(path)}` is a folder; name a file.")
    if not files.exists(path):
        raise missing(files, path)
    data = files.read(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"`{files.relative(path)}` is not valid UTF-8 (byte {error.start}); "
            "edit changes text only."
        ) from error


def _sensible(where: str, change: tuple[str, str]) -> tuple[str, str]:
    old, new = change
    if not old:
        raise ToolError(f"`old` is empty: say what to replace, or use write for all of `{where}`.")
    if old == new:
        raise ToolError("`old` and `new` are the same: nothing would change.")
    return old, new


def _with_its_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """In a file whose lines end in CRLF, what was written with plain line ends is meant so."""
    if old in text or "\r\n" not in text or "\r" in old:
        return old, new
    windows = new if "\r" in new else new.replace("\n", "\r\n")
    return old.replace("\n", "\r\n"), windows


def _not_found(where: str, text: str, old: str) -> ToolError:
    near = like(text, old)
    if not near:
        return ToolError(f"`old` does not stand in `{where}`, nor anything like it. Read it again.")
    return ToolError(
        f"`old` does not stand in `{where}` exactly so. Check spaces and indentation; "
        f"these lines come near:\n{near}"
    )


def _not_unique(where: str, text: str, old: str, count: int) -> ToolError:
    places: list[str] = []
    at = -1
    while len(places) < _PLACES and (at := text.find(old, at + 1)) >= 0:
        places.append(str(text.count("\n", 0, at) + 1))
    more = ", …" if count > len(places) else ""
    return ToolError(
        f"`old` stands in `{where}` {count} times, at lines {', '.join(places)}{more}. "
        "Take more of the text around it, or set `all`."
    )


def _around(text: str, line: int, length: int) -> str:
    """The lines of the change, and a few on both sides, with numbers."""
    lines = text.split("\n")
    first, last = max(line - _AROUND, 1), min(line + min(length, 20) - 1 + _AROUND, len(lines))
    shown = [
        f"{number:>6}\t{lines[number - 1][:300].rstrip(chr(13))}"
        for number in range(first, last + 1)
    ]
    return "\n".join(shown)
