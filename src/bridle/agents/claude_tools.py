"""Claude Code's tools in the words of ours, and back. Pure: a name and arguments in, the same out.

The gate judges what a call does, so it is told of a command, a path, an address, whoever asks. What
has no counterpart here keeps its name, and is asked about. Arguments that ours do not have are left
out of what is judged, and are not lost: `rest` is what they were.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bridle.tools.shell import LONGEST

Arguments = dict[str, Any]
Roots = Sequence[str]  # the folder that paths are read from, in each way that it is spelled
_MOST_LINES = 2000  # that our grep gives
_WILD = frozenset("*?[{")
_STATUSES = ("pending", "in_progress", "completed")


class Mapped(NamedTuple):
    """A call in our words, and what of its arguments they do not say."""

    name: str
    arguments: Arguments
    rest: Arguments = {}


class _Way(NamedTuple):
    """From one tool to another: the fields that are the same but for their names and values.

    `fields`: theirs to ours. `paths`: those of theirs that are paths.
    """

    name: str
    fields: Mapping[str, str]
    paths: tuple[str, ...] = ()


_PATTERNS = {"Glob": ("pattern",), "Grep": ("glob",)}  # of paths
_JOINED = "cell"  # a field that is not theirs
_CELL = ("edit_mode", "cell_type", "cell_id")
_MODES = {"replace": "replace", "insert": "insert after", "delete": "delete"}
_SHOWN_CELL = re.compile(r"\[(replace|insert after|delete) cell (.+?)(?:, as (code|markdown))?\]")
_EDIT = {"old_string": "old", "new_string": "new", "replace_all": "all"}
_WAYS = {
    "Bash": _Way(
        "shell", {"command": "command", "timeout": "timeout", "run_in_background": "background"}
    ),
    "Edit": _Way("edit", {"file_path": "path", **_EDIT}, ("file_path",)),
    "MultiEdit": _Way("edit", {"file_path": "path", "edits": "edits"}, ("file_path",)),
    "NotebookEdit": _Way(
        "edit", {"notebook_path": "path", _JOINED: "old", "new_source": "new"}, ("notebook_path",)
    ),
    "Write": _Way("write", {"file_path": "path", "content": "content"}, ("file_path",)),
    "Read": _Way(
        "read", {"file_path": "path", "offset": "offset", "limit": "limit"}, ("file_path",)
    ),
    "Glob": _Way("glob", {"pattern": "pattern", "path": "path"}, ("path",)),
    "Grep": _Way(
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
    "LS": _Way("list", {"path": "path"}, ("path",)),
    "WebFetch": _Way("web_fetch", {"url": "url"}),
    "TodoWrite": _Way("todo_write", {"todos": "todos"}),
    "ExitPlanMode": _Way("exit_plan_mode", {"plan": "plan"}),
    "Task": _Way("task", {"prompt": "prompt"}),
    "Agent": _Way("task", {"prompt": "prompt"}),
    "BashOutput": _Way("shell_output", {"bash_id": "id"}),
    "TaskOutput": _Way("shell_output", {"task_id": "id"}),
    "KillShell": _Way("shell_stop", {"shell_id": "id"}),
    "TaskStop": _Way("shell_stop", {"task_id": "id", "shell_id": "id"}),
}


def to_ours(name: str, given: Arguments, roots: Roots) -> Mapped:
    """What the call is in our words."""
    if name == "AskUserQuestion":
        return asked(given)
    way = _WAYS.get(name)
    if way is None:
        return Mapped(name, given)
    if name == "Glob":
        given = _looked_in(given, roots)
    if name == "NotebookEdit":
        given = _with_cell(given)
    if name == "Edit" and given.get("old_string") == "":
        way = _Way("write", {"file_path": "path", "new_string": "content"}, ("file_path",))
    found: Arguments = {}
    rest: Arguments = {}
    for field, value in given.items():
        ours = way.fields.get(field)
        if ours is None or value is None:
            rest[field] = value
            continue
        value = to_path(value, roots) if field in way.paths else value
        found[ours] = _inward(name, field)(value)
    return Mapped(way.name, {key: value for key, value in found.items() if value is not None}, rest)


def to_theirs(name: str, given: Arguments, changed: Arguments, roots: Roots) -> Arguments:
    """Their arguments, with what somebody changed in ours. What is unchanged stays as it was."""
    way = _WAYS.get(name)
    if way is None:
        return changed
    if name == "Edit" and given.get("old_string") == "":
        way = _Way("write", {"file_path": "path", "new_string": "content"}, ("file_path",))
    before = to_ours(name, given, roots).arguments
    whole = name == "Glob" and before != changed  # its pattern says where it looks, too
    result = {key: value for key, value in given.items() if key != _JOINED}
    for field, ours in way.fields.items():
        if before.get(ours) == changed.get(ours) and not whole:
            continue
        if ours not in changed:
            result.pop(field, None)
            continue
        value = changed[ours]
        if field in way.paths and isinstance(value, str):
            value = os.path.normpath(f"{roots[0]}/{value}") if not value.startswith("/") else value
        result[field] = _outward(name, field)(value)
    if _JOINED in result:
        shown = result.pop(_JOINED)
        kept = {key: value for key, value in result.items() if key not in _CELL}
        return {**kept, **_without_cell(shown)}
    return result


def paths_of(name: str, given: Arguments) -> Arguments:
    """Those of a call's arguments that say where it looks or writes."""
    way = _WAYS.get(name)
    fields = (*(way.paths if way else ()), *_PATTERNS.get(name, ()))
    return {field: given[field] for field in fields if field in given}


def to_path(path: Any, roots: Roots) -> Any:
    """A path as our tools spell it: from the root where it lies inside, whole where it does not."""
    if not isinstance(path, str):
        return path
    if path == "~" or path.startswith("~/"):  # the program expands it, our tools do not
        path = os.path.expanduser(path)  # noqa: PTH111 - text, and no file is looked at
    if not path.startswith("/"):
        return path
    inside = os.path.normpath(path)
    for folder in roots:
        if inside == folder:
            return "."
        if inside.startswith(folder.rstrip("/") + "/"):
            return inside[len(folder.rstrip("/")) + 1 :]
    return path


def _looked_in(given: Arguments, roots: Roots) -> Arguments:
    """Where a pattern of theirs really looks: one with a path of its own looks there.

    Ours look in the workspace whatever they are told; the program does not.
    """
    pattern = given.get("pattern")
    if not isinstance(pattern, str) or not _goes_its_own_way(pattern):
        return given
    if pattern.startswith("~"):
        pattern = os.path.expanduser(pattern)  # noqa: PTH111 - text, and no file is looked at
    folder = given.get("path")
    start = folder if isinstance(folder, str) and folder.startswith("/") else roots[0]
    parts = f"{start}/{pattern}".split("/") if not pattern.startswith("/") else pattern.split("/")
    plain = next((at for at, part in enumerate(parts) if _WILD & set(part)), len(parts) - 1)
    if ".." in parts[plain:]:
        plain = 1  # who goes up behind a wildcard may come out anywhere
    looked = os.path.normpath("/".join(parts[:plain]) or "/")
    return {**given, "path": looked, "pattern": "/".join(parts[plain:]) or "*"}


def _goes_its_own_way(pattern: str) -> bool:
    return pattern.startswith(("/", "~")) or ".." in pattern.split("/")


def _with_cell(given: Arguments) -> Arguments:
    """A change of a notebook, with what is done to which cell in one field, for it is shown so."""
    mode = given.get("edit_mode") or "replace"
    cell = "first cell" if given.get("cell_id") is None else f"cell {given['cell_id']}"
    kind = f", as {given['cell_type']}" if given.get("cell_type") else ""
    found = {key: value for key, value in given.items() if key not in _CELL}
    if mode == "delete":
        found["new_source"] = ""  # whatever it says, nothing of it comes into the notebook
    return {**found, _JOINED: f"[{_MODES.get(mode, mode)} {cell}{kind}]"}


def _without_cell(shown: Any) -> Arguments:
    """The same back. Other words are taken for a cell's name, and there is no such cell."""
    found = _SHOWN_CELL.fullmatch(str(shown))
    if found is None:
        return {"cell_id": str(shown)}
    mode, cell, kind = found.groups()
    return {"edit_mode": mode.split()[0], "cell_id": cell, **({"cell_type": kind} if kind else {})}


def asked(given: Arguments) -> Mapped:
    """The first of the questions; `questions` has each of them."""
    found = questions(given)
    return Mapped("ask_user", found[0][1] if found else {"question": "?"})


def questions(given: Arguments) -> list[tuple[str, Arguments]]:
    """Each question as it is to be answered by its words, and as a call of `ask_user`."""
    found = []
    for one in given.get("questions") or []:
        if not isinstance(one, dict) or not isinstance(one.get("question"), str):
            continue
        offered = [each for each in one.get("options") or [] if isinstance(each, dict)]
        labels = [str(each.get("label", ""))[:200] for each in offered if each.get("label")]
        explained = [
            f"- {each['label']}: {each['description']}"
            for each in offered
            if each.get("label") and each.get("description")
        ]
        text = "\n".join([one["question"], *explained])[:2000]
        call: Arguments = {"question": text}
        if 2 <= len(labels) <= 6:
            call["options"] = labels
        found.append((one["question"], call))
    return found


Change = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _inward(name: str, field: str) -> Change:
    return _VALUES.get((name, field), (_same, _same))[0]


def _outward(name: str, field: str) -> Change:
    return _VALUES.get((name, field), (_same, _same))[1]


def _if_set(value: Any) -> Any:
    """A `false` is what holds anyway: nobody has to read it in a question."""
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
        {_EDIT[key]: value for key, value in one.items() if key in _EDIT and value is not False}
        if isinstance(one, dict)
        else one
        for one in given
    ]


def _their_edits(changed: Any) -> Any:
    back = {ours: theirs for theirs, ours in _EDIT.items()}
    if not isinstance(changed, list):
        return changed
    return [{back.get(key, key): value for key, value in one.items()} for one in changed]


def _todos(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        {
            "content": str(one.get("content", ""))[:1000],
            "status": one["status"] if one.get("status") in _STATUSES else "pending",
        }
        for one in given
        if isinstance(one, dict) and one.get("content")
    ]


_VALUES: Mapping[tuple[str, str], tuple[Change, Change]] = {
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
