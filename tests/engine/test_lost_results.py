"""A result that the disk lost while it kept what came after it: said to all, and said once (A8).

Nobody waits for the disk between a result and the reply to it. Without power the later line may
be there and the earlier one not; the call is then as unknown as one that a crash cut off.
"""

import pytest

from bridle.engine.history import NOT_RUN, UNKNOWN, fold
from bridle.engine.recovery import recovered
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    Forked,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    UnknownCallReported,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput, user
from bridle.protocols.store import Record
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.verify import verify
from rig import call, events, make_engine, results, run

ADVICE = "Check what it may have changed before you run it again."
LOST = f"the result of mark was lost: it is not known whether it ran. {ADVICE}"


def lose(state, session_id, last):
    """Zeros where the result was, as a disk leaves them; the log ends with the last of a kind."""
    store = JsonlStore(state)
    path, records = store.path(session_id), list(store.read(session_id))
    lines = path.read_bytes().splitlines(keepends=True)
    (place,) = [n for n, one in enumerate(records) if isinstance(one.event, ToolResultEvent)]
    end = max(n for n, one in enumerate(records) if isinstance(one.event, last))
    lines[place] = bytes(len(lines[place]) - 1) + b"\n"
    path.write_bytes(b"".join(lines[: end + 1]))


@pytest.mark.parametrize("last", [ResponseCompleted, TurnEnded])
def test_an_effect_whose_result_was_lost_is_unknown_to_the_person_and_to_the_model(state, last):
    done, model = [], Scripted(["so"], loop=True)

    async def mark() -> str:
        done.append(1)
        return "made"

    async def story():
        first = make_engine([call("mark"), "well"], mark, store=JsonlStore(state), mode="auto")
        async with first as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
        lose(state, session.id, last)
        for words in ("and now?", "and then?"):
            store = JsonlStore(state)
            async with make_engine(model, mark, store=store, mode="auto") as engine:
                again = await engine.session(session.id)
                await again.wait(await again.send(words))
        return engine, session.id

    engine, found = run(story())
    assert results(engine, found) == [("call_1", UNKNOWN, True)]
    told = {"callId": "call_1", "name": "mark", "message": LOST}
    traces = [one for one in events(engine, found, TraceEvent) if one.kind == "unknown_call"]
    assert traces == [UnknownCallReported("unknown_call", told)]
    heard = [
        [one.text for message in request.messages for one in message.tool_results]
        for request in model.requests
    ]
    assert (heard, done) == ([[UNKNOWN], [UNKNOWN]], [1])
    assert all(one.known for one in verify(JsonlStore(state).path(found)).findings)


def folded(*happened):
    """The fold of a turn in which that happened."""
    begun = (SessionStarted("s"), PromptReceived("go", 1), MessageAdded(user("go"), 2, 1))
    return fold(Record(seq, "t", one) for seq, one in enumerate((*begun, *happened), 1))


def asks(*ids):
    """A reply with calls."""
    calls = tuple(ToolCall(one, "mark") for one in ids)
    return ResponseCompleted("tool_use", Message("assistant", calls))


def told(call_id):
    """What is said of a call whose result was lost."""
    yield UnknownCallReported.of(ToolCall(call_id, "mark"), LOST)
    yield ToolResultEvent(ToolOutput(call_id, UNKNOWN, True, "mark", outcome="unknown"))


SPOKEN = ResponseCompleted("complete", Message("assistant", (Text("so"),)))
ENDED = TurnEnded(1, "interrupted")


@pytest.mark.parametrize("after", [(ENDED,), (SPOKEN, ENDED)])
def test_also_where_the_turn_had_ended(after):
    history = folded(asks("a"), CallIntended("a", "mark"), *after)
    assert list(recovered(history)) == list(told("a"))


def test_a_call_that_never_began_is_said_not_to_have_run():
    history = folded(asks("a"), SPOKEN, ENDED)
    assert list(recovered(history)) == [
        ToolResultEvent(ToolOutput("a", NOT_RUN, True, "mark", outcome="not_run"))
    ]


def test_a_turn_that_waits_for_a_person_goes_on_waiting():
    asked = ApprovalAsked(ToolCall("b", "mark"), "shown")
    parked = TurnParked(1, ("b",))
    history = folded(asks("a"), CallIntended("a", "mark"), asks("b"), asked, parked)
    assert list(recovered(history)) == [*told("a"), parked]


def test_an_id_that_is_given_again_gets_no_result_of_the_call_that_had_it_before():
    """Local servers count from zero in every reply."""
    asked = ApprovalAsked(ToolCall("0", "mark"), "shown")
    parked = TurnParked(1, ("0",))
    history = folded(asks("0"), CallIntended("0", "mark"), asks("0"), asked, parked)
    assert list(recovered(history)) == []


def test_a_fork_says_nothing_of_the_calls_of_another_session():
    history = folded(asks("a"), CallIntended("a", "mark"), SPOKEN, Forked("other", 6))
    assert list(recovered(history)) == []


def test_what_came_back_in_order_is_not_lost():
    result = ToolResultEvent(ToolOutput("a", "made", False, "mark"))
    history = folded(asks("a"), CallIntended("a", "mark"), result, SPOKEN, ENDED)
    assert (list(recovered(history)), history.lost) == ([], {})
