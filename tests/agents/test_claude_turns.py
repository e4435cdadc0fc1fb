"""Claude Code carries a turn: the real program, against a fake of the vendor's API."""

import asyncio

from claude_rig import (
    KEY,
    Bare,
    Gate,
    Heard,
    Whole,
    claude,
    programs,
    runs,
    says,
    soak,
    uses,
    workspace,
)

from bridle.agents.base import AgentResponse, BaseAgent, Permission, ToolActivity
from bridle.agents.claude_code import ClaudeCodeAgent
from bridle.events import ThinkingDelta, ToolCallArgsDelta, ToolCallStarted, UsageReported
from rig import run


def test_text_thoughts_and_arguments_come_as_they_are_written_P7(tmp_path):
    async def work():
        root = workspace(tmp_path)
        script = [
            {**runs("echo hi"), "thinking": "let me see", "chunk": 3},
            says("all done", chunk=3),
        ]
        session, heard = Whole(root), Heard()
        async with claude(script, tmp_path) as (agent, _):
            response = await agent.execute(
                "go",
                session,
                can_use_tool=Gate(),
                on_text_chunk=heard.chunk,
                on_tool_activity=heard.tool,
            )
        assert heard.text == ["all", " do", "ne"]
        assert [one.text for one in session.of(ThinkingDelta)] == ["let", " me", " se", "e"]
        (started,) = session.of(ToolCallStarted)
        assert started == ToolCallStarted(started.call_id, "shell")
        assert "".join(one.text for one in session.of(ToolCallArgsDelta)) == '{"command":"echo hi"}'
        assert heard.activity == [ToolActivity("shell", "echo hi"), None]
        assert session.finished == [(started.call_id, "hi", True, None)]
        (usage,) = session.of(UsageReported)
        assert (usage.usage.input_tokens, usage.usage.output_tokens, usage.priced) == (2000, 84, 1)
        assert response == AgentResponse(
            "all done",
            session.claude_session_id,
            usage.cost,
            response.duration_ms,
            2,
            ["Bash"],
        )
        assert usage.cost and response.session_id
        assert programs(tmp_path) == []

    run(work())


def test_a_call_that_the_gate_refuses_does_not_run_and_the_model_reads_why_P3(tmp_path):
    async def work():
        root = workspace(tmp_path)
        script = [runs("touch yes"), runs("touch no"), uses("Read", {"file_path": f"{root}/a"})]
        session = Whole(root)
        gate = Gate(True, False, False)
        async with claude([*script, says("well")], tmp_path, allowed_tools=("Bash", "Read")) as (
            agent,
            server,
        ):
            response = await agent.execute("go", session, can_use_tool=gate)
            told = str(server.requests[-1].body["messages"])
        assert gate.asked == [
            ("shell", {"command": "touch yes"}),
            ("shell", {"command": "touch no"}),
            ("read", {"path": "a"}),
        ]
        assert sorted(one.name for one in root.iterdir()) == ["yes"]
        assert told.count("a rule says no") == 2
        assert [ok for _, _, ok, _ in session.finished] == [True]
        assert (response.content, response.is_error) == ("well", False)

    run(work())


def test_what_somebody_changed_in_a_call_is_what_runs_and_their_word_is_read(tmp_path):
    async def work():
        root = workspace(tmp_path)
        given = {"path": "b.txt", "content": "theirs"}
        changed = Permission(True, updated_input=given, word="look at it first")
        script = [uses("Write", {"file_path": f"{root}/a.txt", "content": "mine"}), says("ok")]
        async with claude(script, tmp_path) as (agent, server):
            await agent.execute("go", Whole(root), can_use_tool=Gate(changed))
            assert "and said: look at it first" in str(server.requests[-1].body["messages"])
        assert [(one.name, one.read_text()) for one in root.iterdir()] == [("b.txt", "theirs")]

    run(work())


def test_a_session_of_four_fields_is_enough_P1(tmp_path):
    async def work():
        session, heard = Bare(workspace(tmp_path)), Heard()
        async with claude([says("one"), says("two")], tmp_path) as (agent, server):
            assert isinstance(agent, BaseAgent)
            first = await agent.execute("go", session, on_text_chunk=heard.chunk)
            second = await agent.execute("on", session, on_text_chunk=heard.chunk)
            told = str(server.requests[-1].body["messages"])
        assert heard.text == ["one", "two"]
        assert first.session_id == second.session_id == session.claude_session_id
        assert "'go" in told and "one" in told
        assert abs(first.cost - second.cost) < 1e-9  # each its own, though the program adds them up

    run(work())


def test_without_a_gate_only_what_the_program_allows_by_itself_is_run(tmp_path):
    async def work():
        root = workspace(tmp_path)
        async with claude([runs("touch no"), says("ok")], tmp_path) as (agent, _):
            await agent.execute("go", Bare(root))
        assert list(root.iterdir()) == []

    run(work())


@soak
def test_a_conversation_is_taken_up_again_by_another_agent_P5(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path))
        async with claude([says("I am one")], tmp_path) as (agent, _):
            first = await agent.execute("who are you", session)
        kept = session.claude_session_id
        again = Whole(workspace(tmp_path), conversation=kept)
        again.state = session.state
        async with claude([says("two")], tmp_path) as (agent, server):
            second = await agent.execute("go on", again)
            told = str(server.requests[0].body["messages"])
        assert "who are you" in told and "I am one" in told
        assert again.claude_session_id == kept == first.session_id == second.session_id
        assert again.traces("new_conversation") == []
        assert abs(first.cost - second.cost) < 1e-9

    run(work())


@soak
def test_two_sessions_run_at_once_and_know_nothing_of_each_other_P7(tmp_path):
    async def work():
        root = workspace(tmp_path)
        one, two = Whole(root, name="one"), Whole(root, name="two")
        both = asyncio.Barrier(2)

        async def meet():
            await both.wait()
            return True

        def answer(body):
            said = str(body["messages"])
            name = "one" if "I am one" in said else "two"
            return says(f"done {name}") if "tool_result" in said else runs(f"echo {name}")

        async with claude(answer, tmp_path) as (agent, _):
            gates = Gate(meet), Gate(meet)
            found = await asyncio.gather(
                agent.execute("I am one", one, can_use_tool=gates[0]),
                agent.execute("I am two", two, can_use_tool=gates[1]),
            )
        assert [response.content for response in found] == ["done one", "done two"]
        assert [each.asked for each in gates] == [
            [("shell", {"command": "echo one"})],
            [("shell", {"command": "echo two"})],
        ]
        assert one.claude_session_id != two.claude_session_id
        assert programs(tmp_path) == []

    run(work())


def test_the_key_reaches_the_program_and_no_command_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "not for anybody")

    async def work():
        session = Whole(workspace(tmp_path))
        async with claude([runs("env"), says("ok")], tmp_path) as (agent, server):
            assert KEY not in repr(agent.config)
            await agent.execute("go", session, can_use_tool=Gate())
            assert server.requests[0].headers["x-api-key"] == KEY
        ((_, text, _, _),) = session.finished
        assert "PATH=" in text
        assert KEY not in text and "SOME_SECRET" not in text
        assert KEY not in repr(session.events)

    run(work())


def test_an_agent_without_settings_has_the_defaults():
    assert ClaudeCodeAgent().config.setting_sources == ()
    assert ClaudeCodeAgent().config.retry_seconds == 2.0
