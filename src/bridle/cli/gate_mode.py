"""In which mode the process that holds a session carries it: said in its log, and read from there.

A session has a mode of its own only once somebody has chosen one for it. Until then that of its
process holds, which comes from a flag or the settings and ends with the process: so it is told
beside the conversation, and whoever takes the session up later is not bound by it.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

from bridle.engine.session import Session
from bridle.events import Event, TraceEvent
from bridle.policy import MODES, Mode
from bridle.stores.carrier import newest

_KIND = "gate"
_START = b'"data":{"type":"session_start",'
_TOLD = b'"data":{"type":"event","eventType":"TraceEvent","kind":"gate",'
_USUAL: Mode = "ask"  # what a log that says nothing means


def tell_mode(session: Session) -> None:
    """With the first prompt the log says which mode holds, where it would not say it otherwise."""
    if not session.history.mode and session.mode != _USUAL:
        session.preface(TraceEvent(_KIND, {"mode": session.mode}))


def is_told(event: Event) -> bool:
    """Does that record say it?"""
    return isinstance(event, TraceEvent) and event.kind == _KIND


def told_mode(log: Path) -> Mode:
    """What was told since the session was taken up last."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may be a pipe
        try:
            size = os.fstat(handle).st_size
            since, _ = newest(handle, size, _START)
            _, line = newest(handle, size, _TOLD, since)
        finally:
            os.close(handle)
        found = json.loads(line)["data"]["detail"]["mode"]
        return next((one for one in MODES if one == found), _USUAL)
    return _USUAL
