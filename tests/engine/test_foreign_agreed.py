"""What a person has agreed to is done once, and as it was shown: also later, and also by us."""

import pytest
from acting import Acting

from bridle.agents.base import AgentResponse
from bridle.errors import BudgetReached
from bridle.events import ApprovalAsked, FilesChanged
from bridle.protocols.hooks import HookResult
from bridle.protocols.session import YES
from bridle.providers.scripted import Scripted
from bridle.runtime.assembly import build_engine
from bridle.runtime.hooks import hook
from rig import call, events, results, run

EDIT = {"path": "a.txt", "old": "one", "new": "two"}


def engine_in(tmp_path, *model, **options):
    (tmp_path / "work").mkdir(exist_ok=True)
    kept = {"workspace": tmp_path / "work", "state": tmp_path / "state"}
    return build_engine(*model, **kept, **options)


async def parked_and_answered(tmp_path, make):
    """A turn that rests with a question; another engine hears the yes."""
    async with make() as engine:
        session = await engine.session()
        first = await session.wait(await session.send("go"))
        assert first.reason == "parked"
    async with make() as engine:
        session = await engine.session(session.id)
        (asked,) = session.history.pending.values()
        turn = session.turn
        await session.answer(asked.call.id, YES, shown=asked.shown, by="me")
        await session.wait(turn)
        changed = events(engine, session.id, FilesChanged)
        return results(engine, session.id), [one.path for e in changed for one in e.files]


@pytest.mark.parametrize("who", ["agent", "loop"])
def test_an_edit_that_was_agreed_to_while_nobody_ran_is_made_as_it_was_shown(tmp_path, who):
    async def act(prompt, session, can_use_tool):
        if not session.claude_session_id:
            session.claude_session_id = "conv"
            await can_use_tool("edit", EDIT, "A")
        return AgentResponse("done")

    def make():
        if who == "agent":
            return engine_in(tmp_path, agent=Acting(act), on_ask="park")
        return engine_in(tmp_path, Scripted(next(scripts)), on_ask="park")

    scripts = iter([[call("read", path="a.txt"), call("edit", **EDIT)], ["done"]])
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n")
    ran, changed = run(parked_and_answered(tmp_path, make))
    assert [failed for _, _, failed in ran] == ([False] if who == "agent" else [False, False])
    assert (tmp_path / "work/a.txt").read_text() == "two\n"
    assert changed == ["a.txt"]


def test_a_call_that_was_allowed_can_be_handed_to_our_tool_without_a_second_question(tmp_path):
    async def act(prompt, session, can_use_tool):
        arguments = {"command": "touch made.txt"}
        assert await can_use_tool("shell", arguments, "A")
        said.append(await session.call("shell", arguments, "A"))
        other = await session.call("shell", {"command": "touch other.txt"}, "A")
        said.append(other)
        return AgentResponse("done")

    async def work():
        async def approver(asked):
            return asked.call.arguments["command"] == "touch made.txt"

        async with engine_in(tmp_path, agent=Acting(act), approver=approver) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            asked = events(engine, session.id, ApprovalAsked)
            return [one.call.arguments["command"] for one in asked]

    said = []
    assert run(work()) == ["touch made.txt", "touch other.txt"]
    assert [one.is_error for one in said] == [False, True]
    assert sorted(one.name for one in (tmp_path / "work").iterdir()) == ["made.txt"]


def test_an_agent_that_says_a_limit_is_reached_ends_its_turn_as_one(tmp_path):
    async def act(prompt, session, can_use_tool):
        raise BudgetReached("its own limit of 2 turns is reached")

    async def work():
        async with engine_in(tmp_path, agent=Acting(act)) as engine:
            result = await engine.run("go")
            return result.reason, result.detail

    assert run(work()) == ("budget", "its own limit of 2 turns is reached")


def test_what_a_hook_says_of_a_result_is_handed_to_the_agent_for_its_model(tmp_path):
    async def act(prompt, session, can_use_tool):
        await can_use_tool("shell", {"command": "ls"}, "A")
        said.append(await session.finish("A", "nothing here"))
        await can_use_tool("read", {"path": "a.txt"}, "B")
        said.append(await session.finish("B", "words"))
        return AgentResponse("done")

    @hook("after_tool", tool="shell")
    def remark(event):
        return HookResult(word="look again")

    async def work():
        async with engine_in(tmp_path, agent=Acting(act), hooks=[remark]) as engine:
            await engine.run("go")

    said = []
    run(work())
    assert said == ["\n[a hook says: look again]", ""]
