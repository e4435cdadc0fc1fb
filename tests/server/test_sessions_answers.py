"""Questions over the server: the first answer wins, and everybody is told whose it was."""

import asyncio
import time

import pytest
from sessions_rig import ASKS, asked, ended, made, no, note, refused, seen, serving, yes

from bridle.errors import UnknownApproval
from bridle.events import ToolResultEvent
from bridle.protocols.session_errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApprovalTaken,
    NotFound,
)
from bridle.protocols.session_values import ApprovalAnswer, ApprovalOutcome, PromptRequest
from bridle.tools.session_tools import TaskTool
from rig import run


async def questioned(sessions, **wanted):
    """A session that asks, and its question."""
    name = await made(sessions, **wanted)
    await sessions.send(name, PromptRequest("go"), "ann")
    return name, (await asked(sessions, name))[0]


def results(sessions, name):
    found = [one.event for one in sessions.catalog.read(name)]
    return [one.output.text for one in found if isinstance(one, ToolResultEvent)]


def test_the_first_answer_wins_and_the_second_is_told_who_won(tmp_path):
    async def story():
        async with serving(tmp_path, [ASKS, "done"]) as sessions:
            name, question = await questioned(sessions, title="a question")
            view = (await sessions.detail(name)).pending[0]
            assert (await sessions.pending()).approvals == (view,)
            assert (view.session_id, view.call_id, view.shown) == (name, "call_1", question.shown)
            assert (view.session_title, view.posted, view.parent) == ("a question", False, "")
            assert view.asked["call"]["arguments"] == {"text": "one"}
            assert (await sessions.info(name)).state == "waiting"
            both = await asyncio.gather(
                sessions.answer(name, "call_1", yes(question, word="go on"), "ann"),
                sessions.answer(name, "call_1", yes(question, word="go on"), "bob"),
                return_exceptions=True,
            )
            won, lost = sorted(both, key=lambda one: isinstance(one, ApprovalTaken))
            assert won == ApprovalOutcome("call_1", True, won.by, "once", "go on")
            assert isinstance(lost, ApprovalTaken)
            assert lost.more == {"by": won.by, "allowed": True}
            assert await ended(sessions, name) == "done"
            late = await refused(sessions.answer(name, "call_1", no(question), "cy"), ApprovalTaken)
            assert (late.status_code, late.code) == (409, "approval_answered")
            assert results(sessions, name) == ["noted one\n[the person added: go on]"]
            assert (await sessions.pending()).approvals == ()

    run(story())


def test_a_no_with_a_word_reaches_the_model(tmp_path):
    async def story():
        async with serving(tmp_path, [ASKS, "as you like"]) as sessions:
            name, question = await questioned(sessions)
            outcome = await sessions.answer(name, "call_1", no(question, word="not now"), "ann")
            assert outcome == ApprovalOutcome("call_1", False, "ann", "once", "not now")
            assert await ended(sessions, name) == "done"
            assert "not now" in results(sessions, name)[0]

    run(story())


def test_an_answer_to_something_else_or_to_nothing_is_refused(tmp_path):
    async def story():
        async with serving(tmp_path, [ASKS, "done"]) as sessions:
            name, question = await questioned(sessions)
            other = ApprovalAnswer(True, "0" * 48)
            changed = await refused(sessions.answer(name, "call_1", other, "ann"), ApprovalChanged)
            assert (changed.status_code, changed.code) == (409, "approval_changed")
            await refused(sessions.answer(name, "call_9", other, "ann"), UnknownApproval)
            assert (await sessions.info(name)).waiting == 1  # it still waits
            await sessions.answer(name, "call_1", yes(question), "ann")
            assert await ended(sessions, name) == "done"

    run(story())


def test_a_question_whose_time_is_over_cannot_be_answered(tmp_path):
    async def story():
        async with serving(tmp_path, [ASKS, "done"], ask_seconds=0.05) as sessions:
            name, question = await questioned(sessions)
            assert await ended(sessions, name) == "done"
            gone = await refused(
                sessions.answer(name, "call_1", yes(question), "ann"), ApprovalExpired
            )
            assert (gone.status_code, gone.code) == (410, "approval_expired")
            assert "noted" not in results(sessions, name)[0]

    run(story())


def test_a_question_of_a_turn_that_is_over_cannot_be_answered(tmp_path):
    async def story():
        async with serving(tmp_path, [ASKS, "done"]) as sessions:
            name, question = await questioned(sessions)
            await sessions.interrupt(name, "ann")
            await refused(sessions.answer(name, "call_1", yes(question), "ann"), ApprovalExpired)
            assert (await sessions.info(name)).reason == "interrupted"

    run(story())


def test_a_parked_question_expires_while_nobody_looks(tmp_path, monkeypatch):
    clock = time.time

    async def story():
        async with serving(tmp_path, [ASKS, "done"], ask_seconds=600.0) as sessions:
            name, question = await questioned(sessions)
        async with serving(tmp_path, ["done"]) as sessions:
            assert (await sessions.info(name)).state == "waiting"
        async with serving(tmp_path, ["done"], rest=0.2) as sessions:
            monkeypatch.setattr(time, "time", lambda: clock() + 601)
            late = sessions.answer(name, "call_1", yes(question), "ann")
            await refused(late, ApprovalExpired)

    run(story())


def test_a_yes_for_the_session_is_listed_and_can_be_taken_back(tmp_path):
    async def story():
        async with serving(tmp_path, [ASKS, "one", ASKS, "two", ASKS, "three"]) as sessions:
            name, question = await questioned(sessions)
            await sessions.answer(name, "call_1", yes(question, scope="session"), "ann")
            assert await ended(sessions, name, 1) == "done"
            (grant,) = (await sessions.grants(name)).grants
            assert (grant.what, grant.by) == ("note", "ann") or "note" in grant.what
            await sessions.send(name, PromptRequest("again"), "ann")
            assert await ended(sessions, name, 2) == "done"  # nobody was asked
            await refused(sessions.revoke(name, "no such grant", "ann"), NotFound)
            await sessions.revoke(name, grant.id, "bob")
            assert (await sessions.grants(name)).grants == ()
            after = sessions.get_open(name).seq
            await sessions.send(name, PromptRequest("again"), "ann")
            await asked(sessions, name, after)
            await sessions.interrupt(name, "ann")

    run(story())


def test_a_question_of_a_task_is_among_those_that_wait_with_whose_it_is(tmp_path):
    task = {"calls": [{"name": "task", "arguments": {"prompt": "do it", "description": "a task"}}]}

    async def story():
        async with serving(
            tmp_path, [task, ASKS, "child done", "done"], note, TaskTool()
        ) as sessions:
            name = await made(sessions)
            await sessions.send(name, PromptRequest("go"), "ann")
            found = await seen(sessions.pending, lambda one: one.approvals)
            (question,) = found.approvals
            child = question.session_id
            assert (question.parent, question.session_title) == (name, "a task")
            view = await sessions.info(child)
            assert (view.parent, view.state, view.holder) == (name, "waiting", "here")
            assert (await sessions.detail(name)).children == (child,)
            told = ApprovalAnswer(True, question.shown)
            assert (await sessions.answer(child, question.call_id, told, "ann")).by == "ann"
            assert await ended(sessions, name) == "done"
            assert (await sessions.pending()).approvals == ()

    run(story())


@pytest.mark.parametrize("rule", ["nonsense", "deny: note"])
def test_a_rule_that_allows_nothing_is_no_answer(tmp_path, rule):
    async def story():
        async with serving(tmp_path, [ASKS, "done"]) as sessions:
            name, question = await questioned(sessions)
            from bridle.errors import SessionError

            bad = yes(question, scope="rule", rule=rule)
            await refused(sessions.answer(name, "call_1", bad, "ann"), SessionError)
            assert (await sessions.info(name)).waiting == 1
            await sessions.interrupt(name, "ann")

    run(story())
