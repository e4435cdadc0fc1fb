"""What changed a session itself, or its folder: forks, rewinds, modes, files, tasks … Pure.

One line each, for the story of a log and for a screen that is live. The sentences are those of
`tui/blocks_notices.py`; here they are made harmless and painted.
"""

from collections.abc import Callable

from bridle.cli.render import one_line
from bridle.cli.style import Paint, cut
from bridle.cli.wrap import wrapped
from bridle.events import (
    ChildEnded,
    ChildStarted,
    Event,
    FilesChanged,
    Rewound,
    TraceEvent,
    TurnParked,
    UnknownEvent,
)
from bridle.tui.blocks import Notice
from bridle.tui.blocks_notices import files_notices, notices_of, retry_outcome, taken_back

_TASK = 60  # characters of a task
_SPEAKING = ("write", "edit", "apply_patch")  # their results say which files they changed


def milestones(
    event: Event,
    paint: Paint,
    call_of: Callable[[str], str] = lambda _: "",
    me: str = "me",
) -> list[str]:
    """The lines for it; none for an event that is no milestone.

    `call_of` knows the names of tools by their calls: some say themselves which files they changed.
    `me` is whose deeds need no name.
    """
    match event:
        case TraceEvent():
            return []  # that is `trace_line`'s, which knows the width
        case ChildStarted():
            return [_task(event, paint)]
        case Rewound():
            found: tuple[Notice, ...] = (taken_back(event, me=me),)
        case FilesChanged():
            found = files_notices(event, told=call_of(event.call_id) in _SPEAKING)
        case _:
            found = notices_of(event, me)
    return [_line(event, one, paint) for one in found]


def _line(event: Event, notice: Notice, paint: Paint) -> str:
    said = one_line(notice.text)
    if isinstance(event, TurnParked):
        return f"{paint.yellow(notice.mark)} {said}"
    if isinstance(event, UnknownEvent):
        return paint.dim(f"  {notice.mark} {said}")
    if isinstance(event, ChildEnded):
        colour = paint.green if event.reason == "done" else paint.red
        return f"  {colour(notice.mark)} {paint.dim(said)}"
    if notice.tone == "bad":
        return f"  {paint.red(notice.mark)} {said}"
    return f"  {paint.yellow(notice.mark)} {paint.dim(said)}"


def _task(event: ChildStarted, paint: Paint) -> str:
    """Work that was handed to a session of its own, as a call is shown."""
    by = "" if event.agent in ("", "loop") else f" by {event.agent}"
    what = cut(one_line(event.prompt), _TASK)
    said = one_line(f"{what}{by} (session {event.session_id})")
    return f"  {paint.cyan('▸')} task {paint.dim(said)}"


def trace_line(event: TraceEvent, paint: Paint, width: int) -> str:
    """The traces that a person should see; empty for the rest."""
    found = notices_of(event)
    return _trace_line(found[0], paint, width) if found else ""


def retry_line(retry: TraceEvent, event: Event, paint: Paint, width: int) -> str:
    """What became of a request whose last attempt `retry` announced; `event` came after it."""
    return _trace_line(retry_outcome(retry, event), paint, width)


def _trace_line(notice: Notice, paint: Paint, width: int) -> str:
    mark = paint.red(notice.mark) if notice.tone == "bad" else paint.yellow(notice.mark)
    if notice.mark != "!":
        return f"  {mark} {paint.dim(cut(one_line(notice.text), width - 4))}"
    lines = wrapped(one_line(notice.text), max(20, width - 4)).split("\n")
    return f"  {mark} " + "\n    ".join(lines)  # what has to be known is there whole
