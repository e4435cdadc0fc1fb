"""A session that is closed in the middle of something: it ends all the same, and nothing is lost.

What was said to it before holds when it is taken up again: answers, questions, titles, prompts.
"""

import asyncio
from pathlib import Path

import pytest

from bridle.engine import turn_runner
from bridle.errors import SessionError
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Checkpoint,
    TraceEvent,
)
from bridle.protocols.session import Answer
from bridle.providers.scripted import Scripted
from bridle.stores import jsonl
from bridle.stores.jsonl import JsonlStore
from rig import Thing, call, endings, events, make_engine, run, until


class Stubborn:
    """A tool that takes its time when it is told to stop."""

    def __init__(self):
        self.release = asyncio.Event()
        self.tool = Thing(self._execute)

    async def _execute(self, arguments, context):
        try:
            await asyncio.Event().wait()
        finally:
            await self.release.wait()


class Writes:
    """A tool that needs a yes, and where it ran."""

    def __init__(self):
        self.where = []
        self.tool = Thing(self._execute, read_only=False)

    async def _execute(self, arguments, context):
        self.where.append(context.workspace.root)
        return "written"


def begun(event):
    return isinstance(event, CallIntended)


def interrupted(event):
    return isinstance(event, TraceEvent) and event.kind == "interrupt"


async def parked(state, tool, root="/"):
    """The id of a session whose turn waits for a yes, and that nobody holds."""
    store = JsonlStore(state)
    async with make_engine([call("thing")], tool, store=store, on_ask="park", root=root) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        assert session.is_parked
        return session.id


async def say(session, answer):
    """Answer the one question that is open; what was asked."""
    (asked,) = session.history.pending.values()
    await session.answer(asked.call.id, answer, shown=asked.shown, by="me")
    return asked


def test_a_close_that_nobody_waits_for_any_more_goes_to_its_end(state):
    async def story():
        stubborn = Stubborn()
        async with make_engine([call("thing")], stubborn.tool, store=JsonlStore(state)) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, begun)
            closing = asyncio.create_task(session.close())
            await until(session, interrupted)
            closing.cancel()
            await asyncio.wait([closing])
            stubborn.release.set()
            await session.close()
            async with make_engine(["ok"], store=JsonlStore(state)) as other:
                again = await other.session(session.id)  # the lock is free
                result = await again.wait(await again.send("more"))
            return closing.cancelled(), endings(engine, session.id), result.text

    assert run(story()) == (True, ["interrupted", "done"], "ok")


def test_an_approver_that_closes_the_session_parks_its_turn(state):
    """A person quits at the question: it is there when the session is taken up again (A11)."""

    async def story():
        writes, quitting = Writes(), []

        async def approver(asked):
            await quitting[0].close()
            return True

        store = JsonlStore(state)
        async with make_engine(
            [call("thing")], writes.tool, store=store, approver=approver
        ) as engine:
            quitting.append(session := await engine.session())
            result = await session.wait(await session.send("go"))
        store = JsonlStore(state)
        async with make_engine(["done"], writes.tool, store=store, on_ask="park") as engine:
            again = await engine.session(session.id)
            before = list(writes.where)
            await say(again, True)
            return result.reason, before, (await again.wait(1)).text, writes.where

    assert run(story()) == ("parked", [], "done", ["/"])


def test_a_yes_that_was_given_right_before_a_close_holds_after_it(state):
    """A11: what a person said is not asked again, and the turn goes on with it."""

    async def story():
        writes = Writes()
        found = await parked(state, writes.tool)
        async with make_engine(["no"], writes.tool, store=JsonlStore(state)) as engine:
            await say(await engine.session(found), True)
        before = list(writes.where)
        async with make_engine(["done"], writes.tool, store=JsonlStore(state)) as engine:
            session = await engine.session(found)
            left = len(session.history.pending), session.is_parked, endings(engine, found)
            result = await session.wait(await session.resume())
            questions = len(events(engine, found, ApprovalAsked))
        return before, left, result.text, writes.where, questions

    assert run(story()) == ([], (0, True, []), "done", ["/"], 1)


def test_a_question_of_a_turn_that_is_closed_as_it_goes_on_stays_open(state):
    async def story():
        writes = Writes()
        found = await parked(state, writes.tool)
        async with make_engine(["no"], writes.tool, store=JsonlStore(state)) as engine:
            await (await engine.session(found)).resume()
        async with make_engine(["done"], writes.tool, store=JsonlStore(state)) as engine:
            session = await engine.session(found)
            left = len(session.history.pending), session.is_parked, endings(engine, found)
            await say(session, True)
            return left, (await session.wait(1)).text, writes.where

    assert run(story()) == ((1, True, []), "done", ["/"])


def test_a_yes_for_one_folder_runs_nothing_in_another_and_a_yes_for_that_one_does(state, tmp_path):
    """SECURITY: an answer is bound to what was shown, and so to its folder."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()

    async def story():
        writes = Writes()
        found = await parked(state, writes.tool, root=str(one))
        options = {"store": JsonlStore(state), "on_ask": "park", "root": str(two)}
        async with make_engine(["done"], writes.tool, **options) as engine:
            session = await engine.session(found)
            asked = [await say(session, True)]
            again = await session.wait(1)
            before = list(writes.where)
            asked.append(await say(session, True))
            result = await session.wait(1)
            places = [one.cwd for one in asked]
            return again.reason, before, places, result.text, writes.where

    reason, before, places, text, where = run(story())
    assert (reason, before, text) == ("parked", [], "done")
    assert (places, where) == ([str(one), str(two)], [str(two)])


def test_who_steers_a_parked_turn_that_was_taken_up_again_hears_its_end(state):
    async def story():
        writes, model = Writes(), Scripted(["done"])
        found = await parked(state, writes.tool)
        options = {"store": JsonlStore(state), "on_ask": "park"}
        async with make_engine(model, writes.tool, **options) as engine:
            session = await engine.session(found)
            turn = await session.send("rather so", when="next_step")
            hearing = asyncio.create_task(session.wait(turn))
            await asyncio.sleep(0)  # it waits before the turn goes on
            await say(session, True)
            result = await hearing
            return turn, result.text, model.requests[0].messages[-1].content

    assert run(story()) == (1, "done", "rather so")


NO_ANSWERS = [Answer("no"), Answer(True, "onse"), Answer(1), "yes", 1]


@pytest.mark.parametrize("said", NO_ANSWERS, ids=repr)
def test_an_approver_that_says_something_else_has_said_no(said):
    async def story():
        async def approver(asked):
            return said

        writes = Writes()
        async with make_engine([call("thing"), "ok"], writes.tool, approver=approver) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (answer,) = events(engine, session.id, ApprovalAnswered)
            return writes.where, answer.allowed, session.history.grants

    assert run(story()) == ([], False, {})


@pytest.mark.parametrize("said", NO_ANSWERS, ids=repr)
def test_what_is_no_answer_leaves_the_question_open(state, said):
    async def story():
        writes = Writes()
        found = await parked(state, writes.tool)
        async with make_engine([], writes.tool, store=JsonlStore(state)) as engine:
            session = await engine.session(found)
            with pytest.raises(SessionError, match="is not a valid answer"):
                await say(session, said)
            return writes.where, len(session.history.pending), session.is_parked

    assert run(story()) == ([], 1, True)


def test_a_checkpoint_that_is_too_large_to_be_kept_is_left_out(state, monkeypatch):
    """It is a help: every turn ends, and the conversation is whole."""
    monkeypatch.setattr(turn_runner, "_CHECKPOINT_BYTES", 20_000)
    monkeypatch.setattr(jsonl, "MAX_LINE", 50_000)

    async def story():
        async with make_engine(["ok"] * 4, store=JsonlStore(state)) as engine:
            session = await engine.session()
            ends = [(await session.wait(await session.send("x" * 30_000))).reason for _ in "1234"]
        async with make_engine([], store=JsonlStore(state)) as engine:
            again = await engine.session(session.id)
            written = events(engine, session.id, Checkpoint)
            return ends, len(again.history.transcript), written

    ends, count, written = run(story())
    assert (ends, count) == (["done"] * 4, 8)
    assert len(written) <= 1  # the first turn's may have fitted


def test_checkpoints_take_less_room_than_what_they_sum_up(state, monkeypatch):
    monkeypatch.setattr(turn_runner, "_CHECKPOINT_BYTES", 10_000)

    async def story():
        async with make_engine(["ok"] * 30, store=JsonlStore(state, "process")) as engine:
            session = await engine.session()
            for _ in range(30):
                await session.wait(await session.send("x" * 12_000))
            return session.log_path

    lines = Path(run(story())).read_bytes().splitlines()
    sums = [len(line) for line in lines if b'"data":{"type":"checkpoint"' in line[:200]]
    rest = sum(map(len, lines)) - sum(sums)
    assert len(sums) > 1
    assert sum(sums) < rest
