"""bridle as an MCP server: tasks, and that whoever gives them can narrow and never widen."""

import asyncio

import pytest
from serve_rig import WRITE, Served, Watched, words

from bridle.events import ApprovalAnswered, PromptReceived, TurnEnded, TurnParked
from bridle.runtime import build_engine
from rig import run


def test_a_task_comes_back_with_its_text_its_session_its_cost_and_what_changed(tmp_path):
    served = Served(tmp_path, WRITE, "written", widest="edits")

    async def work():
        told = []

        async def progress(done, total, message):
            told.append((done, message))

        async with served.client() as client:
            found = await client.call_tool(
                "run_task", {"prompt": "write a", "mode": "edits"}, progress_callback=progress
            )
        return found, told

    found, told = run(work())
    session = found.structured_content["session"]
    assert not found.is_error
    assert found.structured_content == {
        "text": "written",
        "session": session,
        "reason": "done",
        "detail": "",
        "hint": "",
        "cost": None,  # nobody knows the price of a scripted model
        "tokens": 0,
        "tool_calls": 1,
        "files_changed": [{"path": "a", "how": "added"}],
        "pending_approvals": [],
    }
    assert words(found) == f"written\nsession: {session}\nreason: done\ncost unknown\nadded: a"
    assert [message for _, message in told] == ["write: a", "I write.", "write done", "written"]
    assert [done for done, _ in told] == [1, 2, 3, 4]
    assert (served.workspace / "a").read_text() == "1"
    assert [one.by for one in served.events(session, PromptReceived)] == ["mcp:other"]


def test_an_ask_parks_the_task_and_a_persons_answer_lets_it_go_on(tmp_path):
    served = Served(tmp_path, WRITE, "written", "and more")

    async def work():
        async with served.client() as client:
            parked = await client.call_tool("run_task", {"prompt": "write a"})
            asked = (await client.call_tool("list_approvals", {})).structured_content
            session = parked.structured_content["session"]
            async with build_engine(
                served.model, workspace=served.workspace, state=served.state, on_ask="park"
            ) as engine:  # a person, in another face
                theirs = await engine.session(session)
                one = next(iter(theirs.history.pending.values()))
                await theirs.answer(one.call.id, True, shown=one.shown, by="ann")
                await theirs.wait(theirs.turn)
            again = await client.call_tool("run_task", {"session": session})
            more = await client.call_tool("run_task", {"session": session, "prompt": "more"})
        return parked, asked, again, more

    parked, asked, again, more = run(work())
    assert not parked.is_error
    assert parked.structured_content["reason"] == "parked"
    (question,) = parked.structured_content["pending_approvals"]
    (listed,) = asked["approvals"]
    assert listed == question | {"expired": False, "answered": False}
    assert question["arguments"] == {"path": "a", "content": "1"}
    assert question["reason"] == "write changes files"
    assert question["shown"] and question["expires"] and question["cwd"]
    assert "bridle approvals answer" in words(parked)
    assert again.is_error and "has nothing to resume" in words(again)
    assert more.structured_content["text"] == "and more"


def test_an_answer_through_the_server_is_recorded_under_the_clients_name(tmp_path):
    served = Served(tmp_path, WRITE, "written", answers=True)

    async def work():
        async with served.client() as client:
            parked = await client.call_tool("run_task", {"prompt": "write a"})
            (one,) = parked.structured_content["pending_approvals"]
            answer = {key: one[key] for key in ("session", "call_id", "shown")} | {"allowed": True}
            wrong = await client.call_tool("answer_approval", answer | {"shown": "0" * 48})
            first = await client.call_tool("answer_approval", answer)
            second = await client.call_tool("answer_approval", answer | {"allowed": False})
            done = await client.call_tool("run_task", {"session": one["session"]})
        return wrong, first, second, done

    wrong, first, second, done = run(work())
    assert wrong.is_error and "stands open as it was shown" in words(wrong)
    assert not first.is_error and first.structured_content["by"] == "mcp:other"
    assert second.is_error and "is answered already" in words(second)
    assert done.structured_content["files_changed"] == [{"path": "a", "how": "added"}]
    (said,) = served.events(done.structured_content["session"], ApprovalAnswered)
    assert (said.by, said.allowed, said.scope) == ("mcp:other", True, "once")


def test_a_task_waits_for_an_answer_as_long_as_it_was_told_to(tmp_path):
    served = Served(tmp_path, WRITE, "written", answers=True)

    async def work():
        async with served.client() as client:
            task = Watched(client, "run_task", {"prompt": "write a", "wait_seconds": 60})
            await task.says("needs approval: write")
            (one,) = (await client.call_tool("list_approvals", {})).structured_content["approvals"]
            answer = {key: one[key] for key in ("session", "call_id", "shown")}
            said = await client.call_tool("answer_approval", answer | {"allowed": True})
            return said, await task.task

    said, done = run(work())
    assert said.structured_content["next"] == "the turn that waited for it goes on"
    assert done.structured_content["reason"] == "done"
    assert (served.workspace / "a").read_text() == "1"


def test_a_task_whose_question_nobody_answers_in_time_is_parked_and_not_denied(tmp_path):
    served = Served(tmp_path, WRITE, "written")

    async def work():
        async with served.client() as client:
            return await client.call_tool("run_task", {"prompt": "write a", "wait_seconds": 0.01})

    done = run(work())
    session = done.structured_content["session"]
    assert done.structured_content["reason"] == "parked"
    assert len(done.structured_content["pending_approvals"]) == 1
    assert served.events(session, ApprovalAnswered) == []
    assert len(served.events(session, TurnParked)) == 1
    assert not (served.workspace / "a").exists()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_cancelling_the_call_interrupts_the_turn(tmp_path, mode):
    slow = {"calls": [{"name": "shell", "arguments": {"command": "sleep 600"}}]}
    served = Served(tmp_path, slow, rules=["allow: shell(sleep *)"])

    async def work():
        async with served.client(mode=mode) as client:
            call = Watched(client, "run_task", {"prompt": "sleep"})
            await call.says("shell: sleep 600")
            call.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call.task
            while served.tasks._jobs:
                await asyncio.wait([job.work for job in served.tasks._jobs])
            (listed,) = (await client.call_tool("list_sessions", {})).structured_content["sessions"]
        return listed["session"]

    session = run(work())
    assert [one.reason for one in served.events(session, TurnEnded)] == ["interrupted"]


def test_a_task_that_runs_can_be_interrupted_by_another_call(tmp_path):
    slow = {"calls": [{"name": "shell", "arguments": {"command": "sleep 600"}}]}
    served = Served(tmp_path, slow, rules=["allow: shell(sleep *)"])

    async def work():
        async with served.client() as client:
            call = Watched(client, "run_task", {"prompt": "sleep"})
            await call.says("shell: sleep 600")
            (one,) = (await client.call_tool("list_sessions", {})).structured_content["sessions"]
            await client.call_tool("interrupt", {"session": one["session"]})
            return one, await call.task

    one, found = run(work())
    assert one["running_here"] is True
    assert found.is_error and found.structured_content["reason"] == "interrupted"
    assert found.structured_content["session"] == one["session"]


def test_a_server_that_is_ending_takes_no_more_tasks(tmp_path):
    served = Served(tmp_path, "never said")

    async def work():
        await served.tasks.close()
        async with served.client() as client:
            return await client.call_tool("run_task", {"prompt": "x"})

    assert words(run(work())) == "The server is ending, and takes no more tasks."


def test_closing_the_server_parks_what_waits_and_interrupts_what_runs(tmp_path):
    slow = {"calls": [{"name": "shell", "arguments": {"command": "sleep 600"}}]}
    waits = Served(tmp_path, WRITE)
    runs = Served(tmp_path, slow, rules=["allow: shell(sleep *)"])

    async def left(served, wanted):
        async with served.client() as client:
            call = Watched(client, "run_task", {"prompt": "go", "wait_seconds": 600})
            await call.says(wanted)
            await served.tasks.close()
            (listed,) = served.views.summaries()
            await asyncio.wait([call.task])
        return listed.id

    one = run(left(waits, "needs approval"))
    assert len(waits.events(one, TurnParked)) == 1 and waits.events(one, TurnEnded) == []
    (waits.state / "sessions" / one).rename(tmp_path / "aside")
    other = run(left(runs, "shell"))
    assert [found.reason for found in runs.events(other, TurnEnded)] == ["interrupted"]
