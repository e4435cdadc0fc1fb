"""Another agent carries a turn: its text, its calls through the gate, its end, its session id."""

import asyncio

import pytest
from acting import Acting, acting_engine, one_turn

from bridle.agents.base import AgentResponse, ToolActivity
from bridle.events import (
    AgentActivity,
    AgentAttached,
    AgentResponded,
    CallIntended,
    TextDelta,
    TurnEnded,
    UsageReported,
)
from rig import conversation, events, results, run, until


def test_what_an_agent_streams_and_answers_is_the_conversation_and_its_account_is_kept_p1_p2():
    async def act(prompt, session, can_use_tool):
        await agent.activity(ToolActivity("Grep", "looks around"))
        for word in ("Hello ", prompt):
            await agent.chunk(word)
        await agent.activity(None)
        return AgentResponse("Hello world", "conv-1", 0.25, 12, 1, ["Grep"])

    agent = Acting(act)
    engine, sid, result = run(one_turn(agent, prompt="world"))
    assert (result.reason, result.text) == ("done", "Hello world")
    assert conversation(engine, sid) == [("user", "world"), ("assistant", "Hello world")]
    assert "".join(one.text for one in events(engine, sid, TextDelta)) == "Hello world"
    assert events(engine, sid, AgentActivity) == [
        AgentActivity("Grep", "looks around"),
        AgentActivity(),
    ]
    assert events(engine, sid, AgentAttached)[-1] == AgentAttached("acting", "conv-1")
    assert events(engine, sid, AgentResponded) == [
        AgentResponded("acting", 1, "conv-1", "", 0.25, 12, 1, ("Grep",))
    ]
    assert [(one.cost, one.priced) for one in events(engine, sid, UsageReported)] == [(0.25, True)]
    assert agent.is_down


def test_a_permitted_call_is_recorded_before_and_after_and_a_refused_one_is_not_made():
    async def shell(command: str) -> str:
        return "never run by us"

    async def act(prompt, session, can_use_tool):
        for command in ("make", "rm"):
            permission = await can_use_tool("shell", {"command": command}, f"c-{command}")
            if permission:
                made.append(command)
                await session.finish(permission.call_id, f"{command} did it")
            else:
                refused.append((permission.message, permission.stops))
        return AgentResponse("done")

    async def approver(asked):
        return asked.call.arguments["command"] == "make"

    made, refused = [], []
    engine, sid, result = run(one_turn(Acting(act), shell, approver=approver))
    assert (made, result.reason) == (["make"], "done")
    assert refused == [("not run: approval was denied", False)]
    assert results(engine, sid) == [
        ("c-make", "make did it", False),
        ("c-rm", "not run: approval was denied", True),
    ]
    assert [one.call_id for one in events(engine, sid, CallIntended)] == ["c-make"]


def test_a_call_of_our_tool_is_run_through_the_gate_and_its_result_comes_back():
    async def shell(command: str) -> str:
        return f"ran {command}"

    async def act(prompt, session, can_use_tool):
        output = await session.call("shell", {"command": "make"})
        return AgentResponse(output.text)

    async def yes(asked):
        return True

    engine, sid, result = run(one_turn(Acting(act), shell, approver=yes))
    assert (result.reason, result.text) == ("done", "ran make")
    assert [(text, failed) for _, text, failed in results(engine, sid)] == [("ran make", False)]


def test_an_interrupt_cancels_the_agent_and_the_session_can_go_on():
    async def act(prompt, session, can_use_tool):
        if prompt == "again":
            return AgentResponse("here")
        await agent.chunk("half a wo")
        return await asyncio.Event().wait()

    async def cancel(session_id):
        agent.cancelled.append(session_id)
        agent.task.cancel()

    async def story():
        async with acting_engine(agent) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: isinstance(event, TextDelta))
            agent.task = next(
                one for one in asyncio.all_tasks() if "_execute" in str(one.get_coro())
            )
            await session.interrupt()
            first = await session.wait(turn)
            second = await session.wait(await session.send("again"))
            return engine, session.id, first, second

    agent = Acting(act)
    agent.cancel = cancel
    engine, sid, first, second = run(story())
    assert (first.reason, second.reason, second.text) == ("interrupted", "done", "here")
    assert agent.cancelled == [sid]
    assert conversation(engine, sid)[1] == ("assistant", "half a wo")


def test_an_agent_that_raises_fails_its_turn_in_words_and_the_session_can_go_on():
    async def act(prompt, session, can_use_tool):
        if prompt == "go":
            raise KeyError("lost")
        return AgentResponse("fine")

    async def story():
        async with acting_engine(Acting(act)) as engine:
            session = await engine.session()
            first = await session.wait(await session.send("go"))
            second = await session.wait(await session.send("again"))
            return engine, session.id, first, second

    engine, sid, first, second = run(story())
    assert (first.reason, first.detail) == ("failed", "acting failed: KeyError: 'lost'")
    assert (second.reason, second.text) == ("done", "fine")
    responded = events(engine, sid, AgentResponded)
    assert [(one.content, one.is_error) for one in responded] == [
        ("acting failed: KeyError: 'lost'", True),
        ("", False),
    ]
    assert events(engine, sid, TurnEnded)[0].error_kind == "agent"


@pytest.mark.parametrize(
    ("streamed", "content", "said"),
    [
        ("Hello", "Hello", ["Hello"]),
        ("Hello wor", "Hello world", ["Hello world"]),
        ("I look. Hello", "Hello", ["I look. Hello"]),
        ("I look.", "Hello", ["I look.", "Hello"]),
        ("", "Hello", ["Hello"]),
        ("Hello", "", ["Hello"]),
        (" ", " ", []),
    ],
)
def test_what_was_not_streamed_becomes_a_message_and_what_was_is_not_said_twice(
    streamed, content, said
):
    async def act(prompt, session, can_use_tool):
        session.emit(TextDelta(streamed))
        await agent.chunk("not heard where the agent emits its text itself")
        return AgentResponse(content)

    agent = Acting(act)
    engine, sid, result = run(one_turn(agent))
    assert [text for role, text in conversation(engine, sid) if role == "assistant"] == said
    assert "".join(one.text for one in events(engine, sid, TextDelta)).strip() == "".join(said)
    assert result.text == (said[-1] if said else "")


def test_a_conversation_that_an_agent_carried_can_be_shortened_without_a_model():
    async def act(prompt, session, can_use_tool):
        return AgentResponse("word " * 500)

    async def story():
        async with acting_engine(Acting(act)) as engine:
            session = await engine.session()
            for _ in range(5):
                await session.wait(await session.send("go"))
            before = len(session.history.transcript)
            assert await session.compact()
            return before, len(session.history.transcript)

    before, after = run(story())
    assert after < before
