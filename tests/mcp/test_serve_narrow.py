"""What another agent's request can never do: widen mode, rules, workspace; answer for a person."""

import asyncio

import pytest
from mcp.shared.exceptions import MCPError
from serve_rig import WRITE, Served, words

from bridle.events import ApprovalAnswered, ModeChanged, SessionStarted, TurnEnded
from bridle.runtime import build_engine
from bridle.server.mcp.tasks import narrower_mode
from rig import run

PLAN = {"calls": [{"name": "exit_plan_mode", "arguments": {"plan": "do it"}}]}


def tell(served, *asked):
    """What these calls come to, one after the other."""

    async def work():
        async with served.client() as client:
            return [await client.call_tool(*one) for one in asked]

    return run(work())


def persons(served, *prompts, **options):
    """A session that a person began, in the same workspace unless they say otherwise."""

    async def work():
        given = {"workspace": served.workspace, "state": served.state, "on_ask": "park"} | options
        async with build_engine(served.model, **given) as engine:
            session = await engine.session()
            for prompt in prompts:
                await session.wait(await session.send(prompt))
            return session.id

    return run(work())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mode": "edits"}, "The mode edits is wider than ask, with which the server runs. "),
        ({"mode": "auto"}, "Invalid enum value 'auto' - at `$.mode`"),
        ({"workspace": "/"}, "unknown field `workspace`"),
        ({"rules": ["allow: shell(*)"]}, "unknown field `rules`"),
        ({"max_steps": 0}, "Expected `int` >= 1 - at `$.max_steps`"),
        ({"prompt": 7}, "Expected `str`, got `int` - at `$.prompt`"),
        ({"prompt": " "}, "There is nothing to do. Say in `prompt` what is wanted."),
        ({"session": "../../etc"}, "This workspace has no session '../../etc'."),
    ],
)
def test_what_a_request_may_not_ask_for_is_refused_in_a_sentence(tmp_path, given, why):
    served = Served(tmp_path, "never said")
    (found,) = tell(served, ("run_task", {"prompt": "x"} | given))
    assert found.is_error and why in words(found)
    assert served.opened == []


def test_a_task_has_the_mode_ask_unless_less_is_offered_or_more_is_wanted(tmp_path):
    modes = []
    for widest, wanted in (("edits", None), ("edits", "edits"), ("ask", None), ("plan", None)):
        served = Served(tmp_path, "hello", widest=widest)
        tell(served, ("run_task", {"prompt": "x"} | ({"mode": wanted} if wanted else {})))
        modes += [mode for mode, _, _ in served.opened]
    assert modes == ["ask", "edits", "ask", "plan"]
    assert narrower_mode("plan", "auto") == narrower_mode("auto", "plan") == "plan"


def test_a_session_that_was_wider_is_narrowed_when_it_is_continued(tmp_path):
    wide = Served(tmp_path, "hello", widest="edits")
    (found,) = tell(wide, ("run_task", {"prompt": "x", "mode": "edits"}))
    session = found.structured_content["session"]
    narrow = Served(tmp_path, WRITE, widest="ask")
    (again,) = tell(narrow, ("run_task", {"prompt": "y", "session": session}))
    assert again.structured_content["reason"] == "parked"
    assert narrow.events(session, ModeChanged)[-1].mode == "ask"


def test_a_mode_that_a_person_narrowed_is_not_widened_by_a_request(tmp_path):
    served = Served(tmp_path, "hello", "hello", "hello", widest="edits")
    (found,) = tell(served, ("run_task", {"prompt": "x"}))
    session = found.structured_content["session"]

    async def narrow():
        given = {"workspace": served.workspace, "state": served.state}
        async with build_engine(served.model, **given) as engine:
            mine = await engine.session(session)
            await mine.set_mode("plan", by="anna")
            await mine.wait(await mine.send("and now?"))

    run(narrow())
    refused, kept = tell(
        served,
        ("run_task", {"prompt": "y", "session": session, "mode": "edits"}),
        ("run_task", {"prompt": "y", "session": session}),
    )
    assert refused.is_error and "The session has the mode plan, which a person chose." in words(
        refused
    )
    assert not kept.is_error
    assert [one.mode for one in served.events(session, ModeChanged)] == ["plan"]


def test_answers_are_offered_only_with_the_persons_leave(tmp_path):
    served = Served(tmp_path, WRITE)

    async def work():
        async with served.client() as client:
            names = [one.name for one in (await client.list_tools()).tools]
            with pytest.raises(MCPError, match="there is no tool 'answer_approval'"):
                await client.call_tool("answer_approval", {})
        return names

    assert run(work()) == [
        "run_task",
        "list_sessions",
        "show_session",
        "list_approvals",
        "interrupt",
    ]


def test_what_a_person_began_is_shown_and_left_to_them(tmp_path):
    served = Served(tmp_path, WRITE, answers=True)
    session = persons(served, "write a")
    listed, shown, asked, goes_on, stopped = tell(
        served,
        ("list_sessions", {}),
        ("show_session", {"session": session}),
        ("list_approvals", {}),
        ("run_task", {"prompt": "more", "session": session}),
        ("interrupt", {"session": session}),
    )
    (one,) = asked.structured_content["approvals"]
    answer = {key: one[key] for key in ("session", "call_id", "shown")} | {"allowed": True}
    (answered,) = tell(served, ("answer_approval", answer))
    assert [one["session"] for one in listed.structured_content["sessions"]] == [session]
    assert shown.structured_content["state"] == "parked"
    refused = f"Session {session} was begun by a person"
    assert [words(one).startswith(refused) for one in (goes_on, stopped, answered)] == [True] * 3
    assert [one.is_error for one in (goes_on, stopped, answered)] == [True] * 3
    assert served.events(session, ApprovalAnswered) == []
    assert [one.mode for one in served.events(session, SessionStarted)] == ["library"]


def test_sessions_of_other_workspaces_are_not_there(tmp_path):
    served = Served(tmp_path, WRITE, answers=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    session = persons(served, "write a", workspace=elsewhere, face="mcp")
    listed, asked, shown, goes_on = tell(
        served,
        ("list_sessions", {}),
        ("list_approvals", {}),
        ("show_session", {"session": session}),
        ("run_task", {"session": session}),
    )
    assert listed.structured_content == {"sessions": [], "more": 0}
    assert asked.structured_content == {"approvals": [], "more": 0}
    said = f"This workspace has no session '{session}'. `list_sessions` shows those that there are."
    assert [words(one) for one in (shown, goes_on)] == [said] * 2


def test_a_server_for_plans_is_not_talked_out_of_it(tmp_path):
    """P4: only a person leaves plan mode, where nothing wider was offered."""
    served = Served(tmp_path, PLAN, widest="plan", answers=True)
    (parked,) = tell(served, ("run_task", {"prompt": "plan"}))
    (one,) = parked.structured_content["pending_approvals"]
    answer = {key: one[key] for key in ("session", "call_id", "shown")} | {"allowed": True}
    (answered,) = tell(served, ("answer_approval", answer))
    assert answered.is_error and "only a person leaves that mode" in words(answered)


def test_a_question_is_shown_with_what_hides_in_it_and_whole_or_not_answered(tmp_path):
    sly = {"path": "a", "content": "x\u202ey\x1b[2J"}
    huge = {"path": "b", "content": "x" * 200_000}
    both = {"calls": [{"name": "write", "arguments": one} for one in (sly, huge)]}
    served = Served(tmp_path, both, answers=True)
    (parked,) = tell(served, ("run_task", {"prompt": "write"}))
    first, second = parked.structured_content["pending_approvals"]
    assert first["arguments"] == {"path": "a", "content": "x\\u202ey\\x1b[2J"}
    assert (first["whole"], second["whole"]) == (True, False)
    answer = {key: second[key] for key in ("session", "call_id", "shown")} | {"allowed": True}
    (answered,) = tell(served, ("answer_approval", answer))
    assert answered.is_error and "what was not shown is not allowed" in words(answered)


def test_a_parked_turn_can_be_ended_from_here_and_a_silent_session_cannot(tmp_path):
    served = Served(tmp_path, WRITE)
    (parked,) = tell(served, ("run_task", {"prompt": "write"}))
    session = parked.structured_content["session"]
    asked = ("interrupt", {"session": session})
    ended, again = tell(served, asked, asked)
    assert ended.structured_content == {"session": session, "interrupted": True}
    assert words(again) == f"Nothing runs in session {session}. There is nothing to interrupt."
    assert [one.reason for one in served.events(session, TurnEnded)] == ["interrupted"]


def test_a_long_session_is_shown_in_part(tmp_path):
    served = Served(tmp_path, *["y" * 50_000] * 12)
    session = persons(served, *[f"{number}" for number in range(12)])
    (shown,) = tell(served, ("show_session", {"session": session, "last": 100}))
    said = shown.structured_content["messages"]
    assert len(str(said)) < 50_000
    assert said[-2] == {"role": "user", "text": "11"}
    assert said[-1]["role"] == "assistant" and len(said[-1]["text"]) <= 4_100


def test_no_more_than_a_few_tasks_run_at_a_time(tmp_path):
    served = Served(tmp_path, *[{"text": "slow", "delay": 3600}] * 8)

    async def work():
        async with served.client() as client:
            asked = [client.call_tool("run_task", {"prompt": "x"}) for _ in range(9)]
            every = [asyncio.ensure_future(one) for one in asked]
            done, running = await asyncio.wait(every, return_when=asyncio.FIRST_COMPLETED)
            await served.tasks.close()
            await asyncio.wait(running)
        return [one.result() for one in done]

    (found,) = run(work())
    assert found.is_error and words(found).startswith("8 tasks are running")
