"""What came of a call of Claude Code's own, in words for the log and data for the faces. Pure.

The program answers each of its tools with a value of its own shape. What is not known is shown as
it is. Text is cut to what a person reads: the program's own conversation has all of it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from bridle.agents.claude_tools import Roots, to_path
from bridle.workspace.text import shorten

MOST = 30_000  # characters of one result in our log
Value = dict[str, Any]
_PATHS = ("filePath", "notebook_path")


class Came(NamedTuple):
    """The text of a result, and what the faces show of it."""

    text: str
    data: Any = None


def result_of(name: str, response: Any, roots: Roots) -> Came:
    """What a tool of theirs answered; its paths as ours are spelled."""
    speak = _SPOKEN.get(name)
    if isinstance(response, dict) and speak is not None:
        paths = {key: to_path(response[key], roots) for key in _PATHS if key in response}
        text, data = speak({**response, **paths})
        return Came(shorten(text, MOST), data)
    return Came(shorten(_readable(response), MOST))


def text_of(content: Any) -> str:
    """The text of a tool result as the model reads it: a string, or blocks."""
    if isinstance(content, str):
        return shorten(content, MOST)
    if not isinstance(content, list):
        return "" if content is None else shorten(_readable(content), MOST)
    parts = [
        str(one.get("text", "")) if one.get("type") == "text" else f"[{one.get('type', 'block')}]"
        for one in content
        if isinstance(one, dict)
    ]
    return shorten("\n".join(parts), MOST)


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return text_of(value)
    return msgspec.json.encode(value, enc_hook=str).decode()


def _shell(value: Value) -> Came:
    out, err = str(value.get("stdout") or ""), str(value.get("stderr") or "")
    text = "\n".join(filter(None, (out, err)))
    if value.get("backgroundTaskId"):
        text = f"It runs in the background as {value['backgroundTaskId']}.\n{text}".rstrip()
    return Came(text or "(no output)")


def _changed(value: Value) -> Came:
    path = str(value.get("filePath") or value.get("notebook_path") or "the file")
    new = value.get("type") == "create"
    diff = _diff(path, value)
    said = f"{'Wrote' if new else 'Changed'} `{path}`."
    return Came(f"{said}\n{diff}".rstrip(), {"path": path, "diff": diff})


def _diff(path: str, value: Value) -> str:
    """The program's own patch as the lines that every face can show."""
    if value.get("type") == "create":
        lines = str(value.get("content") or "").splitlines()
        if not lines:
            return ""
        head = ["--- /dev/null", f"+++ {path}", f"@@ -0,0 +1,{len(lines)} @@"]
        return "\n".join([*head, *(f"+{line}" for line in lines)]) + "\n"
    hunks = [one for one in value.get("structuredPatch") or [] if isinstance(one, dict)]
    if not hunks:
        return ""
    text = [f"--- {path}", f"+++ {path}"]
    for one in hunks:
        old = f"-{one.get('oldStart', 0)},{one.get('oldLines', 0)}"
        text.append(f"@@ {old} +{one.get('newStart', 0)},{one.get('newLines', 0)} @@")
        text += [str(line) for line in one.get("lines") or []]
    return "\n".join(text) + "\n"


def _read(value: Value) -> Came:
    file = value.get("file")
    if isinstance(file, dict) and isinstance(file.get("content"), str):
        return Came(file["content"] or "(empty)")
    return Came(f"[{value.get('type', 'a file')}]")


def _found(value: Value) -> Came:
    content = value.get("content")
    names = [str(one) for one in value.get("filenames") or []]
    text = content if isinstance(content, str) and content else "\n".join(names)
    return Came(text or "Nothing was found.")


def _told(value: Value) -> Came:
    return Came(text_of(value.get("result") or value.get("content") or value))


_SPOKEN: dict[str, Callable[[Value], Came]] = {
    "Bash": _shell,
    "Edit": _changed,
    "MultiEdit": _changed,
    "NotebookEdit": _changed,
    "Write": _changed,
    "Read": _read,
    "Glob": _found,
    "Grep": _found,
    "WebFetch": _told,
    "Task": _told,
    "Agent": _told,
}
