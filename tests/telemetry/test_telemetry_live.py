"""Spans as they are sent, with OpenTelemetry's own SDK: whose, how they end, what they say."""

import asyncio

import pytest
from rig_spans import (
    BREAKS,
    INFO,
    LOOKS,
    TOOLS,
    WRITES,
    Collected,
    folded,
    sent,
    shape,
    traced_engine,
)

from bridle.engine.trace import trace
from bridle.events import ApprovalAsked, ChildStarted, ToolOutputDelta
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.tool import ToolResult
from bridle.providers.retry import Retrying, RetryPolicy
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.tools.session_tools import TaskTool
from rig import Thing, call, events, run, until


async def one_turn(replies, *tools, collected, **rest):
    async with traced_engine(replies, *tools, collected=collected, **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("a prompt that nobody is to read"))
    return result, list(engine.store.read(session.id))


def test_a_turn_with_a_call_is_a_tree_of_spans_by_the_conventions():
    usage = {"inputTokens": 1000, "outputTokens": 200, "cacheReadTokens": 50}
    replies = [{**call("look"), "usage": usage}, {"text": "done", "usage": usage}]
    collected = Collected()
    _, records = run(one_turn(replies, *TOOLS, collected=collected))
    (session_id,) = {span.attributes["gen_ai.conversation.id"] for span in collected.spans()}
    assert session_id == trace(records).span.name
    chat = collected.named("chat tiny")[0]
    assert {key: value for key, value in chat.attributes.items() if "first_chunk" not in key} == {
        "gen_ai.conversation.id": session_id,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "tiny",
        "gen_ai.response.model": "tiny",
        "gen_ai.response.id": "scripted_1",
        "gen_ai.response.finish_reasons": ("tool_use",),
        "gen_ai.usage.input_tokens": 1050,
        "gen_ai.usage.output_tokens": 200,
        "gen_ai.usage.cache_read.input_tokens": 50,
        "bridle.cost.usd": pytest.approx((1050 * 3 + 200 * 15) / 1e6),
        "bridle.kind": "model",
        "bridle.turn": 1,
        "bridle.status": "ok",
    }
    (turn,) = collected.named("invoke_agent bridle")
    assert turn.attributes["gen_ai.usage.input_tokens"] == 2100
    assert sent(collected.spans()) == folded(records)


def test_nothing_that_was_said_is_in_a_span_unless_it_is_asked_for():
    async def execute(arguments, context):
        return ToolResult.success("CANARY output")

    tool = Thing(execute, "look", parameters={"type": "object"})
    replies = [{"text": "CANARY reply", **call("look", path="CANARY path")}, "CANARY end"]
    for content in (False, True):
        collected = Collected()
        run(one_turn(replies, tool, collected=collected, content=content))
        said = " ".join(span.to_json() for span in collected.spans())
        assert ("CANARY" in said, "nobody is to read" in said) == (content, content)
        if content:
            (found,) = collected.named("execute_tool look")
            assert found.attributes["gen_ai.tool.call.arguments"] == '{"path":"CANARY path"}'
            assert found.attributes["gen_ai.tool.call.result"] == "CANARY output"


def test_names_that_somebody_else_chose_are_short_and_of_a_command_only_the_program_is_told():
    long = {"calls": [{"name": "x" * 5_000 + "\n", "arguments": {}}]}
    agent = "acp:/home/ann/bin/clever --key CANARY"
    model = Scripted([long, "end"], info=ProviderInfo(agent))
    collected = Collected()
    run(one_turn(model, collected=collected))
    said = " ".join(span.to_json() for span in collected.spans())
    assert "CANARY" not in said
    assert "/home/ann" not in said
    (tool,) = [span for span in collected.spans() if span.name.startswith("execute_tool")]
    assert len(tool.name) <= 113
    assert collected.spans()[0].attributes["gen_ai.provider.name"] == "acp:clever"


def test_a_secret_is_in_no_span_even_with_content():
    secret = "hunter2-and-more"
    collected = Collected()
    replies = [{"text": f"it is {secret}", **call("look", path=secret)}, "end"]
    run(one_turn(replies, LOOKS, collected=collected, content=True, secrets=(secret,)))
    assert secret not in " ".join(span.to_json() for span in collected.spans())


def test_an_error_of_the_model_is_recorded_with_its_kind():
    collected = Collected()
    run(one_turn([{"error": {"kind": "network", "message": "gone"}}], collected=collected))
    (chat,) = collected.named("chat tiny")
    assert (chat.attributes["error.type"], chat.status.is_ok) == ("network", False)
    (turn,) = collected.named("invoke_agent bridle")
    assert (turn.attributes["error.type"], turn.attributes["bridle.status"]) == (
        "network",
        "failed",
    )
    assert "gone" not in turn.to_json()


def test_retries_are_counted_on_the_call_that_they_belong_to():
    collected = Collected()
    model = Retrying(
        Scripted([{"error": {"status": 529}}, "fine"], info=INFO), RetryPolicy(base=0.001)
    )
    run(one_turn(model, collected=collected))
    (chat,) = collected.named("chat tiny")
    assert (chat.attributes["bridle.retries"], chat.attributes["bridle.status"]) == (1, "ok")


def test_a_failed_a_refused_and_an_unknown_tool_end_as_what_they_are():
    names = ("break_it", "write_it", "nobody_has_it")
    replies = [{"calls": [{"name": name, "arguments": {}} for name in names]}, "end"]
    collected = Collected()
    run(one_turn(replies, BREAKS, WRITES, collected=collected))
    found = {
        s.name.split()[-1]: s.attributes["bridle.status"]
        for s in collected.spans()
        if "execute" in s.name
    }
    assert found == {"break_it": "failed", "write_it": "refused", "nobody_has_it": "refused"}


def test_an_interrupt_ends_what_is_open_and_an_engine_that_closes_ends_the_rest():
    async def execute(arguments, context):
        context.emit(ToolOutputDelta("", "begun"))
        await asyncio.Event().wait()

    async def story():
        collected = Collected()
        async with traced_engine(
            [call("stays")], Thing(execute, "stays"), collected=collected
        ) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, lambda event: isinstance(event, ToolOutputDelta))
            assert (
                collected.named("execute_tool stays") == []
            )  # it is open, and so is what holds it
            assert len(collected.named("chat tiny")) == 1  # a crash leaves what has ended
            await session.interrupt()
            assert len(collected.named("execute_tool stays")) == 1
            assert len(collected.named("invoke_agent bridle")) == 1
            assert collected.named("session") == []
        assert len(collected.named("session")) == 1
        return sent(collected.spans()), folded(engine.store.read(session.id)), collected

    live, read, collected = run(story())
    assert live == read
    (stays,) = collected.named("execute_tool stays")
    assert stays.attributes["bridle.status"] == "interrupted"


def test_a_parked_turn_ends_and_goes_on_in_another_process_under_a_span_of_its_own(tmp_path):
    async def first(collected):
        store = JsonlStore(tmp_path)
        async with traced_engine(
            [call("write_it")], WRITES, collected=collected, store=store, on_ask="park"
        ) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (asked,) = session.history.pending.values()
            return session.id, asked

    async def second(collected, session_id, asked):
        store = JsonlStore(tmp_path)
        async with traced_engine(
            ["done"], WRITES, collected=collected, store=store, on_ask="park"
        ) as engine:
            session = await engine.session(session_id)
            await session.answer(asked.call.id, True, shown=asked.shown, by="ann")
            await session.wait(1)
        return list(engine.store.read(session_id))

    before, after = Collected(), Collected()
    session_id, asked = run(first(before))
    records = run(second(after, session_id, asked))
    assert [span.attributes["bridle.status"] for span in before.named("invoke_agent bridle")] == [
        "parked"
    ]
    assert before.named("execute_tool write_it") == []
    kinds = [(span.name, span.attributes["bridle.status"]) for span in after.spans()]
    assert kinds == [
        ("execute_tool write_it", "ok"),
        ("step", "ok"),
        ("chat tiny", "ok"),
        ("step", "ok"),
        ("invoke_agent bridle", "ok"),
        ("session", "ok"),
    ]
    assert shape(trace(records)) == [
        "session ok",
        "  turn turn 1 parked",
        "    step step 1 parked",
        "      model scripted/tiny ok",
        "      wait approval of write_it parked",
        "  wait turn 1 parked ok",
        "  turn turn 1 ok",
        "    step step 1 ok",
        "      tool write_it ok",
        "    step step 2 ok",
        "      model scripted/tiny ok",
    ]


def test_the_spans_of_a_child_session_lie_under_the_call_that_began_it():
    async def story():
        collected = Collected()
        parts = {"go": [call("task", prompt="dig"), "found"], "dig": [call("look"), "gold"]}
        model = Scripted(lambda asked: parts[asked.messages[0].content].pop(0), info=INFO)
        async with traced_engine(model, LOOKS, TaskTool(), collected=collected) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (child,) = events(engine, session.id, ChildStarted)
        logs = {one: list(engine.store.read(one)) for one in (session.id, child.session_id)}
        return collected, child.session_id, logs

    collected, child, logs = run(story())
    for session_id, records in logs.items():
        own = [s for s in collected.spans() if s.attributes["gen_ai.conversation.id"] == session_id]
        assert sent(own) == folded(records)
    known = {span.context.span_id: span for span in collected.spans()}
    (look,) = collected.named("execute_tool look")
    path, span = [], look
    while span is not None:
        path.append(span.name)
        span = known.get(span.parent.span_id) if span.parent else None
    own = ["execute_tool look", "step", "invoke_agent bridle", "session"]
    assert path == [*own, "task", "execute_tool task", "step", "invoke_agent bridle", "session"]
    (below,) = collected.named("task")
    assert below.attributes["bridle.task.session"] == child
    assert {span.context.trace_id for span in collected.spans()} == {look.context.trace_id}


def test_a_session_that_begins_inside_somebody_elses_span_lies_in_it():
    async def story(collected):
        with collected.provider.get_tracer("mine").start_as_current_span("mine") as mine:
            await one_turn(["fine"], collected=collected)
        return mine

    mine = run(story(collected := Collected()))
    (session,) = collected.named("session")
    assert session.parent.span_id == mine.context.span_id
    (turn,) = collected.named("invoke_agent bridle")
    assert turn.parent.span_id == session.context.span_id


def test_a_rewind_is_an_event_of_the_span_around_it():
    async def story(collected):
        async with traced_engine(["one", "two"], collected=collected) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            await session.rewind(0)
        return collected

    (session,) = run(story(Collected())).named("session")
    assert [event.name for event in session.events] == ["bridle.rewind"]


def test_a_question_is_a_wait_of_its_own_and_not_time_of_the_tool():
    async def story():
        collected = Collected()
        async with traced_engine(
            [call("write_it"), "end"], WRITES, collected=collected, on_ask="wait"
        ) as engine:
            session = await engine.session()
            turn = await session.send("go")
            record = await until(session, lambda event: isinstance(event, ApprovalAsked))
            await session.answer(record.event.call.id, True, shown=record.event.shown, by="ann")
            await session.wait(turn)
        return collected

    (wait,) = (collected := run(story())).named("wait for approval")
    (tool,) = collected.named("execute_tool write_it")
    assert wait.attributes["gen_ai.tool.name"] == "write_it"
    assert (wait.attributes["bridle.status"], wait.parent) == ("ok", tool.parent)
    assert wait.end_time <= tool.start_time


def test_a_session_goes_on_when_its_exporter_breaks(caplog):
    class Broken(Collected):
        def __init__(self):
            super().__init__()
            self.provider.get_tracer = lambda *_: self

        def start_span(self, *_, **__):
            raise RuntimeError("no room")

    result, _ = run(one_turn(["fine"], collected=Broken()))
    assert (result.reason, result.text) == ("done", "fine")
    assert "the spans of a session are lost from here on" in caplog.text
