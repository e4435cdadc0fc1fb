"""What a call is handed beside its arguments: a folder, a memory, a word, and an end (A4)."""

import asyncio
import logging

import pytest

from bridle.engine import turn_context
from bridle.events import TurnEnded
from bridle.policy import ToolPolicy
from bridle.protocols.session import Answer
from bridle.protocols.tool import ToolResult
from bridle.stores.jsonl import JsonlStore
from rig import Thing, call, calls, endings, events, make_engine, results, run


def test_a_call_has_the_folder_of_its_session_outside_the_workspace(state):
    seen = []

    async def execute(arguments, context):
        seen.append(context.folder)

    async def story(**rest):
        async with make_engine([call("thing"), "ok"], Thing(execute), **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return session.id

    found = run(story(store=JsonlStore(state)))
    run(story())
    assert seen == [str(state / "sessions" / found), ""]


def test_what_a_tool_keeps_elsewhere_can_be_cleaned_of_secrets():
    seen = []

    async def execute(arguments, context):
        seen.append(context.redact("the key is s3cr3t-key-of-mine."))

    async def story(**rest):
        async with make_engine([call("thing"), "ok"], Thing(execute), **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))

    run(story(secrets=("s3cr3t-key-of-mine",)))
    run(story(redact_tokens=False))
    assert seen == ["the key is [redacted].", "the key is s3cr3t-key-of-mine."]


def test_the_word_of_a_yes_reaches_the_tool_and_the_model():
    seen = []

    async def execute(arguments, context):
        seen.append(context.word)
        return "done"

    async def approver(asked):
        return Answer(True, word="but gently")

    async def story():
        thing = Thing(execute, read_only=False)
        async with make_engine([call("thing"), "ok"], thing, approver=approver) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return results(engine, session.id)

    assert run(story()) == [("call_1", "done\n[the person added: but gently]", False)]
    assert seen == ["but gently"]


def test_a_word_is_not_lost_where_the_result_is_cut():
    from bridle.engine.budget import Limits

    async def execute(arguments, context):
        return "x" * 5000

    async def approver(asked):
        return Answer(True, word="but gently")

    async def story():
        thing = Thing(execute, read_only=False)
        rest = {"approver": approver, "limits": Limits(output_chars=1000)}
        async with make_engine([call("thing"), "ok"], thing, **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return results(engine, session.id)[0][1]

    text = run(story())
    assert text.endswith("\n[the person added: but gently]")
    assert len(text) < 1200


def test_a_result_that_stops_ends_the_turn_and_nothing_after_it_runs():
    done = []

    async def stopping(arguments, context):
        return ToolResult(
            False, "a protected file was changed", stops="a command tampered with git"
        )

    async def other(arguments, context):
        done.append(1)

    async def story():
        tools = (Thing(stopping, "first", read_only=False), Thing(other, "second", read_only=False))
        script = [calls(("first", {}), ("second", {})), "ok"]
        async with make_engine(script, *tools, mode="auto") as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            (end,) = events(engine, session.id, TurnEnded)
            assert endings(engine, session.id) == ["stuck"]
            return result.detail, end.detail, results(engine, session.id)

    detail, recorded, found = run(story())
    assert detail == recorded == "a command tampered with git"
    assert found == [
        ("call_1", "a protected file was changed", True),
        ("call_2", "not run: the turn ended before it began", True),
    ]
    assert done == []


def test_what_tools_left_running_is_ended_with_the_session(caplog):
    ended = []

    async def well():
        ended.append("well")

    async def badly():
        raise RuntimeError("no")

    async def execute(arguments, context):
        for closer in (badly, well):
            context.at_close(closer)

    async def story():
        async with make_engine([call("thing"), "ok"], Thing(execute)) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            assert ended == []
            await session.close()
            assert ended == ["well"]

    with caplog.at_level(logging.WARNING):
        run(story())
    assert ended == ["well"]
    assert "could not be closed" in caplog.text


def test_what_hangs_does_not_hold_up_the_end(monkeypatch, caplog):
    monkeypatch.setattr(turn_context, "CLOSE_SECONDS", 0.05)
    ended = []

    async def hangs():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def execute(arguments, context):
        context.at_close(hangs)

    async def story():
        async with make_engine([call("thing"), "ok"], Thing(execute)) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))

    with caplog.at_level(logging.WARNING):
        run(story())
    assert ended == ["cancelled"]
    assert "were still running" in caplog.text


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_a_call_knows_the_mode(mode):
    seen = []

    async def execute(arguments, context):
        seen.append(context.mode)

    async def story():
        thing = Thing(execute)
        thing.policy = ToolPolicy(read_only=True)
        async with make_engine([call("thing"), "ok"], thing, mode=mode) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))

    run(story())
    assert seen == [mode]
