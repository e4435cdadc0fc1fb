"""What a call is about and how it came out, in one line each. Pure; nothing is neutral yet."""

import re
import shlex
from typing import Any

from bridle.messages import ToolCall, ToolOutput
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.text import as_json, quantity

_SUBJECTS = ("command", "pattern", "path", "query", "url", "name", "question", "description")
_COUNTS = {  # where the results of tools that list say how many, and of what
    "list": ("entries", "entry", "entries"),
    "glob": ("count", "file", "files"),
}
_TELLING = ("edit", "write")  # their first line says what was done
_PATCHED = re.compile(r"^(?:\+\+\+|---) (?:[ab]/)?([^\t\n]+)", re.MULTILINE)
_NAMES = ("dir", "fd", "find", "git ls-files", "git branch", "git tag", "ls")
_TEXT = (  # programs whose last line says no more than any other
    *("cat", "cut", "du", "env", "grep", "head", "history", "jq", "printenv", "ps", "rg", "sed"),
    *("sort", "tree", "uniq"),
    *("git diff", "git grep", "git log", "git show", "git stash", "git status"),
)
_SIZE = re.compile(r"  [\d.]+ [KMGT]?B$")  # behind the name of a file that is listed
_SEPARATORS = ("|", "|&", "||", "&&", ";", "&")
_NAMED, _NAME = 60, 40  # characters of the entries of a list that are shown, and of one


def subject_of(call: ToolCall) -> str:
    """What a call is about: its command, its path, its pattern; else its arguments as JSON."""
    arguments = call.arguments
    if isinstance(todos := arguments.get("todos"), list):
        return quantity(len(todos), "item")
    if isinstance(patch := arguments.get("patch"), str) and (names := _patched(patch)):
        return names
    if isinstance(plan := arguments.get("plan"), str) and plan.strip():
        return plan.strip().partition("\n")[0]
    for name in (*_SUBJECTS, "prompt"):
        if isinstance(found := arguments.get(name), str) and found:
            where = arguments.get("path") if name == "pattern" else None
            return f"{found} in {where}" if isinstance(where, str) and where else found
    return as_json(arguments) if arguments else ""


def command_of(call: ToolCall) -> str:
    """A command whose subject line cannot show it whole."""
    command = call.arguments.get("command")
    return command if isinstance(command, str) and ("\n" in command or len(command) > 60) else ""


def _patched(patch: str) -> str:
    names = (name.strip() for name in _PATCHED.findall(patch))
    return ", ".join(dict.fromkeys(name for name in names if name != "/dev/null"))


def gist(output: ToolOutput, command: str = "") -> str:
    """The one line of a result that says most: what went wrong, or the end, or how much came.

    `command` is what a shell ran: of what only lists, the end says nothing.
    """
    lines = [line for line in output.text.splitlines() if line.strip()]
    data: Any = output.data if output.name == "shell" and isinstance(output.data, dict) else {}
    if data.get("job"):
        return f"runs in the background as {data['job']}"
    if not lines:
        return "no output"
    if output.name == "todo_write" and not output.is_error:
        return ""  # the list stands beside, and its length before
    if output.name in _TELLING and not output.is_error:
        return lines[0].removesuffix(":")
    if "exit_code" in data:  # notes follow the output; the first one says how the command ended
        said = [line for line in str(data.get("output", "")).splitlines() if line.strip()]
        if notes := lines[len(said) or 1 :]:
            return _command_gist(said, notes[0].strip("[]"), command, failed=output.is_error)
    if output.name == "shell" and lines[-1].startswith("["):
        return _command_gist(lines[:-1], lines[-1].strip("[]"), command, failed=output.is_error)
    if output.name in _COUNTS and not output.is_error and isinstance(output.data, dict):
        key, noun, plural = _COUNTS[output.name]
        count = output.data.get(key)
        if isinstance(count, int) and count > 0:
            names = [_SIZE.sub("", line) for line in lines if not line.startswith(" ")]
            return _list_gist(names, quantity(count, noun, plural), count)
    if output.name == "task" and not output.is_error:
        report = output.text.partition("\n\n")[2].strip()  # what the subagent said last
        lines = report.splitlines()[:1] or lines
    if output.is_error:
        more = f" (+{quantity(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
        return lines[0] + more
    return lines[0] if len(lines) == 1 else quantity(len(lines), "line")


def _command_gist(output: list[str], how: str, command: str, *, failed: bool) -> str:
    last = output[-1].strip() if output else ""
    if last in ("", "(no output)"):
        return f"{how} · no output" if failed else "no output"
    program = "" if failed or len(output) == 1 else program_of(command)
    if program in _TEXT:
        return quantity(len(output), "line")
    if program in _NAMES:
        return _list_gist(output, quantity(len(output), "line"), len(output))
    more = f" ({quantity(len(output), 'line')})" if len(output) > 1 else ""
    return f"{how} · {last}{more}" if failed else f"{last}{more}"


def _list_gist(names: list[str], count: str, total: int) -> str:
    """How many entries a list has, and the first of them if they are short."""
    shown: list[str] = []
    for name in map(str.strip, names):
        long = len(name) > _NAME or len(", ".join([*shown, name])) > _NAMED
        if long or name.startswith("[…"):
            break
        shown.append(name)
    if not shown:
        return count
    return f"{count}: {', '.join(shown)}{', …' if len(shown) < total else ''}"


def program_of(command: str) -> str:
    """The last program that a command line runs: `ls`, or `git log` with its subcommand."""
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


def diff_of(output: ToolOutput) -> str:
    """The diff that a result carries for the faces."""
    found: Any = output.data.get("diff") if isinstance(output.data, dict) else None
    return found if isinstance(found, str) and not output.is_error else ""


def changed_lines(diff: str) -> tuple[int, int]:
    """How many lines a diff adds and takes away."""
    added = taken = 0
    for line in diff.splitlines():
        if line.startswith("+") and not line.startswith("+++"):
            added += 1
        elif line.startswith("-") and not line.startswith("---"):
            taken += 1
    return added, taken


def cost_of(metrics: ExecutionMetrics) -> str:
    """Dollars; what has no known price is said to be unknown, never left out."""
    return format_cost(metrics.cost, unpriced=metrics.unpriced)


def short_number(count: int) -> str:
    """`812`, `12.4k`, `1.2M`."""
    if count < 1000:
        return str(count)
    if count < 999_950:
        return f"{count / 1000:.1f}k".replace(".0k", "k")
    return f"{count / 1_000_000:.1f}M".replace(".0M", "M")


def tokens(count: int) -> str:
    """`1 token`, `12.4k tokens`."""
    return quantity(count, "token", shown=short_number(count))


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `1 h 5 min`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
