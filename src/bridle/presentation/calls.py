"""What a call is about, and a summary of its result. Pure.

Every interface shows these sentences. They may contain control characters: whoever shows them
makes them harmless.
"""

import re
import shlex
from typing import Any

import msgspec

from bridle.messages import ToolCall, ToolOutput
from bridle.workspace.text import quantity

_SUBJECTS = (  # arguments, the first of which is the subject
    *("command", "pattern", "path", "query", "url", "name"),
    *("question", "description", "prompt", "id"),
)
_COUNTS = {  # how many entries tools that list have listed: the key in the result, and the noun
    "list": ("entries", "entry", "entries"),
    "glob": ("count", "file", "files"),
}
_FIRST_LINE = ("edit", "write")  # tools whose result says in its first line what was done
_PATCHED = re.compile(r"^(?:\+\+\+|---) (?:[ab]/)?([^\t\n]+)", re.MULTILINE)
_LISTING = ("dir", "fd", "find", "git ls-files", "git branch", "git tag", "ls")
_TEXT = (  # programs whose last line says no more than any other
    *("cat", "cut", "du", "env", "grep", "head", "history", "jq", "printenv", "ps", "rg", "sed"),
    *("sort", "tree", "uniq"),
    *("git diff", "git grep", "git log", "git show", "git stash", "git status"),
)
_SIZE = re.compile(r"  [\d.]+ [KMGT]?B$")  # behind the name of a file that is listed
_ENDING = re.compile(r"\[(?:exit code|timed out after|ended by signal) ")
_SEPARATORS = ("|", "|&", "||", "&&", ";", "&")
_DIFF_KINDS = {"+": "added", "-": "removed", "@": "place"}
_LIST_LENGTH, _ENTRY_LENGTH = 60, 40  # characters of a list of names, and of a name in it


def call_subject(call: ToolCall) -> str:
    """Return what a call is about: its command, path or pattern; else its arguments as JSON."""
    arguments = call.arguments
    if isinstance(todos := arguments.get("todos"), list):
        return quantity(len(todos), "item")
    if isinstance(patch := arguments.get("patch"), str) and (names := _patched(patch)):
        return names
    if isinstance(plan := arguments.get("plan"), str) and plan.strip():
        return _plan_title(plan)
    for name in _SUBJECTS:
        if isinstance(value := arguments.get(name), str) and value:
            path = arguments.get("path") if name == "pattern" else None
            return f"{value} in {path}" if isinstance(path, str) and path else value
    return as_json(arguments) if arguments else ""


def _plan_title(plan: str) -> str:
    """Return the first line of a plan, unless it only says that it is one."""
    line = plan.lstrip("# \t\r\n").partition("\n")[0].strip()
    return "" if line.lower() == "plan" else line


def call_line(call: ToolCall) -> str:
    """Return a call in one line: its tool, and what it is about."""
    subject = call_subject(call)
    return f"{call.name}: {subject}" if subject else call.name


def long_command(call: ToolCall) -> str:
    """Return a command that the subject cannot show whole; else empty."""
    command = call.arguments.get("command")
    return command if isinstance(command, str) and ("\n" in command or len(command) > 60) else ""


def _patched(patch: str) -> str:
    names = (name.strip() for name in _PATCHED.findall(patch))
    return ", ".join(dict.fromkeys(name for name in names if name != "/dev/null"))


def result_summary(output: ToolOutput, command: str = "") -> str:
    """Return a result in one line: what went wrong, the last line, or how much there is.

    `command` is what a shell ran: the last line of a listing says nothing.
    """
    lines = [line for line in output.text.splitlines() if line.strip()]
    data: Any = output.data if output.name == "shell" and isinstance(output.data, dict) else {}
    if data.get("job"):
        return f"runs in the background as {data['job']}"
    if not lines:
        return "no output"
    if output.name == "todo_write" and not output.is_error:
        return ""  # the list stands beside, and its length before
    if output.name in _FIRST_LINE and not output.is_error:
        return lines[0].removesuffix(":")
    if "exit_code" in data:  # notes follow the output; the first one says how the command ended
        printed = [line for line in str(data.get("output", "")).splitlines() if line.strip()]
        if notes := lines[len(printed) or 1 :]:
            return _command_summary(printed, notes[0].strip("[]"), command, failed=output.is_error)
    if output.name == "shell" and lines[-1].startswith("["):  # a failed call has no data
        endings = (at for at in range(len(lines) - 1, -1, -1) if _ENDING.match(lines[at]))
        end = next(endings, len(lines) - 1)
        return _command_summary(
            lines[:end], lines[end].strip("[]"), command, failed=output.is_error
        )
    if output.name in _COUNTS and not output.is_error and isinstance(output.data, dict):
        key, noun, plural = _COUNTS[output.name]
        count = output.data.get(key)
        if isinstance(count, int) and count > 0:
            names = [_SIZE.sub("", line) for line in lines if not line.startswith(" ")]
            return _list_summary(names, quantity(count, noun, plural), count)
    if output.name == "task" and not output.is_error:
        report = output.text.partition("\n\n")[2].strip()  # what the subagent said last
        lines = report.splitlines()[:1] or lines
    if output.is_error:
        more = f" (+{quantity(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
        return lines[0] + more
    return lines[0] if len(lines) == 1 else quantity(len(lines), "line")


def _command_summary(output: list[str], how: str, command: str, *, failed: bool) -> str:
    last = output[-1].strip() if output else ""
    if last in ("", "(no output)"):
        return f"{how} · no output" if failed else "no output"
    program = "" if failed or len(output) == 1 else last_program(command)
    if program in _TEXT:
        return quantity(len(output), "line")
    if program in _LISTING:
        return _list_summary(output, quantity(len(output), "line"), len(output))
    more = f" ({quantity(len(output), 'line')})" if len(output) > 1 else ""
    return f"{how} · {last}{more}" if failed else f"{last}{more}"


def _list_summary(names: list[str], count: str, total: int) -> str:
    """Return how many entries a list has, and the first of them if they are short."""
    shown: list[str] = []
    for name in map(str.strip, names):
        long = len(name) > _ENTRY_LENGTH or len(", ".join([*shown, name])) > _LIST_LENGTH
        if long or name.startswith("[…"):
            break
        shown.append(name)
    if not shown:
        return count
    return f"{count}: {', '.join(shown)}{', …' if len(shown) < total else ''}"


def last_program(command: str) -> str:
    """Return the last program that a command line runs: `ls`, or `git log` with its subcommand."""
    words: list[str] = []
    for line in command.strip().splitlines()[-1:]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            words = list(lexer)
        except ValueError:  # a quotation that does not end
            return ""
    last = max((at for at, word in enumerate(words) if word in _SEPARATORS), default=-1)
    program, *rest = words[last + 1 :] or [""]
    name = program.rpartition("/")[2]
    return f"git {rest[0]}" if name == "git" and rest else name


def result_diff(output: ToolOutput) -> str:
    """Return the diff in the data of a result; empty if there is none."""
    diff: Any = output.data.get("diff") if isinstance(output.data, dict) else None
    return diff if isinstance(diff, str) and not output.is_error else ""


def count_changed_lines(diff: str) -> tuple[int, int]:
    """Return how many lines a diff adds and removes."""
    added = taken = 0
    for line in diff.splitlines():
        if line.startswith("+") and not line.startswith("+++"):
            added += 1
        elif line.startswith("-") and not line.startswith("---"):
            taken += 1
    return added, taken


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """Return the lines of a diff, each with its kind: added, removed, place, muted or plain."""
    lines = []
    for line in diff.rstrip("\n").split("\n"):
        is_header = line.startswith(("+++ ", "--- "))
        lines.append((line, "muted" if is_header else _DIFF_KINDS.get(line[:1], "")))
    return lines


def as_json(value: Any) -> str:
    """Return compact JSON of any value."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # half of a surrogate pair: only the slower one writes it out
        import json

        return json.dumps(value, default=str, separators=(",", ":"))
