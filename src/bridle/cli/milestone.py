"""What changed a session itself, or its folder: forks, rewinds, modes, files, tasks … Pure.

One line each, for the story of a log and for a screen that is live.
"""

from collections.abc import Callable, Sequence

from bridle.cli.render import cost_of, counted, one_line
from bridle.cli.style import Paint, cut
from bridle.events import (
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
    Rewound,
    TurnParked,
    Undone,
    UnknownEvent,
)

_MOST = 3  # broken lines that are told one by one
_FILES = 6  # files that are told by name
_TASK = 60  # characters of a task
_SPEAKING = ("write", "edit", "apply_patch")  # their results say which files they changed


def milestones(
    event: Event, paint: Paint, call_of: Callable[[str], str] = lambda _: ""
) -> list[str]:
    """The lines for it; none for an event that is no milestone.

    `call_of` knows the names of tools by their calls: some say themselves which files they changed.
    """
    match event:
        case Forked():
            said = f"forked from {event.session_id} at #{event.at}; that session goes its own way"
            return [_line("⑂", said, paint)]
        case Rewound():
            by = "" if event.by == "me" else f" by {event.by}"
            to = f"#{event.to}" if event.to else "its beginning"
            said = f"taken back to {to}{by}; what was done in files and commands stays done"
            return [_line("↶", said, paint)]
        case Compacted():
            return [_line("⇣", _shortened(event), paint)]
        case Repaired():
            return _repaired(event, paint)
        case TurnParked():
            said = f"parked: the turn waits for {counted(len(event.calls) or 1, 'answer')}"
            return [f"{paint.yellow('■')} {said}"]
        case FilesChanged():
            return _changed(event, paint, call_of(event.call_id) in _SPEAKING)
        case _:
            return _held(event, paint)


def _line(mark: str, said: str, paint: Paint) -> str:
    return f"  {paint.yellow(mark)} {paint.dim(one_line(said))}"


def _changed(event: FilesChanged, paint: Paint, told: bool) -> list[str]:
    """The files that a call changed, unless its result tells them, and what undo does not keep."""
    lines = []
    if event.files and not told:
        names = [f"{one.path}{_HOW.get(one.how, '')}" for one in event.files]
        lines.append(_line("±", f"{counted(len(names), 'file')} changed: {_some(names)}", paint))
    for words in event.uncovered[:_MOST]:
        lines.append(_line("!", f"undo does not cover it: {words}", paint))
    return lines


def _held(event: Event, paint: Paint) -> list[str]:
    """What the person did with what they have in hand: files, modes and grants."""
    match event:
        case Undone():
            count = f"{counted(len(event.files), 'file')} put back"
            said = f"turn {event.turn} was undone{_by(event.by)}: {count}: {_some(event.files)}"
            return [_line("↶", said, paint)]
        case ModeChanged():
            why = f": {event.reason}" if event.reason else ""
            return [_line("◆", f"the mode is {event.mode} from here on{why}", paint)]
        case GrantRevoked():
            what = "a yes for the session was" if event.grant else "every yes for the session was"
            return [_line("✗", f"{what} taken back{_by(event.by)}", paint)]
        case PromptWithdrawn():
            return [_line("✗", f"a prompt that waited was taken back{_by(event.by)}", paint)]
        case UnknownEvent():
            kind = one_line(str(event.data.get("type", "")))[:40] or "no name"
            return [paint.dim(f"  · a record of a kind that this version does not know: {kind}")]
        case _:
            return _child(event, paint)


def _child(event: Event, paint: Paint) -> list[str]:
    """Work that was handed to a session of its own; there, whose it is."""
    match event:
        case ChildOf():
            return [_line("↳", f"a task of session {event.parent}", paint)]
        case ChildStarted():
            by = "" if event.agent in ("", "loop") else f" by {event.agent}"
            what = cut(one_line(event.prompt), _TASK)
            said = one_line(f"{what}{by} (session {event.session_id})")
            return [f"  {paint.cyan('▸')} task {paint.dim(said)}"]
        case ChildEnded():
            good = event.reason == "done"
            mark = paint.green("✓") if good else paint.red("✗")
            said = f"task {event.reason} · {cost_of(event.metrics)} (session {event.session_id})"
            return [f"  {mark} {paint.dim(one_line(said))}"]
        case _:
            return []


_HOW = {"added": " (new)", "deleted": " (deleted)"}


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
    size = f" (about {event.before:,} tokens before, {event.after:,} now)" if event.before else ""
    return f"shortened for the model: {', '.join(parts) or 'nothing'}{size}; the log keeps it all"


def _repaired(event: Repaired, paint: Paint) -> list[str]:
    said = []
    if event.torn:
        said.append(f"the end of the log was torn: {counted(event.torn, 'byte')} cut off")
    for line in event.broken[:_MOST]:
        why = f" ({line.why})" if line.why else ""
        said.append(f"a line after #{line.after} was damaged{why} and is passed over")
    if len(event.broken) > _MOST:
        said.append(f"and {len(event.broken) - _MOST:,} more damaged lines are passed over")
    return [f"  {paint.red('!')} {one_line(line)}" for line in said]
