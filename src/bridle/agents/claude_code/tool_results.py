"""The results of Claude Code's own tools, as text for the log and data for interfaces. Pure.

The program answers each of its tools with a value of its own shape. A shape that is not known is
shown as it is. Text is cut to what a person reads: the program's own conversation has all of it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from bridle.agents.claude_code.tool_mapping import Roots, to_path
from bridle.workspace.text import shorten

MAX_TEXT = 30_000  # characters of one result in our log
Value = dict[str, Any]
_PATHS = ("filePath", "notebook_path")


class Response(NamedTuple):
    """The text of a result, and what interfaces show of it."""

    text: str
    data: Any = None


def tool_response(name: str, response: Any, roots: Roots) -> Response:
    """Return what one of the program's tools answered, with paths spelled as ours are."""
    convert = _CONVERTERS.get(name)
    if isinstance(response, dict) and convert is not None:
        paths = {key: to_path(response[key], roots) for key in _PATHS if key in response}
        text, data = convert({**response, **paths})
        return Response(shorten(text, MAX_TEXT), data)
    return Response(shorten(_as_text(response), MAX_TEXT))


def content_text(content: Any) -> str:
    """Return the text of a tool result as the model reads it: a string, or blocks."""
    if isinstance(content, str):
        return shorten(content, MAX_TEXT)
    if not isinstance(content, list):
        return "" if content is None else shorten(_as_text(content), MAX_TEXT)
    parts = [
        str(block.get("text", ""))
        if block.get("type") == "text"
        else f"[{block.get('type', 'block')}]"
        for block in content
        if isinstance(block, dict)
    ]
    return shorten("\n".join(parts), MAX_TEXT)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return content_text(value)
    return msgspec.json.encode(value, enc_hook=str).decode()


def _command(value: Value) -> Response:
    out, err = str(value.get("stdout") or ""), str(value.get("stderr") or "")
    text = "\n".join(filter(None, (out, err)))
    if value.get("backgroundTaskId"):
        text = f"It runs in the background as {value['backgroundTaskId']}.\n{text}".rstrip()
    return Response(text or "(no output)")


def _change(value: Value) -> Response:
    path = str(value.get("filePath") or value.get("notebook_path") or "the file")
    verb = "Wrote" if value.get("type") == "create" else "Changed"
    diff = _diff(path, value)
    return Response(f"{verb} `{path}`.\n{diff}".rstrip(), {"path": path, "diff": diff})


def _diff(path: str, value: Value) -> str:
    """Return the program's own patch as a unified diff."""
    if value.get("type") == "create":
        lines = str(value.get("content") or "").splitlines()
        if not lines:
            return ""
        header = ["--- /dev/null", f"+++ {path}", f"@@ -0,0 +1,{len(lines)} @@"]
        return "\n".join([*header, *(f"+{line}" for line in lines)]) + "\n"
    hunks = [hunk for hunk in value.get("structuredPatch") or [] if isinstance(hunk, dict)]
    if not hunks:
        return ""
    diff = [f"--- {path}", f"+++ {path}"]
    for hunk in hunks:
        old = f"-{hunk.get('oldStart', 0)},{hunk.get('oldLines', 0)}"
        diff.append(f"@@ {old} +{hunk.get('newStart', 0)},{hunk.get('newLines', 0)} @@")
        diff += [str(line) for line in hunk.get("lines") or []]
    return "\n".join(diff) + "\n"


def _file(value: Value) -> Response:
    file = value.get("file")
    if isinstance(file, dict) and isinstance(file.get("content"), str):
        return Response(file["content"] or "(empty)")
    return Response(f"[{value.get('type', 'a file')}]")


def _matches(value: Value) -> Response:
    content = value.get("content")
    names = [str(name) for name in value.get("filenames") or []]
    text = content if isinstance(content, str) and content else "\n".join(names)
    return Response(text or "Nothing was found.")


def _answer(value: Value) -> Response:
    return Response(content_text(value.get("result") or value.get("content") or value))


_CONVERTERS: dict[str, Callable[[Value], Response]] = {
    "Bash": _command,
    "Edit": _change,
    "MultiEdit": _change,
    "NotebookEdit": _change,
    "Write": _change,
    "Read": _file,
    "Glob": _matches,
    "Grep": _matches,
    "WebFetch": _answer,
    "Task": _answer,
    "Agent": _answer,
}
