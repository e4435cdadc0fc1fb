"""The loop: its states, its endings, and what the model is sent (M4, A1)."""

import pytest

from bridle.engine.budget import Limits
from bridle.errors import KeyRefused, Overloaded, ProviderError, StreamCutShort
from bridle.events import (
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.providers.scripted import Scripted
from rig import Speaking, call, endings, events, is_valid, make_engine, results, run


async def echo(text: str) -> str:
    """Say it again."""
    return text


async def well():
    yield ResponseCompleted("complete", Message("assistant", (Text("well"),)))


def test_send_tools_send_complete_with_the_whole_history_each_time():
    """M4, A1: the states of a turn, and what each request holds."""

    async def story():
        model = Scripted([call("echo", text="one"), call("echo", text="two"), "done"])
        async with make_engine(model, echo, mode="auto") as engine:
            result = await engine.run("go")
        return model, result

    model, result = run(story())
    assert (result.text, result.reason, result.ok) == ("done", "done", True)
    roles = [[message.role for message in request.messages] for request in model.requests]
    assert roles == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
    ]
    last = model.requests[-1].messages
    assert last[0].content == "go"
    assert last[2].parts == (ToolOutput("call_1", "one", name="echo"),)
    assert last[4].parts == (ToolOutput("call_2", "two", name="echo"),)
    assert all(is_valid(request.messages) for request in model.requests)


def test_ten_thousand_steps_need_no_recursion():
    """M4: the loop is a loop."""

    async def story():
        steps = 10_000

        def answer(request):
            return "done" if len(request.messages) > 2 * steps else call("noop")

        async def noop() -> str:
            return "k"

        model = Scripted(answer)
        async with make_engine(model, noop, mode="auto", limits=Limits(max_steps=0)) as engine:
            result = await engine.run("go")
        return len(model.requests), result

    asked, result = run(story())
    assert (asked, result.reason, result.metrics.tool_calls) == (10_001, "done", 10_000)


def test_a_conversation_from_elsewhere_goes_before_the_prompt():
    """A1: run(prompt, messages) goes on from earlier messages; an open call is closed."""

    async def story():
        model = Scripted(["yes"])
        earlier = [
            user("look"),
            Message("assistant", (ToolCall("a", "echo", {}), ToolCall("b", "echo", {}))),
            Message("tool", (ToolOutput("a", "seen"),)),
        ]
        async with make_engine(model) as engine:
            await engine.run("and?", earlier)
        return model.requests[0].messages

    sent = run(story())
    assert [message.role for message in sent] == ["user", "assistant", "tool", "user"]
    assert is_valid(sent)
    assert sent[2].tool_results[0].text == "seen"
    assert sent[2].tool_results[1].is_error


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 529, "message": "busy"}, Overloaded),
        ({"status": 401, "message": "no"}, KeyRefused),
        ({"kind": "agent", "message": "hm"}, ProviderError),
    ],
)
def test_a_provider_error_is_a_trace_an_error_reply_and_a_failed_turn(fault, kind):
    """M4, M8, A3: recorded in that order, not retried by the loop; the session goes on (S9)."""

    async def story():
        model = Scripted([{"text": "half a", "error": fault}, "fine now"])
        async with make_engine(model) as engine:
            session = await engine.session()
            first = await session.wait(await session.send("one"))
            asked = len(model.requests)
            second = await session.wait(await session.send("two"))
            return engine, session.id, first, asked, second

    engine, found, first, asked, second = run(story())
    assert (first.reason, type(first.error), asked) == ("failed", kind, 1)
    assert first.detail == fault["message"]
    assert second.text == "fine now"
    said = events(engine, found, (TraceEvent, ResponseCompleted, TurnEnded))
    assert [type(one) for one in said[:3]] == [TraceEvent, ResponseCompleted, TurnEnded]
    assert said[0].kind == "error"
    assert said[0].detail["message"] == fault["message"]
    assert said[0].detail.get("status") == fault.get("status")
    assert said[1] == ResponseCompleted("error")
    assert said[2] == TurnEnded(1, "failed", fault["message"], kind("x").kind, kind("x").hint)


def test_a_foreign_exception_is_the_providers_fault_and_not_a_crash():
    async def broken():
        yield TextDelta("so f")
        raise KeyError("choices")

    async def story():
        async with make_engine(Speaking(broken, well)) as engine:
            session = await engine.session()
            first = await session.wait(await session.send("one"))
            second = await session.wait(await session.send("two"))
            return engine, session.id, first, second

    engine, found, first, second = run(story())
    assert first.detail == "the provider failed: KeyError('choices')"
    assert isinstance(first.error.cause, KeyError)
    assert second.text == "well"
    assert endings(engine, found) == ["failed", "done"]


def test_a_stream_without_an_end_was_cut_short():
    async def silent():
        yield TextDelta("so f")

    async def story():
        async with make_engine(Speaking(silent)) as engine:
            return await engine.run("one")

    result = run(story())
    assert (result.reason, type(result.error)) == ("failed", StreamCutShort)
    assert result.error.retryable


def test_a_reply_that_says_error_is_a_failed_turn():
    """A3: some adapters say it instead of raising it."""

    async def sorry():
        yield ResponseCompleted("error", stop_detail="the far side is down")

    async def story():
        async with make_engine(Speaking(sorry)) as engine:
            return await engine.run("one")

    result = run(story())
    assert (result.reason, result.detail) == ("failed", "the far side is down")


def test_what_a_provider_may_not_say_becomes_a_trace():
    """A2: unknown events become TraceEvent; a provider cannot write facts into the log."""

    async def forger():
        yield {"not": "an event"}
        yield TurnEnded(1, "done")
        yield ResponseCompleted("complete", Message("assistant", (Text("well"),)))

    async def story():
        async with make_engine(Speaking(forger)) as engine:
            session = await engine.session()
            await session.wait(await session.send("one"))
            return events(engine, session.id, (TraceEvent, TurnEnded))

    said = run(story())
    assert [type(one) for one in said] == [TraceEvent, TraceEvent, TurnEnded]
    assert [one.kind for one in said[:2]] == ["unknown_event", "unknown_event"]


def test_two_calls_with_one_id_get_ids_of_their_own():
    """Some local servers number badly: each call still has exactly one result."""
    parts = (ToolCall("x", "echo", {"text": "1"}), ToolCall("x", "echo", {"text": "2"}))
    parts += (ToolCall("", "echo", {"text": "3"}),)

    async def story():
        model = Scripted([Message("assistant", parts), "ok"])
        async with make_engine(model, echo, mode="auto") as engine:
            await engine.run("go")
        return model.requests[1].messages

    sent = run(story())
    assert is_valid(sent)
    assert len({one.id for one in sent[1].tool_calls}) == 3
    assert [one.text for one in sent[2].tool_results] == ["1", "2", "3"]


def test_thinking_stays_on_the_message_and_is_sent_back_in_the_turn():
    """S2, S7: reasoning and its metadata are kept as they came."""
    thought = Thinking("hm", {"api": "x", "signature": "s"})

    async def story():
        reply = Message("assistant", (thought, ToolCall("a", "echo", {"text": "1"})))
        model = Scripted([reply, "ok"])
        async with make_engine(model, echo, mode="auto") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            said = events(engine, session.id, ThinkingDelta)
            return model.requests[1].messages[1], said

    message, said = run(story())
    assert message.parts[0] == thought
    assert (message.reasoning, message.reasoning_metadata) == ("hm", (thought.meta,))
    assert said == [ThinkingDelta("hm")]


@pytest.mark.parametrize("tokens", [True, False], ids=["redacting", "not redacting"])
def test_what_runs_and_what_is_asked_about_is_what_the_log_can_hold(tokens):
    """Half a surrogate pair in a call's arguments."""

    async def ask():
        wanted = ToolCall("c", "echo", {"text": "a\ud800b"})
        yield ResponseCompleted("tool_use", Message("assistant", (wanted,)))

    asked = []

    async def approver(question):
        asked.append(question.call.arguments)
        return True

    async def story():
        model = Speaking(ask, well)
        engine = make_engine(model, echo, approver=approver, redact_tokens=tokens)
        async with engine:
            found = (await engine.run("go")).session_id
            replies = events(engine, found, ResponseCompleted)
            return replies[0].message.tool_calls[0].arguments, results(engine, found)

    said, found = run(story())
    assert asked == [said] == [{"text": "a\\ud800b"}]
    assert found == [("c", "a\\ud800b", False)]
