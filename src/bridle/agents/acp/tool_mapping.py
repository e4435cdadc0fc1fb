"""A tool call of an ACP agent as calls of our own tools, so that rules, effects and undo apply.

Pure. The agent says a kind, an input of its own making, places and differences; each vendor
spells the input in its own way. What the call would do is read from these; what cannot be read
gets a name that no tool of ours has (`acp_execute` …), and is asked about with everything that
was said of it. What an agent says of itself never makes a call milder: a `read` with a command is
not a read.
"""

import json
import posixpath
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from acp import schema
from msgspec import Struct

_PATHS = ("path", "file_path", "filePath", "filepath", "abs_path", "absolute_path", "file")
_PLACES = (*_PATHS, "dir_path", "directory")
_COMMANDS = ("command", "cmd", "script")
_ARGS = ("args", "arguments", "argv")
_FOLDERS = ("cwd", "workdir", "working_directory", "workingDirectory", "directory", "dir_path")
_OLD = ("old_string", "oldString", "old_str", "oldText", "old_text", "old", "before")
_NEW = ("new_string", "newString", "new_str", "newText", "new_text", "new", "after")
_ALL = ("replace_all", "replaceAll", "allow_multiple", "expected_replacements")
_CONTENT = ("content", "file_text", "contents", "text")
_PATTERN = ("pattern", "regex", "query")
_FROM = ("source", "src", "from", "old_path", "oldPath", "source_path")
_TO = ("destination", "dest", "dst", "to", "new_path", "newPath", "destination_path")
_URLS = ("url", "uri")
_VERB = ("command",)  # some file tools have the operation in an argument of this name
_EDITS = ("edits", "changes")
_WRITES = frozenset({"write", "edit", "create", "update", "str_replace", "write_file", "replace"})
_READS = frozenset({"read", "view", "read_file"})


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Keys that do not change what a call would do: descriptions, ids, time limits.
_IGNORED = _words(
    "description title explanation reason justification instruction thought purpose "
    "timeout timeout_ms timeoutMs timeout_secs timeout_seconds "
    "id call_id callId turn_id turnId thread_id threadId item_id itemId approval_id approvalId"
)
_IGNORED_OF_COMMANDS = _words(  # whether somebody waits for it, how it was understood over there
    "is_background run_in_background background process_id processId started_at_ms "
    "startedAtMs parsed_cmd parsedCmd commandActions command_actions available_decisions "
    "availableDecisions proposed_execpolicy_amendment proposedExecpolicyAmendment"
)
_IGNORED_OF_READS = _words(  # less of the same
    "line lines offset limit start_line end_line startLine endLine pages encoding depth recursive "
    "include exclude ignore glob type output_mode head_limit max_results multiline context "
    "case_sensitive caseSensitive respect_git_ignore file_filtering_options -A -B -C -i -n"
)
_IGNORED_OF_DIFFS = _words(  # of a change whose differences are shown: the same once more
    "diff fileDiff fileName originalContent newContent auto_approved autoApproved "
    "ai_proposed_content modified_by_user"
)
_IGNORED_OF_FETCHES = _words("prompt format max_length maxLength start_index")
_IGNORED_OF_PLANS = frozenset(("planFilePath", "plan_file_path"))
IGNORED_VARIABLES = frozenset(  # environment variables that only say who asks, or which colours
    ("AGENT", "AGENT_SESSION_ID", "GOOSE_TERMINAL", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR")
)
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_NOT_COMMANDS = _words("read search fetch think edit delete move switch_mode")  # kinds


class MappedCall(Struct, frozen=True):
    """A call of a tool of ours: its name and arguments."""

    name: str
    arguments: dict[str, Any]


def map_call(call: schema.ToolCallUpdate, root: str) -> tuple[MappedCall, ...]:
    """Return what the call would do: calls of our tools, or one call that no tool of ours has."""
    parts = _CallParts(call, root)
    if call.raw_input and not isinstance(call.raw_input, dict):
        return (_unknown(parts),)
    kind = call.kind or "other"
    mapper = _MAPPERS.get(kind, _map_other)
    if any(_is_diff(content) for content in call.content or ()):
        mapper = _map_changes
    elif parts.value(_COMMANDS) is not None and kind not in _NOT_COMMANDS:
        mapper = _map_command
    return mapper(parts) or (_unknown(parts),)


class _CallParts:
    """What was said of a call, by the names that vendors use."""

    def __init__(self, call: schema.ToolCallUpdate, root: str) -> None:
        self.call = call
        self.root = root
        self.raw: dict[str, Any] = call.raw_input if isinstance(call.raw_input, dict) else {}

    def value(self, names: Iterable[str]) -> Any:
        """Return what is given under the first of these names that is there."""
        return next((self.raw[name] for name in names if self.raw.get(name) is not None), None)

    def text(self, names: Iterable[str]) -> str:
        """Return the same if it is text, else an empty string."""
        value = self.value(names)
        return value if isinstance(value, str) else ""

    def paths(self, names: Iterable[str] = _PATHS) -> list[str]:
        """Return the files that it names, each once."""
        return list(dict.fromkeys(relative_path(path, self.root) for path in self.spelled(names)))

    def spelled(self, names: Iterable[str] = _PATHS) -> list[str]:
        """Return the same as the agent spells them."""
        paths = [self.text(names), *(place.path for place in self.call.locations or ())]
        return [path for path in dict.fromkeys(paths) if path]

    def has_only(self, *groups: tuple[str, ...], ignored: frozenset[str] = frozenset()) -> bool:
        """Is there nothing in it but these, each under one of its names?

        What is left out when a call is mapped is left out of what is judged: a key that is not
        known here may mean anything, and of two that mean the same nobody knows which one counts.
        """
        given = {name: value for name, value in self.raw.items() if value not in _EMPTY}
        known = {name for group in groups for name in group} | _IGNORED | ignored
        if not given.keys() <= known:
            return False
        values = [[given[name] for name in group if name in given] for group in groups]
        return all(same.count(same[0]) == len(same) for same in values if same)


def relative_path(path: str, root: str) -> str:
    """Return a path as it is written inside the workspace, if it says that it lies there."""
    top = root.rstrip("/")
    if not path.startswith(f"{top}/") and path != top:
        return path
    inner = path[len(top) :].lstrip("/")
    return f"./{inner}" if inner.startswith(("~", "$")) else inner or "."


def shell_line(
    command: Any, folder: str, root: str, variables: Iterable[tuple[str, str]] = ()
) -> str:
    """Return a command as one line for our shell, run from the root; empty if it is not one.

    Words are quoted. A folder and environment variables come first.
    """
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        line = shlex.join(words) if len(words) == len(command) else ""
    else:
        line = command.strip() if isinstance(command, str) else ""
    if not line:
        return ""
    given = list(variables)
    if not all(name.isidentifier() and name.isascii() for name, _ in given):
        return ""
    if assignments := " ".join(f"{name}={shlex.quote(value)}" for name, value in given):
        if isinstance(command, list):
            line = f"env {assignments} {line}"
        else:  # for the whole line, not for its first command alone
            line = f"export {assignments}; {line}"
    where = posixpath.join(root, folder).rstrip("/") or "/"
    return line if where == (root.rstrip("/") or "/") else f"cd {shlex.quote(where)} && {line}"


def named_paths(call: schema.ToolCallUpdate) -> list[str]:
    """Return the files that the call names, each once, as it spells them."""
    return _CallParts(call, "").spelled()


def _unknown(parts: _CallParts) -> MappedCall:
    """Return everything that was said of a call that no tool of ours makes, under its own name."""
    kind = parts.call.kind or "other"
    arguments: dict[str, Any] = {"title": parts.call.title or kind}
    if given := parts.call.raw_input:
        arguments["input"] = json.loads(json.dumps(given, default=str))
    if paths := parts.paths():
        arguments["paths"] = paths
    if diffs := [content for content in parts.call.content or () if _is_diff(content)]:
        arguments["changes"] = [
            {
                "path": relative_path(diff.path, parts.root),
                "old": diff.old_text,
                "new": diff.new_text,
            }
            for diff in diffs
        ]
    return MappedCall(f"acp_{kind}", arguments)


def _map_command(parts: _CallParts) -> tuple[MappedCall, ...]:
    """A command. Its arguments may be given beside it, which is clear only for a single word."""
    if not parts.has_only(_COMMANDS, _ARGS, _FOLDERS, ignored=_IGNORED_OF_COMMANDS):
        return ()
    command, more = parts.value(_COMMANDS), parts.value(_ARGS)
    if more:
        if isinstance(command, str) and shlex.quote(command) == command:
            command = [command]
        if not isinstance(command, list) or not isinstance(more, list):
            return ()
        command = [*command, *more]
    folder = parts.value(_FOLDERS) or ""
    line = shell_line(command, folder, parts.root) if isinstance(folder, str) else ""
    return (MappedCall("shell", {"command": line}),) if line else ()


def _is_diff(content: Any) -> bool:
    return isinstance(content, schema.FileEditToolCallContent)


def _map_changes(parts: _CallParts) -> tuple[MappedCall, ...]:
    """One call for each file: a write if it is new, else an edit with its pieces."""
    files: dict[str, list[Any]] = {}
    for content in parts.call.content or ():
        if _is_diff(content):
            files.setdefault(relative_path(content.path, parts.root), []).append(content)
    if not _is_file_change(parts, *_EDITS, ignored=_IGNORED_OF_DIFFS):
        return ()
    if not {*parts.paths(), *_paths_in_edits(parts)} <= files.keys():
        return ()  # it is about more than it shows
    return tuple(_change(path, diffs, _all_argument(parts)) for path, diffs in files.items())


def _all_argument(parts: _CallParts) -> dict[str, Any]:
    """Return the argument that says that every occurrence of the old text is replaced."""
    value = parts.value(_ALL)
    is_single = value in (None, False) or (value == 1 and value is not True)
    return {} if is_single else {"all": True}


def _is_file_change(parts: _CallParts, *more: str, ignored: frozenset[str] = frozenset()) -> bool:
    """Is it a change of files, and nothing else?"""
    verb = parts.value(_VERB)
    if verb is not None and verb not in _WRITES:
        return False
    groups = (_PATHS, _OLD, _NEW, _ALL, _CONTENT, _VERB, *((name,) for name in more))
    return parts.has_only(*groups, ignored=ignored)


def _paths_in_edits(parts: _CallParts) -> list[str]:
    """Return the files that the single edits of a change name."""
    paths: list[Any] = []
    for name in _EDITS:
        edits = parts.raw.get(name)
        if isinstance(edits, dict):  # by path
            paths += edits
        for edit in edits if isinstance(edits, list) else ():
            if isinstance(edit, dict):
                paths += [edit[key] for key in _PATHS if key in edit]
    return [relative_path(str(path), parts.root) for path in paths]


def _change(path: str, diffs: list[Any], all_argument: dict[str, Any]) -> MappedCall:
    edits = [{"old": diff.old_text, "new": diff.new_text, **all_argument} for diff in diffs]
    if all(not edit["old"] for edit in edits) and len(edits) == 1:
        return MappedCall("write", {"path": path, "content": edits[0]["new"]})
    if any(not edit["old"] for edit in edits):
        return MappedCall("acp_edit", {"path": path, "changes": edits})
    if len(edits) == 1:
        return MappedCall("edit", {"path": path, **edits[0]})
    return MappedCall("edit", {"path": path, "edits": edits})


def _map_edit(parts: _CallParts) -> tuple[MappedCall, ...]:
    """An edit that shows no difference, but has the old and the new text in its input."""
    paths = parts.paths()
    if len(paths) != 1 or not _is_file_change(parts):
        return ()
    old, new, content = parts.value(_OLD), parts.value(_NEW), parts.value(_CONTENT)
    if isinstance(old, str) and old and isinstance(new, str) and content is None:
        arguments = {"path": paths[0], "old": old, "new": new, **_all_argument(parts)}
        return (MappedCall("edit", arguments),)
    if isinstance(content, str) and new is None and old in (None, ""):
        return (MappedCall("write", {"path": paths[0], "content": content}),)
    return ()


def _map_read(parts: _CallParts) -> tuple[MappedCall, ...]:
    if not parts.has_only(_PATHS, ignored=_IGNORED_OF_READS):
        return ()
    return tuple(MappedCall("read", {"path": path}) for path in parts.paths())


def _map_search(parts: _CallParts) -> tuple[MappedCall, ...]:
    pattern, paths = parts.text(_PATTERN), parts.paths(_PLACES)
    if not pattern or len(paths) > 1:
        return ()
    if not parts.has_only(_PATTERN, _PLACES, ignored=_IGNORED_OF_READS):
        return ()
    where = {"path": paths[0]} if paths else {}
    return (MappedCall("grep", {"pattern": pattern, **where}),)


def _map_fetch(parts: _CallParts) -> tuple[MappedCall, ...]:
    url, method = parts.text(_URLS), parts.value(("method",))
    if not url or method not in (None, "GET", "get"):
        return ()
    is_plain = parts.has_only(_URLS, ("method",), ignored=_IGNORED_OF_FETCHES)
    return (MappedCall("web_fetch", {"url": url}),) if is_plain else ()


def _map_delete(parts: _CallParts) -> tuple[MappedCall, ...]:
    paths = parts.paths()
    if not paths or not parts.has_only(_PATHS):
        return ()
    return _shell_call(parts, "rm", *paths)


def _map_move(parts: _CallParts) -> tuple[MappedCall, ...]:
    old, new = (relative_path(parts.text(names), parts.root) for names in (_FROM, _TO))
    if not old or not new or not parts.has_only(_FROM, _TO):
        return ()
    return _shell_call(parts, "mv", old, new) if {*parts.paths()} <= {old, new} else ()


def _shell_call(parts: _CallParts, program: str, *paths: str) -> tuple[MappedCall, ...]:
    line = shell_line([program, "--", *paths], "", parts.root)
    return (MappedCall("shell", {"command": line}),)


def _map_mode_switch(parts: _CallParts) -> tuple[MappedCall, ...]:
    plan = parts.text(("plan",))
    is_plain = plan and parts.has_only(("plan",), ignored=_IGNORED_OF_PLANS)
    return (MappedCall("exit_plan_mode", {"plan": plan}),) if is_plain else ()


def _map_other(parts: _CallParts) -> tuple[MappedCall, ...]:
    """An agent that says no kind may begin the title with the name of its tool."""
    name = (parts.call.title or "").casefold().split(" ", 1)[0]
    if name in _WRITES:
        return _map_edit(parts)
    return _map_read(parts) if name in _READS else ()


_MAPPERS: dict[str, Callable[[_CallParts], tuple[MappedCall, ...]]] = {
    "edit": _map_edit,
    "read": _map_read,
    "search": _map_search,
    "fetch": _map_fetch,
    "delete": _map_delete,
    "move": _map_move,
    "switch_mode": _map_mode_switch,
}
