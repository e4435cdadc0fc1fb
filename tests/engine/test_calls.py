"""The calls of one step: side by side or in order, and exactly one result each (M2, A4, A13)."""

import asyncio
import threading

from bridle.engine.history import NOT_RUN
from bridle.engine.tool_calls import INTERRUPTED
from bridle.events import CallIntended, ToolOutputDelta, ToolResultEvent
from bridle.messages import Message, ToolCall
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.providers.scripted import Scripted
from bridle.tools.function import tool
from rig import (
    Thing,
    call,
    calls,
    events,
    is_valid,
    make_engine,
    one_turn,
    results,
    run,
    until,
)


def test_eight_async_readers_run_side_by_side():
    """All eight are inside at once, or the barrier never opens."""

    async def story():
        barrier = asyncio.Barrier(8)

        @tool(read_only=True)
        async def look(n: int) -> int:
            await barrier.wait()
            return n

        asked = calls(*(("look", {"n": n}) for n in range(8)))
        engine, found, _ = await one_turn([asked, "ok"], look)
        return results(engine, found)

    assert sorted(text for _, text, _ in run(story())) == [str(n) for n in range(8)]


def test_eight_plain_readers_run_side_by_side_in_threads():
    barrier = threading.Barrier(8)

    @tool(read_only=True)
    def look(n: int) -> int:
        barrier.wait(30)
        return n

    asked = calls(*(("look", {"n": n}) for n in range(8)))
    engine, found, _ = run(one_turn([asked, "ok"], look))
    assert sorted(text for _, text, _ in results(engine, found)) == [str(n) for n in range(8)]


def test_a_call_whose_arguments_are_no_json_is_answered_with_what_is_wrong():
    """(A4): the model hears of it and can send the call again; the call beside it runs."""

    @tool(read_only=True)
    def look(n: int) -> int:
        return n

    broken = ToolCall("a", "look", {}, '{"n": ' + "1" * 5000)
    asked = Message("assistant", (broken, ToolCall("b", "look", {"n": 7})))
    engine, found, _ = run(one_turn([asked, "ok"], look))
    (one, text, failed), other = results(engine, found)
    assert (one, failed, other) == ("a", True, ("b", "7", False))
    assert text.startswith('not run: the arguments are not valid JSON: {"n": 111')
    assert text.endswith("Send the call again with one JSON object as its arguments.")
    assert len(text) < 700
    assert [intent.call_id for intent in events(engine, found, CallIntended)] == ["b"]


def test_results_stand_in_the_order_of_the_calls_whoever_is_first():
    """Vendors want them so; the log has them as they came."""

    async def story():
        later = asyncio.Event()

        @tool(read_only=True)
        async def look(n: int) -> int:
            if n == 0:
                await later.wait()
            later.set()
            return n

        model = Scripted([calls(("look", {"n": 0}), ("look", {"n": 1})), "ok"])
        engine, found, _ = await one_turn(model, look)
        sent = model.requests[1].messages[2].tool_results
        return [one.text for one in sent], [text for _, text, _ in results(engine, found)]

    assert run(story()) == (["0", "1"], ["1", "0"])


def test_one_writer_among_readers_makes_it_all_go_in_order():
    async def story():
        inside, seen = [0], []

        async def note(name):
            inside[0] += 1
            seen.append((name, inside[0]))
            await asyncio.sleep(0)
            inside[0] -= 1

        @tool(read_only=True)
        async def look(n: int) -> str:
            await note(f"look {n}")
            return "k"

        @tool
        async def change() -> str:
            await note("change")
            return "k"

        asked = calls(("look", {"n": 1}), ("change", {}), ("look", {"n": 2}))
        await one_turn([asked, "ok"], look, change, mode="auto")
        return seen

    assert run(story()) == [("look 1", 1), ("change", 1), ("look 2", 1)]


def test_the_intent_is_recorded_before_the_effect_and_the_result_after():
    async def story():
        async with make_engine([call("change"), "ok"], mode="auto") as engine:
            seen = []

            async def change(arguments, context):
                seen.extend(events(engine, context.session_id, CallIntended))
                return ToolResult.success("k")

            engine.parts.tools["change"] = Thing(change, "change", read_only=False)
            session = await engine.session()
            await session.wait(await session.send("go"))
            kinds = (CallIntended, ToolResultEvent)
            return seen, [type(one) for one in events(engine, session.id, kinds)]

    seen, order = run(story())
    assert [(one.call_id, one.name, one.read_only) for one in seen] == [("call_1", "change", False)]
    assert order == [CallIntended, ToolResultEvent]


def test_an_interrupt_in_a_tool_leaves_one_result_for_each_call():
    """M6, S9: begun and not begun are told apart, and the next turn can be sent."""

    async def story():
        begun = asyncio.Event()

        @tool
        async def hang() -> str:
            begun.set()
            await asyncio.Event().wait()
            return "never"

        model = Scripted([calls(("hang", {}), ("hang", {})), "ok"])
        async with make_engine(model, hang, mode="auto") as engine:
            session = await engine.session()
            turn = await session.send("go")
            await begun.wait()
            await session.interrupt()
            first = await session.wait(turn)
            second = await session.wait(await session.send("again"))
            assert is_valid(model.requests[1].messages)
            return first.reason, second.text, results(engine, session.id)

    said = [("call_1", INTERRUPTED, True), ("call_2", NOT_RUN, True)]
    assert run(story()) == ("interrupted", "ok", said)


def test_an_interrupt_that_a_tool_swallows_still_ends_the_turn():
    async def story():
        begun = asyncio.Event()

        @tool
        async def stubborn() -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "I finished anyway"
            return "never"

        async with make_engine([call("stubborn"), "ok"], stubborn, mode="auto") as engine:
            session = await engine.session()
            turn = await session.send("go")
            await begun.wait()
            await session.interrupt()
            return (await session.wait(turn)).reason, results(engine, session.id)

    assert run(story()) == ("interrupted", [("call_1", "I finished anyway", False)])


def test_a_plain_function_speaks_from_its_thread_while_it_runs():
    """`say` works from any thread, in order, before the result."""

    @tool(read_only=True)
    def work(context: ToolContext) -> str:
        context.say("one ")
        context.say("two")
        return "done"

    engine, found, _ = run(one_turn([call("work"), "ok"], work))
    said = events(engine, found, (ToolOutputDelta, ToolResultEvent))
    assert "".join(one.text for one in said[:-1]) == "one two"
    assert isinstance(said[-1], ToolResultEvent)


def test_what_a_thread_says_after_its_turn_is_not_heard():
    async def story():
        begun, release, gone = asyncio.Event(), threading.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        @tool(read_only=True)
        def late(context: ToolContext) -> str:
            loop.call_soon_threadsafe(begun.set)
            release.wait(30)
            context.say("too late")
            gone.set()
            return "never"

        async with make_engine([call("late")], late) as engine:
            session = await engine.session()
            await session.send("go")
            await begun.wait()
            await session.interrupt()
            release.set()
            await asyncio.to_thread(gone.wait, 30)
            await asyncio.sleep(0)
            return events(engine, session.id, ToolOutputDelta)

    assert run(story()) == []


def test_an_interrupt_before_the_first_step_ends_the_turn_all_the_same():
    async def story():
        model = Scripted(["never", "ok"])
        async with make_engine(model) as engine:
            session = await engine.session()
            sending = asyncio.create_task(session.send("go"))
            await asyncio.sleep(0)
            await session.interrupt()
            turn = await sending
            first = await session.wait(turn)
            asked = len(model.requests)
            second = await session.wait(await session.send("again"))
            return first.reason, asked, second.reason

    assert run(story()) == ("interrupted", 0, "done")


def test_what_a_tool_says_is_seen_while_it_runs():
    async def story():
        release = asyncio.Event()

        @tool
        async def work(context: ToolContext) -> str:
            context.say("half way")
            await release.wait()
            return "done"

        async with make_engine([call("work"), "ok"], work, mode="auto") as engine:
            session = await engine.session()
            turn = await session.send("go")
            seen = await until(session, lambda event: isinstance(event, ToolOutputDelta))
            release.set()
            await session.wait(turn)
            return seen.event

    assert run(story()) == ToolOutputDelta("call_1", "half way")
