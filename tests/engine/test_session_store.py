"""The sessions by their ids: created, chosen, listed, changed, deleted; by many tasks at once."""

import asyncio
import random

import pytest

from bridle.engine.assistant import SessionStore
from bridle.errors import SessionBusy
from bridle.events import MessageAdded, Rewound, TitleChanged
from bridle.messages import Message, Text, ToolCall, ToolOutput, user
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from rig import call, events, make_engine, run, seeds


def words(messages):
    return [(one.role, one.content) for one in messages]


def test_what_is_created_is_current_and_can_be_found_listed_and_named(tmp_path):
    """S3: create, get, current, set_current, list, update_title."""

    async def story():
        async with make_engine(["ok"], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            first = await sessions.create("The first")
            second = await sessions.create()
            chosen = [(await sessions.current()) is second]
            chosen.append(await sessions.set_current(first.id))
            chosen.append((await sessions.current()) is first)
            found = await sessions.get(second.id)
            renamed = await sessions.update_title(first.id, "  Better ")
            listed = {one.id: one.title for one in await sessions.list()}
            titles = [one.title for one in events(engine, first.id, TitleChanged)]
            return chosen, found is second, renamed, listed, titles, first.id, second.id

    chosen, found, renamed, listed, titles, first, second = run(story())
    assert (chosen, found, renamed) == ([True, True, True], True, True)
    assert listed == {first: "Better", second: ""}
    assert titles == ["The first", "Better"]


def test_a_session_that_there_is_not_is_none_and_false_and_empty(tmp_path):
    """S3."""

    async def story():
        async with make_engine([], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            return (
                await sessions.get("nobody"),
                await sessions.set_current("nobody"),
                await sessions.delete("nobody"),
                await sessions.add_message("nobody", user("hi")),
                await sessions.get_messages("nobody"),
                await sessions.clear_messages("nobody"),
                await sessions.update_title("nobody", "x"),
                await sessions.list(),
            )

    assert run(story()) == (None, False, False, False, [], False, False, [])


def test_the_current_session_makes_itself_once_however_many_ask(tmp_path):
    """S3: current auto-creates; twenty who ask at once get the same one."""

    async def story():
        async with make_engine([], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            before = sessions.current_id
            found = await asyncio.gather(*(sessions.current() for _ in range(20)))
            return before, len({id(one) for one in found}), len(engine.summaries())

    assert run(story()) == ("", 1, 1)


def test_a_current_session_that_is_gone_is_replaced_once_however_many_ask(tmp_path):
    """S3: nothing was said in it, so that closing it left nothing."""

    async def story():
        async with make_engine([], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            gone = await sessions.create()
            await gone.close()
            found = await asyncio.gather(*(sessions.current() for _ in range(20)))
            return len({one.id for one in found} - {gone.id}), len(engine.summaries())

    assert run(story()) == (1, 1)


def test_messages_are_handed_out_as_a_copy(tmp_path):
    """S3: get_messages returns the caller's own list; add_message records."""

    async def story():
        async with make_engine(["ok"], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            session = await sessions.create()
            added = await sessions.add_message(session.id, user("hello"))
            first = await sessions.get_messages(session.id)
            first.clear()
            second = await sessions.get_messages(session.id)
            await session.close()
            closed = await sessions.get_messages(session.id)
            return added, words(second), closed == second

    assert run(story()) == (True, [("user", "hello")], True)


def test_a_call_that_is_brought_in_with_its_result_stays_with_it(tmp_path):
    """S3, S5: what is added message by message is a valid conversation all along."""

    async def story():
        async with make_engine(["I see."], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            session = await sessions.create()
            for message in (
                user("look"),
                Message("assistant", (ToolCall("c1", "look", {}),)),
                Message("tool", (ToolOutput("c1", "a cat"),)),
            ):
                await sessions.add_message(session.id, message)
            await session.wait(await session.send("and?"))
            return engine.provider.requests[0].messages

    asked = run(story())
    assert [one.role for one in asked] == ["user", "assistant", "tool", "user"]
    assert [one.text for one in asked[2].tool_results] == ["a cat"]


def test_clearing_is_a_record_and_the_log_keeps_everything(tmp_path):
    """S3: clear_messages is not a deletion of the log."""

    async def story():
        async with make_engine(["one", "two"], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            session = await sessions.create()
            await session.wait(await session.send("first"))
            cleared = await sessions.clear_messages(session.id)
            empty = await sessions.get_messages(session.id)
            await session.wait(await session.send("second"))
            asked = words(engine.provider.requests[-1].messages)
            kept = events(engine, session.id, MessageAdded)
            return cleared, empty, asked, len(kept), events(engine, session.id, Rewound)

    cleared, empty, asked, kept, rewound = run(story())
    assert (cleared, empty) == (True, [])
    assert asked == [("user", "second")]
    assert (kept, rewound) == (2, [Rewound(0)])


def test_a_conversation_is_not_changed_under_a_turn_that_runs(tmp_path):
    """S3, S4: a title may be given at any time."""

    async def story():
        there, go_on = asyncio.Event(), asyncio.Event()

        @tool(read_only=True)
        async def wait() -> str:
            there.set()
            await go_on.wait()
            return "waited"

        async with make_engine([call("wait"), "ok"], wait, store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            session = await sessions.create()
            turn = await session.send("go")
            await there.wait()
            for change in (
                sessions.add_message(session.id, user("hi")),
                sessions.clear_messages(session.id),
            ):
                with pytest.raises(SessionBusy):
                    await change
            titled = await sessions.update_title(session.id, "While it runs")
            go_on.set()
            result = await session.wait(turn)
            return titled, session.title, result.reason, len(session.history.transcript)

    assert run(story()) == (True, "While it runs", "done", 4)


def test_a_deleted_session_is_gone_and_another_becomes_current(tmp_path):
    """S3: delete, by an explicit word, closes the session first."""

    async def story():
        async with make_engine(["ok"], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            session = await sessions.create("Doomed")
            empty = await sessions.create()
            await sessions.set_current(session.id)
            deleted = [await sessions.delete(session.id), await sessions.delete(empty.id)]
            left = await sessions.list(), await sessions.get(session.id), session.is_closed
            other = await sessions.current()
            return deleted, left, other.id != session.id

    assert run(story()) == ([True, True], ([], None, True), True)
    assert list((tmp_path / "sessions").iterdir()) == []


def test_a_session_in_memory_can_be_deleted_too():
    """S3."""

    async def story():
        async with make_engine(["ok"]) as engine:
            sessions = SessionStore(engine)
            session = await sessions.create("Doomed")
            return await sessions.delete(session.id), await sessions.list(), session.is_closed

    assert run(story()) == (True, [], True)


@pytest.mark.parametrize("seed", seeds(50))
def test_twenty_tasks_may_use_it_at_once(seed, tmp_path):
    """S3: safe under concurrency: nothing is lost, nothing twice, one current session."""

    async def story():
        chance = random.Random(seed)
        async with make_engine([], store=JsonlStore(tmp_path)) as engine:
            sessions = SessionStore(engine)
            mine = [(await sessions.create(f"t{n}")).id for n in range(3)]
            added = {session_id: [] for session_id in mine}

            async def task(name):
                for step in range(6):
                    session_id = chance.choice(mine)
                    text = f"{name}.{step}"
                    verb = chance.randrange(5)
                    if verb == 0:
                        assert await sessions.set_current(session_id)
                    elif verb == 1:
                        assert (await sessions.current()).id in mine
                    elif verb == 2:
                        (await sessions.get_messages(session_id)).clear()
                    else:
                        added[session_id].append(text)
                        await sessions.add_message(session_id, Message("user", (Text(text),)))

            await asyncio.gather(*(task(name) for name in range(20)))
            found = {one: await sessions.get_messages(one) for one in mine}
            logs = {one: events(engine, one, MessageAdded) for one in mine}
            return added, found, logs

    added, found, logs = run(story())
    for session_id, texts in added.items():
        kept = [one.message.content for one in logs[session_id]]
        assert sorted(kept) == sorted(texts)
        assert [one.content for one in found[session_id]] == kept


def test_every_message_says_when_it_was_created(tmp_path):
    """S2: results of tools too, from a session that is open and from its log."""

    @tool(read_only=True)
    async def look() -> str:
        return "a cat"

    async def story():
        model = [call("look"), "A cat."]
        async with make_engine(model, look, store=JsonlStore(tmp_path)) as engine:
            session = await engine.session()
            await session.wait(await session.send("what is it?"))
            live = list(session.history.transcript)
            await session.close()
            return live, await SessionStore(engine).get_messages(session.id)

    live, read = run(story())
    assert [one.role for one in live] == ["user", "assistant", "tool", "assistant"]
    assert all(one.created_at and one.id for one in live)
    assert [one.created_at for one in live] == sorted(one.created_at for one in live)
    assert read == live
