"""Record the permission mode of the process that owns a session, for other processes.

A session has a mode of its own only once somebody has chosen one for it. Until then it has the mode
of its process, which comes from a flag or the settings and ends with the process. So it is recorded
as a trace, and does not bind the process that resumes the session later.
"""

from bridle.engine.session import Session
from bridle.events import Event, TraceEvent
from bridle.stores.recorded_mode import MODE_KIND


def record_mode(session: Session) -> None:
    """Record the mode with the first prompt, if the log would not contain it otherwise."""
    if not session.history.mode and session.mode != "ask":
        session.emit_with_first_prompt(TraceEvent(MODE_KIND, {"mode": session.mode}))


def is_mode_record(event: Event) -> bool:
    """Does the event record the mode of a process?"""
    return isinstance(event, TraceEvent) and event.kind == MODE_KIND
