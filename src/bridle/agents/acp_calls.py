"""A tool call of an ACP agent as calls of our own tools, so that rules, effects and undo hold.

Pure. The agent says a kind, an input of its own making, places and differences; each vendor spells
the input in its own way. What it would do is read from there; what cannot be read has a name that
no tool of ours has (`acp_execute` …), and is asked about with everything that was said of it. What
an agent says of itself never makes a call milder: a `read` that brings a command is no reading.
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
_VERB = ("command",)  # some tools for files take what to do with the file as a word of this name
_PIECES = ("edits", "changes")
_WRITES = frozenset({"write", "edit", "create", "update", "str_replace", "write_file", "replace"})
_READS = frozenset({"read", "view", "read_file"})


def _these(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Keys that say nothing of what a call would do: words for people, names, and how long it may take.
_ASIDE = _these(
    "description title explanation reason justification instruction thought purpose "
    "timeout timeout_ms timeoutMs timeout_secs timeout_seconds "
    "id call_id callId turn_id turnId thread_id threadId item_id itemId approval_id approvalId"
)
_RUNS = _these(  # of a command: whether somebody waits for it, how it was understood over there
    "is_background run_in_background background process_id processId started_at_ms "
    "startedAtMs parsed_cmd parsedCmd commandActions command_actions available_decisions "
    "availableDecisions proposed_execpolicy_amendment proposedExecpolicyAmendment"
)
_NARROWS = _these(  # of reading and searching: less of the same
    "line lines offset limit start_line end_line startLine endLine pages encoding depth recursive "
    "include exclude ignore glob type output_mode head_limit max_results multiline context "
    "case_sensitive caseSensitive respect_git_ignore file_filtering_options -A -B -C -i -n"
)
_SHOWN = _these(  # of a change whose differences are shown: the same once more
    "diff fileDiff fileName originalContent newContent auto_approved autoApproved "
    "ai_proposed_content modified_by_user"
)
_FETCHES = _these("prompt format max_length maxLength start_index")
_PLANS = frozenset(("planFilePath", "plan_file_path"))
INFORMATIVE = frozenset(  # variables that say who asks and how colours are wanted: left out
    ("AGENT", "AGENT_SESSION_ID", "GOOSE_TERMINAL", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR")
)
_NOTHING: tuple[Any, ...] = (None, "", [], {})
_MILD = frozenset({"read", "search", "fetch", "think", "edit", "delete", "move", "switch_mode"})


class Wanted(Struct, frozen=True):
    """A tool of ours and what it would be given."""

    name: str
    arguments: dict[str, Any]


def wanted(call: schema.ToolCallUpdate, root: str) -> tuple[Wanted, ...]:
    """What the call would do: at least one call of ours, or one that no tool of ours has."""
    said = _Said(call, root)
    if call.raw_input and not isinstance(call.raw_input, dict):
        return (_unread(said),)
    kind = call.kind or "other"
    reader = _READERS.get(kind, _other)
    if any(_is_diff(one) for one in call.content or ()):
        reader = _changes
    elif said.one(_COMMANDS) is not None and kind not in _MILD:
        reader = _ran
    return reader(said) or (_unread(said),)


class _Said:
    """What was said of a call."""

    def __init__(self, call: schema.ToolCallUpdate, root: str) -> None:
        self.call = call
        self.root = root
        self.raw: dict[str, Any] = call.raw_input if isinstance(call.raw_input, dict) else {}

    def one(self, names: Iterable[str]) -> Any:
        """What is given under the first of these names that is there."""
        return next((self.raw[name] for name in names if self.raw.get(name) is not None), None)

    def text(self, names: Iterable[str]) -> str:
        """The same, where it is text."""
        found = self.one(names)
        return found if isinstance(found, str) else ""

    def paths(self, names: Iterable[str] = _PATHS) -> list[str]:
        """The files that it names, each once."""
        return list(dict.fromkeys(near(one, self.root) for one in self.spelled(names)))

    def spelled(self, names: Iterable[str] = _PATHS) -> list[str]:
        """The same, as it spells them."""
        found = [self.text(names), *(one.path for one in self.call.locations or ())]
        return [one for one in dict.fromkeys(found) if one]

    def is_only(self, *groups: tuple[str, ...], aside: frozenset[str] = frozenset()) -> bool:
        """Is there nothing in it but these, each under one of its names?

        What is left out of a reading is left out of what is judged: a key that nobody here knows
        may say anything, and of two that mean the same nobody knows which one holds.
        """
        given = {name: value for name, value in self.raw.items() if value not in _NOTHING}
        known = {name for group in groups for name in group} | _ASIDE | aside
        if not given.keys() <= known:
            return False
        found = [[given[name] for name in group if name in given] for group in groups]
        return all(one.count(one[0]) == len(one) for one in found if one)


def near(path: str, root: str) -> str:
    """A path as it is written inside the workspace, where it says that it lies there."""
    top = root.rstrip("/")
    if not path.startswith(f"{top}/") and path != top:
        return path
    inner = path[len(top) :].lstrip("/")
    return f"./{inner}" if inner.startswith(("~", "$")) else inner or "."


def command_line(command: Any, folder: str, root: str, env: Iterable[tuple[str, str]] = ()) -> str:
    """A command as one line for our shell, from the root; words are quoted.

    A folder and variables come first.
    """
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
    where = posixpath.join(root, folder).rstrip("/") or "/"
    return line if where == (root.rstrip("/") or "/") else f"cd {shlex.quote(where)} && {line}"


def _set(names: list[str], line: str) -> str:
    """Variables for a whole line of shell, not for its first command alone."""
    return f"export {' '.join(names)}; {line}"


def paths_of(call: schema.ToolCallUpdate) -> list[str]:
    """The files that the call names, each once, as it spells them."""
    return _Said(call, "").spelled()


def _unread(said: _Said) -> Wanted:
    """What no tool of ours does: everything that was said of it, under a name of its own."""
    kind = said.call.kind or "other"
    told: dict[str, Any] = {"title": said.call.title or kind}
    if given := said.call.raw_input:
        told["input"] = json.loads(json.dumps(given, default=str))
    if paths := said.paths():
        told["paths"] = paths
    if diffs := [one for one in said.call.content or () if _is_diff(one)]:
        told["changes"] = [
            {"path": near(one.path, said.root), "old": one.old_text, "new": one.new_text}
            for one in diffs
        ]
    return Wanted(f"acp_{kind}", told)


def _ran(said: _Said) -> tuple[Wanted, ...]:
    """A command; its arguments may be given beside it, which is clear for one word alone."""
    if not said.is_only(_COMMANDS, _ARGS, _FOLDERS, aside=_RUNS):
        return ()
    command, more = said.one(_COMMANDS), said.one(_ARGS)
    if more:
        if isinstance(command, str) and shlex.quote(command) == command:
            command = [command]
        if not isinstance(command, list) or not isinstance(more, list):
            return ()
        command = [*command, *more]
    folder = said.one(_FOLDERS) or ""
    line = command_line(command, folder, said.root) if isinstance(folder, str) else ""
    return (Wanted("shell", {"command": line}),) if line else ()


def _is_diff(content: Any) -> bool:
    return isinstance(content, schema.FileEditToolCallContent)


def _changes(said: _Said) -> tuple[Wanted, ...]:
    """One call for each file: whole where it is new, piece by piece where it is known."""
    files: dict[str, list[Any]] = {}
    for one in said.call.content or ():
        if _is_diff(one):
            files.setdefault(near(one.path, said.root), []).append(one)
    if not _is_about_files(said, *_PIECES, aside=_SHOWN):
        return ()
    if not {*said.paths(), *_named(said)} <= files.keys():
        return ()  # it is about more than it shows
    return tuple(_change(path, found, _every(said)) for path, found in files.items())


def _every(said: _Said) -> dict[str, Any]:
    """Is it for every place where the old text stands?"""
    found = said.one(_ALL)
    is_one = found in (None, False) or (found == 1 and found is not True)
    return {} if is_one else {"all": True}


def _is_about_files(said: _Said, *more: str, aside: frozenset[str] = frozenset()) -> bool:
    """Is it a change of files, and nothing but that?"""
    verb = said.one(_VERB)
    if verb is not None and verb not in _WRITES:
        return False
    groups = (_PATHS, _OLD, _NEW, _ALL, _CONTENT, _VERB, *((one,) for one in more))
    return said.is_only(*groups, aside=aside)


def _named(said: _Said) -> list[str]:
    """The files that the pieces of a change name for themselves."""
    found: list[str] = []
    for name in _PIECES:
        pieces = said.raw.get(name)
        if isinstance(pieces, dict):  # by path
            found += pieces
        for piece in pieces if isinstance(pieces, list) else ():
            found += (
                [piece[key] for key in _PATHS if key in piece] if isinstance(piece, dict) else ()
            )
    return [near(str(one), said.root) for one in found]


def _change(path: str, diffs: list[Any], every: dict[str, Any]) -> Wanted:
    pieces = [{"old": one.old_text, "new": one.new_text, **every} for one in diffs]
    if all(not one["old"] for one in pieces) and len(pieces) == 1:
        return Wanted("write", {"path": path, "content": pieces[0]["new"]})
    if any(not one["old"] for one in pieces):
        return Wanted("acp_edit", {"path": path, "changes": pieces})
    if len(pieces) == 1:
        return Wanted("edit", {"path": path, **pieces[0]})
    return Wanted("edit", {"path": path, "edits": pieces})


def _edited(said: _Said) -> tuple[Wanted, ...]:
    """An edit of which no difference is shown, but what was put in."""
    paths = said.paths()
    if len(paths) != 1 or not _is_about_files(said):
        return ()
    old, new, content = said.one(_OLD), said.one(_NEW), said.one(_CONTENT)
    if isinstance(old, str) and old and isinstance(new, str) and content is None:
        return (Wanted("edit", {"path": paths[0], "old": old, "new": new, **_every(said)}),)
    if isinstance(content, str) and new is None and old in (None, ""):
        return (Wanted("write", {"path": paths[0], "content": content}),)
    return ()


def _read(said: _Said) -> tuple[Wanted, ...]:
    if not said.is_only(_PATHS, aside=_NARROWS):
        return ()
    return tuple(Wanted("read", {"path": path}) for path in said.paths())


def _sought(said: _Said) -> tuple[Wanted, ...]:
    pattern, found = said.text(_PATTERN), said.paths(_PLACES)
    if not pattern or len(found) > 1 or not said.is_only(_PATTERN, _PLACES, aside=_NARROWS):
        return ()
    where = {"path": found[0]} if found else {}
    return (Wanted("grep", {"pattern": pattern, **where}),)


def _fetched(said: _Said) -> tuple[Wanted, ...]:
    url, method = said.text(_URLS), said.one(("method",))
    if not url or method not in (None, "GET", "get"):
        return ()
    is_plain = said.is_only(_URLS, ("method",), aside=_FETCHES)
    return (Wanted("web_fetch", {"url": url}),) if is_plain else ()


def _deleted(said: _Said) -> tuple[Wanted, ...]:
    paths = said.paths()
    if not paths or not said.is_only(_PATHS):
        return ()
    return _shell(said, "rm", *paths)


def _moved(said: _Said) -> tuple[Wanted, ...]:
    old, new = (near(said.text(names), said.root) for names in (_FROM, _TO))
    if not old or not new or not said.is_only(_FROM, _TO) or not {*said.paths()} <= {old, new}:
        return ()
    return _shell(said, "mv", old, new)


def _shell(said: _Said, program: str, *paths: str) -> tuple[Wanted, ...]:
    line = command_line([program, "--", *paths], "", said.root)
    return (Wanted("shell", {"command": line}),)


def _switched(said: _Said) -> tuple[Wanted, ...]:
    plan = said.text(("plan",))
    is_plain = plan and said.is_only(("plan",), aside=_PLANS)
    return (Wanted("exit_plan_mode", {"plan": plan}),) if is_plain else ()


def _other(said: _Said) -> tuple[Wanted, ...]:
    """An agent that says no kind may begin the title with the name of its tool."""
    name = (said.call.title or "").casefold().split(" ", 1)[0]
    if name in _WRITES:
        return _edited(said)
    return _read(said) if name in _READS else ()


_READERS: dict[str, Callable[[_Said], tuple[Wanted, ...]]] = {
    "edit": _edited,
    "read": _read,
    "search": _sought,
    "fetch": _fetched,
    "delete": _deleted,
    "move": _moved,
    "switch_mode": _switched,
}
