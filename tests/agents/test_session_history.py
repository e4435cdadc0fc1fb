"""What Claude Code is told where its conversation begins in the middle of a session; pictures."""

from claude_rig import Whole, claude, says, workspace

import bridle
from bridle.agents.claude_code.agent import prompt_content
from bridle.agents.session_history import (
    earlier_history,
    history_position,
    missed_history,
    with_earlier_history,
    with_missed_history,
)
from bridle.events import TraceEvent
from bridle.messages import File, Image, Message, Text, ToolCall, user
from rig import events, run

GONE = "00000000-0000-4000-8000-000000000000"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADU"
    "lEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def said(text, *calls):
    return Message("assistant", (Text(text), *calls))


def test_a_lost_conversation_is_told_what_the_log_has_P5(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path), conversation=GONE)
        call = ToolCall("1", "shell", {"command": "ls"})
        session.messages = [user("call me Ada"), said("Hello Ada", call), user("and now")]
        async with claude([says("hi Ada")], tmp_path) as (agent, server):
            await agent.execute("and now", session)
            told = str(server.requests[0].body["messages"])
        assert "call me Ada" in told and "Hello Ada" in told and "used shell: command='ls'" in told
        assert told.count("and now") == 1
        (notice,) = session.traces("new_conversation")
        assert "was told what the log has" in notice["message"]

    run(work())


def test_a_session_that_our_loop_began_goes_on_with_claude(tmp_path):
    async def work():
        root, state = workspace(tmp_path), str(tmp_path / "state")
        options = {"workspace": root, "state": state}
        model = bridle.testing.Scripted(["Nice to meet you, Ada."])
        async with bridle.build_engine(model, **options) as engine:
            session = await engine.session()
            await session.wait(await session.send("call me Ada"))
        async with claude([says("You are Ada."), says("Still.")], tmp_path) as (agent, server):
            async with bridle.build_engine(agent=agent, **options) as engine:
                session = await engine.session(session.id)
                result = await session.wait(await session.send("who am I"))
                await session.wait(await session.send("sure?"))
            first, second = (str(one.body["messages"]) for one in server.requests)
        return engine, session.id, result, first, second

    engine, session_id, result, first, second = run(work())
    assert result.text == "You are Ada."
    assert "Nice to meet you, Ada." in first and "who am I" in first
    assert second.count("This session began before") == 1  # told once
    traces = [one.kind for one in events(engine, session_id, TraceEvent)]
    assert traces.count("new_conversation") == 1


def test_claude_is_told_once_what_others_did_meanwhile(tmp_path):
    async def work():
        root, state = workspace(tmp_path), str(tmp_path / "state")
        options = {"workspace": root, "state": state}

        async def turn(words, session_id=None, **more):
            async with bridle.build_engine(**more, **options) as engine:
                session = await engine.session(session_id)
                await session.wait(await session.send(words))
                return session.id

        script = [says("I am first."), says("I know."), says("Still.")]
        async with claude(script, tmp_path) as (agent, server):
            session_id = await turn("begin", agent=agent)
            model = bridle.testing.Scripted(["Nice to meet you, Ada."])
            await turn("call me Ada", session_id, provider=model)
            await turn("who am I", session_id, agent=agent)
            await turn("sure?", session_id, agent=agent)
            return [str(one.body["messages"][-1]) for one in server.requests]

    first, second, third = run(work())
    assert "session_log" not in first + third
    assert "call me Ada" in second and "Nice to meet you, Ada." in second
    assert "I am first." not in second and second.count("who am I") == 1


def test_what_was_missed_goes_by_the_prompts_and_is_all_where_the_log_was_summed_up():
    def session(*messages):
        return type("S", (), {"messages": list(messages)})()

    began = session(user("a"))
    known = history_position(began)
    after = (user("a"), said("b"), user("c"), said("d"), user("e"))
    assert missed_history(session(*after), known).startswith("The person:\nc\n\n")
    assert missed_history(session(*after[:2], user("e")), known) == ""
    assert missed_history(session(user("a sum"), said("ok"), user("e")), known).startswith(
        "The person:\na sum"
    )
    assert (
        history_position(object()),
        missed_history(began, None),
        with_missed_history("go", ""),
    ) == (None, "", "go")


def test_a_session_without_a_past_is_told_nothing_of_it():
    assert earlier_history(object()) == ""
    session = type("S", (), {"messages": [user("go")]})()
    assert earlier_history(session) == "" and with_earlier_history("go", "") == "go"


def test_pictures_and_documents_go_with_the_words(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path))
        session.prompt = (Image("image/png", PIXEL), Text("look"))
        async with claude([says("a dot")], tmp_path) as (agent, server):
            assert (await agent.execute("look", session)).content == "a dot"
            told = str(server.requests[0].body["messages"])
        assert "'type': 'image'" in told and "look" in told

    run(work())
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "eA=="}
    assert prompt_content("x", [File("application/pdf", "eA=="), Image(url="https://e/x.png")]) == [
        {"type": "document", "source": pdf},
        {"type": "image", "source": {"type": "url", "url": "https://e/x.png"}},
        {"type": "text", "text": "x"},
    ]
    assert prompt_content("x", [Text("x")]) == []
