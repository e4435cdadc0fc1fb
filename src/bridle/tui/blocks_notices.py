"""What changed a session itself, or its folder, as a notice: forks, modes, files, tasks … Pure.

The sentences of every face at a terminal: the screen draws them, `cli/milestone.py` paints them.
They are not neutral yet. Imports no Textual.
"""

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
from bridle.tui.blocks import Notice, Tone
from bridle.tui.blocks_words import cost_of
from bridle.workspace.text import as_json, is_cache, one_line, quantity

_FILES = 6  # files that are told by name
_LINES = 3  # damaged lines, and files that undo does not cover, that are told one by one
_CHANGED = 300  # characters of what a hook made of something
_HOW = {"added": " (new)", "deleted": " (deleted)"}
_TOLD = (  # their message is for a person
    *("unknown_call", "letter_refused", "guarded_change", "reply_limit"),
    *("new_conversation", "stale_resume", "notice", "ungated", "not_stopped"),  # of other agents
)
ENDS_RETRY = (  # events after which the attempts of a request have come to something
    *(TextDelta, ThinkingDelta, ToolCallStarted, ToolCallReady, ResponseCompleted),
    *(ReplyDiscarded, TurnEnded),
)
_LOOKING = ("read", "glob", "grep", "list")  # nobody minds where an agent does not ask for these
_HOOKED = {"after_tool": "objects", "after_turn": "objects"}  # it has happened: no refusal any more


def notices_of(event: Event, me: str = "me") -> tuple[Notice, ...]:
    """The notices for it, most often one or none. `me` is whose deeds need no name."""
    if isinstance(event, Repaired):
        return _repaired(event)
    found = _notice(event, me)
    return () if found is None else (found,)


def _notice(event: Event, me: str) -> Notice | None:
    match event:
        case Forked():
            said = f"forked from {event.session_id} at #{event.at}; that session goes its own way"
            return Notice(said, "⑂")
        case Compacted():
            return Notice(_shortened(event), "⇣")
        case TurnParked():
            waits = quantity(len(event.calls) or 1, "answer")
            return Notice(f"parked: the turn waits for {waits}", "■", "warn")
        case ModeChanged():
            why = f" ({event.reason})" if event.reason else ""
            return Notice(f"Mode: {event.mode}{why}", "◆", "warn")
        case ChildOf():
            return Notice(f"a task of session {event.parent}", "↳")
        case ChildEnded():
            mark = "✓" if event.reason == "done" else "✗"
            cost = cost_of(event.metrics)
            return Notice(f"task {event.reason} · {cost} (session {event.session_id})", mark)
        case _:
            return _done_by_hand(event, _by(event, me))


def _done_by_hand(event: Event, by: str) -> Notice | None:
    match event:
        case Undone():
            files = f"{quantity(len(event.files), 'file')} put back: {_some(event.files)}"
            return Notice(f"turn {event.turn} was undone{by}: {files}", "↶", "warn")
        case GrantRevoked():
            what = "a yes for the session was" if event.grant else "every yes for the session was"
            return Notice(f"{what} taken back{by}", "✗")
        case PromptWithdrawn():
            return Notice(f"a prompt that waited was taken back{by}", "✗")
        case UnknownEvent():
            kind = str(event.data.get("type", ""))[:40] or "no name"
            return Notice(f"a record of a kind that this version does not know: {kind}")
        case TraceEvent():
            return _trace(event)
        case ReplyDiscarded():  # the row of the retry says why
            return Notice("the reply above broke off and is discarded", "✗", "warn")
        case _:
            return None


def taken_back(event: Rewound, prompts: Sequence[str] = (), me: str = "me") -> Notice:
    """The conversation went back; what was asked since, where it is known, is gone from it."""
    by = _by(event, me)
    if prompts:
        what = f"“{one_line(prompts[0], 60)}”"
        more = f" and {quantity(len(prompts) - 1, 'prompt')} after it" if len(prompts) > 1 else ""
        said = f"taken back{by}: {what}{more}"
    else:
        said = f"taken back to {f'#{event.to}' if event.to else 'its beginning'}{by}"
    return Notice(f"{said}; what was done in files and commands stays", "↶", "warn")


def files_notices(event: FilesChanged, *, told: bool) -> tuple[Notice, ...]:
    """The files that a call changed, unless its result tells them, and what undo does not keep."""
    found = []
    files = [one for one in event.files if not is_cache(one.path)]
    if files and not told:
        names = [f"{one.path}{_HOW.get(one.how, '')}" for one in files]
        found.append(Notice(f"{quantity(len(names), 'file')} changed: {_some(names)}", "±"))
    for words in event.uncovered[:_LINES]:
        found.append(Notice(f"undo does not cover it: {words}", "!"))
    if (more := len(event.uncovered) - _LINES) > 0:
        found.append(Notice(f"undo does not cover {more:,} more", "!"))
    return tuple(found)


def _trace(event: TraceEvent) -> Notice | None:
    """The traces that a person should see."""
    detail: dict[str, Any] = event.detail if isinstance(event.detail, dict) else {}
    why = _reason(detail)
    if event.kind == "retry":
        seconds, attempt = detail.get("seconds"), detail.get("attempt")
        wait = f" in {seconds_words(seconds)}" if isinstance(seconds, int | float) else ""
        which = f", attempt {attempt}" if isinstance(attempt, int) else ""
        return Notice(f"{f'{why}. ' if why else ''}Retrying{wait}{which}…", "↻", "warn")
    if event.kind == "fallback":
        return Notice(f"{why}; asking {detail.get('to', 'another model')}", "↻", "warn")
    if event.kind == "hook":
        return _hook(detail)
    if event.kind == "ungated_call" and detail.get("name") not in _LOOKING:
        return Notice(f"{detail.get('name', 'a tool')} ran without asking", "!", "warn")
    if event.kind in _TOLD and detail.get("message"):
        return Notice(str(detail["message"]), "!", "warn")
    return None


def retry_outcome(retry: TraceEvent, event: Event) -> Notice:
    """What became of a request whose last attempt `retry` announced; `event` came after it."""
    detail: dict[str, Any] = retry.detail if isinstance(retry.detail, dict) else {}
    why, attempt = _reason(detail), detail.get("attempt")
    tone: Tone = "dim"
    if not isinstance(event, TurnEnded):
        which = f"Attempt {attempt}" if isinstance(attempt, int) else "The next attempt"
        outcome = f"{which} got through."
    elif event.reason == "interrupted":
        outcome, tone = "Stopped while waiting to retry.", "warn"
    else:
        many = f" after {quantity(attempt, 'attempt')}" if isinstance(attempt, int) else ""
        outcome, tone = f"Gave up{many}.", "bad"
    return Notice(f"{f'{why}. ' if why else ''}{outcome}", "↻", tone)


def _reason(detail: dict[str, Any]) -> str:
    """The error of a trace, without its advice."""
    return str(detail.get("error", "")).partition(". ")[0].removesuffix(".")


def seconds_words(seconds: float) -> str:
    """A wait, as short as it can be said."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _hook(detail: dict[str, Any]) -> Notice | None:
    """What a hook said, refused or changed."""
    said = []
    if deny := detail.get("deny"):
        said.append(f"{_HOOKED.get(str(detail.get('moment')), 'refused')}: {deny}")
    if word := detail.get("word"):
        said.append(f"says: {word}")
    for name in ("arguments", "prompt"):
        if (now := detail.get(name)) is not None:
            said.append(f"changed the {name} to {one_line(as_json(now), _CHANGED)}")
    tool = f" ({detail['tool']})" if detail.get("tool") else ""
    tone: Tone = "bad" if deny else "dim"
    return Notice(f"a hook{tool} {'; '.join(said)}", "⚓", tone) if said else None


def _by(event: Event, me: str) -> str:
    """Who did it, unless it was the person who reads it."""
    who = getattr(event, "by", "me")
    return "" if who in ("me", me) else f" by {who}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FILES:,} more" if len(names) > _FILES else ""
    return ", ".join(names[:_FILES]) + more


def _shortened(event: Compacted) -> str:
    parts = []
    if event.dropped:
        became = " became a summary" if event.summary else " left out"
        parts.append(f"{quantity(event.dropped, 'message')}{became}")
    if event.shortened:
        parts.append(f"{quantity(event.shortened, 'long output')} cut")
    before = quantity(event.before, "token")
    size = f" (about {before} before, {event.after:,} now)" if event.before else ""
    return f"shortened for the model: {', '.join(parts) or 'nothing'}{size}; the log keeps it all"


def _repaired(event: Repaired) -> tuple[Notice, ...]:
    said = []
    if event.torn:
        said.append(f"the end of the log was torn: {quantity(event.torn, 'byte')} cut off")
    for line in event.broken[:_LINES]:
        why = f" ({line.why})" if line.why else ""
        said.append(f"a line after #{line.after} was damaged{why} and is passed over")
    if len(event.broken) > _LINES:
        more = len(event.broken) - _LINES
        are = "is" if more == 1 else "are"
        said.append(f"and {quantity(more, 'more damaged line')} {are} passed over")
    return tuple(Notice(one, "!", "bad") for one in said)
