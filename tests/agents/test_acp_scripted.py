"""The ACP agent against a scripted program, and a session made by hand."""

import asyncio
import sys

import pytest

from agents.acp_rig import HandMade, one_prompt, scripted, started
from bridle.agents.acp import AcpAgent
from bridle.agents.base import BaseAgent, ToolActivity
from bridle.errors import AgentError, ConfigError, MissingExtra, SessionBusy
from bridle.events import (
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    Todo,
    TodosChanged,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Image, Text
from bridle.protocols.agent import Permission
from bridle.usage import Usage
from rig import run

KEY = {"id": "api-key", "name": "API key"}
SAY = {"say": "{result}"}
BROWSER = {"id": "oauth", "name": "Sign in with a browser"}


def notices(session):
    return [one.detail["message"] for one in session.told(TraceEvent) if one.kind == "notice"]


def test_what_it_says_thinks_plans_and_uses_becomes_our_events(tmp_path):
    """(P7) Text as it comes, and the tool that is at work."""
    steps = [
        *({"think": "hm"}, {"say": "Hel"}, {"say": "lo"}),
        {"plan": [{"content": "first", "status": "completed"}, {"content": "then"}]},
        {"commands": ["help"]},
        {"call": {"id": "c", "title": "Look", "kind": "read", "paths": [str(tmp_path / "a")]}},
        {"update": {"id": "c", "status": "completed", "text": "found"}},
        *({"usage": {"cost": 0.25}}, {"usage": {"cost": 0.75}}, {"say": "Done."}),
        {"tokens": {"totalTokens": 9, "inputTokens": 5, "outputTokens": 3, "cachedReadTokens": 1}},
    ]
    session, activity = HandMade(tmp_path), []
    session.state = {"cost": 0.2}
    session.claude_session_id = ""

    async def story():
        async def working(now):
            activity.append(now)

        async with started(scripted(tmp_path, steps, [{"usage": {"cost": 1.0}}])) as agent:
            assert isinstance(agent, BaseAgent)
            first = await agent.execute("go", session, on_tool_activity=working)
            return first, await agent.execute("go", session)

    first, second = run(story())
    assert (first.content, first.is_error, first.num_turns) == ("Done.", False, 2)
    assert (first.tools_used, first.cost, second.cost) == (["read"], 0.75, 0.25)
    assert first.session_id == session.claude_session_id
    assert activity == [ToolActivity("read", "Look"), None]
    said = [one for one in session.events if not isinstance(one, TraceEvent)][:4]
    todos = (Todo("first", "completed"), Todo("then"))
    assert said == [ThinkingDelta("hm"), TextDelta("Hel"), TextDelta("lo"), TodosChanged(todos)]
    spent = [(one.usage, one.cost) for one in session.told(UsageReported)]
    assert spent == [
        *((Usage(), 0.25), (Usage(), 0.5)),
        *((Usage(5, 3, 1), 0.0), (Usage(), 0.25)),
    ]
    assert session.state == {"cost": 1.0}
    assert "ungated" not in [one.kind for one in session.told(TraceEvent)]  # it only read
    assert len(session.told(ResponseCompleted)) == 1  # ... and stands in the log all the same


def test_the_yes_is_for_once_and_without_such_an_option_it_is_no(tmp_path):
    """Never `allow_always`; what was allowed and could not be said is reported as not run."""
    always = [{"id": "a", "kind": "allow_always"}, {"id": "r", "kind": "reject_always"}]
    asks = [
        {"ask": {"id": "c1", "kind": "execute", "input": {"command": "ls"}}},
        {"say": "{result} "},
        {"ask": {"id": "c2", "kind": "execute", "input": {"command": "ls"}, "options": always}},
        {"say": "{result} "},
        {"ask": {"id": "c3", "kind": "fetch", "input": {"url": "http://x"}}},
        {"say": "{result}"},
    ]
    session = HandMade(tmp_path, refuses=("web_fetch",))
    response = run(one_prompt(scripted(tmp_path, asks), session))
    assert response.content == "allowed refused refused"
    assert [name for name, _ in session.asked] == ["shell", "shell", "web_fetch"]
    assert session.finished == [("c2", "not run: the agent offers no way to allow it once", False)]


def test_a_change_of_several_files_is_allowed_as_a_whole_or_not_at_all(tmp_path):
    diffs = [{"path": str(tmp_path / name), "new": "x"} for name in ("a", "b")]
    ask = [{"ask": {"id": "c", "kind": "edit", "diffs": diffs}}, {"say": "{result}"}]
    session, number = HandMade(tmp_path), 0

    async def gate(name, arguments, context=None):
        nonlocal number
        number += 1
        found = await session.can_use_tool(name, arguments, context)
        return found if number == 1 else False  # somebody else's gate may say it so

    async def story():
        async with started(scripted(tmp_path, ask)) as agent:
            return await agent.execute("go", session, can_use_tool=gate)

    assert run(story()).content == "refused"
    assert session.finished == [("c", "not run: another part of the same call was refused", False)]


def test_what_was_allowed_is_written_for_it_without_a_second_question(tmp_path):
    """Exactly that change, and once: anything else is asked about."""
    place = tmp_path / "a.txt"
    place.write_text("one\n")
    ask = {"id": "c", "kind": "edit", "diffs": [{"path": str(place), "old": "one", "new": "two"}]}
    steps = [
        {"ask": ask},
        {"write": {"path": str(place), "content": "two\n"}},
        {"write": {"path": str(place), "content": "three\n"}},
        {"update": {"id": "c", "status": "completed", "text": "ok"}},
        {"say": "{result}"},
    ]
    session = HandMade(tmp_path, refuses=("write",))
    response = run(one_prompt(scripted(tmp_path, steps), session))
    assert response.content == "error -32603: no"
    assert place.read_text() == "two\n"
    assert [name for name, _ in session.asked] == ["edit", "write"]
    assert session.finished == [("c", "ok", True)]


def test_a_promise_is_kept_once(tmp_path):
    place, asked = tmp_path / "new.txt", []
    write = {"write": {"path": str(place), "content": "x"}}
    ask = {"id": "c", "kind": "edit", "diffs": [{"path": str(place), "new": "x"}]}

    async def gate(name, arguments, context=None):
        asked.append((name, arguments))
        return Permission(len(asked) == 1, "no", call_id=context or "")

    async def story():
        command = scripted(tmp_path, [{"ask": ask}, write, {"say": "{result}, "}, write, SAY])
        async with started(command) as agent:
            return await agent.execute("go", HandMade(tmp_path), can_use_tool=gate)

    assert run(story()).content == "written, error -32603: no"
    assert asked == [("write", {"path": "new.txt", "content": "x"})] * 2


def test_a_file_keeps_its_encoding_and_lines_are_counted_from_one(tmp_path):
    place = tmp_path / "a.txt"
    place.write_bytes("\ufeffä\r\nb\r\nc".encode())
    steps = [
        *({"read": {"path": str(place), "line": 2, "limit": 1}}, {"say": "<{result}>"}),
        *({"read": {"path": str(place), "line": 3}}, {"say": "<{result}>"}),
        *({"read": {"path": str(tmp_path / "none")}}, {"say": "<{result}>"}),
        {"write": {"path": str(place), "content": "é\r\n"}},
    ]
    session = HandMade(tmp_path)
    response = run(one_prompt(scripted(tmp_path, steps), session))
    second, third, none = response.content.removeprefix("<").removesuffix(">").split("><")
    assert (second, third) == ("b\r\n", "c")
    assert none.startswith("error -32002:")
    assert place.read_bytes() == "\ufeffé\r\n".encode()


def test_it_is_set_to_ask_and_to_plan_by_its_modes_or_by_its_settings(tmp_path):
    turns = ([{"prompt": 1}], [{"prompt": 1}], [{"mode": "yolo"}], [{"prompt": 1}])
    modes = {"modes": ["yolo", "Ask", "x#plan"], "mode": "yolo"}

    async def story(**more):
        session = HandMade(tmp_path)
        async with started(scripted(tmp_path, *turns, **modes, **more)) as agent:
            first = await agent.execute("p", session)
            session.mode = "plan"
            second = await agent.execute("p", session)
            await agent.execute("p", session)  # it leaves the mode by itself
            third = await agent.execute("p", session)
        return [one.content for one in (first, second, third)]

    said = ["mode=Ask prompt=p", "mode=x#plan prompt=p", "mode=x#plan prompt=p"]
    assert run(story()) == said
    assert run(story(as_option=True)) == said


def test_pictures_and_plan_mode_are_told_to_those_who_lack_them(tmp_path):
    async def story(**more):
        session = HandMade(tmp_path, mode="plan")
        session.prompt = (Text("look"), Image("image/png", "aGk="))
        command = scripted(tmp_path, [{"prompt": 1}], **more)
        return (await one_prompt(command, session, "look")).content

    sees = run(story(images=True, modes=["auto", "plan"]))
    assert sees == "mode=plan prompt=look<image>"
    blind = run(story())
    assert "This session is in plan mode" in blind
    assert blind.endswith("look[a picture, image/png, that this agent cannot see]")


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ({"load": True}, "Resource not found"),
        (
            {"resume": True, "stale": [-32603, "Internal error", {"details": "no rollout found"}]},
            "Internal error no rollout found",
        ),
        ({}, "this agent cannot resume a conversation"),
    ],
)
def test_a_conversation_that_is_gone_is_begun_anew_and_the_person_is_told(tmp_path, agent, why):
    """(P5) Whatever the agent says of it, and never silently."""
    session = HandMade(tmp_path)
    session.claude_session_id, session.state = "long-gone", {"cost": 3.0}
    response = run(one_prompt(scripted(tmp_path, [{"say": "Hello."}], **agent), session))
    assert response.content == "Hello."
    assert session.claude_session_id == response.session_id != "long-gone"
    (notice,) = notices(session)
    assert why in notice
    assert "A new one was started" in notice
    assert session.state["cost"] is None


def test_it_logs_in_by_itself_where_that_takes_no_person(tmp_path):
    command = scripted(tmp_path, [{"say": "In."}], login="api-key", methods=[BROWSER, KEY])
    assert run(one_prompt(command, HandMade(tmp_path))).content == "In."


def test_where_a_person_has_to_log_in_it_says_how(tmp_path):
    variable = {"type": "env_var", "id": "env", "name": "Variable", "vars": [{"name": "SOME_KEY"}]}
    terminal = {"type": "terminal", "id": "tty", "name": "Terminal", "args": ["login"]}
    agent = {"login": "env", "methods": [BROWSER, variable, terminal]}
    command = scripted(tmp_path, [{"say": "In."}], **agent)
    with pytest.raises(ConfigError) as caught:
        run(one_prompt(command, HandMade(tmp_path)))
    assert "wants a login first" in caught.value.message
    assert "set SOME_KEY in the agent's env" in caught.value.hint
    assert "script.json login` in a terminal" in caught.value.hint
    assert "auth='oauth'" in caught.value.hint
    given = run(one_prompt(command, HandMade(tmp_path), env={"SOME_KEY": "s"}))
    assert given.content == "In."


def test_a_version_that_we_do_not_speak_is_said(tmp_path):
    with pytest.raises(ConfigError, match="speaks version 9 of the Agent Client Protocol"):
        run(one_prompt(scripted(tmp_path, version=9), HandMade(tmp_path)))


def test_limits_and_refusals_of_the_agent_are_errors_and_the_program_stays(tmp_path):
    turns = [{"say": "a"}, {"end": "max_tokens"}], [{"fail": {"message": "busy"}}], [{"say": "b"}]

    async def story():
        session = HandMade(tmp_path)
        async with started(scripted(tmp_path, *turns)) as agent:
            first = await agent.execute("go", session)
            with pytest.raises(AgentError, match="The agent could not answer: busy"):
                await agent.execute("go", session)
            third = await agent.execute("go", session)
        assert first.session_id == third.session_id
        return (first.content, first.is_error), (third.content, third.is_error)

    limit = "The agent stopped: its reply reached its token limit."
    assert run(story()) == ((limit, True), ("b", False))


@pytest.mark.parametrize(("can_load", "kept"), [(True, [True]), (False, [True, True])])
def test_two_sessions_at_once_have_a_program_each_and_few_idle_ones_are_kept(
    tmp_path, can_load, kept
):
    """One that could not be resumed is not ended."""

    async def story():
        first, second = HandMade(tmp_path), HandMade(tmp_path)
        second.id = "another"
        begun = [asyncio.Event(), asyncio.Event()]
        first.emit, second.emit = (lambda event, one=one: one.set() for one in begun)
        command = scripted(tmp_path, [{"say": "x"}, {"wait": 1}], load=can_load)
        async with started(command, keep=1) as agent:
            runs = [asyncio.ensure_future(agent.execute("go", one)) for one in (first, second)]
            await asyncio.gather(*(one.wait() for one in begun))
            with pytest.raises(SessionBusy):
                await agent.execute("go", first)
            for one in (first, second):
                await agent.cancel(one.id)
            ended = await asyncio.gather(*runs)
            assert [one.is_error for one in ended] == [False, False]
            left = [one.is_alive for one in agent._sessions.values()]
        return first.claude_session_id != second.claude_session_id, left

    assert run(story()) == (True, kept)


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "acp", None)
    with pytest.raises(MissingExtra) as caught:
        run(AcpAgent("anything").execute("go", HandMade(tmp_path)))
    assert caught.value.hint == "Install it with: pip install 'bridle-agent[acp]'"


@pytest.mark.parametrize("command", ["", "  ", [], 'a "b'])
def test_a_command_that_is_none_is_refused_at_once(command):
    with pytest.raises(ConfigError):
        AcpAgent(command)


def test_the_name_is_the_command_as_one_would_type_it():
    assert AcpAgent(["my agent", "--acp"]).name == "acp:'my agent' --acp"
