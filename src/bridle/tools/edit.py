"""The tool `edit`: exact pieces of a file are replaced by others, all of them or none."""

from pathlib import Path
from typing import Any, NamedTuple

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.encoding import Encoding, decode, replace_bad_bytes
from bridle.tools.thread_pool import in_thread
from bridle.tools.unified_diff import unified_diff
from bridle.tools.workspace_files import (
    file_state,
    missing_file_error,
    remember_file,
    require_known_file,
    similar_lines,
)
from bridle.workspace.text import one_line

_MAX_EDITS = 100  # in one call
_MAX_PLACES = 10  # line numbers that are listed
_CONTEXT = 3  # lines shown around the change
_MAX_DIFF = 4000  # characters of the diff that the model reads after several changes

_OLD = {"type": "string", "description": "The text to replace, exactly as it is in the file."}
_NEW = {"type": "string", "description": "The text to put in its place."}
_ALL = {"type": "boolean", "description": "Replace every occurrence. Default: false."}


class Edit:
    """Changes parts of a file of the workspace."""

    name = "edit"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(edits=True, files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file."},
            "old": _OLD,
            "new": _NEW,
            "all": _ALL,
            "edits": {
                "type": "array",
                "minItems": 1,
                "maxItems": _MAX_EDITS,
                "description": "Several changes instead of one, in order; all of them, or none.",
                "items": {
                    "type": "object",
                    "properties": {"old": _OLD, "new": _NEW, "all": _ALL},
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    async def precheck(self, arguments: dict[str, Any], context: ToolContext[Any]) -> None:
        """Raise `ToolError` if the change does not fit the file, or the file was not read."""
        replacements = parse_replacements(arguments)
        await in_thread(_edited_text, context, arguments["path"], replacements)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Change it, in a thread."""
        replacements = parse_replacements(arguments)
        return await in_thread(_edit, context, arguments["path"], replacements)


class Replacement(NamedTuple):
    """A piece of text, and the text to put in its place."""

    old: str
    new: str
    everywhere: bool = False


def parse_replacements(arguments: dict[str, Any]) -> list[Replacement]:
    """Return the replacements that a call asks for. Raise `ToolError` if they make no sense."""
    single = [name for name in ("old", "new", "all") if name in arguments]
    if "edits" not in arguments:
        if "old" not in arguments or "new" not in arguments:
            raise ToolError("Give `old` and `new`, or a list of them as `edits`.")
        edits = [arguments]
    elif single:
        raise ToolError(f"Give either `edits` or `{single[0]}`, not both.")
    else:
        edits = arguments["edits"]
    replacements = [Replacement(edit["old"], edit["new"], edit.get("all", False)) for edit in edits]
    for number, (old, new, _) in enumerate(replacements, 1):
        prefix = _number_prefix(number, len(replacements))
        if not old:
            raise ToolError(f"{prefix}`old` is empty: name the text, or use write for the file.")
        if old == new:
            raise ToolError(f"{prefix}`old` and `new` are the same: nothing would change.")
        Encoding().encode(new, "")  # a lone surrogate cannot be written to any file
    return replacements


def _number_prefix(number: int, count: int) -> str:
    return "" if count == 1 else f"Edit {number} of {count}: "


class _EditedText(NamedTuple):
    """The text of a file before and after, its encoding, and how many places differ."""

    before: str
    after: str
    encoding: Encoding
    places: int


def _edit(context: ToolContext[Any], path: str, replacements: list[Replacement]) -> ToolResult:
    files = context.workspace
    name = one_line(files.relative(path), 200)
    before, after, encoding, places = _edited_text(context, path, replacements)
    content = encoding.encode(after, name)
    files.write(path, content)
    remember_file(context, path, file_state(files, path, content))
    shown = replace_bad_bytes(before), replace_bad_bytes(after)
    if len(replacements) > 1 or places > 1:
        diff = unified_diff(name, *shown, limit=_MAX_DIFF)
        text = f"Changed `{name}` at {places} places:\n{diff}"
    else:
        old, new = _with_line_ends_of(before, replacements[0])
        line = before.count("\n", 0, before.index(old)) + 1
        lines = _lines_around(shown[1], line, new.count("\n") + 1)
        text = f"Changed `{name}` at line {line}:\n{lines}"
    data = {"path": files.relative(path), "diff": unified_diff(name, *shown)}
    return ToolResult.success(data, text=text)


def _edited_text(
    context: ToolContext[Any], path: str, replacements: list[Replacement]
) -> _EditedText:
    """Return what the file would become. Raise `ToolError` if a replacement does not fit."""
    files = context.workspace
    name = one_line(files.relative(path), 200)
    if files.is_folder(path):
        raise ToolError(f"`{name}` is a folder; name a file.")
    if not files.exists(path):
        raise missing_file_error(files, path)
    data = files.read(path)
    before, encoding = decode(name, data)
    require_known_file(context, path, file_state(files, path, data), fits=True)
    text, places = before, 0
    for number, replacement in enumerate(replacements, 1):
        old, new = _with_line_ends_of(text, replacement)
        count = text.count(old)
        if count == 0 or (count > 1 and not replacement.everywhere):
            problem = (
                _ambiguity(name, text, old, count) if count else _missing_text(name, text, old)
            )
            if len(replacements) > 1:
                prefix = _number_prefix(number, len(replacements))
                problem = f"{prefix}{problem}\nNothing was changed."
            raise ToolError(problem)
        text = text.replace(old, new)
        places += count
    return _EditedText(before, text, encoding, places)


def _with_line_ends_of(text: str, replacement: Replacement) -> tuple[str, str]:
    """Return old and new, with LF as CRLF if the text has CRLF and the model wrote only LF."""
    old, new, _ = replacement
    if "\r\n" not in text or "\r" in old or "\r" in new:
        return old, new
    if old in text and "\n" in old:  # the file has both, and just these lines end in LF
        return old, new
    return old.replace("\n", "\r\n"), new.replace("\n", "\r\n")


def _missing_text(name: str, text: str, old: str) -> str:
    similar = similar_lines(text, old)
    if not similar:
        return f"`old` is not in `{name}`, nor anything similar. Read it again."
    return (
        f"`old` is not in `{name}` exactly like this. Check spaces and indentation. "
        f"Similar lines:\n{similar}"
    )


def _ambiguity(name: str, text: str, old: str, count: int) -> str:
    lines: list[str] = []
    index = -1
    while len(lines) < _MAX_PLACES and (index := text.find(old, index + 1)) >= 0:
        lines.append(str(text.count("\n", 0, index) + 1))
    more = ", …" if count > len(lines) else ""
    return (
        f"`old` is in `{name}` {count} times, at lines {', '.join(lines)}{more}. "
        "Include more of the text around it, or set `all`."
    )


def _lines_around(text: str, line: int, length: int) -> str:
    """Return the lines of the change, and a few on both sides, with numbers."""
    lines = text.split("\n")
    first, last = max(line - _CONTEXT, 1), min(line + min(length, 20) - 1 + _CONTEXT, len(lines))
    return "\n".join(
        f"{number:>6}\t{lines[number - 1][:300].rstrip(chr(13))}"
        for number in range(first, last + 1)
    )
