"""What changed a session itself, or its folder, as a notice: forks, modes, files, tasks … Pure."""

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
    Rewound,
    TraceEvent,
    TurnParked,
    Undone,
    UnknownEvent,
)
from bridle.tui.blocks import Notice
from bridle.tui.blocks_words import cost_of, counted
from bridle.workspace.text import one_line

_FILES = 6  # files that are told by name
_HOW = {"added": " (new)", "deleted": " (deleted)"}
_TOLD = (  # their message is for a person
    *("unknown_call", "letter_refused", "guarded_change"),
    *("new_conversation", "stale_resume", "notice", "ungated", "not_stopped"),  # of other agents
)
_LOOKING = ("read", "glob", "grep", "list")  # nobody minds where an agent does not ask for these


def notice_of(event: Event) -> Notice | None:
    """The notice for it; None where there is nothing to say."""
    match event:
        case Forked():
            return Notice(f"forked from {event.session_id} at #{event.at}", "⑂")
        case Compacted():
            return Notice(_shortened(event), "⇣")
        case Repaired():
            return Notice(_repaired(event), "!", "bad")
        case TurnParked():
            waits = counted(len(event.calls) or 1, "answer")
            return Notice(f"parked: the turn waits for {waits}", "■", "warn")
        case ModeChanged():
            why = f": {event.reason}" if event.reason else ""
            return Notice(f"the mode is {event.mode} from here on{why}", "◆", "warn")
        case _:
            return _done_by_hand(event)


def _done_by_hand(event: Event) -> Notice | None:
    match event:
        case Undone():
            files = f"{counted(len(event.files), 'file')} put back: {_some(event.files)}"
            return Notice(f"turn {event.turn} was undone{_by(event.by)}: {files}", "↶", "warn")
        case GrantRevoked():
            what = "a yes for the session was" if event.grant else "every yes for the session was"
            return Notice(f"{what} taken back{_by(event.by)}", "✗")
        case PromptWithdrawn():
            return Notice(f"a prompt that waited was taken back{_by(event.by)}", "✗")
        case ChildOf():
            return Notice(f"a task of session {event.parent}", "↳")
        case ChildEnded():
            return Notice(f"task {event.reason} · {cost_of(event.metrics)}", "↳")
        case UnknownEvent():
            kind = str(event.data.get("type", ""))[:40] or "no name"
            return Notice(f"a record of a kind that this version does not know: {kind}")
        case TraceEvent():
            return _trace(event)
        case _:
            return None


def taken_back(event: Rewound, prompts: Sequence[str]) -> Notice:
    """The conversation went back; what was asked since is gone from it."""
    to = f"to #{event.to}" if event.to else "to its beginning"
    what = f"“{one_line(prompts[0], 60)}”" if prompts else ""
    if len(prompts) > 1:
        what += f" and {counted(len(prompts) - 1, 'prompt')} after it"
    said = f"taken back{_by(event.by)}: {what or to}; what was done in files stays done"
    return Notice(said, "↶", "warn")


def files_notice(event: FilesChanged, *, told: bool) -> Notice | None:
    """The files that a call changed, unless its result tells them, and what undo does not keep."""
    said = []
    if event.files and not told:
        names = [f"{one.path}{_HOW.get(one.how, '')}" for one in event.files]
        said.append(f"{counted(len(names), 'file')} changed: {_some(names)}")
    if event.uncovered:
        said.append(f"undo does not cover: {_some(event.uncovered)}")
    return Notice("; ".join(said), "±") if said else None


def _trace(event: TraceEvent) -> Notice | None:
    """The traces that a person should see."""
    detail: dict[str, Any] = event.detail if isinstance(event.detail, dict) else {}
    why = str(detail.get("error", "")).partition(". ")[0].removesuffix(".")
    if event.kind == "retry":
        seconds = detail.get("seconds")
        wait = f" in {seconds:.1f} s" if isinstance(seconds, int | float) else ""
        return Notice(f"{why}; trying again{wait}", "↻", "warn")
    if event.kind == "fallback":
        return Notice(f"{why}; asking {detail.get('to', 'another model')}", "↻", "warn")
    if event.kind == "hook":
        return _hook(detail)
    if event.kind == "ungated_call" and detail.get("name") not in _LOOKING:
        return Notice(f"{detail.get('name', 'a tool')} ran without asking", "!", "warn")
    if event.kind in _TOLD and detail.get("message"):
        return Notice(str(detail["message"]), "!", "warn")
    return None


def _hook(detail: dict[str, Any]) -> Notice | None:
    tool = f" ({detail['tool']})" if detail.get("tool") else ""
    if deny := detail.get("deny"):
        return Notice(f"a hook{tool} refused: {deny}", "⚓", "bad")
    if word := detail.get("word"):
        return Notice(f"a hook{tool} says: {word}", "⚓")
    changed = [name for name in ("arguments", "prompt") if detail.get(name) is not None]
    return Notice(f"a hook{tool} changed the {' and '.join(changed)}", "⚓") if changed else None


def _by(who: str) -> str:
    return "" if who == "me" else f" by {who}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FILES:,} more" if len(names) > _FILES else ""
    return ", ".join(names[:_FILES]) + more


def _shortened(event: Compacted) -> str:
    parts = []
    if event.dropped:
        became = " became a summary" if event.summary else " left out"
        parts.append(f"{counted(event.dropped, 'message')}{became}")
    if event.shortened:
        parts.append(f"{counted(event.shortened, 'long output')} cut")
    return f"shortened for the model: {', '.join(parts) or 'nothing'}; the log keeps it all"


def _repaired(event: Repaired) -> str:
    said = []
    if event.torn:
        said.append(f"the end of the log was torn: {counted(event.torn, 'byte')} cut off")
    if event.broken:
        said.append(f"{counted(len(event.broken), 'damaged line')} passed over")
    return "; ".join(said) or "the log was repaired"
