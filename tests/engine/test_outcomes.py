"""How a call ended is a field of its result, whatever its text says."""

import asyncio

import pytest

from bridle.engine.budget import Limits
from bridle.events import ToolResultEvent
from bridle.messages import ToolOutput, outcome_of
from bridle.policy import Rule
from bridle.protocols.codec import decode_data, encode_data
from bridle.protocols.tool import ToolResult
from rig import Thing, call, calls, events, make_engine, one_turn, run


def outcomes(replies, *tools, **options):
    engine, session_id, _ = run(one_turn(replies, *tools, **options))
    return [one.output.outcome for one in events(engine, session_id, ToolResultEvent)]


def saying(text, ok):
    async def execute(arguments, context):
        return ToolResult(ok, text)

    return Thing(execute)


@pytest.mark.parametrize(
    "text",
    [
        "not run: a rule forbids it",
        "interrupted before it finished",
        "no result was recorded",
    ],
)
def test_what_a_tool_says_is_not_taken_for_an_outcome(text):
    assert outcomes([call("thing"), "ok"], saying(text, True)) == [""]
    assert outcomes([call("thing"), "ok"], saying(text, False)) == ["failed"]


def test_a_call_that_is_denied_or_wrong_or_too_much_is_told_apart():
    denied = (Rule("deny", "thing"),)
    assert outcomes([call("thing"), "ok"], saying("", True), rules=denied) == ["denied"]
    assert outcomes([call("nothing"), "ok"], saying("", True)) == ["invalid"]
    limits = Limits(max_tool_calls=1)
    replies = [calls(("thing", {}), ("thing", {})), "ok"]
    assert outcomes(replies, saying("", True), limits=limits) == ["", "refused"]


def test_calls_that_are_cut_off_say_whether_they_had_begun():
    async def story():
        begun = asyncio.Event()

        async def hang(arguments, context):
            begun.set()
            await asyncio.Event().wait()

        async def quick(arguments, context):
            return "never"

        tools = Thing(hang, "hang", read_only=False), Thing(quick, "quick", read_only=False)
        script = [calls(("hang", {}), ("quick", {})), "ok"]
        async with make_engine(script, *tools, mode="auto") as engine:
            session = await engine.session()
            turn = await session.send("go")
            await begun.wait()
            await session.interrupt()
            await session.wait(turn)
            found = events(engine, session.id, ToolResultEvent)
            return {one.output.name: one.output.outcome for one in found}

    assert run(story()) == {"hang": "interrupted", "quick": "not_run"}


def test_an_outcome_is_written_and_read_again():
    event = ToolResultEvent(ToolOutput("c", "no", True, "shell", outcome="denied"), foreign=True)
    assert decode_data(encode_data(event)) == event


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("not permitted: a rule forbids it", "denied"),
        ("not run: the turn ended before it began", "not_run"),
        ("not run: the limit of tool calls is reached", "refused"),
        ("not run: the arguments are not valid JSON: {", "invalid"),
        ("there is no tool named 'x'; there are: none", "invalid"),
        ("interrupted before it finished. What it had written until then:\nx", "interrupted"),
        ("interrupted, and it did not stop: it may still be running", "not_stopped"),
        ("no result was recorded: it is not known whether this call ran", "unknown"),
        ("there is no such file", "failed"),
    ],
)
def test_logs_of_earlier_versions_say_it_in_the_text_alone(text, outcome):
    assert outcome_of(ToolOutput("c", text, True)) == outcome
    assert outcome_of(ToolOutput("c", text)) == ""
