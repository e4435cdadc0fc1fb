"""What to record for a turn whose process ended, from the log alone. Pure.

After a crash every call is finished, not started or unknown. If approvals are pending, the turn
stays parked; any other turn that was running ends as interrupted. A call of an earlier step whose
result is missing, because a line of the log was lost, is treated in the same way.
"""

from collections.abc import Iterator

from bridle.engine.history import (
    History,
    OpenCall,
    denial_reason,
    results_at_end,
    stand_in,
)
from bridle.events import (
    Event,
    InterruptRequested,
    ToolResultEvent,
    TurnEnded,
    TurnParked,
    UnknownCallReported,
)
from bridle.messages import ToolOutput

LOST = "the process that ran the turn ended before the turn did"
_ADVICE = "Check what it may have changed before you run it again."


def recovered(history: History) -> Iterator[Event]:
    """Yield the events to record for the turn that was running when its process ended."""
    stays_parked = history.is_parked
    events = list(_lost_results(history))
    if history.running:
        for call in history.open_calls:
            events += _call_outcome(history, call, stays_parked)
    yield from events
    if not history.running:
        return
    if not stays_parked:
        yield TurnEnded(history.running, "interrupted", LOST)
    elif events or not history.parked:  # it may have been killed while it asked for approval
        calls = tuple(request.call.id for request in history.pending.values())
        yield TurnParked(history.running, calls)


def _lost_results(history: History) -> Iterator[Event]:
    """Yield results for calls whose own were lost, as after a power cut, before later records."""
    for lost in history.lost.values():
        if any(lost.call.id == other.call.id for other in history.open_calls):
            continue  # the id was used twice: a result now would be the other call's
        if lost.state == "unknown":
            yield from _unknown(history, lost, f"the result of {lost.call.name} was lost")
        else:
            yield ToolResultEvent(stand_in(lost.call, "not_run"))


def _call_outcome(history: History, call: OpenCall, stays_parked: bool) -> Iterator[Event]:
    if call.state == "unknown" and not (stays_parked and call.reads):
        reason = f"{call.call.name} had started when the process ended"
        yield from _unknown(history, call, reason)
    elif stays_parked:
        yield from _denied_result(history, call)
    else:
        yield ToolResultEvent(stand_in(call.call, "not_run"))


def denied_results(history: History) -> tuple[Event, ...]:
    """Return the results of open calls that were denied."""
    return tuple(event for call in history.open_calls for event in _denied_result(history, call))


def _denied_result(history: History, call: OpenCall) -> Iterator[Event]:
    if (answer := history.answers.get(call.call.id)) and not answer.allowed:
        output = ToolOutput(
            call_id=call.call.id,
            text=f"not run: {denial_reason(answer.word)}",
            is_error=True,
            name=call.call.name,
            outcome="denied",
        )
        yield ToolResultEvent(output)


def end_parked(history: History, by: str) -> tuple[Event, ...]:
    """Return the events to record when a parked turn is ended in a session that has no owner."""
    end = TurnEnded(history.running, "interrupted", "the turn was interrupted")
    return (InterruptRequested.of(by), *results_at_end(history), end)


def _unknown(history: History, call: OpenCall, reason: str) -> Iterator[Event]:
    """Report an unknown call, unless an earlier recovery was killed right after it did so."""
    if call.call.id not in history.reported_unknown:
        message = f"{reason}: it is not known whether it ran. {_ADVICE}"
        yield UnknownCallReported.of(call.call, message)
    yield ToolResultEvent(stand_in(call.call, "unknown"))
