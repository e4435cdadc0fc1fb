"""What a log says of a turn that nobody carries any more, and what is to be recorded of it. Pure.

After a crash every call is finished, not started or unknown. A step with open questions leaves its
turn parked; any other turn that was running ends as interrupted. A call of an earlier step whose
result is not in the log, because a line of it was lost, is told in the same way.
"""

from collections.abc import Iterator

from bridle.engine.conversation import NOT_RUN, UNKNOWN, OpenCall
from bridle.engine.history import History
from bridle.events import Event, ToolResultEvent, TraceEvent, TurnEnded, TurnParked
from bridle.messages import ToolCall, ToolOutput

LOST = "the process that ran the turn ended before the turn did"
_ADVICE = "Look at what it may have changed before it is done again."


def is_parked(history: History) -> bool:
    """Can the turn that was running go on, because it waits for a person and for nothing else?"""
    return history.running > 0 and (history.parked or bool(history.pending))


def recovered(history: History) -> Iterator[Event]:
    """What has to be said of the turn that was running when its process ended."""
    stays = is_parked(history)
    found = list(_lost(history))
    if history.running:
        found += [event for one in history.open_calls for event in _found(history, one, stays)]
    yield from found
    if not history.running:
        return
    if not stays:
        yield TurnEnded(history.running, "interrupted", LOST)
    elif found or not history.parked:  # it may have been killed while somebody was being asked
        yield TurnParked(history.running, tuple(one.call.id for one in history.pending.values()))


def _lost(history: History) -> Iterator[Event]:
    """Without power a result may be lost, and what came after it not: it is said afterwards."""
    for one in history.lost.values():
        if any(one.call.id == other.call.id for other in history.open_calls):
            continue  # the id was given twice: a result now would be that of the other call
        if one.state == "unknown":
            yield from _unknown(history, one, f"the result of {one.call.name} was lost")
        else:
            yield _result(one.call, NOT_RUN)


def _found(history: History, one: OpenCall, stays: bool) -> Iterator[Event]:
    """What has become of one call, where that is known now."""
    if one.state == "unknown" and not (stays and one.reads):
        yield from _unknown(history, one, f"{one.call.name} had begun when the process ended")
    elif stays:
        yield from _refused(history, one)
    else:
        yield _result(one.call, NOT_RUN)


def refused(history: History) -> tuple[Event, ...]:
    """The results of calls to which the answer was no: nothing that goes on asks about them."""
    return tuple(event for one in history.open_calls for event in _refused(history, one))


def _refused(history: History, one: OpenCall) -> Iterator[Event]:
    if (said := history.answers.get(one.call.id)) and not said.allowed:
        word = f": {said.word}" if said.word else ""
        yield _result(one.call, f"not permitted: the answer was no{word}")


def left_open(history: History) -> tuple[ToolCall, ...]:
    """The calls with which a parked turn goes on; what only reads may run again."""
    return tuple(one.call for one in history.open_calls if one.state == "not started" or one.reads)


def abandoned(history: History) -> Iterator[Event]:
    """The results of calls that a turn leaves behind when it ends."""
    for one in history.open_calls:
        yield _result(one.call, NOT_RUN if one.state == "not started" else UNKNOWN)


def given_up(history: History, by: str) -> tuple[Event, ...]:
    """What is to be recorded where somebody ends a parked turn, and nobody goes on after it."""
    end = TurnEnded(history.running, "interrupted", "the turn was interrupted")
    return (TraceEvent("interrupt", {"by": by}), *abandoned(history), end)


def _unknown(history: History, one: OpenCall, why: str) -> Iterator[Event]:
    """Told once: who came before may have been killed when that was said, and the rest was not."""
    if one.call.id not in history.told:
        words = f"{why}: it is not known whether it ran. {_ADVICE}"
        named = {"callId": one.call.id, "name": one.call.name}
        yield TraceEvent("unknown_call", {**named, "message": words})
    yield _result(one.call, UNKNOWN)


def _result(call: ToolCall, text: str) -> ToolResultEvent:
    return ToolResultEvent(ToolOutput(call.id, text, True, call.name))
