"""A tool call of an ACP agent as calls of our own tools, so that rules, effects and undo hold.

Pure. The agent says a kind, an input of its own making, places and differences; each vendor spells
the input in its own way. What it would do is read from there; what cannot be read has a name that
no tool of ours has (`acp_execute` …), and is asked about with everything that was said of it. What
an agent says of itself never makes a call milder: a `read` that brings a command is no reading.
"""

import json
import shlex
from collections.abc import Iterable
from typing import Any

from acp import schema
from msgspec import Struct

_PATHS = ("path", "file_path", "filePath", "filepath", "abs_path", "absolute_path", "file")
_COMMANDS = ("command", "cmd", "script")
_FOLDERS = ("cwd", "workdir", "working_directory", "workingDirectory", "directory", "dir_path")
_OLD = ("old_string", "oldString", "old_str", "oldText", "old_text", "old", "before")
_NEW = ("new_string", "newString", "new_str", "newText", "new_text", "new", "after")
_CONTENT = ("content", "file_text", "contents", "text")
_PATTERN = ("pattern", "regex", "query")
_FROM = ("source", "src", "from", "old_path", "oldPath", "source_path")
_TO = ("destination", "dest", "dst", "to", "new_path", "newPath", "destination_path")
_WRITES = frozenset({"write", "edit", "create", "update", "str_replace", "write_file", "replace"})
_READS = frozenset({"read", "view", "read_file"})
_SPAN = ("line", "offset", "limit")
INFORMATIVE = frozenset(  # variables that say who asks and how colours are wanted: left out
    ("AGENT", "AGENT_SESSION_ID", "GOOSE_TERMINAL", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR")
)
_MILD = frozenset({"read", "search", "fetch", "think", "edit", "delete", "move", "switch_mode"})


class Wanted(Struct, frozen=True):
    """A tool of ours and what it would be given."""

    name: str
    arguments: dict[str, Any]


def wanted(call: schema.ToolCallUpdate, root: str) -> tuple[Wanted, ...]:
    """What the call would do: at least one call of ours, or one that no tool of ours has."""
    raw = call.raw_input if isinstance(call.raw_input, dict) else {}
    kind = call.kind or "other"
    given = _first(raw, _COMMANDS)
    if given is not None and kind not in _MILD:
        line = command_line(given, _text(raw, _FOLDERS), root)
        return (Wanted("shell", {"command": line}),) if line else (_unread(call, raw),)
    if diffs := [one for one in call.content or () if _is_diff(one)]:
        return _changes(diffs)
    if given is not None and kind in ("read", "search", "fetch", "think"):
        return (_unread(call, raw),)
    return _READERS.get(kind, _other)(call, raw) or (_unread(call, raw),)


def command_line(command: Any, folder: str, root: str, env: Iterable[tuple[str, str]] = ()) -> str:
    """A command as one line for our shell; words are quoted, a folder and variables come first."""
    if isinstance(command, list):
        words = [one for one in command if isinstance(one, str)]
        line = shlex.join(words) if len(words) == len(command) else ""
    else:
        line = command.strip() if isinstance(command, str) else ""
    if not line:
        return ""
    given = list(env)
    if not all(name.isidentifier() and name.isascii() for name, _ in given):
        return ""
    if names := [f"{name}={shlex.quote(value)}" for name, value in given]:
        line = f"env {' '.join(names)} {line}" if isinstance(command, list) else _set(names, line)
    if folder and folder.rstrip("/") != root.rstrip("/"):
        return f"cd {shlex.quote(folder)} && {line}"
    return line


def _set(names: list[str], line: str) -> str:
    """Variables for a whole line of shell, not for its first command alone."""
    return f"export {' '.join(names)}; {line}"


def paths_of(call: schema.ToolCallUpdate) -> list[str]:
    """The files that the call names, each once."""
    raw = call.raw_input if isinstance(call.raw_input, dict) else {}
    found = [_text(raw, _PATHS), *(one.path for one in call.locations or ())]
    return [one for one in dict.fromkeys(found) if one]


def _unread(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> Wanted:
    """What no tool of ours does: everything that was said of it, under a name of its own."""
    kind = call.kind or "other"
    said: dict[str, Any] = {"title": call.title or kind}
    given = raw if raw else call.raw_input
    if given:
        said["input"] = json.loads(json.dumps(given, default=str))
    if paths := paths_of(call):
        said["paths"] = paths
    return Wanted(f"acp_{kind}", said)


def _is_diff(content: Any) -> bool:
    return isinstance(content, schema.FileEditToolCallContent)


def _changes(diffs: list[Any]) -> tuple[Wanted, ...]:
    """One call for each file: whole where it is new, piece by piece where it is known."""
    files: dict[str, list[Any]] = {}
    for diff in diffs:
        files.setdefault(diff.path, []).append(diff)
    return tuple(_change(path, found) for path, found in files.items())


def _change(path: str, diffs: list[Any]) -> Wanted:
    pieces = [{"old": one.old_text, "new": one.new_text} for one in diffs]
    if all(not one["old"] for one in pieces) and len(pieces) == 1:
        return Wanted("write", {"path": path, "content": pieces[0]["new"]})
    if any(not one["old"] for one in pieces):
        return Wanted("acp_edit", {"path": path, "changes": pieces})
    if len(pieces) == 1:
        return Wanted("edit", {"path": path, **pieces[0]})
    return Wanted("edit", {"path": path, "edits": pieces})


def _edited(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    """An edit of which no difference is shown, but what was put in."""
    paths = paths_of(call)
    if len(paths) != 1:
        return ()
    old, new, content = _first(raw, _OLD), _first(raw, _NEW), _first(raw, _CONTENT)
    if isinstance(old, str) and old and isinstance(new, str):
        return (Wanted("edit", {"path": paths[0], "old": old, "new": new}),)
    if isinstance(content, str) and new is None:
        return (Wanted("write", {"path": paths[0], "content": content}),)
    return ()


def _read(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    return tuple(Wanted("read", {"path": path}) for path in paths_of(call))


def _sought(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    pattern = _text(raw, _PATTERN)
    where = {"path": found[0]} if (found := paths_of(call)) else {}
    return (Wanted("grep", {"pattern": pattern, **where}),) if pattern and len(found) < 2 else ()


def _fetched(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    url = _text(raw, ("url", "uri"))
    return (Wanted("web_fetch", {"url": url}),) if url else ()


def _deleted(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    paths = paths_of(call)
    return (Wanted("shell", {"command": shlex.join(["rm", "--", *paths])}),) if paths else ()


def _moved(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    old, new = _text(raw, _FROM), _text(raw, _TO)
    if not old or not new:
        return ()
    return (Wanted("shell", {"command": shlex.join(["mv", "--", old, new])}),)


def _switched(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    plan = _text(raw, ("plan",))
    return (Wanted("exit_plan_mode", {"plan": plan}),) if plan else ()


def _other(call: schema.ToolCallUpdate, raw: dict[str, Any]) -> tuple[Wanted, ...]:
    """An agent that says no kind may begin the title with the name of its tool."""
    name = (call.title or "").casefold().split(" ", 1)[0]
    if name in _WRITES:
        return _edited(call, raw)
    return _read(call, raw) if name in _READS and set(raw) <= {*_PATHS, *_SPAN} else ()


def _first(raw: dict[str, Any], names: Iterable[str]) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _text(raw: dict[str, Any], names: Iterable[str]) -> str:
    found = _first(raw, names)
    return found if isinstance(found, str) else ""


_READERS = {
    "edit": _edited,
    "read": _read,
    "search": _sought,
    "fetch": _fetched,
    "delete": _deleted,
    "move": _moved,
    "switch_mode": _switched,
}
