"""What changed a session itself: forks, rewinds, shortenings, repairs, parked turns. Pure.

One line each, for the story of a log and for a screen that is live.
"""

from bridle.cli.render import counted, one_line
from bridle.cli.style import Paint
from bridle.events import Compacted, Event, Forked, Repaired, Rewound, TurnParked, UnknownEvent

_MOST = 3  # broken lines that are told one by one


def milestones(event: Event, paint: Paint) -> list[str]:
    """The lines for it; none for an event that is no milestone."""
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
        case UnknownEvent():
            kind = one_line(str(event.data.get("type", "")))[:40] or "no name"
            return [paint.dim(f"  · a record of a kind that this version does not know: {kind}")]
        case _:
            return []


def _line(mark: str, said: str, paint: Paint) -> str:
    return f"  {paint.yellow(mark)} {paint.dim(one_line(said))}"


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
