"""In which mode the process that holds a session carries it: said in its log, and read from there.

A session has a mode of its own only once somebody has chosen one for it. Until then that of its
process holds, which comes from a flag or the settings and ends with the process: so it is told
beside the conversation, and whoever takes the session up later is not bound by it.
"""

import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from bridle.engine.session import Session
from bridle.events import Event, TraceEvent
from bridle.policy import MODES, Mode
from bridle.stores.log_format import iter_lines_backward, record_types

_KIND = "gate"
_START = record_types("session_start")
_OPENING = 1 << 16  # bytes: a start, and what is told with it, are not longer
_USUAL: Mode = "ask"  # what a log that says nothing means


def tell_mode(session: Session) -> None:
    """With the first prompt the log says which mode holds, where it would not say it otherwise."""
    if not session.history.mode and session.mode != _USUAL:
        session.emit_with_first_prompt(TraceEvent(_KIND, {"mode": session.mode}))


def is_told(event: Event) -> bool:
    """Does that record say it?"""
    return isinstance(event, TraceEvent) and event.kind == _KIND


def told_mode(log: Path) -> Mode:
    """What was told when the session was taken up last.

    It stands right behind the start, where nobody but the holder writes: a trace of that name
    further on is somebody's who would like another mode to be shown, a model's or an agent's.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may be a pipe
        try:
            starts = iter_lines_backward(
                partial(os.pread, handle), os.fstat(handle).st_size, _START
            )
            newest = next(starts, None)
            opening = os.pread(handle, _OPENING, newest.offset if newest else 0)
        finally:
            os.close(handle)
        for line in opening.split(b"\n")[1:-1]:
            said = json.loads(line)["data"]
            if said["type"] == "event" and said["kind"] == _KIND:
                found = said["detail"]["mode"]
                return next((one for one in MODES if one == found), _USUAL)
            if said["type"] != "mode":
                break
    return _USUAL
