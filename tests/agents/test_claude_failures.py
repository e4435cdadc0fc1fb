"""What goes wrong with Claude Code: each way has one end, and the session goes on."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from claude_rig import (
    OVERLOADED,
    Bare,
    Gate,
    Heard,
    Whole,
    claude,
    home_of,
    programs,
    runs,
    says,
    soak,
    until,
    workspace,
)

from bridle.agents.claude_code import ClaudeCodeAgent, ClaudeCodeConfig
from bridle.errors import AgentError, BudgetReached, ConfigError, MissingExtra, SessionBusy
from bridle.protocols.agent import RemainingBudget
from rig import a_mark, marked, run

GONE = "00000000-0000-4000-8000-000000000000"
BROKEN = "#!/bin/sh\necho it is broken >&2; exit 3\n"
FRIENDLY = "The AI service is temporarily unavailable. Please try again in a moment."


def failing(status, message="it failed"):
    return {"error": {"kind": "agent", "message": message, "status": status}}


def test_a_conversation_that_is_gone_is_begun_anew_and_the_person_is_told_P5(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path), conversation=GONE)
        session.state = {"cost": 7.0, "other": 1}
        async with claude([says("hello")], tmp_path) as (agent, server):
            response = await agent.execute("go", session)
            assert len(server.requests) == 1
        (told,) = session.traces("new_conversation")
        assert GONE in told["message"] and "a new one was started, which" in told["message"]
        assert (response.content, response.is_error) == ("hello", False)
        assert response.session_id == session.claude_session_id != GONE
        assert 0 < response.cost < 1 and session.state["other"] == 1

    run(work())


def test_somebody_who_only_reads_text_is_told_of_a_new_conversation_as_well_P5(tmp_path):
    async def work():
        session, heard = Bare(workspace(tmp_path), conversation=GONE), Heard()
        async with claude([says("hello")], tmp_path) as (agent, _):
            await agent.execute("go", session, on_text_chunk=heard.chunk)
        assert "a new one was started" in heard.text[0]
        assert heard.text[1:] == ["hello"]

    run(work())


def test_a_service_that_is_busy_once_is_asked_once_more_P6(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path))
        async with claude([OVERLOADED, says("hello")], tmp_path) as (agent, server):
            response = await agent.execute("go", session)
            assert len(server.requests) == 2
            assert str(server.requests[-1].body["messages"]).count("'go") == 1
        assert (response.content, response.is_error) == ("hello", False)
        (told,) = session.traces("retry")
        assert told["error"] == FRIENDLY

    run(work())


def test_what_was_done_before_the_service_failed_is_not_done_twice_P6(tmp_path):
    async def work():
        root, gate = workspace(tmp_path), Gate()
        script = [runs("echo x >> log"), failing(500), says("finished")]
        async with claude(script, tmp_path) as (agent, server):
            response = await agent.execute("go", Whole(root), can_use_tool=gate)
            told = str(server.requests[-1].body["messages"])
        assert response.content == "finished"
        assert (root / "log").read_text() == "x\n"
        assert len(gate.asked) == 1
        assert told.count("'go") == 1 and "echo x >> log" in told and "do nothing twice" in told

    run(work())


def test_a_service_that_stays_busy_is_said_in_the_friendly_sentence_P6(tmp_path):
    async def work():
        async with claude([OVERLOADED] * 9, tmp_path) as (agent, server):
            session = Whole(workspace(tmp_path))
            response = await agent.execute("go", session)
            assert len(server.requests) == 2
            assert (response.content, response.is_error) == (FRIENDLY, True)
        async with claude([says("back")], tmp_path) as (agent, _):
            assert (await agent.execute("again", session)).content == "back"

    run(work())


def test_stale_and_busy_together_are_three_attempts_and_no_more_P6(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path), conversation=GONE)
        async with claude([OVERLOADED] * 9, tmp_path) as (agent, server):
            response = await agent.execute("go", session)
            assert len(server.requests) == 2  # the first attempt never got so far
        assert (response.content, response.is_error) == (FRIENDLY, True)
        assert len(session.traces("new_conversation")) == 1

    run(work())


@pytest.mark.parametrize("status", [401, pytest.param(400, marks=soak)])
def test_what_another_try_cannot_mend_is_said_at_once_P6(tmp_path, status):
    async def work():
        session = Whole(workspace(tmp_path))
        script = [failing(status, "not after 500 or 529 tries")] * 9
        async with claude(script, tmp_path) as (agent, server):
            response = await agent.execute("go", session)
            if status == 401:  # after a 400 the program itself tries without newer features
                assert len(server.requests) == 1
        assert response.is_error and session.traces("retry") == []
        assert "500 or 529" in response.content
        assert ("ANTHROPIC_API_KEY" in response.content) == (status == 401)

    run(work())


@soak
def test_words_that_look_like_an_error_are_none_P6(tmp_path):
    async def work():
        text = "API Error: 529 overloaded_error, 500, rate_limit"
        async with claude([says(text)], tmp_path) as (agent, _):
            response = await agent.execute("go", Whole(workspace(tmp_path)))
        assert (response.content, response.is_error) == (text, False)

    run(work())


def test_a_stop_during_the_wait_is_for_good_P6(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path))
        async with claude([OVERLOADED] * 9, tmp_path, retry_seconds=600.0) as (agent, server):
            turn = asyncio.create_task(agent.execute("go", session))
            await until(lambda: session.traces("retry"))
            await agent.cancel(session.id)
            response = await turn
            assert response.is_error and len(server.requests) == 1
        assert programs(tmp_path) == []

    run(work())


def test_a_stop_in_the_middle_of_a_command_ends_it_and_the_session_goes_on_P7(tmp_path):
    async def work():
        mark = a_mark()
        session = Whole(workspace(tmp_path))
        script = [runs(f"sleep {mark} & sleep {mark}"), says("never"), says("back")]
        async with claude(script, tmp_path) as (agent, _):
            turn = asyncio.create_task(agent.execute("go", session, can_use_tool=Gate()))
            await until(lambda: len(marked(f"sleep\0{mark}")) == 2)
            await agent.cancel(session.id)
            response = await turn
            assert response.is_error and marked(mark) == [] and programs(tmp_path) == []
        async with claude([says("back")], tmp_path) as (agent, server):
            assert (await agent.execute("again", session)).content == "back"
            assert "'go" in str(server.requests[0].body["messages"])

    run(work())


@soak
def test_a_stop_while_a_person_is_asked_lets_go_of_the_question_P7(tmp_path):
    async def work():
        asked, let_go = asyncio.Event(), asyncio.Event()

        async def wait():
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                let_go.set()

        root = workspace(tmp_path)
        session = Whole(root)
        async with claude([runs("touch no")], tmp_path) as (agent, _):
            turn = asyncio.create_task(agent.execute("go", session, can_use_tool=Gate(wait)))
            await asked.wait()
            await agent.cancel(session.id)
            assert (await turn).is_error and let_go.is_set()
        assert list(root.iterdir()) == []

    run(work())


def test_shutdown_and_a_cancelled_task_leave_no_process_P7(tmp_path):
    async def work():
        mark = a_mark()
        root = workspace(tmp_path)
        async with claude(lambda body: runs(f"sleep {mark}"), tmp_path) as (agent, _):
            turns = [
                asyncio.create_task(
                    agent.execute("go", Whole(root, name=name), can_use_tool=Gate())
                )
                for name in ("one", "two")
            ]
            await until(lambda: len(marked(f"sleep\0{mark}")) == 2)
            assert len(programs(tmp_path)) >= 4
            turns[0].cancel()
            await asyncio.wait(turns[:1])
            await agent.shutdown()
            assert marked(mark) == [] and programs(tmp_path) == []
            assert (await turns[1]).is_error

    run(work())


def test_a_program_that_is_killed_is_a_clear_error_and_the_next_prompt_works_P7(tmp_path):
    async def work():
        mark = a_mark()
        session = Whole(workspace(tmp_path))
        async with claude([runs(f"sleep {mark}"), says("back")], tmp_path) as (agent, _):
            turn = asyncio.create_task(agent.execute("go", session, can_use_tool=Gate()))
            await until(lambda: marked(f"sleep\0{mark}"))
            (pid,) = [one for one in marked("--output-format") if _is_the_program(one, tmp_path)]
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(AgentError, match="was ended by signal 9") as found:
                await turn
            assert found.value.kind == "agent" and "Send the prompt again" in found.value.hint
            assert marked(mark) == [] and programs(tmp_path) == []
            kept = session.claude_session_id
            assert (await agent.execute("again", session)).content == "back"
            assert session.claude_session_id == kept and session.traces("new_conversation") == []

    run(work())


def _is_the_program(pid, folder):
    """Of this test's own: others may be running, and end while we look."""
    if pid not in programs(folder):
        return False
    return b"supervise.py" not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_one_session_runs_one_prompt_at_a_time(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path))
        async with claude([OVERLOADED] * 9, tmp_path, retry_seconds=600.0) as (agent, _):
            turn = asyncio.create_task(agent.execute("go", session))
            await until(lambda: session.traces("retry"))
            with pytest.raises(SessionBusy):
                await agent.execute("more", session)
            await agent.cancel(session.id)
            await turn

    run(work())


def test_a_program_that_is_not_there_says_what_to_install(tmp_path):
    async def work():
        agent = ClaudeCodeAgent(ClaudeCodeConfig(cli_path=str(tmp_path / "claude")))
        with pytest.raises(ConfigError, match="was not found") as found:
            await agent.execute("go", Bare(workspace(tmp_path)))
        assert "pip install 'bridle-agent[claude]'" in found.value.hint

    run(work())


@pytest.mark.parametrize("body", [BROKEN, "#!/bin/sh\nexit 0\n", "no program"])
def test_a_program_that_is_broken_says_so_and_what_to_install(tmp_path, body):
    async def work():
        broken = tmp_path / "claude"
        broken.write_text(body)
        broken.chmod(0o755)
        agent = ClaudeCodeAgent(ClaudeCodeConfig(cli_path=str(broken), env=home_of(tmp_path)))
        with pytest.raises(ConfigError, match="could not be started") as found:
            await agent.execute("go", Bare(workspace(tmp_path)))
        assert "pip install 'bridle-agent[claude]'" in found.value.hint
        assert ("it is broken" in found.value.message) == (body == BROKEN)

    run(work())


def test_without_the_sdk_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)

    async def work():
        with pytest.raises(MissingExtra) as found:
            await ClaudeCodeAgent().execute("go", Bare(workspace(tmp_path)))
        assert "pip install 'bridle-agent[claude]'" in found.value.hint

    run(work())


def test_a_limit_of_turns_ends_it_and_says_so_P3(tmp_path):
    async def work():
        root = workspace(tmp_path)
        async with claude(lambda body: runs("echo on"), tmp_path, max_turns=2) as (agent, server):
            response = await agent.execute("go", Bare(root), can_use_tool=Gate())
            assert len(server.requests) == 2
            assert response.is_error and "limit of turns" in response.content
            session = Whole(root)
            session.remaining = RemainingBudget(steps=1)
            with pytest.raises(BudgetReached, match="limit of turns"):
                await agent.execute("go", session, can_use_tool=Gate())
            assert len(server.requests) == 3

    run(work())
