"""Claude Code's tools as ours, and back. Pure: a name and arguments in, the same out.

The gate judges what a call does, so it gets a command, a path or an address, whichever agent asks.
A tool that has no counterpart keeps its name, and is asked about. Arguments that our tools do not
have are left out of what is judged, but not lost: they are in `rest`.

Searches are made by our own tools (`is_own_search`), which leave protected files out. A hook can
neither make a call nor answer it; but it can have the program search where nothing is
(`empty_search`), and replace that result by ours (`search_answer`). If that fails, nothing is
found.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from bridle.tools.shell.tool import LONGEST
from bridle.workspace.fs import is_below
from bridle.workspace.text import shorten

Arguments = dict[str, Any]
Roots = Sequence[str]  # the folder that paths are relative to, in each spelling
_MOST_LINES = 2000  # that our grep returns
_WILD = frozenset("*?[{")
_STATUSES = ("pending", "in_progress", "completed")
_SEARCHES = ("Grep", "Glob")
_NO_MATCH = "no line fits this"
_NOT_IN_OUR_GREP = ("-A", "-B", "-C", "context", "type", "offset", "multiline")


class OurCall(NamedTuple):
    """A call of a tool of ours, and the arguments that it has no counterpart for."""

    name: str
    arguments: Arguments
    rest: Arguments = {}


class _Mapping(NamedTuple):
    """A tool of ours and its `fields`, theirs to ours. `paths`: those of theirs that are paths."""

    name: str
    fields: Mapping[str, str]
    paths: tuple[str, ...] = ()


_PATTERNS = {"Glob": ("pattern",), "Grep": ("glob",)}  # of paths
_JOINED = "cell"  # a field of our own making, see `_with_cell`
_CELL = ("edit_mode", "cell_type", "cell_id")
_MODES = {"replace": "replace", "insert": "insert after", "delete": "delete"}
_SHOWN_CELL = re.compile(r"\[(replace|insert after|delete) cell (.+?)(?:, as (code|markdown))?\]")
_EDIT = {"old_string": "old", "new_string": "new", "replace_all": "all"}
_MAPPINGS = {
    "Bash": _Mapping(
        "shell", {"command": "command", "timeout": "timeout", "run_in_background": "background"}
    ),
    "Edit": _Mapping("edit", {"file_path": "path", **_EDIT}, ("file_path",)),
    "MultiEdit": _Mapping("edit", {"file_path": "path", "edits": "edits"}, ("file_path",)),
    "NotebookEdit": _Mapping(
        "edit", {"notebook_path": "path", _JOINED: "old", "new_source": "new"}, ("notebook_path",)
    ),
    "Write": _Mapping("write", {"file_path": "path", "content": "content"}, ("file_path",)),
    "Read": _Mapping(
        "read", {"file_path": "path", "offset": "offset", "limit": "limit"}, ("file_path",)
    ),
    "Glob": _Mapping("glob", {"pattern": "pattern", "path": "path"}, ("path",)),
    "Grep": _Mapping(
        "grep",
        {
            "pattern": "pattern",
            "path": "path",
            "glob": "glob",
            "-i": "ignore_case",
            "head_limit": "limit",
        },
        ("path",),
    ),
    "LS": _Mapping("list", {"path": "path"}, ("path",)),
    "WebFetch": _Mapping("web_fetch", {"url": "url"}),
    "TodoWrite": _Mapping("todo_write", {"todos": "todos"}),
    "ExitPlanMode": _Mapping("exit_plan_mode", {"plan": "plan"}),
    "Task": _Mapping("task", {"prompt": "prompt"}),
    "Agent": _Mapping("task", {"prompt": "prompt"}),
    "BashOutput": _Mapping("shell_output", {"bash_id": "id"}),
    "TaskOutput": _Mapping("shell_output", {"task_id": "id"}),
    "KillShell": _Mapping("shell_stop", {"shell_id": "id"}),
    "TaskStop": _Mapping("shell_stop", {"task_id": "id", "shell_id": "id"}),
}


def to_ours(name: str, given: Arguments, roots: Roots) -> OurCall:
    """Return the call as one of our tools."""
    if name == "AskUserQuestion":
        return _map_question(given)
    mapping = _MAPPINGS.get(name)
    if mapping is None:
        return OurCall(name, given)
    if name == "Glob":
        given = _with_search_root(given, roots)
    if name == "NotebookEdit":
        given = _with_cell(given)
    if name == "Edit" and given.get("old_string") == "":
        mapping = _Mapping("write", {"file_path": "path", "new_string": "content"}, ("file_path",))
    arguments: Arguments = {}
    rest: Arguments = {}
    for field, value in given.items():
        ours = mapping.fields.get(field)
        if ours is None or value is None:
            rest[field] = value
            continue
        value = to_path(value, roots) if field in mapping.paths else value
        arguments[ours] = _value_to_ours(name, field)(value)
    arguments = {key: value for key, value in arguments.items() if value is not None}
    return OurCall(mapping.name, arguments, rest)


def to_claude(name: str, given: Arguments, changed: Arguments, roots: Roots) -> Arguments:
    """Return their arguments with what a hook changed in ours. The rest stays as it was."""
    mapping = _MAPPINGS.get(name)
    if mapping is None:
        return changed
    if name == "Edit" and given.get("old_string") == "":
        mapping = _Mapping("write", {"file_path": "path", "new_string": "content"}, ("file_path",))
    before = to_ours(name, given, roots).arguments
    replaces_all = name == "Glob" and before != changed  # its pattern says where it looks, too
    result = {key: value for key, value in given.items() if key != _JOINED}
    for field, ours in mapping.fields.items():
        if before.get(ours) == changed.get(ours) and not replaces_all:
            continue
        if ours not in changed:
            result.pop(field, None)
            continue
        value = changed[ours]
        if field in mapping.paths and isinstance(value, str):
            value = os.path.normpath(f"{roots[0]}/{value}") if not value.startswith("/") else value
        result[field] = _value_to_theirs(name, field)(value)
    if _JOINED in result:
        cell = result.pop(_JOINED)
        others = {key: value for key, value in result.items() if key not in _CELL}
        return {**others, **_parse_cell(cell)}
    return result


def path_arguments(name: str, given: Arguments) -> Arguments:
    """Return those of a call's arguments that say where it reads or writes."""
    mapping = _MAPPINGS.get(name)
    fields = (*(mapping.paths if mapping else ()), *_PATTERNS.get(name, ()))
    return {field: given[field] for field in fields if field in given}


def to_path(path: Any, roots: Roots) -> Any:
    """Return a path as our tools spell it: relative to the root if it lies inside, else whole."""
    if not isinstance(path, str):
        return path
    if path == "~" or path.startswith("~/"):  # the program expands it, our tools do not
        path = os.path.expanduser(path)  # noqa: PTH111 - text, and no file is looked at
    if not path.startswith("/"):
        return path
    inside = os.path.normpath(path)
    for folder in roots:
        if is_below(inside, folder):
            return inside[len(folder.rstrip("/")) + 1 :] or "."
    return path


def _with_search_root(given: Arguments, roots: Roots) -> Arguments:
    """Split a glob pattern with a path of its own into the folder it looks in and the rest.

    Our glob always looks in the workspace; the program's does not.
    """
    pattern = given.get("pattern")
    if not isinstance(pattern, str) or not _has_own_path(pattern):
        return given
    if pattern.startswith("~"):
        pattern = os.path.expanduser(pattern)  # noqa: PTH111 - text, and no file is looked at
    folder = given.get("path")
    start = folder if isinstance(folder, str) and folder.startswith("/") else roots[0]
    parts = f"{start}/{pattern}".split("/") if not pattern.startswith("/") else pattern.split("/")
    plain = next((at for at, part in enumerate(parts) if _WILD & set(part)), len(parts) - 1)
    if ".." in parts[plain:]:
        plain = 1  # `..` behind a wildcard may lead anywhere
    root = os.path.normpath("/".join(parts[:plain]) or "/")
    return {**given, "path": root, "pattern": "/".join(parts[plain:]) or "*"}


def _has_own_path(pattern: str) -> bool:
    return pattern.startswith(("/", "~")) or ".." in pattern.split("/")


def _with_cell(given: Arguments) -> Arguments:
    """Put what a change of a notebook does to which cell into one field, so that it is shown."""
    mode = given.get("edit_mode") or "replace"
    cell = "first cell" if given.get("cell_id") is None else f"cell {given['cell_id']}"
    kind = f", as {given['cell_type']}" if given.get("cell_type") else ""
    others = {key: value for key, value in given.items() if key not in _CELL}
    if mode == "delete":
        others["new_source"] = ""  # whatever it says is not written
    return {**others, _JOINED: f"[{_MODES.get(mode, mode)} {cell}{kind}]"}


def _parse_cell(text: Any) -> Arguments:
    """Return the fields again. Any other text is taken for a cell id, and finds no cell."""
    match = _SHOWN_CELL.fullmatch(str(text))
    if match is None:
        return {"cell_id": str(text)}
    mode, cell, kind = match.groups()
    return {"edit_mode": mode.split()[0], "cell_id": cell, **({"cell_type": kind} if kind else {})}


def _map_question(given: Arguments) -> OurCall:
    """Return the first of the questions; `map_questions` returns each of them."""
    questions = map_questions(given)
    return OurCall("ask_user", questions[0][1] if questions else {"question": "?"})


def map_questions(given: Arguments) -> list[tuple[str, Arguments]]:
    """Return each question by its text, which is the key of its answer, and as our `ask_user`."""
    questions = []
    for question in given.get("questions") or []:
        if not isinstance(question, dict) or not isinstance(question.get("question"), str):
            continue
        options = [option for option in question.get("options") or [] if isinstance(option, dict)]
        labels = [str(option["label"])[:200] for option in options if option.get("label")]
        explanations = [
            f"- {option['label']}: {option['description']}"
            for option in options
            if option.get("label") and option.get("description")
        ]
        text = "\n".join([question["question"], *explanations])[:2000]
        arguments: Arguments = {"question": text}
        if 2 <= len(labels) <= 6:
            arguments["options"] = labels
        questions.append((question["question"], arguments))
    return questions


def is_own_search(name: str, ours: OurCall) -> bool:
    """Can our own tool make this search? The program makes those outside the workspace itself."""
    path = str(ours.arguments.get("path", "."))
    outside = path.startswith(("/", "~")) or ".." in path.split("/")
    return name in _SEARCHES and not outside and not ours.rest.get("multiline")


def empty_search(name: str, given: Arguments) -> Arguments:
    """Return the arguments of a search that finds nothing."""
    if name == "Glob":
        return {"pattern": _NO_MATCH, "path": given.get("path") or "."}
    return {"pattern": _NO_MATCH, "path": "/dev/null", "output_mode": "content"}


def search_answer(name: str, given: Arguments, text: str) -> Arguments:
    """Return what our tool found, in the shape in which the program's own tool answers."""
    if name == "Glob":
        names = [line for line in text.splitlines() if line.strip()]
        return {"filenames": names, "numFiles": len(names), "durationMs": 0, "truncated": False}
    ignored = [field for field in _NOT_IN_OUR_GREP if given.get(field)]
    if ignored:
        text += f"\n[{', '.join(ignored)} had no effect: read the files for more]"
    return {
        "mode": "content",
        "content": text,
        "numLines": text.count("\n") + 1,
        "numFiles": 0,
        "filenames": [],
    }


Conversion = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _value_to_ours(name: str, field: str) -> Conversion:
    return _VALUES.get((name, field), (_same, _same))[0]


def _value_to_theirs(name: str, field: str) -> Conversion:
    return _VALUES.get((name, field), (_same, _same))[1]


def _if_set(value: Any) -> Any:
    """Leave a `false` out: it is the default, and need not be shown in an approval."""
    return None if value is False else value


def _seconds(milliseconds: Any) -> Any:
    if not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    return min(milliseconds / 1000, LONGEST)


def _milliseconds(seconds: Any) -> Any:
    return round(seconds * 1000) if isinstance(seconds, int | float) else seconds


def _at_least_one(number: Any) -> Any:
    return number if isinstance(number, int) and number >= 1 else None


def _lines(number: Any) -> Any:
    return min(number, _MOST_LINES) if _at_least_one(number) else None


def _edits(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        {_EDIT[key]: value for key, value in edit.items() if key in _EDIT and value is not False}
        if isinstance(edit, dict)
        else edit
        for edit in given
    ]


def _their_edits(changed: Any) -> Any:
    theirs = {ours: name for name, ours in _EDIT.items()}
    if not isinstance(changed, list):
        return changed
    return [{theirs.get(key, key): value for key, value in edit.items()} for edit in changed]


def _todos(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        {
            "content": str(todo.get("content", ""))[:1000],
            "status": todo["status"] if todo.get("status") in _STATUSES else "pending",
        }
        for todo in given
        if isinstance(todo, dict) and todo.get("content")
    ]


_VALUES: Mapping[tuple[str, str], tuple[Conversion, Conversion]] = {
    ("Bash", "timeout"): (_seconds, _milliseconds),
    ("Bash", "run_in_background"): (_if_set, _same),
    ("Edit", "replace_all"): (_if_set, _same),
    ("Grep", "-i"): (_if_set, _same),
    ("MultiEdit", "edits"): (_edits, _their_edits),
    ("Read", "offset"): (_at_least_one, _same),
    ("Read", "limit"): (_at_least_one, _same),
    ("Grep", "head_limit"): (_lines, _same),
    ("TodoWrite", "todos"): (_todos, _same),
}


# The results of Claude Code's own tools, as text for the log and data for interfaces. Pure.
#
# The program answers each of its tools with a value of its own shape. A shape that is not known is
# shown as it is. Text is cut to what a person reads: the program's own conversation has all of it.

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
