"""What becomes of a turn whose process ended: a log that is cut after any record goes on (A8).

A killed process leaves the beginning of what it would have written. So a story is told once, its
log is cut where a test says, and another engine takes it up.
"""

import asyncio

import pytest

from bridle.engine.history import NOT_RUN, UNKNOWN, fold
from bridle.errors import SessionBusy
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
)
from bridle.policy import ToolPolicy
from bridle.protocols.session import Answer
from bridle.protocols.store import InboxMessage
from bridle.protocols.tool import ToolResult
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.verify import verify
from bridle.tools.function import tool
from rig import Thing, call, calls, endings, events, is_valid, make_engine, results, run, until


class Work:
    """Tools whose effects can be counted."""

    def __init__(self):
        self.done = done = []

        @tool
        async def mark(word: str) -> str:
            done.append(word)
            return f"made {word}"

        @tool(read_only=True)
        async def look(word: str) -> str:
            done.append(f"look {word}")
            return f"saw {word}"

        self.tools = mark, look


def cut(state, session_id, where):
    """Cut a log after the first record for which `where(event)` holds, or that has this number."""
    path = JsonlStore(state).path(session_id)
    lines = path.read_bytes().splitlines(keepends=True)
    for index, record in enumerate(JsonlStore(state).read(session_id)):
        if where == record.seq or (callable(where) and where(record.event)):
            path.write_bytes(b"".join(lines[: index + 1]))
            return
    raise AssertionError("there is no such record")


def kind(wanted):
    return lambda event: isinstance(event, wanted)


async def told(state, replies, answers=(), on_ask="wait", mode="ask"):
    """One turn whose questions are answered in that order; where its log lies."""
    work = Work()
    async with make_engine(
        replies, *work.tools, store=JsonlStore(state), on_ask=on_ask, mode=mode
    ) as engine:
        session = await engine.session()
        turn = await session.send("go")
        seq = 0
        for answer in answers:
            record = await until(session, kind(ApprovalAsked), seq)
            seq, asked = record.seq, record.event
            await session.answer(asked.call.id, answer, shown=asked.shown, by="ann")
        await session.wait(turn)
    return session.id


def mark(*words):
    return calls(*(("mark", {"word": word}) for word in words))


class Again:
    """The session in another process: its model, its tools, and the session itself."""

    def __init__(self, state, replies=("done",), **rest):
        self.work, self.model = Work(), Scripted(replies, loop=True)
        self.engine = make_engine(self.model, *self.work.tools, store=JsonlStore(state), **rest)

    async def __aenter__(self):
        await self.engine.__aenter__()
        return self

    async def __aexit__(self, *raised):
        await self.engine.__aexit__(*raised)

    async def take(self, session_id):
        self.session = await self.engine.session(session_id)
        return self.session

    @property
    def heard(self):
        """What the model was told of the calls in the newest request."""
        messages = self.model.requests[-1].messages
        return [one.text for message in messages for one in message.tool_results]


def test_a_call_that_had_begun_is_unknown_to_the_person_and_to_the_model(state):
    """A8: intent and no result; it is never run again."""

    async def story():
        found = await told(state, [mark("a"), "done"], mode="auto")
        cut(state, found, kind(CallIntended))
        async with Again(state, mode="auto") as again:
            session = await again.take(found)
            assert (session.is_busy, session.is_parked) == (False, False)
            await session.wait(await session.send("and now?"))
            traces = [one.detail for one in events(again.engine, found, TraceEvent)]
            return results(again.engine, found), again.heard, again.work.done, traces, found

    found, heard, done, traces, session_id = run(story())
    assert found == [("call_1", UNKNOWN, True)]
    assert (heard, done) == ([UNKNOWN], [])
    assert [(one["callId"], one["name"]) for one in traces] == [("call_1", "mark")]
    assert "not known whether it ran" in traces[0]["message"]
    assert endings(make_engine([], store=JsonlStore(state)), session_id) == ["interrupted", "done"]


def test_a_call_that_had_not_begun_is_said_not_to_have_run(state):
    async def story():
        found = await told(state, [mark("a", "b"), "done"], mode="auto")
        cut(state, found, kind(ToolResultEvent))  # of a; b had not begun
        async with Again(state, mode="auto") as again:
            await again.take(found)
            return results(again.engine, found), again.work.done, endings(again.engine, found)

    found, done, ended = run(story())
    assert found == [("call_1", "made a", False), ("call_2", NOT_RUN, True)]
    assert (done, ended) == ([], ["interrupted"])


@pytest.mark.parametrize("yes", [True, False])
def test_one_who_was_killed_while_it_asked_is_answered_after_the_restart(state, yes):
    """A11, A8: a question that was waited for, and not parked, outlives its process, too."""

    async def story():
        found = await told(state, [mark("a"), "done"], [True])
        cut(state, found, kind(ApprovalAsked))
        async with Again(state, on_ask="wait") as again:
            session = await again.take(found)
            (asked,) = session.history.pending.values()
            with pytest.raises(SessionBusy, match="needs 1 approval"):
                await session.send("hello?")
            assert session.is_parked
            await session.answer(asked.call.id, yes, shown=asked.shown, by="bo")
            result = await session.wait(1)
            return result.reason, again.work.done, again.heard, endings(again.engine, found)

    reason, done, heard, ended = run(story())
    assert (reason, ended) == ("done", ["done"])
    assert done == (["a"] if yes else [])
    assert heard == (["made a"] if yes else ["not run: approval was denied"])


def test_of_two_questions_one_may_be_answered_before_and_one_after_the_restart(state):
    async def story():
        found = await told(state, [mark("a", "b"), "done"], [], on_ask="park")
        async with Again(state, on_ask="park") as first:
            session = await first.take(found)
            asked = list(session.history.pending.values())
            no = Answer(False, word="not that")
            await session.answer(asked[0].call.id, no, shown=asked[0].shown, by="ann")
        async with Again(state, on_ask="park") as again:
            session = await again.take(found)
            assert (session.is_parked, len(session.history.pending)) == (True, 1)
            await session.answer(asked[1].call.id, True, shown=asked[1].shown, by="bo")
            await session.wait(1)
            answers = events(again.engine, found, ApprovalAnswered)
            return [one.by for one in answers], again.work.done, again.heard

    names, done, heard = run(story())
    assert (names, done) == (["ann", "bo"], ["b"])
    assert heard == ["not run: approval was denied: not that", "made b"]


@pytest.mark.parametrize(("yes", "mode"), [(False, "ask"), (False, "auto"), (True, "ask")])
def test_an_answer_that_was_recorded_holds_after_the_restart(state, yes, mode):
    """Killed right after it: a yes runs once, a no stays one where nobody would be asked now."""

    async def story():
        found = await told(state, [mark("a"), "done"], [], on_ask="park")
        async with Again(state, on_ask="park") as first:
            session = await first.take(found)
            (asked,) = session.history.pending.values()
            await session.answer(asked.call.id, yes, shown=asked.shown, by="ann")
            await session.wait(1)
        cut(state, found, kind(ApprovalAnswered))
        async with Again(state, mode=mode) as again:
            session = await again.take(found)
            assert (session.is_parked, session.is_busy) == (True, False)
            with pytest.raises(SessionBusy, match="has its answers") as busy:
                await session.send("hello?")
            assert f"`bridle sessions stop {found}`" in busy.value.hint
            result = await session.wait(await session.resume())
            asked = events(again.engine, found, ApprovalAsked)
            assert (len(asked), endings(again.engine, found)) == (1, ["done"])
            return result.reason, again.work.done, again.heard

    reason, done, heard = run(story())
    assert (reason, done) == ("done", ["a"] if yes else [])
    assert heard == (["made a"] if yes else ["not run: approval was denied"])


def test_an_answer_that_was_given_while_nobody_ran_is_there_on_resume(state):
    """The inbox: taken up, the turn goes on by itself."""

    async def story():
        found = await told(state, [mark("a"), "done"], [True])
        cut(state, found, kind(ApprovalAsked))
        store = JsonlStore(state)
        (asked,) = fold(store.read(found)).pending.values()
        store.send_message(
            found,
            InboxMessage(
                "l", "answer", "bo", call_id=asked.call.id, shown=asked.shown, allowed=True
            ),
        )
        async with Again(state, on_ask="deny") as again:
            session = await again.take(found)
            result = await session.wait(1)
            (answer,) = events(again.engine, found, ApprovalAnswered)
            return result.reason, again.work.done, (answer.by, answer.letter)

    assert run(story()) == ("done", ["a"], ("bo", "l"))


def test_in_a_parked_step_what_only_reads_runs_again(state):
    """Killed in the middle of a look, beside which somebody was being asked."""

    async def story():
        replies = [calls(("look", {"word": "x"}), ("peek", {"word": "y"})), "done"]
        release = asyncio.Event()

        async def stuck(arguments, context):
            await release.wait()

        async def peek(arguments, context):
            return ToolResult.success("peeked")

        peeking = Thing(peek, "peek")
        peeking.policy = ToolPolicy(read_only=True, requires_approval=True)
        store = JsonlStore(state)
        async with make_engine(
            replies, Thing(stuck, "look"), peeking, store=store, on_ask="wait"
        ) as engine:
            session = await engine.session()
            await session.send("go")
            asked = await until(session, kind(ApprovalAsked))
            await session.close()
        cut(state, session.id, asked.seq)
        work = Work()
        async with make_engine(["done"], *work.tools, peeking, store=JsonlStore(state)) as engine:
            session = await engine.session(session.id)
            question = asked.event
            await session.answer(question.call.id, True, shown=question.shown, by="bo")
            await session.wait(1)
            return work.done, results(engine, session.id), endings(engine, session.id)

    done, found, ended = run(story())
    assert (done, ended) == (["look x"], ["done"])
    assert found == [("call_1", "saw x", False), ("call_2", "peeked", False)]


async def settle(again, session, ask=False):
    """Answer what is open, or have it asked again; go on; send one more prompt."""
    for asked in () if ask else list(session.history.pending.values()):
        await session.answer(asked.call.id, True, shown=asked.shown, by="bo")
    if session.is_parked or session.history.waiting:
        await session.resume()
    turn = await session.send("last", when="queue")
    result = await session.wait(turn)
    assert (result.reason, session.is_parked, session.history.waiting) == ("done", False, {})
    assert is_valid(session.history.transcript)
    assert all(is_valid(request.messages) for request in again.model.requests)


def check(records, done):
    """One result a call, one end a turn, each prompt once in the conversation, no effect twice."""
    events = [one.event for one in records]
    replies = [one.message for one in events if isinstance(one, ResponseCompleted) and one.message]
    asked = [one.id for message in replies for one in message.tool_calls]
    given = [one.output.call_id for one in events if isinstance(one, ToolResultEvent)]
    assert sorted(given) == sorted(asked)
    begun = {one.turn for one in events if isinstance(one, MessageAdded)}
    assert sorted(one.turn for one in events if isinstance(one, TurnEnded)) == sorted(begun)
    sent = [one.seq for one in records if isinstance(one.event, PromptReceived)]
    assert sorted(one.prompt for one in events if isinstance(one, MessageAdded)) == sent
    assert len(set(done)) == len(done)


def marks_begun(records):
    """The words of the marks that may have been made."""
    intents = {one.event.call_id for one in records if isinstance(one.event, CallIntended)}
    replies = [one.event.message for one in records if isinstance(one.event, ResponseCompleted)]
    calls = [one for message in replies if message for one in message.tool_calls]
    return {one.arguments["word"] for one in calls if one.name == "mark" and one.id in intents}


async def yes(asked):
    return True


STORY = [
    {"text": "first", **calls(("look", {"word": "x"}), ("look", {"word": "y"}))},
    mark("a"),
    mark("b", "c"),
    "so far",
    call("mark", word="d"),
    "done",
]


async def tell(state):
    """The whole story: asked and answered, steered, queued; all of it in one process."""
    work = Work()
    async with make_engine(STORY, *work.tools, store=JsonlStore(state), on_ask="wait") as engine:
        session = await engine.session()
        await session.send("go")
        await session.send("mind this", when="next_step")
        last, seq = await session.send("later", when="queue"), 0
        for answer in (True, False, True, Answer(True, "session")):
            record = await until(session, kind(ApprovalAsked), seq)
            seq, asked = record.seq, record.event
            await session.answer(asked.call.id, answer, shown=asked.shown, by="ann")
        await session.wait(last)
        return session.id, work.done


def test_a_log_that_ends_after_any_record_goes_on_and_nothing_is_done_twice(state):
    """A8, and again after any record of the recovery: a process may be killed at once anew."""

    async def story():
        found, _ = await tell(state)
        path = JsonlStore(state).path(found)
        whole = path.read_bytes().splitlines(keepends=True)
        for count in range(1, len(whole) + 1):
            path.write_bytes(b"".join(whole[:count]))
            begun = marks_begun(list(JsonlStore(state).read(found)))
            async with Again(state, approver=yes) as again:
                await settle(again, await again.take(found), ask=count % 2 == 0)
            assert not begun & set(again.work.done)
            check(list(JsonlStore(state).read(found)), again.work.done)
            assert verify(path).ok
        return len(whole)

    assert run(story()) > 40


def test_a_recovery_that_is_itself_cut_off_is_recovered_from(state):
    async def story():
        found = await told(state, [mark("a", "b"), "done"], mode="auto")
        cut(state, found, lambda one: isinstance(one, CallIntended))
        path = JsonlStore(state).path(found)
        first = path.read_bytes().count(b"\n")
        async with Again(state) as again:
            await again.take(found)
        whole = path.read_bytes().splitlines(keepends=True)
        for count in range(first, len(whole) + 1):
            path.write_bytes(b"".join(whole[:count]))
            async with Again(state) as again:
                await settle(again, await again.take(found))
            assert results(again.engine, found) == [
                ("call_1", UNKNOWN, True),
                ("call_2", NOT_RUN, True),
            ]
            assert endings(again.engine, found) == ["interrupted", "done"]
            told_of = len(events(again.engine, found, TraceEvent))
            assert (again.work.done, verify(path).ok, told_of) == ([], True, 1)
        return len(whole) - first

    assert run(story()) >= 4


def test_taking_up_a_parked_session_twice_says_nothing_twice(state):
    async def story():
        found = await told(state, [mark("a"), "done"], [True])
        cut(state, found, kind(ApprovalAsked))
        for _ in range(3):
            async with Again(state, on_ask="wait") as again:
                assert (await again.take(found)).is_parked
        return events(again.engine, found, TurnParked)

    assert run(story()) == [TurnParked(1, ("call_1",))]
