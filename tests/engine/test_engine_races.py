"""Two who want something of one engine in the same moment, and what comes before a first prompt."""

import asyncio

import pytest

from bridle.errors import SessionClosed, SessionError
from bridle.events import TitleChanged, UsageReported
from bridle.messages import Message, Text
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from rig import conversation, events, make_engine, run, until


async def _kept(state):
    """The id of a session that nobody holds."""
    async with make_engine(["one"], store=JsonlStore(state)) as engine:
        return (await engine.run("go")).session_id


def test_an_engine_that_is_closed_while_a_session_is_taken_up_keeps_no_lock(state):
    async def story():
        found = await _kept(state)
        engine = make_engine([], store=JsonlStore(state))
        taking = asyncio.create_task(engine.session(found))
        await asyncio.sleep(0)
        await engine.close()
        with pytest.raises(SessionClosed):
            await taking
        async with make_engine(["two"], store=JsonlStore(state)) as other:
            return (await other.run("more", session=found)).text

    assert run(story()) == "two"


def test_a_session_that_is_just_being_closed_is_taken_up_again_after_it(state):
    async def story():
        async with make_engine(["one", "two"], store=JsonlStore(state)) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            session.add_history([Message("user", (Text("by the way"),))])
            closing = asyncio.create_task(session.close())
            await asyncio.sleep(0)
            again = await engine.session(session.id)
            await closing
            await again.wait(await again.send("more"))
            return again is session, conversation(engine, session.id)

    same, said = run(story())
    assert not same
    assert said == [
        ("user", "go"),
        ("assistant", "one"),
        ("user", "by the way"),
        ("user", "more"),
        ("assistant", "two"),
    ]


def test_of_three_who_take_a_session_up_one_may_give_up(state):
    """The others get the same session, and nobody is locked out by the one who has gone."""

    async def story():
        found = await _kept(state)
        async with make_engine([], store=JsonlStore(state)) as engine:
            first = asyncio.create_task(engine.session(found))
            await asyncio.sleep(0)
            second = asyncio.create_task(engine.session(found))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait([first])
            third = asyncio.create_task(engine.session(found))
            one, two = await asyncio.gather(second, third)
            return first.cancelled(), one is two, one.id == found

    assert run(story()) == (True, True, True)


def test_history_that_is_none_is_refused_and_nothing_of_it_is_kept(state):
    async def story():
        async with make_engine(["one"], store=JsonlStore(state)) as engine:
            session = await engine.session()
            strange = [Message("user", (Text("hi"),)), {"role": "user", "content": "hi"}]
            with pytest.raises(SessionError, match="history cannot contain dict values") as no:
                session.add_history(strange)
            before = session.seq
            await session.wait(await session.send("go"))
            return no.value.hint, before, conversation(engine, session.id)

    hint, before, said = run(story())
    assert (hint, before) == ("It consists of `bridle.Message` values.", 0)
    assert said == [("user", "go"), ("assistant", "one")]


def _named(event):
    return isinstance(event, UsageReported) and event.purpose == "title"


def test_a_title_that_a_person_gave_before_the_first_prompt_stands():
    async def story():
        small = Scripted(["A title of the model"])
        async with make_engine(["one"], small=small) as engine:
            session = await engine.session()
            await session.rename("My own title")
            await session.wait(await session.send("go"))
            if small.requests:  # it may be asked; it is not to be heard
                await until(session, _named)
            return session.title, events(engine, session.id, TitleChanged)

    assert run(story()) == ("My own title", [TitleChanged("My own title")])


def test_a_title_that_a_person_gives_while_the_model_thinks_of_one_stands():
    async def story():
        small = Scripted(["A title of the model"])
        async with make_engine(["one"], small=small) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await session.rename("My own title")
            await session.wait(turn)
            await until(session, _named)
            return session.title, events(engine, session.id, TitleChanged)

    assert run(story()) == ("My own title", [TitleChanged("My own title")])
