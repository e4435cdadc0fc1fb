"""What happened to a session, in one line each, and how a turn ended. Pure.

Every interface shows these sentences. They may contain control characters: whoever shows them
makes them harmless.
"""

from collections.abc import Sequence
from typing import Any

from bridle.events import (
    AgentActivity,
    ApprovalAnswered,
    ApprovalAsked,
    ChildEnded,
    ChildOf,
    ChildStarted,
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
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    Undone,
    UnknownEvent,
)
from bridle.presentation.amounts import cost_text, duration
from bridle.presentation.blocks import Notice, Tone
from bridle.presentation.calls import as_json, call_line
from bridle.workspace.text import flat, is_cache, one_line, quantity

_PROGRESS = 160  # characters
NAMES_FILES = ("write", "edit", "apply_patch")  # tools whose results name the files they changed
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
            cost = cost_text(event.metrics)
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


def rewind_notice(event: Rewound, prompts: Sequence[str] = (), me: str = "me") -> Notice:
    """Return the notice of a rewind, with the `prompts` that it took back if they are known."""
    by = _by(event, me)
    if prompts:
        what = f"“{one_line(prompts[0], 60)}”"
        more = f" and {quantity(len(prompts) - 1, 'prompt')} after it" if len(prompts) > 1 else ""
        text = f"taken back{by}: {what}{more}"
    else:
        text = f"taken back to {f'#{event.to}' if event.to else 'its beginning'}{by}"
    return Notice(f"{text}; what was done in files and commands stays", "↶", "warn")


def file_notices(event: FilesChanged, *, is_named: bool) -> tuple[Notice, ...]:
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
        wait = f" in {duration(seconds)}" if isinstance(seconds, int | float) else ""
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


def end_text(end: TurnEnded) -> str:
    """Return why a turn ended, or empty if it is simply done."""
    if end.reason == "done" and not end.detail:
        return ""
    return flat(end.detail) or flat(end.reason)


def progress_text(event: Event) -> str:
    """Return what happens in a turn, for somebody who follows from elsewhere; often empty."""
    match event:
        case ToolCallReady():
            text = call_line(event.call)
        case AgentActivity() if event.tool_name:
            text = f"{event.tool_name}: {event.description}"
        case ApprovalAsked():
            text = f"needs approval: {call_line(event.call)}"
        case ApprovalAnswered():
            text = f"{'allowed' if event.allowed else 'denied'} by {event.by}"
        case ToolResultEvent():
            how = "failed" if event.output.is_error else "done"
            text = f"{event.output.name or 'the call'} {how}"
        case ResponseCompleted():
            text = event.message.content if event.message is not None else ""
        case ChildStarted():
            text = f"task: {event.prompt}"
        case TurnParked():
            text = "the turn is parked: it needs approval"
        case _:
            text = ""
    return one_line(text, _PROGRESS)
