"""Questions whose time is over: a no, but not for an answer that was given in time (A11)."""

import os
import time

import pytest
from msgspec.structs import replace

from bridle.engine import approvals
from bridle.events import ApprovalAnswered, PromptReceived
from bridle.protocols.store import InboxMessage
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from rig import calls, endings, events, is_valid, make_engine, run

DAY = 86_400


class Marks:
    """A tool with an effect that can be counted."""

    def __init__(self):
        self.made = made = []

        @tool
        async def mark(word: str) -> str:
            made.append(word)
            return f"made {word}"

        self.tool = mark


async def left_behind(state, tool, *words):
    """A parked session that nobody holds, and its questions by call."""
    asks = calls(*(("mark", {"word": word}) for word in words))
    async with make_engine([asks], tool, on_ask="park", store=JsonlStore(state)) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        return session.id, {one.call.id: one for one in session.history.pending.values()}


def answer(name, asked, **more):
    return InboxMessage(
        name, "answer", "bo", call_id=asked.call.id, shown=asked.shown, allowed=True, **more
    )


def later(monkeypatch, seconds):
    """So much time goes by."""
    now = time.time() + seconds
    monkeypatch.setattr(approvals.time, "time", lambda: now)


def answers(engine, session_id):
    found = events(engine, session_id, ApprovalAnswered)
    return [(one.call_id, one.allowed, one.by) for one in found]


@pytest.mark.parametrize("on_ask", ["deny", "park", "wait"])
def test_what_nobody_answered_in_time_is_a_no_and_the_turn_goes_on(state, monkeypatch, on_ask):
    async def story():
        marks = Marks()
        found, _ = await left_behind(state, marks.tool, "a", "b")
        later(monkeypatch, DAY + 60)
        store = JsonlStore(state)
        async with make_engine(["not then"], marks.tool, on_ask=on_ask, store=store) as engine:
            session = await engine.session(found)
            await session.expire()
            result = await session.wait(1)
            return result.text, marks.made, answers(engine, found), endings(engine, found)

    expired = [("call_1", False, "expiry"), ("call_2", False, "expiry")]
    assert run(story()) == ("not then", [], expired, ["done"])


@pytest.mark.parametrize("said", [True, False])
def test_a_no_stays_a_no_in_a_mode_that_would_not_have_asked(state, said):
    """SECURITY: the first answer wins, also over --yes."""

    async def story():
        marks = Marks()
        found, asked = await left_behind(state, marks.tool, "a", "b")
        JsonlStore(state).send_message(found, replace(answer("l1", asked["call_1"]), allowed=said))
        JsonlStore(state).send_message(found, replace(answer("l2", asked["call_2"]), allowed=False))
        store = JsonlStore(state)
        async with make_engine(["so"], marks.tool, mode="auto", store=store) as engine:
            session = await engine.session(found)
            result = await session.wait(1)
            assert is_valid(session.history.transcript)
            return result.text, marks.made

    assert run(story()) == ("so", ["a"] if said else [])


def test_a_question_that_still_has_time_stays_open(state, monkeypatch):
    async def story():
        marks = Marks()
        found, _ = await left_behind(state, marks.tool, "a")
        later(monkeypatch, DAY - 60)
        store = JsonlStore(state)
        async with make_engine([], marks.tool, on_ask="park", store=store) as engine:
            session = await engine.session(found)
            await session.expire()
            return session.is_parked, len(session.history.pending), answers(engine, found)

    assert run(story()) == (True, 1, [])


def test_a_yes_given_in_time_counts_whenever_the_session_is_taken_up(state, monkeypatch):
    """It was acknowledged: the time of the letter counts, and the other question is a no."""

    async def story():
        marks = Marks()
        found, asked = await left_behind(state, marks.tool, "a", "b")
        JsonlStore(state).send_message(found, answer("l1", asked["call_1"]))
        later(monkeypatch, DAY + 60)
        async with make_engine(["so"], marks.tool, store=JsonlStore(state)) as engine:
            session = await engine.session(found)
            await session.expire()
            result = await session.wait(1)
            return result.text, marks.made, answers(engine, found)

    said = [("call_1", True, "bo"), ("call_2", False, "expiry")]
    assert run(story()) == ("so", ["a"], said)


@pytest.mark.parametrize("how", ["posted late", "dated back", "written late"])
def test_a_letter_that_came_too_late_is_too_late_whatever_it_says(state, monkeypatch, how):
    """SECURITY: the later of what it says and when its file was written."""

    async def story():
        marks, late = Marks(), time.time() + DAY + 30
        found, asked = await left_behind(state, marks.tool, "a")
        said = {"posted late": late, "dated back": 1.0, "written late": time.time()}[how]
        JsonlStore(state).send_message(found, answer("l1", asked["call_1"], at=said))
        (file,) = (state / "sessions" / found / "inbox").iterdir()
        if how != "posted late":
            os.utime(file, (late, late))
        later(monkeypatch, DAY + 60)
        async with make_engine(["no"], marks.tool, store=JsonlStore(state)) as engine:
            session = await engine.session(found)
            await session.wait(1)
            return marks.made, answers(engine, found)

    assert run(story()) == ([], [("call_1", False, "expiry")])


def test_a_prompt_that_waits_is_done_after_the_turn_that_expired(state, monkeypatch):
    async def story():
        marks = Marks()
        found, _ = await left_behind(state, marks.tool, "a")
        JsonlStore(state).send_message(found, InboxMessage("p", "send", "bo", content="and more"))
        later(monkeypatch, DAY + 60)
        store = JsonlStore(state)
        async with make_engine(["no", "more"], marks.tool, store=store) as engine:
            session = await engine.session(found)
            await session.wait(await session.resume())
            result = await session.wait(2)
            return result.text, marks.made, len(events(engine, found, PromptReceived))

    assert run(story()) == ("more", [], 2)
