"""What a call is about, how it came out, and what happened to a session, in one line each. Pure.

The terminal screen and the plain output of the command line both show these labels and notices.
They may hold control characters: whoever shows them makes them harmless. Imports no Textual.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Any

from bridle.events import (
    ChildEnded,
    ChildOf,
    Compacted,
    Event,
    FilesChanged,
    Forked,
    GrantRevoked,
    ModeChanged,
    PromptWithdrawn,
    Repaired,
    ReplyDiscarded,
    ResponseCompleted,
    Rewound,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
    ToolCallStarted,
    TraceEvent,
    TurnEnded,
    TurnParked,
    Undone,
    UnknownEvent,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.tui.blocks import Notice, Tone
from bridle.usage import ExecutionMetrics, format_cost
from bridle.workspace.event_text import as_json
from bridle.workspace.text import is_cache, one_line, quantity

_SUBJECTS = ("command", "pattern", "path", "query", "url", "name", "question", "description")
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
_LIST_LENGTH, _ENTRY_LENGTH = 60, 40  # characters of a list of names, and of a name in it

_FILES = 6  # files that are named
_LINES = 3  # damaged lines, and files that undo does not cover, that have a notice of their own
_CHANGED = 300  # characters of what a hook changed an argument or a prompt to
_HOW = {"added": " (new)", "deleted": " (deleted)"}
_MESSAGES = (  # kinds of traces whose message is for the user
    *("unknown_call", "letter_refused", "guarded_change", "reply_limit"),
    *("new_conversation", "stale_resume", "notice", "ungated", "not_stopped"),  # of other agents
)
ENDS_RETRY = (  # events after which it is clear whether retrying a request has worked
    *(TextDelta, ThinkingDelta, ToolCallStarted, ToolCallReady, ResponseCompleted),
    *(ReplyDiscarded, TurnEnded),
)
_SUBAGENT_ENDS = {  # how a subagent ended, if its reason does not say so by itself
    "budget": "stopped at a limit",
    "interrupted": "stopped",
    "max_tokens": "stopped: its reply was cut off",
    "parked": "needs approval",
    "stuck": "stopped: it made no progress",
    "timeout": "stopped at its time limit",
}
_READING = ("read", "glob", "grep", "list")  # an agent may run these without asking
_HOOKED = {"after_tool": "objects", "after_turn": "objects"}  # too late for a refusal


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
        if isinstance(value := arguments.get(name), str) and value:
            path = arguments.get("path") if name == "pattern" else None
            return f"{value} in {path}" if isinstance(path, str) and path else value
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
    if output.name in _FIRST_LINE and not output.is_error:
        return lines[0].removesuffix(":")
    if "exit_code" in data:  # notes follow the output; the first one says how the command ended
        printed = [line for line in str(data.get("output", "")).splitlines() if line.strip()]
        if notes := lines[len(printed) or 1 :]:
            return _command_gist(printed, notes[0].strip("[]"), command, failed=output.is_error)
    if output.name == "shell" and lines[-1].startswith("["):  # a failed call has no data
        endings = (at for at in range(len(lines) - 1, -1, -1) if _ENDING.match(lines[at]))
        end = next(endings, len(lines) - 1)
        return _command_gist(lines[:end], lines[end].strip("[]"), command, failed=output.is_error)
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
    if program in _LISTING:
        return _list_gist(output, quantity(len(output), "line"), len(output))
    more = f" ({quantity(len(output), 'line')})" if len(output) > 1 else ""
    return f"{how} · {last}{more}" if failed else f"{last}{more}"


def _list_gist(names: list[str], count: str, total: int) -> str:
    """How many entries a list has, and the first of them if they are short."""
    shown: list[str] = []
    for name in map(str.strip, names):
        long = len(name) > _ENTRY_LENGTH or len(", ".join([*shown, name])) > _LIST_LENGTH
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
    """Return the diff in the data of a result; empty if there is none."""
    diff: Any = output.data.get("diff") if isinstance(output.data, dict) else None
    return diff if isinstance(diff, str) and not output.is_error else ""


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


def notices_of(event: Event, me: str = "me") -> tuple[Notice, ...]:
    """Return the notices for an event, most often one or none.

    `me` is the person who reads them, who is not named.
    """
    by = _by(event, me)
    match event:
        case Repaired():
            return _repair_notices(event)
        case Forked():
            origin = f"forked from {event.session_id} at #{event.at}"
            notice = Notice(f"{origin}; the original is unchanged", "⑂")
        case Compacted():
            notice = Notice(_compaction(event), "⇣")
        case TurnParked():
            waits = quantity(len(event.calls) or 1, "answer")
            notice = Notice(f"parked: the turn waits for {waits}", "■", "warn")
        case ModeChanged():
            why = f" ({event.reason})" if event.reason else ""
            notice = Notice(f"Mode: {event.mode}{why}", "◆", "warn")
        case ChildOf():
            notice = Notice(f"subagent of session {event.parent}", "↳")
        case ChildEnded():
            mark = "✓" if event.reason == "done" else "✗"
            cost = cost_of(event.metrics)
            how = _SUBAGENT_ENDS.get(event.reason, event.reason)
            notice = Notice(f"task {how} · {cost} (session {event.session_id})", mark)
        case Undone():
            files = f"{quantity(len(event.files), 'file')} put back: {_first_names(event.files)}"
            notice = Notice(f"turn {event.turn} was undone{by}: {files}", "↶", "warn")
        case GrantRevoked():
            what = "one approval" if event.grant else "all approvals"
            notice = Notice(f"{what} for the session revoked{by}", "✗")
        case PromptWithdrawn():
            notice = Notice(f"a queued prompt was withdrawn{by}", "✗")
        case UnknownEvent():
            kind = str(event.data.get("type", ""))[:40] or "no name"
            notice = Notice(f"a record that this version does not know: {kind}")
        case TraceEvent():
            return _trace_notices(event)
        case ReplyDiscarded():  # the row of the retry says why
            notice = Notice("the reply above broke off and is discarded", "✗", "warn")
        case _:
            return ()
    return (notice,)


def taken_back(event: Rewound, prompts: Sequence[str] = (), me: str = "me") -> Notice:
    """Return the notice of a rewind, with the `prompts` that it took back if they are known."""
    by = _by(event, me)
    if prompts:
        what = f"“{one_line(prompts[0], 60)}”"
        more = f" and {quantity(len(prompts) - 1, 'prompt')} after it" if len(prompts) > 1 else ""
        text = f"taken back{by}: {what}{more}"
    else:
        text = f"taken back to {f'#{event.to}' if event.to else 'its beginning'}{by}"
    return Notice(f"{text}; what was done in files and commands stays", "↶", "warn")


def files_notices(event: FilesChanged, *, is_named: bool) -> tuple[Notice, ...]:
    """Return notices of the files that a call changed, and of those that undo does not cover.

    `is_named`: the result of the call names the files that it changed.
    """
    notices = []
    files = [file for file in event.files if not is_cache(file.path)]
    if files and not is_named:
        names = [f"{file.path}{_HOW.get(file.how, '')}" for file in files]
        count = quantity(len(names), "file")
        notices.append(Notice(f"{count} changed: {_first_names(names)}", "±"))
    for reason in event.uncovered[:_LINES]:
        notices.append(Notice(f"undo does not cover it: {reason}", "!"))
    if (more := len(event.uncovered) - _LINES) > 0:
        notices.append(Notice(f"undo does not cover {more:,} more", "!"))
    return tuple(notices)


def _trace_notices(event: TraceEvent) -> tuple[Notice, ...]:
    """Return the notice of a trace that the user should see."""
    detail: dict[str, Any] = event.detail if isinstance(event.detail, dict) else {}
    error = _error_of(detail)
    if event.kind == "retry":
        seconds, attempt = detail.get("seconds"), detail.get("attempt")
        wait = f" in {seconds_words(seconds)}" if isinstance(seconds, int | float) else ""
        which = f", attempt {attempt}" if isinstance(attempt, int) else ""
        why = f"{error}. " if error else ""
        return (Notice(f"{why}Retrying{wait}{which}…", "↻", "warn"),)
    if event.kind == "fallback":
        model = detail.get("to", "another model")
        return (Notice(f"{error}; asking {model}", "↻", "warn"),)
    if event.kind == "hook":
        return _hook_notices(detail)
    if event.kind == "ungated_call" and detail.get("name") not in _READING:
        return (Notice(f"{detail.get('name', 'a tool')} ran without asking", "!", "warn"),)
    if event.kind in _MESSAGES and detail.get("message"):
        return (Notice(str(detail["message"]), "!", "warn"),)
    return ()


def retry_outcome(retry: TraceEvent, event: Event) -> Notice:
    """Return what became of the attempt that `retry` announced; `event` came after it."""
    detail: dict[str, Any] = retry.detail if isinstance(retry.detail, dict) else {}
    error, attempt = _error_of(detail), detail.get("attempt")
    tone: Tone = "dim"
    if not isinstance(event, TurnEnded):
        which = f"Attempt {attempt}" if isinstance(attempt, int) else "The next attempt"
        outcome = f"{which} got through."
    elif event.reason == "interrupted":
        outcome, tone = "Stopped while waiting to retry.", "warn"
    else:
        many = f" after {quantity(attempt, 'attempt')}" if isinstance(attempt, int) else ""
        outcome, tone = f"Gave up{many}.", "bad"
    why = f"{error}. " if error else ""
    return Notice(f"{why}{outcome}", "↻", tone)


def _error_of(detail: dict[str, Any]) -> str:
    """Return the error of a trace, without its advice."""
    return str(detail.get("error", "")).partition(". ")[0].removesuffix(".")


def seconds_words(seconds: float) -> str:
    """`0.5 s`, `12 s`."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _hook_notices(detail: dict[str, Any]) -> tuple[Notice, ...]:
    """Return the notice of what a hook said, refused or changed."""
    parts = []
    if deny := detail.get("deny"):
        parts.append(f"{_HOOKED.get(str(detail.get('moment')), 'refused')}: {deny}")
    if word := detail.get("word"):
        parts.append(f"says: {word}")
    for name in ("arguments", "prompt"):
        if (value := detail.get(name)) is not None:
            parts.append(f"changed the {name} to {one_line(as_json(value), _CHANGED)}")
    if not parts:
        return ()
    tool = f" ({detail['tool']})" if detail.get("tool") else ""
    tone: Tone = "bad" if deny else "dim"
    return (Notice(f"a hook{tool} {'; '.join(parts)}", "⚑", tone),)


def _by(event: Event, me: str) -> str:
    """Return who did it, unless it was `me`, who reads it."""
    name = getattr(event, "by", "me")
    return "" if name in ("me", me) else f" by {name}"


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FILES:,} more" if len(names) > _FILES else ""
    return ", ".join(names[:_FILES]) + more


def _compaction(event: Compacted) -> str:
    parts = []
    if event.dropped:
        became = " became a summary" if event.summary else " left out"
        parts.append(f"{quantity(event.dropped, 'message')}{became}")
    if event.shortened:
        parts.append(f"{quantity(event.shortened, 'long output')} cut")
    before = quantity(event.before, "token")
    size = f" (about {before} before, {event.after:,} now)" if event.before else ""
    return f"shortened for the model: {', '.join(parts) or 'nothing'}{size}; the log keeps it all"


def _repair_notices(event: Repaired) -> tuple[Notice, ...]:
    texts = []
    if event.torn:
        texts.append(f"the end of the log was torn: {quantity(event.torn, 'byte')} cut off")
    for line in event.broken[:_LINES]:
        why = f" ({line.why})" if line.why else ""
        texts.append(f"a line after #{line.after} was damaged{why} and is skipped")
    if len(event.broken) > _LINES:
        more = len(event.broken) - _LINES
        are = "is" if more == 1 else "are"
        texts.append(f"and {quantity(more, 'more damaged line')} {are} skipped")
    return tuple(Notice(text, "!", "bad") for text in texts)
