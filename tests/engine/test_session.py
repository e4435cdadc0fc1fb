"""The verbs of a session: what goes in, in which order it reaches the model, how it closes."""

import asyncio

import pytest

from bridle.engine.budget import Limits
from bridle.errors import EmptyPrompt, KeyRefused, SessionBusy, SessionClosed, SessionError
from bridle.events import (
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    TextDelta,
    ToolOutputDelta,
    TurnEnded,
)
from bridle.messages import File, Image, Message, Text, ToolCall
from bridle.protocols.tool import ToolContext
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from rig import Speaking, call, conversation, endings, events, make_engine, run, until


class Held:
    """A tool that says that it began, and returns when it is let go."""

    def __init__(self):
        self.release = asyncio.Event()

        @tool(read_only=True)
        async def hold(context: ToolContext) -> str:
            context.say("holding")
            await self.release.wait()
            return "held"

        self.tool = hold

    async def begun(self, session, after=0):
        return await until(session, lambda event: isinstance(event, ToolOutputDelta), after)


@pytest.mark.parametrize("prompt", ["", "  \n\t", [], [Text(" ")], ["", "  "]])
def test_a_prompt_that_says_nothing_is_refused(prompt):
    """S4: typed, and nothing is recorded."""

    async def story():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            with pytest.raises(EmptyPrompt) as caught:
                await session.send(prompt)
            assert session.is_busy is False
            assert events(engine, session.id) == []
            return caught.value.hint

    assert run(story())


@pytest.mark.parametrize("part", [7, None, ToolCall("c", "x", {}), b"x"])
def test_a_prompt_of_strange_parts_is_refused(part):
    async def story():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            with pytest.raises(SessionError, match=type(part).__name__):
                await session.send(["look", part])
            return (await session.wait(await session.send("fine"))).text

    assert run(story()) == "ok"


def test_pictures_and_files_reach_the_model_in_order():
    async def story():
        model = Scripted(["nice"])
        picture, paper = Image("image/png", "aGk="), File("application/pdf", "aGk=", "a.pdf")
        async with make_engine(model) as engine:
            await engine.run(["look", picture, Text("and"), paper])
        return model.requests[0].messages[0].parts, (Text("look"), picture, Text("and"), paper)

    found, wanted = run(story())
    assert found == wanted


def test_half_a_surrogate_pair_is_written_out(state):
    """Bad input: invalid UTF-8 on a command line becomes this; it must not break the session."""

    async def story():
        model = Scripted(["ok", "ok"])
        async with make_engine(model, store=JsonlStore(state)) as engine:
            session = await engine.session()
            first = await session.wait(await session.send("a\udcffb"))
            second = await session.wait(await session.send("again"))
            numbers = [record.seq for record in engine.store.read(session.id)]
            return first.ok, second.ok, model.requests[0].messages[0].content, numbers

    first, second, said, numbers = run(story())
    assert (first, second, said) == (True, True, "a\\udcffb")
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_busy_session_says_so_and_goes_on(state):
    """S4."""

    async def story():
        held = Held()
        async with make_engine([call("hold"), "ok"], held.tool, store=JsonlStore(state)) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await held.begun(session)
            with pytest.raises(SessionBusy, match="busy with turn 1") as caught:
                await session.send("me too")
            held.release.set()
            result = await session.wait(turn)
            return caught.value.hint, result.ok, session.is_busy

    hint, ok, busy = run(story())
    assert "when='queue'" in hint
    assert (ok, busy) == (True, False)


def test_queued_prompts_run_one_after_the_other_in_order():
    async def story():
        held = Held()
        async with make_engine([call("hold"), "one", "two", "three"], held.tool) as engine:
            session = await engine.session()
            turns = [await session.send("first")]
            await held.begun(session)
            turns += [await session.send(text, when="queue") for text in ("second", "third")]
            held.release.set()
            texts = [(await session.wait(turn)).text for turn in turns]
            return turns, texts, conversation(engine, session.id)

    turns, texts, said = run(story())
    assert (turns, texts) == ([1, 2, 3], ["one", "two", "three"])
    words = [content for role, content in said if role == "user"]
    assert words == ["first", "second", "third"]


def test_steering_reaches_the_model_once_at_the_next_step():
    async def story():
        held = Held()
        model = Scripted([call("hold"), "ok"])
        async with make_engine(model, held.tool) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await held.begun(session)
            same = await session.send("rather this", when="next_step")
            held.release.set()
            await session.wait(turn)
            sent = [(one.role, one.content) for one in model.requests[1].messages]
            return turn, same, sent, len(model.requests), endings(engine, session.id)

    turn, same, sent, asked, ended = run(story())
    assert (turn, same, asked, ended) == (1, 1, 2, ["done"])
    assert sent == [("user", "go"), ("assistant", ""), ("tool", ""), ("user", "rather this")]


def test_steering_finds_the_running_turn_also_when_another_is_queued():
    async def story():
        held = Held()
        model = Scripted([call("hold"), "one", "two"])
        async with make_engine(model, held.tool) as engine:
            session = await engine.session()
            first = await session.send("go")
            await held.begun(session)
            second = await session.send("later", when="queue")
            steered = await session.send("rather this", when="next_step")
            held.release.set()
            await session.wait(second)
            return first, second, steered, [one.content for one in model.requests[1].messages]

    first, second, steered, sent = run(story())
    assert (first, second, steered) == (1, 2, 1)
    assert sent == ["go", "", "", "rather this"]


@pytest.mark.parametrize("failed", [False, True])
def test_steering_in_the_last_step_goes_before_what_was_queued(failed):
    """Into the turn, which has one more step; into one of its own if that turn has failed."""

    async def story():
        said = asyncio.Event()

        async def last():
            yield TextDelta("one two")
            await said.wait()
            if failed:
                raise KeyRefused("no")
            yield ResponseCompleted("complete", Message("assistant", (Text("one two"),)))

        async def late():
            yield ResponseCompleted("complete", Message("assistant", (Text("late"),)))

        async def more():
            yield ResponseCompleted("complete", Message("assistant", (Text("last"),)))

        async with make_engine(Speaking(last, late, more)) as engine:
            session = await engine.session()
            first = await session.send("go")
            await until(session, lambda event: isinstance(event, TextDelta))
            second = await session.send("more", when="queue")
            assert await session.send("and this", when="next_step") == first
            said.set()
            texts = [(await session.wait(turn)).text for turn in (first, second)]
            ends = [(one.turn, one.reason) for one in events(engine, session.id, TurnEnded)]
            return texts, ends, conversation(engine, session.id), session.history.waiting

    texts, ends, said, waiting = run(story())
    assert waiting == {}
    if failed:
        assert (texts, ends) == (["", "last"], [(1, "failed"), (3, "done"), (2, "done")])
        said.insert(1, ("assistant", "one two"))
    else:
        assert (texts, ends) == (["late", "last"], [(1, "done"), (2, "done")])
    assert said == [
        ("user", "go"),
        ("assistant", "one two"),
        ("user", "and this"),
        ("assistant", "late"),
        ("user", "more"),
        ("assistant", "last"),
    ]


def test_a_prompt_enters_the_conversation_exactly_once():
    async def story():
        held = Held()
        async with make_engine([call("hold"), "a", "b", "c"], held.tool) as engine:
            session = await engine.session()
            await session.send("one")
            await held.begun(session)
            last = await session.send("two", when="queue")
            await session.send("three", when="next_step")
            held.release.set()
            await session.wait(last)
            received = [
                record.seq
                for record in engine.store.read(session.id)
                if isinstance(record.event, PromptReceived)
            ]
            return received, [one.prompt for one in events(engine, session.id, MessageAdded)]

    received, entered = run(story())
    assert sorted(entered) == sorted(received)


def test_next_step_on_an_idle_session_is_an_ordinary_prompt():
    async def story():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            return (await session.wait(await session.send("go", when="next_step"))).text

    assert run(story()) == "ok"


def test_interrupting_an_idle_session_does_nothing():
    async def story():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            await session.interrupt()
            return (await session.wait(await session.send("go"))).text

    assert run(story()) == "ok"


def test_an_interrupt_leaves_the_queue_alone():
    async def story():
        held = Held()
        async with make_engine([call("hold"), "next"], held.tool) as engine:
            session = await engine.session()
            first = await session.send("go")
            await held.begun(session)
            second = await session.send("then", when="queue")
            await session.interrupt()
            results = await session.wait(first), await session.wait(second)
            return [(one.reason, one.text) for one in results]

    assert run(story()) == [("interrupted", ""), ("done", "next")]


def test_a_hundred_queued_prompts_all_get_their_results():
    async def story():
        async with make_engine(Scripted(["k"], loop=True), limits=Limits()) as engine:
            session = await engine.session()
            turns = [await session.send("go", when="queue") for _ in range(100)]
            found = await asyncio.gather(*(session.wait(turn) for turn in turns))
            return [one.turn for one in found]

    assert run(story()) == list(range(1, 101))


def test_a_turn_nobody_knows_cannot_be_waited_for():
    async def story():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            with pytest.raises(SessionError):
                await session.wait(9)

    run(story())


def test_a_sender_who_goes_away_leaves_the_turn_running():
    """A turn belongs to its session, not to who watches it."""

    async def story():
        held = Held()
        async with make_engine([call("hold"), "ok"], held.tool) as engine:
            session = await engine.session()
            waiting = asyncio.create_task(session.wait(await session.send("go")))
            await held.begun(session)
            waiting.cancel()
            await asyncio.wait([waiting])
            held.release.set()
            return (await session.wait(1)).text

    assert run(story()) == "ok"


def test_cancelling_a_run_interrupts_its_turn():
    """M6: engine.run has no other owner."""

    async def story():
        held = Held()
        async with make_engine([call("hold"), "ok"], held.tool) as engine:
            session = await engine.session()
            running = asyncio.create_task(engine.run("go", session=session))
            await held.begun(session)
            running.cancel()
            await asyncio.wait([running])
            return running.cancelled(), session.is_busy, endings(engine, session.id)

    assert run(story()) == (True, False, ["interrupted"])


def test_a_closed_session_refuses_and_its_queue_is_answered():
    async def story():
        held = Held()
        async with make_engine([call("hold"), "never"], held.tool) as engine:
            session = await engine.session()
            first = await session.send("go")
            await held.begun(session)
            second = await session.send("then", when="queue")
            waiting = asyncio.create_task(session.wait(second))
            await session.close()
            with pytest.raises(SessionClosed):
                await session.send("more")
            found = await session.wait(first), await waiting
            return [(one.reason, one.detail) for one in found]

    assert run(story()) == [
        ("interrupted", "the turn was interrupted"),
        ("interrupted", "the session was closed"),
    ]
