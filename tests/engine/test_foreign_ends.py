"""How another agent's turn ends: whatever the agent does, once, in words, and soon."""

import asyncio
from types import SimpleNamespace

import pytest
from acting import Acting, acting_engine, one_turn

from bridle.agents.base import AgentResponse
from bridle.engine.budget import Limits
from bridle.engine.foreign import turn as foreign_turn
from bridle.engine.history import NOT_RUN
from bridle.engine.tool_calls import INTERRUPTED, NOT_STOPPED
from bridle.errors import AgentError, RateLimited
from bridle.events import (
    AgentResponded,
    ApprovalAsked,
    CallIntended,
    ResponseCompleted,
    TextDelta,
    TraceEvent,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message, Text
from bridle.policy import parse_rule
from bridle.protocols.session import YES
from bridle.usage import Usage
from rig import conversation, endings, events, results, run, until

ALLOWS = (parse_rule("allow: other"),)


@pytest.fixture
def impatient(monkeypatch):
    """Nobody waits long for an agent that does not stop."""
    monkeypatch.setattr(foreign_turn, "CANCEL_SECONDS", 0.02)
    monkeypatch.setattr(foreign_turn, "TASK_CANCEL_SECONDS", 0.05)


def returning(value):
    async def act(prompt, session, can_use_tool):
        if isinstance(value, BaseException):
            raise value
        return value

    return Acting(act)


@pytest.mark.parametrize(
    "value", [None, "text", 7, SimpleNamespace(content=3), AgentResponse(b"bytes"), SystemExit(3)]
)
def test_what_is_no_response_fails_the_turn_and_nothing_else(value):
    engine, sid, result = run(one_turn(returning(value)))
    assert result.reason == "failed"
    assert result.detail.startswith("acting ") and "Traceback" not in result.detail
    assert [one.is_error for one in events(engine, sid, AgentResponded)] == [True]


def test_a_response_of_another_class_of_that_shape_will_do():
    value = SimpleNamespace(content="hi", cost=0.5, session_id="s", is_error=False)
    _, _, result = run(one_turn(returning(value)))
    assert (result.reason, result.text, result.metrics.cost) == ("done", "hi", 0.5)


def test_an_error_response_fails_the_turn_with_its_words():
    response = AgentResponse("The service is busy.", cost=0.1, is_error=True)
    engine, sid, result = run(one_turn(returning(response)))
    assert (result.reason, result.detail) == ("failed", "The service is busy.")
    assert isinstance(result.error, AgentError)
    assert conversation(engine, sid) == [("user", "go")]
    (responded,) = events(engine, sid, AgentResponded)
    assert (responded.content, responded.is_error) == ("The service is busy.", True)
    assert result.metrics.cost == 0.1


def test_an_error_of_ours_keeps_its_kind_and_its_hint():
    engine, sid, _ = run(one_turn(returning(RateLimited("slow down"))))
    (end,) = events(engine, sid, TurnEnded)
    assert (end.reason, end.detail, end.error_kind) == ("failed", "slow down", "rate_limit")
    assert end.hint == RateLimited.hint


def test_a_cost_is_counted_once_whoever_says_it():
    async def act(prompt, session, can_use_tool):
        session.emit(UsageReported(Usage(10, 5), "m", 0.2))
        return AgentResponse("ok", cost=0.2)

    _, _, result = run(one_turn(Acting(act)))
    assert (result.metrics.cost, result.metrics.tokens, result.metrics.unpriced) == (0.2, 15, 0)


def test_nobody_gets_anything_back_by_what_an_agent_says_it_used():
    async def act(prompt, session, can_use_tool):
        session.emit(UsageReported(Usage(10, 5), "m", 0.2))
        session.emit(UsageReported(Usage(-10, -5), "m", -0.2))
        session.emit(UsageReported(Usage(), "m", float("nan")))
        return AgentResponse("ok", cost=-1.0)

    _, _, result = run(one_turn(Acting(act)))
    assert (result.metrics.cost, result.metrics.tokens, result.metrics.unpriced) == (0.2, 15, 2)


def test_replies_that_say_their_use_are_counted_where_nothing_else_is():
    async def act(prompt, session, can_use_tool):
        for word in ("one", "two"):
            said = Message("assistant", (Text(word),))
            session.emit(ResponseCompleted("complete", said, Usage(10, 1)))
        return AgentResponse("two", cost=0.3)

    engine, sid, result = run(one_turn(Acting(act)))
    assert (result.metrics.cost, result.metrics.tokens) == (0.3, 22)
    assert conversation(engine, sid)[1:] == [("assistant", "one"), ("assistant", "two")]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(max_turn_tokens=20), "the limit of 20 tokens is reached: 30 are used"),
        (Limits(max_cost=0.25), "the limit of $0.25 is reached: $0.40 is spent"),
        (Limits(max_session_tokens=30), "the limit of 30 tokens a session is reached: 30 are used"),
        (Limits(max_session_cost=0.3), "the limit of $0.30 a session is reached: $0.40 is spent"),
    ],
)
def test_what_an_agent_uses_while_it_runs_counts_and_a_limit_ends_its_turn(limits, words):
    async def act(prompt, session, can_use_tool):
        for _ in range(9):
            session.emit(UsageReported(Usage(10, 5), "m", 0.2))
            await asyncio.sleep(0)
        return AgentResponse("all of it")

    agent = Acting(act)
    _, sid, result = run(one_turn(agent, limits=limits))
    assert (result.reason, result.detail) == ("budget", words)
    assert agent.cancelled == [sid]


def test_room_says_what_is_left():
    found = []

    async def act(prompt, session, can_use_tool):
        found.append(session.remaining)
        session.emit(UsageReported(Usage(10, 5), "m", 0.25))
        permission = await can_use_tool("other", {}, "A")
        await session.finish(permission.call_id, "done")
        found.append(session.remaining)
        return AgentResponse("ok")

    limits = Limits(
        max_steps=9, max_tool_calls=3, max_turn_tokens=100, max_cost=1.0, max_session_cost=0.5
    )
    run(one_turn(Acting(act), limits=limits, rules=ALLOWS))
    seen = [(one.steps, one.tool_calls, one.tokens, one.money, one.deadline) for one in found]
    assert seen == [(9, 3, 100, 0.5, None), (8, 2, 85, 0.25, None)]


def test_beyond_the_limit_of_calls_none_is_permitted_and_the_turn_ends():
    permissions = []

    async def act(prompt, session, can_use_tool):
        for number in range(3):
            permissions.append(await can_use_tool("other", {"n": number}, f"c{number}"))
            await session.finish(f"c{number}", "done")
        return AgentResponse("ok")

    engine, sid, result = run(one_turn(Acting(act), limits=Limits(max_tool_calls=1), rules=ALLOWS))
    assert (result.reason, result.detail) == ("budget", "the limit of 1 tool call is reached")
    assert [bool(one) for one in permissions] == [True, False, False]
    assert permissions[1].stops
    assert results(engine, sid) == [
        ("c0", "done", False),
        ("c1", "not run: the limit of tool calls is reached", True),
    ]


def test_the_limit_of_seconds_ends_an_agent(impatient):
    async def act(prompt, session, can_use_tool):
        await asyncio.Event().wait()

    agent = Acting(act)
    _, sid, result = run(one_turn(agent, limits=Limits(max_seconds=0.02)))
    assert (result.reason, agent.cancelled) == ("timeout", [sid])


def test_the_same_failure_over_and_over_ends_the_turn(impatient):
    async def act(prompt, session, can_use_tool):
        while True:
            permission = await can_use_tool("other", {})
            await session.finish(permission.call_id, "no such file", ok=False)

    _, _, result = run(one_turn(Acting(act), rules=ALLOWS))
    assert result.reason == "stuck"


def test_an_agent_that_does_not_hear_a_cancel_has_its_task_cancelled(impatient):
    seen = []

    async def act(prompt, session, can_use_tool):
        session.emit(TextDelta("at work"))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    _, _, result = run(interrupted(Acting(act)))
    assert (seen, result.reason) == (["cancelled"], "interrupted")


async def interrupted(agent, *tools, on=TextDelta, **rest):
    """A turn that is interrupted when something of that kind is in the log."""
    async with acting_engine(agent, *tools, **rest) as engine:
        session = await engine.session()
        turn = await session.send("go")
        await until(session, lambda event: isinstance(event, on))
        await session.interrupt()
        result = await session.wait(turn)
        assert not session.is_busy
        return engine, session.id, result


def test_an_agent_that_lets_go_of_nothing_is_given_up_and_no_longer_heard(impatient):
    async def act(prompt, session, can_use_tool):
        await can_use_tool("other", {}, "A")
        session.emit(TextDelta("at work"))
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        session.emit(TextDelta("ghost"))
        await session.finish("A", "ghost")
        return AgentResponse("ghost")

    async def cancel(session_id):
        await let_go.wait()

    async def story():
        nonlocal let_go
        let_go, ours = asyncio.Event(), asyncio.all_tasks()
        found = await interrupted(agent, rules=ALLOWS)
        let_go.set()
        await asyncio.wait(asyncio.all_tasks() - ours)
        return found

    let_go = None
    agent = Acting(act)
    agent.cancel = cancel
    engine, sid, result = run(story())
    assert result.reason == "interrupted"
    kinds = [one.kind for one in events(engine, sid, TraceEvent)]
    assert kinds == ["interrupt", "not_stopped", "unknown_call"]
    assert "ghost" not in repr(events(engine, sid))


def test_our_tool_is_stopped_with_the_turn_even_if_the_agent_is_not(impatient):
    stopped = []

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append("tool")
            raise
        return ""

    async def act(prompt, session, can_use_tool):
        output = await session.call("wait", {})
        stopped.append(output.text)
        return AgentResponse("ok")

    rules = (parse_rule("allow: wait"),)
    work = interrupted(Acting(act), wait, on=CallIntended, rules=rules)
    engine, sid, result = run(work)
    assert result.reason == "interrupted"
    assert stopped[0] == "tool"
    assert [text for _, text, _ in results(engine, sid)] == [INTERRUPTED]


def test_our_tool_that_does_not_stop_is_said_to_run_still(impatient):
    async def wait() -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "ghost"

    async def act(prompt, session, can_use_tool):
        await session.call("wait", {})
        return AgentResponse("ok")

    async def story():
        nonlocal let_go
        let_go, ours = asyncio.Event(), asyncio.all_tasks()
        rules = (parse_rule("allow: wait"),)
        found = await interrupted(Acting(act), wait, on=CallIntended, rules=rules)
        let_go.set()
        await asyncio.wait(asyncio.all_tasks() - ours)
        return found

    let_go = None
    engine, sid, _ = run(story())
    assert [text for _, text, _ in results(engine, sid)] == [NOT_STOPPED]


def test_a_stop_is_for_good_a_yes_that_comes_after_it_permits_nothing():
    async def act(prompt, session, can_use_tool):
        made.append(bool(await can_use_tool("other", {}, "A")))
        return AgentResponse("ok")

    made = []
    engine, sid, result = run(interrupted(Acting(act), on=ApprovalAsked, on_ask="wait"))
    assert (made, result.reason) == ([False], "interrupted")
    assert results(engine, sid) == [("A", NOT_RUN, True)]


def test_a_question_waits_for_an_answer_of_the_session_and_the_agent_goes_on():
    async def act(prompt, session, can_use_tool):
        permission = await can_use_tool("other", {}, "A")
        await session.finish("A", "made")
        return AgentResponse(f"{bool(permission)} {permission.word}".strip())

    async def story():
        async with acting_engine(Acting(act), on_ask="wait") as engine:
            session = await engine.session()
            turn = await session.send("go")
            asked = (await until(session, lambda one: isinstance(one, ApprovalAsked))).event
            await session.answer("A", YES, shown=asked.shown, by="me")
            return await session.wait(turn)

    assert run(story()).text == "True"


def test_an_interrupt_while_a_limit_ends_the_agent_waits_for_that_end():
    async def act(prompt, session, can_use_tool):
        session.emit(UsageReported(Usage(10, 5), "m", 0.2))
        await stopping.wait()
        await asyncio.sleep(0)
        seen.append("wound up")
        return AgentResponse("ok")

    async def cancel(session_id):
        stopping.set()

    async def story():
        nonlocal stopping
        stopping = asyncio.Event()
        async with acting_engine(agent, limits=Limits(max_turn_tokens=5)) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await stopping.wait()
            await session.interrupt()
            return await session.wait(turn)

    seen, stopping, agent = [], None, Acting(act)
    agent.cancel = cancel
    result = run(story())
    assert (seen, result.reason) == (["wound up"], "interrupted")


def test_two_sessions_at_once_over_one_agent_do_not_mix():
    async def act(prompt, session, can_use_tool):
        session.claude_session_id = f"conv-{prompt}"
        await meet.wait()
        output = await session.call("echo", {"word": prompt})
        return AgentResponse(f"{output.text} {session.claude_session_id}")

    async def echo(word: str) -> str:
        return f"echo {word}"

    async def story():
        nonlocal meet
        meet = asyncio.Barrier(2)
        async with acting_engine(Acting(act), echo, rules=(parse_rule("allow: echo"),)) as engine:
            sessions = [await engine.session(), await engine.session()]
            turns = [await one.send(word) for one, word in zip(sessions, "ab", strict=True)]
            found = [await one.wait(turn) for one, turn in zip(sessions, turns, strict=True)]
            return engine, [one.id for one in sessions], [one.text for one in found]

    meet = None
    engine, ids, texts = run(story())
    assert texts == ["echo a conv-a", "echo b conv-b"]
    assert [results(engine, one)[0][1] for one in ids] == ["echo a", "echo b"]
    assert [endings(engine, one) for one in ids] == [["done"], ["done"]]
