"""A model that says what did not happen, or does many things one by one: the reply stays true."""

import pytest
from runner_rig import call, chatting, on_sqlite, scripted
from sqlmodel import select

from bridle.chat.db import Task
from rig import run

UNCLEAR = "Sorry, I didn't quite get that. What would you like to do?"
LIES = [
    ("delete milk", "Done! 'Buy milk' was deleted."),
    ("delete milk", "All set, your milk task is gone."),
    ("delete milk", "'Buy milk' is no longer there, as you wished."),
    ("delete milk", "Deleted 'Buy milk'! Anything else?"),
    ("add bread", "Bread is on your list now!"),
    ("add bread", "Added bread. Anything else?"),
    ("complete milk", "Marked it complete ✓"),
    ("make milk high priority", "Milk has high priority from now on."),
    ("delete all tasks", "Everything was removed."),
    ("get milk out of my life", "Deleted 'Buy milk'!"),
    ("get milk out of my life", "'Buy milk' has been removed."),
    ("get milk out of my life", "I have successfully deleted it."),
    ("get milk out of my life", "Done."),
]


def rows(database):
    with database.session_for("ana", reads=True) as session:
        return [(one.title, one.completed) for one in session.exec(select(Task))]


@on_sqlite
@pytest.mark.parametrize(("message", "lie"), LIES)
@pytest.mark.parametrize("looks", [False, True])
def test_T5_nothing_is_said_to_be_done_that_was_not(database, message, lie, looks):
    async def told():
        async with chatting(database) as chat:
            await chat.say("add Buy milk")
            await chat.use(scripted(*([call("list_tasks")] if looks else []), lie))
            reply = await chat.say(message)
            assert lie not in reply
            assert rows(database) == [("Buy milk", False)]

    run(told())


@on_sqlite
@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("delete milk", "Which milk do you mean, the oat one?"),
        ("what should I do first?", "You completed two tasks already, so call your mother."),
        ("are you sure?", "Yes, quite sure."),
    ],
)
def test_T5_what_a_model_asks_or_tells_is_still_said(database, message, words):
    async def told():
        async with chatting(database, scripted(words)) as chat:
            assert await chat.say(message) == words

    run(told())


@on_sqlite
def test_T5_a_failure_is_said_in_a_language_that_only_the_model_speaks_too(database):
    async def told():
        async with chatting(database) as chat:
            await chat.say("add Buy milk")
            await chat.use(scripted(call("complete_task", task_id=999), "Erledigt!"))
            assert "Erledigt" not in await chat.say("Milch ist fertig", language="de")
            await chat.use(scripted(call("complete_task", task_id=1), "Milch ist erledigt."))
            assert await chat.say("Milch ist fertig", language="de") == "Milch ist erledigt."

    run(told())


@on_sqlite
@pytest.mark.parametrize(
    ("message", "tool", "more"),
    [
        ("complete all tasks", "complete_task", {}),
        ("move everything to friday", "update_task", {"due": "friday"}),
    ],
)
def test_T5_all_of_them_one_by_one_is_a_big_action_too(database, message, tool, more):
    async def told():
        async with chatting(database) as chat:
            for title in ("a", "b", "c"):
                await chat.say(f"add {title}")
            ids = [one.tool_calls[0].data["id"] for one in chat.results]
            each = [{"name": tool, "arguments": {"task_id": one, **more}} for one in ids]
            await chat.use(scripted(call("list_tasks"), {"calls": each}, "All done."))
            verb = "complete" if tool == "complete_task" else "change"
            asked = f"That's a big action. Confirm with 'yes {verb} 3 tasks'."
            assert await chat.say(message) == asked
            with database.session_for("ana", reads=True) as session:
                assert {(one.completed, one.due_at) for one in session.exec(select(Task))} == {
                    (False, None)
                }
            assert (await chat.run(f"yes {verb} 3 tasks")).success
            with database.session_for("ana", reads=True) as session:
                found = {(one.completed, one.due_at is None) for one in session.exec(select(Task))}
                assert found == {(verb == "complete", verb == "complete")}

    run(told())
