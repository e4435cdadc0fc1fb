"""Another agent's turn that rests for a person, goes on, is steered, or whose process dies."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from acting import Acting, acting_engine

from bridle.agents.base import AgentResponse
from bridle.engine.foreign import turn as foreign_turn
from bridle.engine.foreign.calls import PARKED_CALL
from bridle.engine.history import NOT_RUN, UNKNOWN
from bridle.engine.tool_calls import NOT_STOPPED
from bridle.events import (
    AgentAttached,
    ApprovalAsked,
    CallIntended,
    ResponseCompleted,
    TextDelta,
    TraceEvent,
    TurnParked,
)
from bridle.messages import Message, ToolCall
from bridle.policy import parse_rule
from bridle.protocols.session import NO, YES
from bridle.stores.jsonl import JsonlStore
from rig import endings, events, is_valid, results, run, until

done = []


async def mark(word: str) -> str:
    """A tool of ours with an effect."""
    done.append(word)
    return f"marked {word}"


def asks(name, arguments, seen):
    """An agent that wants to make this call; what it was told in each run is seen."""

    async def act(prompt, session, can_use_tool):
        seen.append((prompt, session.claude_session_id))
        if session.claude_session_id is None:
            session.claude_session_id = "conv-1"
            permission = await can_use_tool(name, arguments, "A")
            seen.append((permission.allowed, permission.message, permission.stops))
            return AgentResponse("I was refused")  # nobody wants to hear it
        again = await can_use_tool(name, arguments, "B") if name == "other" else None
        if again:
            await session.finish("B", "made by the agent")
        return AgentResponse("went on")

    return Acting(act)


async def parked(store, agent, answer, *, elsewhere=True):
    """A turn that parks, and goes on with this answer, maybe in another engine."""
    async with acting_engine(agent, mark, store=store, on_ask="park") as engine:
        session = await engine.session()
        first = await session.wait(await session.send("go"))
        assert (first.reason, session.is_parked) == ("parked", True)
        if not elsewhere:
            return engine, session.id, await answered(session, answer)
    async with acting_engine(agent, mark, store=store, on_ask="park") as engine:
        again = await engine.session(session.id)
        return engine, session.id, await answered(again, answer)


async def answered(session, answer):
    (asked,) = session.history.pending.values()
    turn = session.turn
    await session.answer("A", answer, shown=asked.shown, by="me")
    result = await session.wait(turn)
    assert is_valid(session.history.transcript)
    return result


def test_a_parked_turn_goes_on_elsewhere_our_tool_runs_what_was_shown_and_the_agent_is_told(
    tmp_path,
):
    seen = []
    done.clear()
    agent = asks("mark", {"word": "x"}, seen)
    engine, sid, result = run(parked(JsonlStore(tmp_path), agent, YES))
    assert (result.reason, result.text) == ("done", "went on")
    assert done == ["x"]
    assert results(engine, sid) == [("A", "marked x", False)]
    assert seen[:2] == [("go", None), (False, PARKED_CALL, True)]
    prompt, conversation = seen[2]
    assert conversation == "conv-1"
    assert 'mark {"word":"x"}' in prompt and "marked x" in prompt
    assert endings(engine, sid) == ["done"]
    assert "refused" not in repr([one.message for one in events(engine, sid, ResponseCompleted)])


def test_what_was_sent_to_steer_a_parked_turn_is_told_when_it_goes_on(tmp_path):
    prompts, seen = [], []

    async def act(prompt, session, can_use_tool):
        prompts.append(prompt)
        if prompt == "go":
            await can_use_tool("mark", {"word": "x"}, "A")
        else:
            seen.append(session.messages[0].content)
        return AgentResponse("ok")

    async def story():
        store = JsonlStore(tmp_path)
        async with acting_engine(Acting(act), mark, store=store, on_ask="park") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            await session.send("and be quick", when="next_step")
            return await answered(session, YES)

    assert run(story()).reason == "done"
    _, second = prompts
    assert second.endswith("\n\nand be quick") and "marked x" in second
    assert seen == ["go"]  # what it was about is there for an agent that remembers nothing


def test_a_no_is_told_and_nothing_is_run(tmp_path):
    seen = []
    done.clear()
    agent = asks("mark", {"word": "x"}, seen)
    engine, sid, result = run(parked(JsonlStore(tmp_path), agent, NO, elsewhere=False))
    assert (result.reason, done) == ("done", [])
    assert results(engine, sid) == [("A", "not run: approval was denied", True)]
    assert "not run: approval was denied" in seen[2][0]


def test_what_only_the_agent_can_do_it_may_do_once_with_exactly_those_arguments(tmp_path):
    seen = []
    agent = asks("other", {"n": 1}, seen)
    engine, sid, result = run(parked(JsonlStore(tmp_path), agent, YES))
    assert result.reason == "done"
    first, second = results(engine, sid)
    assert first[0] == "A" and "may be made once" in first[1]
    assert second == ("B", "made by the agent", False)
    assert [one.call_id for one in events(engine, sid, CallIntended)] == ["B"]
    assert len(events(engine, sid, ApprovalAsked)) == 1


def test_a_yes_for_one_call_of_the_agent_is_none_for_a_second_or_another(tmp_path):
    permissions = []

    async def act(prompt, session, can_use_tool):
        if session.claude_session_id is None:
            session.claude_session_id = "conv"
            await can_use_tool("other", {"n": 1}, "A")
            return AgentResponse("")
        for number, call_id in ((1, "B"), (2, "C")):
            permissions.append(bool(await can_use_tool("other", {"n": number}, call_id)))
            await session.finish(call_id, "made")
        return AgentResponse("on")

    async def story():
        async with acting_engine(Acting(act), store=JsonlStore(tmp_path), on_ask="park") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            result = await answered(session, YES)
            return engine, session.id, result

    engine, sid, result = run(story())
    assert (permissions, result.reason) == ([True, False], "parked")
    assert [one.calls for one in events(engine, sid, TurnParked)] == [("A",), ("C",)]


def test_calls_beside_the_one_that_waits_are_put_in_order_before_the_turn_rests(tmp_path):
    async def act(prompt, session, can_use_tool):
        announced = (ToolCall("N", "other", {}), ToolCall("A", "mark", {"word": "x"}))
        session.emit(ResponseCompleted("tool_use", Message("assistant", announced)))
        assert await can_use_tool("free", {}, "F")  # allowed, and never reported
        assert not await can_use_tool("mark", {"word": "x"}, "A")
        assert not await can_use_tool("mark", {"word": "y"}, "L")  # too late to be asked about
        return AgentResponse("")

    async def story():
        rules = (parse_rule("allow: free"),)
        store = JsonlStore(tmp_path)
        async with acting_engine(
            Acting(act), mark, store=store, on_ask="park", rules=rules
        ) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            assert [one.call.id for one in session.history.open_calls] == ["A"]
            return engine, session.id, result

    engine, sid, result = run(story())
    assert result.reason == "parked"
    assert results(engine, sid) == [("F", UNKNOWN, True), ("N", UNKNOWN, True)]


def test_a_session_that_is_closed_while_a_person_is_asked_leaves_its_turn_parked(tmp_path):
    async def act(prompt, session, can_use_tool):
        await can_use_tool("mark", {"word": "x"}, "A")
        return AgentResponse("")

    async def story():
        store = JsonlStore(tmp_path)
        async with acting_engine(Acting(act), mark, store=store, on_ask="wait") as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, lambda event: isinstance(event, ApprovalAsked))
        return engine, session.id

    engine, sid = run(story())
    assert endings(engine, sid) == []
    assert events(engine, sid)[-1] == TurnParked(1, ("A",))


def test_a_tool_of_ours_that_does_not_stop_while_a_turn_goes_on_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_turn, "TASK_CANCEL_SECONDS", 0.02)

    async def stubborn() -> str:
        begun.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "ghost"

    async def act(prompt, session, can_use_tool):
        await session.call("stubborn", {}, "A")
        return AgentResponse("")

    async def story():
        nonlocal begun, let_go
        begun, let_go, ours = asyncio.Event(), asyncio.Event(), asyncio.all_tasks()
        store = JsonlStore(tmp_path)
        async with acting_engine(Acting(act), stubborn, store=store, on_ask="park") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (asked,) = session.history.pending.values()
            await session.answer("A", YES, shown=asked.shown, by="me")
            await begun.wait()
            await session.interrupt()
            sid = session.id
        let_go.set()
        await asyncio.wait(asyncio.all_tasks() - ours)
        return engine, sid

    begun = let_go = None
    engine, sid = run(story())
    assert (results(engine, sid), endings(engine, sid)) == (
        [("A", NOT_STOPPED, True)],
        ["interrupted"],
    )


def test_what_was_sent_to_steer_is_the_prompt_of_the_next_turn():
    prompts = []

    async def act(prompt, session, can_use_tool):
        prompts.append(prompt)
        session.emit(TextDelta("at work"))
        if prompt == "go":
            await session.call("hold", {})
        return AgentResponse("ok")

    async def story():
        async def hold() -> str:
            await session.send("rather this", when="next_step")
            return "held"

        rules = (parse_rule("allow: hold"),)
        async with acting_engine(Acting(act), hold, rules=rules) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            await until(session, lambda event: getattr(event, "turn", 0) == 2)
            while session.is_busy:
                await session.wait(2)
            return engine, session.id

    engine, sid = run(story())
    assert prompts == ["go", "rather this"]
    assert endings(engine, sid) == ["done", "done"]


def test_after_a_rewind_the_agent_begins_another_conversation_of_its_own():
    async def act(prompt, session, can_use_tool):
        found.append(session.claude_session_id)
        session.state = {"spent": 1}
        return AgentResponse("ok", "conv")

    async def story():
        async with acting_engine(Acting(act)) as engine:
            session = await engine.session()
            for _ in range(2):
                await session.wait(await session.send("go"))
            await session.rewind(0)
            await session.wait(await session.send("go"))
            return engine, session.id

    found = []
    engine, sid = run(story())
    assert found == [None, "conv", None]
    assert events(engine, sid, AgentAttached)[2] == AgentAttached("acting", "conv", {"spent": 1})


DYING = """
import asyncio, sys
sys.path[:0] = [{tests!r}, {here!r}]
from acting import Acting, acting_engine
from bridle.policy import parse_rule
from bridle.stores.jsonl import JsonlStore

async def act(prompt, session, can_use_tool):
    session.claude_session_id = "conv-1"
    permission = await can_use_tool("other", {{"n": 1}}, "A")
    print("under way" if permission else "refused", session.id, flush=True)
    await asyncio.Event().wait()

async def main():
    rules = (parse_rule("allow: other"),)
    async with acting_engine(Acting(act), store=JsonlStore({state!r}), rules=rules) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))

asyncio.run(main())
"""


def test_after_a_kill_the_intent_without_a_result_is_unknown_and_the_agents_session_is_found_again(
    tmp_path,
):
    here = Path(__file__).parent
    words = {"tests": str(here.parent), "here": str(here), "state": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", DYING.format(**words)], stdout=subprocess.PIPE, text=True
    ) as child:
        said, _, sid = child.stdout.readline().strip().rpartition(" ")
        os.kill(child.pid, signal.SIGKILL)
    assert said == "under way"

    async def act(prompt, session, can_use_tool):
        return AgentResponse(json.dumps([prompt, session.claude_session_id]))

    async def story():
        async with acting_engine(Acting(act), store=JsonlStore(tmp_path)) as engine:
            session = await engine.session(sid)
            result = await session.wait(await session.send("and now?"))
            assert is_valid(session.history.transcript)
            return engine, result

    engine, result = run(story())
    assert result.text == '["and now?", "conv-1"]'
    assert results(engine, sid) == [("A", UNKNOWN, True)]
    assert endings(engine, sid) == ["interrupted", "done"]
    assert "unknown_call" in [one.kind for one in events(engine, sid, TraceEvent)]


def test_after_a_kill_while_a_person_was_asked_the_turn_goes_on_when_the_answer_is_there(tmp_path):
    """What the log of a killed process holds: the question, a call beside it, and no end."""
    seen = []
    done.clear()

    async def act(prompt, session, can_use_tool):
        said = (ToolCall("N", "other", {}),)
        session.emit(ResponseCompleted("tool_use", Message("assistant", said)))
        await can_use_tool("mark", {"word": "x"}, "A")
        return AgentResponse("")

    async def first():
        store = JsonlStore(tmp_path)
        async with acting_engine(Acting(act), mark, store=store, on_ask="park") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return session.id

    sid = run(first())
    path = JsonlStore(tmp_path).path(sid)
    lines = path.read_bytes().splitlines(keepends=True)
    kinds = [type(one.event) for one in JsonlStore(tmp_path).read(sid)]
    path.write_bytes(b"".join(lines[: kinds.index(ApprovalAsked) + 1]))

    async def second():
        store = JsonlStore(tmp_path)
        agent = asks("mark", {"word": "x"}, seen)
        async with acting_engine(agent, mark, store=store, on_ask="park") as engine:
            session = await engine.session(sid)
            result = await answered(session, YES)
            return engine, result

    engine, result = run(second())
    assert done == ["x"]
    assert [one for one in results(engine, sid) if one[0] == "N"] == [("N", NOT_RUN, True)]
    assert ("A", "marked x", False) in results(engine, sid)
    assert "marked x" in seen[0][0] and result.reason == "parked"
