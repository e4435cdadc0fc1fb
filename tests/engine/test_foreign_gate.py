"""The gate before another agent's own effects, with real tools, machine and rules."""

import asyncio

import pytest
from acting import Acting, acting_engine
from standing import Ledger

from bridle.agents.base import AgentResponse
from bridle.engine.history import NOT_RUN
from bridle.events import ApprovalAsked, CallIntended
from bridle.policy import parse_rule
from bridle.protocols.session import Answer
from bridle.runtime.assembly import build_engine
from rig import events, results, run


async def asked_for(calls, tmp_path, *, answer=True, **options):
    """What the gate says of each of these calls of an agent, and what a person was asked."""
    found = []

    async def act(prompt, session, can_use_tool):
        for index, (name, arguments) in enumerate(calls):
            permission = await can_use_tool(name, arguments, f"c{index}")
            found.append(permission.behavior)
            if permission:
                await session.finish(permission.call_id, "made")
        return AgentResponse("ok")

    async def approver(asked):
        return answer

    (tmp_path / "work").mkdir()
    async with build_engine(
        agent=Acting(act),
        workspace=tmp_path / "work",
        state=tmp_path / "state",
        approver=approver,
        **{"sandbox": "none", **options},
    ) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        asked = [one.call.id for one in events(engine, session.id, ApprovalAsked)]
        begun = [one.call_id for one in events(engine, session.id, CallIntended)]
        return found, asked, begun


def shell(command):
    return "shell", {"command": command}


def write(path):
    return "write", {"path": path, "content": "x"}


def test_what_only_reads_is_not_asked_about_and_what_must_never_run_is_not_either(tmp_path):
    calls = [shell("ls"), ("read", {"path": "a.txt"}), shell("rm -rf /"), write("../out.txt")]
    found, asked, begun = run(asked_for(calls, tmp_path))
    assert (found, asked) == (["allow", "allow", "deny", "deny"], [])
    assert begun == ["c0", "c1"]


def test_a_yes_for_the_session_covers_the_same_call_again_and_no_other(tmp_path):
    calls = [shell("touch x"), shell("touch x"), shell("touch y")]
    answer = Answer(True, "session")
    found, asked, _ = run(asked_for(calls, tmp_path, answer=answer))
    assert (found, asked) == (["allow"] * 3, ["c0", "c2"])


@pytest.mark.parametrize(
    ("mode", "expected", "asked"),
    [
        ("plan", ["deny", "deny"], []),
        ("ask", ["allow", "allow"], ["c0", "c1"]),
        ("edits", ["allow", "allow"], ["c1"]),
        ("auto", ["allow", "allow"], []),
    ],
)
def test_modes_hold(tmp_path, mode, expected, asked):
    calls = [write("a.txt"), shell("touch b.txt")]
    found, questions, _ = run(asked_for(calls, tmp_path, mode=mode))
    assert (found, questions) == (expected, asked)


def test_a_deny_rule_is_final_whatever_a_person_would_say(tmp_path):
    rules = ("deny: shell(make *)", "allow: mcp__tickets__close")
    calls = [shell("make x"), ("mcp__tickets__close", {"id": 1}), ("mcp__tickets__open", {})]
    found, asked, _ = run(asked_for(calls, tmp_path, rules=rules))
    assert (found, asked) == (["deny", "allow", "allow"], ["c2"])


def test_a_stop_in_the_moment_of_a_yes_is_a_no():
    """The intent is recorded, undo has kept what it needs, and then the person stops the turn."""
    seen = []

    class Slow(Ledger):
        def record_turn(self, session_id, turn):
            recorder = super().record_turn(session_id, turn)
            before = recorder.before

            async def late(call):
                await before(call)
                stopping.append(asyncio.ensure_future(session.interrupt()))
                await asyncio.sleep(0)

            recorder.before = late
            return recorder

    async def act(prompt, session, can_use_tool):
        seen.append(bool(await can_use_tool("other", {}, "A")))
        return AgentResponse("ok")

    async def story():
        nonlocal session
        rules = (parse_rule("allow: other"),)
        async with acting_engine(Acting(act), undo=Slow(), rules=rules) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            await asyncio.gather(*stopping)
            return engine, session.id, result

    session, stopping = None, []
    engine, sid, result = run(story())
    assert (seen, result.reason) == ([False], "interrupted")
    assert results(engine, sid) == [("A", NOT_RUN, True)]


def test_what_an_agent_runs_itself_is_in_no_sandbox_of_ours_and_in_no_folder_of_our_shell(tmp_path):
    """In `auto` what nobody understands runs in a sandbox alone, and the agent has none."""

    async def act(prompt, session, can_use_tool):
        (tmp_path / "work/sub").mkdir()
        moved = await session.call("shell", {"command": "cd sub"})
        opaque = await can_use_tool("shell", {"command": "eval $X"}, "c1")
        out = await can_use_tool("shell", {"command": "touch ../up.txt"}, "c2")
        said.extend([moved.is_error, opaque.behavior, out.behavior])
        return AgentResponse("ok")

    async def work():
        (tmp_path / "work").mkdir()
        options = {"workspace": tmp_path / "work", "state": tmp_path / "state"}
        async with build_engine(agent=Acting(act), mode="auto", **options) as engine:
            await engine.run("go")

    said = []
    run(work())
    assert said == [False, "deny", "deny"]
