"""Questions that outlive who put them: parked turns, first answers, expiry, another process (A11).

A process that ends is played by an engine that is left behind with its log unlocked; the journeys
have processes that are really killed.
"""

import asyncio
import time

import pytest

from bridle.engine import approvals
from bridle.errors import SessionBusy, SessionError, UnknownApproval
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ToolOutputDelta,
    TurnEnded,
    TurnParked,
)
from bridle.messages import ToolCall
from bridle.protocols.session import Answer
from bridle.protocols.store import InboxMessage
from bridle.protocols.tool import ToolResult
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from rig import Thing, calls, endings, events, is_valid, make_engine, results, run, until


class Marks:
    """A tool with an effect that can be counted."""

    def __init__(self):
        self.made = made = []

        @tool
        async def mark(word: str) -> str:
            made.append(word)
            return f"made {word}"

        self.tool = mark


def asked(session):
    """The open questions, by call."""
    return {one.call.id: one for one in session.history.pending.values()}


async def say(session, call_id, answer, by="me"):
    """Answer what is asked about that call."""
    await session.answer(call_id, answer, shown=asked(session)[call_id].shown, by=by)


async def parked(engine, *texts):
    """A new session whose first turn is parked."""
    session = await engine.session()
    result = await session.wait(await session.send(*texts or ("go",)))
    assert (result.reason, session.is_parked, session.is_busy) == ("parked", True, False)
    return session


def mark(*words):
    """A reply that asks for a mark each."""
    return calls(*(("mark", {"word": word}) for word in words))


def test_a_parked_turn_goes_on_with_the_last_answer_and_every_question_was_put_at_once():
    async def story():
        marks, model = Marks(), Scripted([mark("a", "b", "c"), "done"])
        async with make_engine(model, marks.tool, on_ask="park") as engine:
            session = await parked(engine)
            questions = [one.call.arguments["word"] for one in asked(session).values()]
            await say(session, "call_2", False)
            await say(session, "call_1", True)
            assert (session.is_parked, marks.made) == (True, [])
            await say(session, "call_3", Answer(True, word="well"), by="bo")
            result = await session.wait(1)
            told = [one.text for one in model.requests[1].messages[-1].tool_results]
            assert is_valid(session.history.transcript)
            return engine, session.id, questions, marks.made, result, told

    engine, found, questions, made, result, told = run(story())
    assert (questions, made) == (["a", "b", "c"], ["a", "c"])
    assert (result.reason, result.text) == ("done", "done")
    last = "made c\n[the person added: well]"
    assert told == ["made a", "not run: approval was denied", last]
    answers = events(engine, found, ApprovalAnswered)
    assert [(one.call_id, one.allowed, one.by) for one in answers] == [
        ("call_2", False, "me"),
        ("call_1", True, "me"),
        ("call_3", True, "bo"),
    ]
    assert events(engine, found, TurnParked) == [TurnParked(1, ("call_1", "call_2", "call_3"))]
    assert endings(engine, found) == ["done"]


def test_the_first_answer_wins_with_its_name_and_the_second_hears_that():
    """A11: recorded once, with who gave it."""

    async def story():
        marks = Marks()
        async with make_engine([mark("a"), "done"], marks.tool, on_ask="park") as engine:
            session = await parked(engine)
            shown = asked(session)["call_1"].shown
            both = await asyncio.gather(
                session.answer("call_1", False, shown=shown, by="ann"),
                session.answer("call_1", True, shown=shown, by="bo"),
                return_exceptions=True,
            )
            await session.wait(1)
            return engine, session.id, both, marks.made

    engine, found, (first, second), made = run(story())
    assert (first, type(second), made) == (None, UnknownApproval, [])
    (answer,) = events(engine, found, ApprovalAnswered)
    assert (answer.allowed, answer.by) == (False, "ann")


def test_an_answer_to_something_else_runs_nothing_and_the_question_stays():
    """SECURITY: it runs exactly what was shown, or nothing."""

    async def story():
        marks = Marks()
        async with make_engine([mark("a", "b"), "done"], marks.tool, on_ask="park") as engine:
            session = await parked(engine)
            questions = asked(session)
            other = questions["call_2"].shown
            with pytest.raises(UnknownApproval, match="the answer is not for what"):
                await session.answer("call_1", True, shown=other, by="me")
            with pytest.raises(UnknownApproval, match="no open approval request for call call_9"):
                await session.answer("call_9", True, shown=other, by="me")
            return sorted(asked(session)), marks.made, session.is_parked

    assert run(story()) == (["call_1", "call_2"], [], True)


def test_sending_while_a_turn_is_parked_says_busy_and_a_queued_prompt_waits(state):
    """S4: a parked turn is not over."""

    async def story():
        marks, model = Marks(), Scripted([mark("a"), "done", "and on"])
        async with make_engine(model, marks.tool, on_ask="park", store=JsonlStore(state)) as engine:
            session = await parked(engine)
            with pytest.raises(SessionBusy, match=r"turn 1 of session .* needs 1 approval$") as no:
                await session.send("now")
            later = await session.send("later", when="queue")
            steer = await session.send("rather so", when="next_step")
            assert (later, steer, len(model.requests)) == (2, 1, 1)
            await say(session, "call_1", True)
            result = await session.wait(later)
            told = [[one.content for one in each.messages] for each in model.requests[1:]]
            return no.value.hint, result.text, told

    hint, text, told = run(story())
    assert "interrupt" in hint
    assert text == "and on"
    assert told == [
        ["go", "", "", "rather so"],
        ["go", "", "", "rather so", "done", "later"],
    ]


def test_an_interrupt_ends_a_parked_turn_and_what_was_queued_runs():
    """S9: its calls are answered, nothing ran, the session is usable right after."""

    async def story():
        marks, model = Marks(), Scripted([mark("a"), "next"])
        async with make_engine(model, marks.tool, on_ask="park") as engine:
            session = await parked(engine)
            shown = asked(session)["call_1"].shown
            later = await session.send("later", when="queue")
            await session.interrupt(by="bo")
            result = await session.wait(later)
            with pytest.raises(UnknownApproval):
                await session.answer("call_1", True, shown=shown, by="me")
            assert is_valid(session.history.transcript)
            return results(engine, session.id), endings(engine, session.id), result.text, marks.made

    found, ended, text, made = run(story())
    assert found == [("call_1", "not run: the turn ended before it began", True)]
    assert (ended, text, made) == (["interrupted", "done"], "next", [])


def test_a_turn_that_is_stopped_in_the_moment_in_which_it_goes_on_answers_its_calls():
    """One result a call, whatever happens (S9)."""

    async def story():
        marks = Marks()
        async with make_engine([mark("a", "b"), "next"], marks.tool, on_ask="park") as engine:
            session = await parked(engine)
            await session.resume()
            await session.interrupt()
            await session.wait(await session.send("next"))
            return results(engine, session.id), endings(engine, session.id)

    found, ended = run(story())
    not_run = "not run: the turn ended before it began"
    assert found == [("call_1", not_run, True), ("call_2", not_run, True)]
    assert ended == ["interrupted", "done"]


def test_prompts_that_come_while_a_parked_turn_is_being_ended_run_one_after_the_other(state):
    async def story():
        marks, model = Marks(), Scripted([mark("a"), "one", "two"])
        async with make_engine(model, marks.tool, on_ask="park", store=JsonlStore(state)) as engine:
            session = await parked(engine)
            _, first, second = await asyncio.gather(
                session.interrupt(),
                session.send("first", when="queue"),
                session.send("second", when="queue"),
            )
            texts = [(await session.wait(turn)).text for turn in (first, second)]
            return texts, [[one.content for one in each.messages] for each in model.requests[1:]]

    texts, told = run(story())
    assert texts == ["one", "two"]
    assert told == [["go", "", "", "first"], ["go", "", "", "first", "one", "second"]]


def test_an_answer_that_comes_while_another_call_of_the_step_still_runs_is_not_forgotten():
    """A11: the turn parks only while a question is open."""

    async def story():
        release, marks = asyncio.Event(), []

        async def slow(arguments, context):
            context.say("reading")
            await release.wait()
            return ToolResult.success("read")

        @tool(read_only=True, requires_approval=True)
        async def peek() -> str:
            marks.append("peek")
            return "peeked"

        script = [calls(("slow", {}), ("peek", {})), "done"]
        async with make_engine(script, Thing(slow, "slow"), peek, on_ask="park") as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, lambda one: isinstance(one, ToolOutputDelta))
            await say(session, "call_2", True)
            release.set()
            ended = await until(session, lambda one: isinstance(one, TurnEnded))
            return ended.event.reason, marks, results(engine, session.id)

    reason, marks, found = run(story())
    assert (reason, marks) == ("done", ["peek"])
    assert found == [("call_1", "read", False), ("call_2", "peeked", False)]


def test_a_question_that_nobody_answered_in_time_is_a_no_and_the_turn_goes_on(monkeypatch):
    """Expiry to deny: the late answer hears it, and runs nothing."""

    async def story():
        marks, model = Marks(), Scripted([mark("a"), "then not"])
        async with make_engine(model, marks.tool, on_ask="park", ask_seconds=60.0) as engine:
            session = await parked(engine)
            late = time.time() + 120
            monkeypatch.setattr(approvals.time, "time", lambda: late)
            with pytest.raises(UnknownApproval, match="has expired, so the call was denied"):
                await say(session, "call_1", True)
            result = await session.wait(1)
            return engine, session.id, result.text, marks.made

    engine, found, text, made = run(story())
    assert (text, made) == ("then not", [])
    (answer,) = events(engine, found, ApprovalAnswered)
    assert (answer.allowed, answer.by, answer.word) == (False, "expiry", "no one answered in time")
    assert "no one answered in time" in results(engine, found)[0][1]


@pytest.mark.parametrize("on_ask", ["wait", "park"])
def test_a_question_that_expired_while_nobody_ran_is_a_no_when_the_turn_goes_on(
    state, monkeypatch, on_ask
):
    async def story():
        marks, store = Marks(), JsonlStore(state)
        async with make_engine([mark("a")], marks.tool, on_ask="park", store=store) as engine:
            session = await parked(engine)
        late = time.time() + 90_000
        monkeypatch.setattr(approvals.time, "time", lambda: late)
        store = JsonlStore(state)
        async with make_engine(["then not"], marks.tool, on_ask=on_ask, store=store) as engine:
            session = await engine.session(session.id)
            result = await session.wait(await session.resume())
            (answer,) = events(engine, session.id, ApprovalAnswered)
            return result.text, answer.by, answer.allowed, marks.made

    assert run(story()) == ("then not", "expiry", False, [])


def test_going_on_without_an_answer_parks_again_and_asks_nothing_twice():
    async def story():
        marks = Marks()
        async with make_engine([mark("a"), "done"], marks.tool, on_ask="park") as engine:
            session = await parked(engine)
            again = await session.wait(await session.resume())
            questions = events(engine, session.id, ApprovalAsked)
            await say(session, "call_1", True)
            last = await session.wait(1)
            with pytest.raises(SessionError, match="nothing to resume"):
                await session.resume()
            return again.reason, len(questions), last.reason, marks.made

    assert run(story()) == ("parked", 1, "done", ["a"])


def test_an_answer_allows_this_call_and_no_changed_one(state):
    """A changed argument, also under the same call id, is another question."""

    async def story():
        marks = Marks()
        same = {"calls": [{"name": "mark", "arguments": {"word": "a"}, "id": "x"}]}
        changed = {"calls": [{"name": "mark", "arguments": {"word": "b"}, "id": "x"}]}
        model = Scripted([same, changed, same, "done"])
        async with make_engine(model, marks.tool, on_ask="park") as engine:
            session = await parked(engine)
            first = asked(session)["x"]
            await say(session, "x", Answer(True, "session"))
            assert (await session.wait(1)).reason == "parked"
            second = asked(session)["x"]
            with pytest.raises(UnknownApproval, match="the answer is not for what"):
                await session.answer("x", True, shown=first.shown, by="me")
            await say(session, "x", False)
            result = await session.wait(1)  # the third is the first again: allowed for the session
            return [first.call, second.call], result.reason, marks.made

    questions, reason, made = run(story())
    assert questions == [ToolCall("x", "mark", {"word": "a"}), ToolCall("x", "mark", {"word": "b"})]
    assert (reason, made) == ("done", ["a", "a"])


def test_another_process_answers_through_the_inbox_while_the_first_waits(state):
    """A11, S9: nobody asks the holder; the letter is heard."""

    async def story():
        marks, store = Marks(), JsonlStore(state)
        async with make_engine(
            [mark("a"), "done"], marks.tool, on_ask="wait", store=store
        ) as engine:
            session = await engine.session()
            turn = await session.send("go")
            record = await until(session, lambda one: isinstance(one, ApprovalAsked))
            shown = record.event.shown
            letter = InboxMessage("l1", "answer", "bo", call_id="call_1", shown=shown, allowed=True)
            JsonlStore(state).send_message(session.id, letter)
            result = await session.wait(turn)
            await until(session, lambda one: isinstance(one, TurnEnded))
            return result.text, marks.made, events(engine, session.id, ApprovalAnswered)

    text, made, answers = run(story())
    assert (text, made) == ("done", ["a"])
    assert [(one.by, one.letter, one.allowed) for one in answers] == [("bo", "l1", True)]


def test_an_answer_to_a_session_that_closes_is_kept_and_starts_nothing(state):
    async def story():
        marks, store = Marks(), JsonlStore(state)
        async with make_engine([mark("a")], marks.tool, on_ask="park", store=store) as engine:
            session = await parked(engine)
            await asyncio.gather(say(session, "call_1", True), session.close())
            assert (session.is_busy, marks.made) == (False, [])
            assert session.seq == len(list(store.read(session.id)))  # nothing was said after that
        async with make_engine(["done"], marks.tool, store=JsonlStore(state)) as engine:
            session = await engine.session(session.id)
            return (await session.wait(await session.resume())).text, marks.made

    assert run(story()) == ("done", ["a"])


def test_a_parked_turn_stays_parked_when_its_session_is_closed(state):
    async def story():
        marks = Marks()
        async with make_engine(
            [mark("a")], marks.tool, on_ask="park", store=JsonlStore(state)
        ) as engine:
            session = await parked(engine)
            await session.close()
        async with make_engine(["done"], marks.tool, store=JsonlStore(state)) as engine:
            session = await engine.session(session.id)
            before = session.is_parked
            await say(session, "call_1", True)
            return before, (await session.wait(1)).text, marks.made, endings(engine, session.id)

    assert run(story()) == (True, "done", ["a"], ["done"])


def test_a_parked_turn_says_how_many_calls_need_permission():
    async def story(on_ask):
        marks = Marks()
        model = [calls(("mark", {"word": "a"}), ("mark", {"word": "b"})), "ok"]
        async with make_engine(model, marks.tool, on_ask=on_ask) as engine:
            return await engine.run("go")

    parked, denied = run(story("park")), run(story("deny"))
    assert (parked.reason, parked.permission_needed) == ("parked", 2)
    assert (denied.reason, denied.permission_needed) == ("done", 2)
