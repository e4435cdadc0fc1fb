"""All sessions at once: by topics, with the ids that belong to them, and as a live list."""

import asyncio
import random
from contextlib import aclosing

import pytest

from bridle.engine import stream
from bridle.engine.budget import Limits
from bridle.engine.hub import LiveSummary
from bridle.errors import SessionError
from bridle.events import ResponseCompleted, ToolResultEvent, TraceEvent, TurnEnded
from bridle.protocols.provider import ProviderInfo
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from bridle.usage import Price, Usage
from rig import call, make_engine, run, seeds

PRICED = ProviderInfo("scripted", "m", price=Price(1.0, 2.0))


@tool(read_only=True)
async def look(n: int) -> str:
    """Look."""
    if n < 0:
        raise ValueError("there is nothing")
    return "k" * n


@tool
async def change() -> str:
    """Change something."""
    return "changed"


def listening(engine, topic=None, until=lambda one: one.name in ("complete", "error")):
    """A task that listens from the moment in which it is made."""
    told = engine.subscribe(topic)

    async def listen():
        seen = []
        async with aclosing(told):
            async for one in told:
                seen.append(one)
                if until(one):
                    break
        return seen

    return asyncio.create_task(listen())


def test_a_turn_is_told_by_topics_with_the_ids_that_its_records_belong_to(tmp_path):
    """S6: agent and tool events, each with session id and message id."""

    async def story():
        replies = [{"thinking": "hm", "text": "I look.", **call("look", n=2)}, "done"]
        async with make_engine(replies, look, store=JsonlStore(tmp_path)) as engine:
            listeners = [listening(engine), listening(engine, "agent")]
            tools = listening(engine, "tool", lambda one: one.name == "completed")
            session = await engine.session()
            await session.wait(await session.send("go"))
            everything, agent = await asyncio.gather(*listeners)
            messages = [(one.role, one.id) for one in session.history.transcript]
            return session.id, everything, agent, await tools, messages

    session_id, everything, agent, tools, messages = run(story())
    first, second = [one for one in everything if one.name == "reply"]
    assert messages[1:] == [
        ("assistant", first.message_id),
        ("tool", f"{first.message_id}r"),
        ("assistant", second.message_id),
    ]
    assert {one.session_id for one in everything} == {session_id}
    assert [(one.name, one.message_id) for one in agent] == [
        ("thinking_delta", first.draft),
        ("text_delta", first.draft),
        ("tool_call", first.draft),
        ("usage", first.draft),
        ("reply", first.message_id),
        ("tool_result", f"{first.message_id}r"),
        ("text_delta", second.draft),
        ("usage", second.draft),
        ("reply", second.message_id),
        ("complete", second.message_id),
    ]
    assert [(one.name, one.message_id) for one in tools] == [
        ("started", first.message_id),
        ("completed", first.message_id),
    ]
    assert first.draft == f"r{agent[0].record.seq}" != second.draft
    assert [one for one in everything if one.topic == "agent"] == agent
    assert [one for one in everything if one.topic == "tool"] == tools


def test_what_fails_is_told_as_failed(tmp_path):
    """S6: a tool that fails, and a turn that does."""

    async def story():
        replies = [call("look", n=-1), {"error": {"message": "no more", "status": 500}}]
        async with make_engine(replies, look, store=JsonlStore(tmp_path)) as engine:
            seen = listening(engine)
            result = await engine.run("go")
            return result.reason, await seen

    reason, seen = run(story())
    named = [(one.topic, one.name) for one in seen if one.topic != "sessions"]
    assert reason == "failed"
    assert named == [
        ("agent", "tool_call"),
        ("agent", "usage"),
        ("agent", "reply"),
        ("tool", "started"),
        ("agent", "tool_result"),
        ("tool", "failed"),
        ("agent", "error"),
    ]
    reply = next(one for one in seen if one.name == "reply")
    assert seen[-1].message_id == reply.message_id
    assert isinstance(seen[-1].record.event, TurnEnded)


def test_a_turn_that_fails_before_any_reply_belongs_to_none():
    """S6: not to the reply of the turn before."""

    async def story():
        async with make_engine(["fine", {"error": {"status": 500}}]) as engine:
            seen = listening(engine, "agent", lambda one: one.name == "error")
            session = await engine.session()
            for prompt in ("one", "two"):
                await session.wait(await session.send(prompt))
            return [(one.name, one.message_id) for one in await seen]

    seen = run(story())
    assert seen[-1] == ("error", "")
    assert ("complete", "") not in seen


def test_questions_and_answers_belong_to_the_reply_that_asked():
    """S6: approval_required, approval_answered."""

    async def story():
        async with make_engine([call("change"), "ok"], change, on_ask="wait") as engine:
            asked = listening(engine, "agent", lambda one: one.name == "approval_required")
            rest = listening(engine, "agent")
            session = await engine.session()
            turn = await session.send("go")
            question = (await asked)[-1].record.event
            await session.answer(question.call.id, True, shown=question.shown, by="me")
            await session.wait(turn)
            return await rest

    seen = run(story())
    reply = next(one for one in seen if one.name == "reply")
    asked = [one for one in seen if one.name.startswith("approval")]
    assert [(one.name, one.message_id) for one in asked] == [
        ("approval_required", reply.message_id),
        ("approval_answered", reply.message_id),
    ]


def test_one_who_begins_to_listen_between_call_and_result_is_told_the_right_message(tmp_path):
    async def story():
        there, go_on = asyncio.Event(), asyncio.Event()

        @tool(read_only=True)
        async def wait() -> str:
            there.set()
            await go_on.wait()
            return "waited"

        async with make_engine([call("wait"), "ok"], wait, store=JsonlStore(tmp_path)) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await there.wait()
            await session._log.settled()
            seen = listening(engine, "tool", lambda one: one.name == "completed")
            go_on.set()
            await session.wait(turn)
            return (await seen)[-1], session.history.transcript[1]

    told, reply = run(story())
    assert (told.name, told.message_id) == ("completed", reply.id)
    assert isinstance(told.record.event, ToolResultEvent)


def test_several_sessions_are_told_to_several_listeners(tmp_path):
    """S6: several subscribers; every record of every session, in each session's own order."""

    async def story():
        async with make_engine(
            lambda request: request.messages[-1].content, store=JsonlStore(tmp_path)
        ) as engine:
            ended = dict.fromkeys(range(3), 0)

            def until(who):
                def all_ended(one):
                    ended[who] += one.name == "complete"
                    return ended[who] == 8

                return all_ended

            listeners = [listening(engine, "agent", until(who)) for who in ended]
            results = await asyncio.gather(*(engine.run(f"prompt {n}") for n in range(8)))
            return results, await asyncio.gather(*listeners)

    results, seen = run(story())
    assert seen[0] == seen[1] == seen[2]
    for result in results:
        mine = [one for one in seen[0] if one.session_id == result.session_id]
        assert [one.name for one in mine] == ["text_delta", "usage", "reply", "complete"]
        assert mine[0].record.event.text == result.text
        assert isinstance(mine[2].record.event, ResponseCompleted)


@pytest.mark.parametrize("seed", seeds(50))
def test_what_streams_under_a_name_is_the_reply_that_had_that_name(seed, tmp_path):
    """S6: the message ids, over sessions and turns that succeed and fail as it comes."""

    async def story():
        chance = random.Random(seed)

        def reply(request):
            text = "".join(chance.choice("ab ") for _ in range(chance.randrange(1, 90))) + "."
            pause = chance.choice([0.0, 0.001])
            more = chance.choice([{}, {}, call("look", n=1), {"error": {"status": 500}}])
            return {"text": text, "thinking": "hm" * chance.randrange(2), "pause": pause, **more}

        store = JsonlStore(tmp_path)
        async with make_engine(reply, look, store=store, limits=Limits(max_steps=4)) as engine:
            seen = listening(engine, "agent", lambda one: False)
            sessions = [await engine.session() for _ in range(4)]
            for _ in range(3):
                turns = [(one, await one.send("go")) for one in sessions]
                await asyncio.gather(*(one.wait(turn) for one, turn in turns))
            known = {one.id: [each.id for each in one.history.transcript] for one in sessions}
            await engine.close()
            return await seen, known

    told, known = run(story())
    streamed = {}
    for one in told:
        if one.name == "text_delta":
            key = one.session_id, one.message_id
            streamed[key] = streamed.get(key, "") + one.record.event.text
    replies = [one for one in told if one.name == "reply"]
    for one in replies:
        assert streamed.pop((one.session_id, one.draft)) == one.record.event.message.content
        assert one.message_id in known[one.session_id]
    ends = [one for one in told if one.name in ("complete", "error")]
    assert len(ends) == 12
    named = {(one.session_id, one.message_id) for one in replies}
    assert all(not one.message_id or (one.session_id, one.message_id) in named for one in ends)
    assert len(streamed) == sum(one.record.event.reason == "failed" for one in ends)


def test_a_slow_listener_is_dropped_with_a_marker_and_the_others_hear_all(monkeypatch):
    """S6: a slow one never blocks the agent."""
    monkeypatch.setattr(stream.Channel.join, "__defaults__", (20,))

    async def story():
        async with make_engine([call("look", n=1)] * 30 + ["end"], look) as engine:
            slow = engine.subscribe()
            quick = listening(engine, "tool", lambda one: False)
            result = await engine.run("go")
            late = [one async for one in slow]
            listeners = [len(channel) for channel in engine._hub._channels.values()]
            await engine.close()
            return result.reason, late, await quick, listeners

    reason, late, quick, listeners = run(story())
    assert reason == "done"
    assert [one.name for one in late] == ["resync"]
    assert late[0].record.event == TraceEvent("resync")
    assert [one.name for one in quick] == ["started", "completed"] * 30
    assert listeners == [0, 0, 1, 0]


def test_sessions_tell_the_hub_only_while_somebody_listens():
    async def story():
        async with make_engine(["ok"] * 4) as engine:
            session = await engine.session()
            told = []
            before = session._log._on_written
            async with aclosing(engine.subscribe()):
                during = session._log._on_written
                other = await engine.session()
                told.append(other._log._on_written is not None)
            told.append(other._log._on_written is not None)
            return before, during is not None, session._log._on_written, told

    assert run(story()) == (None, True, None, [True, False])


def test_a_topic_that_there_is_not_is_refused():
    async def story():
        async with make_engine(["ok"]) as engine:
            with pytest.raises(SessionError) as refused:
                engine.subscribe("weather")
            return refused.value.message, refused.value.hint

    assert run(story()) == ("there is no topic 'weather'", "Choose agent, tool, sessions.")


@pytest.mark.parametrize("kind", ["disk", "memory"])
def test_the_list_of_sessions_is_live(kind, tmp_path):
    """S6: busy, waiting for an answer, cost: told when they change, and only then."""

    async def story():
        used = {"usage": Usage(1_000_000, 500_000)}
        model = Scripted([{**call("change"), **used}, {"text": "ok", **used}], info=PRICED)
        store = JsonlStore(tmp_path) if kind == "disk" else None
        async with make_engine(model, change, on_ask="wait", store=store) as engine:
            closed = listening(engine, "sessions", lambda one: one.name == "closed")
            session = await engine.session()
            asked = listening(engine, "agent", lambda one: one.name == "approval_required")
            turn = await session.send("change it")
            question = (await asked)[-1].record.event
            during = engine.summaries()
            await session.answer(question.call.id, True, shown=question.shown, by="me")
            await session.wait(turn)
            await session.close()
            return session.id, during, await closed, engine.summaries()

    session_id, during, told, after = run(story())
    assert after == []
    assert [(one.waiting, one.busy, one.cost) for one in during] == [(1, True, 2.0)]
    assert {(one.session_id, one.topic) for one in told} == {(session_id, "sessions")}
    lines = [one.summary for one in told]
    assert [one.name for one in told] == ["opened", *["changed"] * (len(told) - 2), "closed"]
    seqs = [line.seq for line in lines]
    assert seqs == sorted(seqs)
    bare = [(line.title, line.busy, line.waiting, line.cost) for line in lines]
    assert bare[0] == ("", False, 0, 0.0)
    assert ("change it", True, 1, 2.0) in bare
    assert bare.count(bare[-1]) == 2  # changed, and then closed as it was
    last = LiveSummary(session_id, "change it", cost=4.0, tokens=3_000_000, seq=seqs[-1])
    assert lines[-1] == last
