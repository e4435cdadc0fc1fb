"""Letters from other processes: in order, each once, refused ones recorded, heard by whoever holds.

The inbox itself is the store's (tests/stores); here is what a session makes of it (S4, S9, A11).
"""

import asyncio

import pytest

from bridle.events import (
    ApprovalAsked,
    MessageAdded,
    PromptReceived,
    ToolOutputDelta,
    TraceEvent,
    TurnEnded,
)
from bridle.protocols.store import InboxMessage
from bridle.protocols.tool import ToolContext
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import tool
from rig import call, endings, events, is_valid, make_engine, run, until


@pytest.fixture(params=["file", "memory"])
def shared(request, state):
    """A store, and the same one as another process sees it."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    return lambda: JsonlStore(state)


@tool(read_only=True)
async def hold(context: ToolContext) -> str:
    """Run until it is stopped."""
    context.say("holding")
    await asyncio.Event().wait()
    return "never"


@tool
async def change() -> str:
    """Change something."""
    return "changed"


def begun(event):
    return isinstance(event, ToolOutputDelta)


def refused(engine, session_id):
    """What was said of letters that could not be done: (letter, verb, by)."""
    found = [one for one in events(engine, session_id, TraceEvent) if one.kind == "letter_refused"]
    return [(one.detail["letter"], one.detail["verb"], one.detail["by"]) for one in found]


def prompts(engine, session_id):
    found = events(engine, session_id, PromptReceived)
    return [(one.content, one.by, one.letter) for one in found]


async def ended(session, turn):
    """Wait for the end of that turn, as one who watches."""
    await until(session, lambda one: isinstance(one, TurnEnded) and one.turn == turn)


async def kept(store):
    """A session that is there, and that nobody holds."""
    async with make_engine(["hello"], store=store) as engine:
        session = await engine.session()
        await session.wait(await session.send("hi"))
    return session.id


def test_letters_wait_for_the_next_holder_and_are_done_in_their_order(shared):
    """Whoever takes the session up finds them; each of them once."""

    async def story():
        found = await kept(shared())
        for number in range(5):
            letter = InboxMessage(f"l{number}", "send", "bo", content=f"letter {number}")
            shared().send_message(found, letter)
        model = Scripted(["ok"], loop=True)
        async with make_engine(model, store=shared()) as engine:
            session = await engine.session(found)
            await session.wait(6)
            told = [one.content for one in model.requests[-1].messages if one.role == "user"]
            assert is_valid(session.history.transcript)
            await session.check_inbox()
            return told, prompts(engine, found)[1:]

    told, sent = run(story())
    assert told == ["hi", *(f"letter {number}" for number in range(5))]
    assert sent == [(f"letter {number}", "bo", f"l{number}") for number in range(5)]


def test_a_holder_hears_a_letter_without_being_asked(shared):
    """S9: a stop from a second terminal ends the turn of the first."""

    async def story():
        async with make_engine([call("hold"), "next"], hold, store=shared()) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, begun)
            shared().send_message(
                session.id, InboxMessage("a", "send", "bo", content="and then", when="queue")
            )
            shared().send_message(session.id, InboxMessage("b", "interrupt", "bo"))
            result = await session.wait(turn)
            await ended(session, 2)
            traces = [one.detail for one in events(engine, session.id, TraceEvent)]
            return result.reason, endings(engine, session.id), traces, prompts(engine, session.id)

    reason, ends, traces, sent = run(story())
    assert (reason, ends) == ("interrupted", ["interrupted", "done"])
    assert traces == [{"by": "bo", "letter": "b"}]
    assert sent == [("go", "me", ""), ("and then", "bo", "a")]


def test_a_letter_steers_the_running_turn_exactly_once(shared):
    async def story():
        release = asyncio.Event()

        @tool(read_only=True)
        async def wait(context: ToolContext) -> str:
            context.say("waiting")
            await release.wait()
            return "waited"

        model = Scripted([call("wait"), "ok"])
        async with make_engine(model, wait, store=shared()) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, begun)
            letter = InboxMessage("s", "send", "bo", content="rather so", when="next_step")
            shared().send_message(session.id, letter)
            await until(session, lambda one: isinstance(one, PromptReceived) and one.letter == "s")
            release.set()
            await session.wait(turn)
            return [[one.content for one in each.messages] for each in model.requests]

    assert run(story()) == [["go"], ["go", "", "", "rather so"]]


def test_what_cannot_be_done_is_recorded_once_and_thrown_away(shared):
    """A busy session, an answer to nothing, an empty prompt: said in the log, with the reason."""

    async def story():
        async with make_engine([call("hold")], hold, store=shared()) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, begun)
            other = shared()
            now = InboxMessage("a", "send", "bo", content="now", when="idle")
            other.send_message(session.id, now)
            answer = InboxMessage("b", "answer", "bo", call_id="c", shown="s")
            other.send_message(session.id, answer)
            other.send_message(session.id, InboxMessage("c", "send", "bo", content="  "))
            await until(
                session,
                lambda one: isinstance(one, TraceEvent) and one.detail.get("letter") == "c",
            )
            await session.interrupt()
        async with make_engine(["ok"], hold, store=shared()) as engine:
            session = await engine.session(session.id)
            assert not session.is_busy
            return refused(engine, session.id), len(prompts(engine, session.id))

    found, count = run(story())
    assert found == [("a", "send", "bo"), ("b", "answer", "bo"), ("c", "send", "bo")]
    assert count == 1


def test_a_letter_that_was_refused_before_a_crash_is_not_done_after_it(state):
    """The log says that it was refused: that is what became of it."""

    async def story():
        async with make_engine([call("hold")], hold, store=JsonlStore(state)) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, begun)
            letter = InboxMessage("a", "send", "bo", content="now", when="idle")
            JsonlStore(state).send_message(session.id, letter)
            await until(session, lambda one: getattr(one, "kind", "") == "letter_refused")
        # as if the process had died before it was removed
        JsonlStore(state).send_message(session.id, letter)
        async with make_engine(["ok"], hold, store=JsonlStore(state)) as engine:
            session = await engine.session(session.id)
            inbox = JsonlStore(state).path(session.id).parent / "inbox"
            left = list(inbox.glob("*.json"))
            return refused(engine, session.id), prompts(engine, session.id), session.is_busy, left

    found, sent, busy, left = run(story())
    assert found == [("a", "send", "bo")]
    assert (sent, busy, left) == ([("go", "me", "")], False, [])


@pytest.mark.parametrize("verb", ["send", "answer", "interrupt"])
def test_a_letter_that_was_done_before_a_crash_is_not_done_again(state, verb):
    """A record names it; the file that is still there is only removed."""

    async def story():
        store = JsonlStore(state)
        script = [call("change"), "ok", "ok"]
        async with make_engine(script, change, store=store, on_ask="park") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (asked,) = session.history.pending.values()
            letter = {
                "send": InboxMessage("x", "send", "bo", content="more"),
                "answer": InboxMessage(
                    "x", "answer", "bo", call_id=asked.call.id, shown=asked.shown
                ),
                "interrupt": InboxMessage("x", "interrupt", "bo"),
            }[verb]
            JsonlStore(state).send_message(session.id, letter)
            await session.check_inbox()
            if verb == "answer":
                await session.wait(1)
        before = [one.seq for one in store.read(session.id)]
        JsonlStore(state).send_message(session.id, letter)
        async with make_engine(["ok"], change, store=JsonlStore(state)) as engine:
            session = await engine.session(session.id)
            parked = session.is_parked
        return parked, before == [one.seq for one in store.read(session.id)]

    assert run(story()) == (verb == "send", True)


def test_an_answer_by_letter_lets_a_parked_turn_go_on_and_a_second_one_is_refused(shared):
    """A11: the first answer wins, with the name of who gave it."""

    async def story():
        script = [call("change"), "ok"]
        async with make_engine(script, change, store=shared(), on_ask="park") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (asked,) = session.history.pending.values()
            about = {"call_id": asked.call.id, "shown": asked.shown}
            for name, by in (("a", "ann"), ("b", "bo")):
                answer = InboxMessage(name, "answer", by, allowed=by == "ann", **about)
                shared().send_message(session.id, answer)
            await ended(session, 1)
            await until(session, lambda one: getattr(one, "kind", "") == "letter_refused")
            questions = events(engine, session.id, ApprovalAsked)
            return refused(engine, session.id), len(questions), endings(engine, session.id)

    assert run(story()) == ([("b", "answer", "bo")], 1, ["done"])


def test_a_letter_that_comes_as_the_session_closes_waits_for_the_next_holder(shared):
    """It is neither done nor refused by one who leaves."""

    async def story():
        release = asyncio.Event()

        @tool(read_only=True)
        async def linger(context: ToolContext) -> str:
            context.say("lingering")
            try:
                await asyncio.Event().wait()
            finally:
                await release.wait()
            return "never"

        async with make_engine([call("linger")], linger, store=shared()) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, begun)
            shared().send_message(session.id, InboxMessage("a", "interrupt", "bo"))
            shared().send_message(session.id, InboxMessage("b", "send", "bo", content="more"))
            taking = asyncio.create_task(session.check_inbox())
            await until(session, lambda one: getattr(one, "kind", "") == "interrupt")
            closing = asyncio.create_task(session.close())
            await asyncio.sleep(0)  # it closes, and waits for the turn as the first letter does
            assert session.is_closed
            release.set()
            await closing
            await asyncio.gather(taking, return_exceptions=True)
        async with make_engine(["ok"], store=shared()) as engine:
            again = await engine.session(session.id)
            result = await again.wait(2)
            return refused(engine, session.id), prompts(engine, session.id), result.text

    found, sent, text = run(story())
    assert (found, text) == ([], "ok")
    assert sent == [("go", "me", ""), ("more", "bo", "b")]


def test_an_interrupt_for_a_session_that_does_nothing_is_done_and_stops_nothing(shared):
    """It is recorded, so that it never stops a later turn."""

    async def story():
        store = shared()
        found = await kept(store)
        shared().send_message(found, InboxMessage("i", "interrupt", "bo"))
        async with make_engine(["ok"], store=shared()) as engine:
            session = await engine.session(found)
            known = dict(session.history.inbox_ids)
            result = await session.wait(await session.send("go"))
            said = [one.detail for one in events(engine, found, TraceEvent)]
            return known, result.text, said

    assert run(story()) == ({"i": None}, "ok", [{"by": "bo", "letter": "i"}])


def test_a_letter_that_comes_while_others_are_being_done_is_done_in_the_same_go(shared):
    """Whoever rings meanwhile is heard: nothing waits for the next ring."""

    async def story():
        found = await kept(shared())
        async with make_engine(Scripted(["ok"], loop=True), store=shared()) as engine:
            session = await engine.session(found)
            shared().send_message(found, InboxMessage("a", "send", "bo", content="first"))
            taking = asyncio.create_task(session.check_inbox())
            await until(session, lambda one: getattr(one, "letter", "") == "a")
            shared().send_message(found, InboxMessage("b", "send", "bo", content="second"))
            await session.check_inbox()
            await taking
            await ended(session, 3)
            return prompts(engine, found)[1:]

    assert run(story()) == [("first", "bo", "a"), ("second", "bo", "b")]


def turns_of(engine, session_id):
    """Which turn took which prompt in, in order."""
    contents = {one.seq: one.event.content for one in engine.store.read(session_id)
                if isinstance(one.event, PromptReceived)}  # fmt: skip
    added = [one for one in events(engine, session_id, MessageAdded) if one.prompt]
    return [(one.turn, contents[one.prompt]) for one in added]


@pytest.mark.parametrize(
    ("promised", "taken"),
    [
        (True, [(1, "one"), (2, "two"), (3, "three"), (4, "four")]),
        (False, [(1, "one"), (4, "two"), (4, "three"), (4, "four")]),
    ],
)
def test_a_letter_that_lies_there_does_not_take_the_turns_that_others_were_promised(
    shared, promised, taken
):
    """What a process before has accepted keeps its turn and its place, whatever comes meanwhile."""

    async def story():
        async with make_engine([call("hold")], hold, store=shared(), mode="auto") as engine:
            session = await engine.session()
            await session.send("one")
            await until(session, begun)
            await session.send("two", when="queue")
            await session.send("three", when="queue")
        fourth = InboxMessage("l4", "send", "bob", content="four", when="queue")
        shared().send_message(session.id, fourth)
        async with make_engine(["2", "3", "4"], hold, store=shared(), mode="auto") as engine:
            session = await engine.session(session.id, keep_turns=promised)
            await session.wait(4)
            return turns_of(engine, session.id)

    assert run(story()) == taken
