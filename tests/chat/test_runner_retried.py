"""A turn that is tried again, under the same name: nothing happens twice, and the reply is true."""

from dataclasses import replace

import pytest
from runner_rig import call, chatting, on_sqlite, scripted
from sqlmodel import select

from bridle.chat.db import Task
from rig import run


def titles(database, user="ana"):
    with database.session_for(user, reads=True) as session:
        return [one.title for one in session.exec(select(Task).order_by(Task.id)).all()]


STORIES = [
    ((), "add Buy milk", "Got it! Added 'Buy milk' to your list. Anything else?"),
    ((), "add tasks: a, b and c", "Got it! Added 'a', 'b' and 'c' to your list. Anything else?"),
    (("Buy milk",), "complete milk", "Great! I've marked 'Buy milk' as complete."),
    (
        ("Buy milk", "Milk shake"),
        "rename buy milk to Tea",
        "Updated! 'Buy milk' now has the title 'Tea'.",
    ),
    (("Buy milk",), "make milk high priority", "Updated! 'Buy milk' now has high priority."),
]


@pytest.mark.parametrize(("before", "message", "reply"), STORIES)
def test_T6_a_turn_run_again_says_the_same_and_does_it_once(database, before, message, reply):
    async def told():
        async with chatting(database) as chat:
            for title in before:
                await chat.say(f"add {title}")
            context = replace(chat.context(), turn_id="turn-1")
            first = await chat.runner.run(context, message)
            there = titles(database)
            again = await chat.runner.run(replace(context, retried=True), message)
            third = await chat.runner.run(replace(context, retried=True), message)
            assert first.response == reply
            assert titles(database) == there
            assert again.response == third.response == reply

    run(told())


@on_sqlite
def test_T6_a_model_that_asks_for_something_else_the_second_time_changes_nothing_more(database):
    """The first change of a turn is the first change of every attempt at it."""

    async def told():
        async with chatting(database) as chat:
            context = replace(chat.context(), turn_id="turn-1")
            await chat.use(scripted(call("add_task", title="Buy milk"), "ok"))
            await chat.runner.run(context, "milk please")
            await chat.use(scripted(call("list_tasks"), call("add_task", title="MILK"), "ok"))
            again = await chat.runner.run(replace(context, retried=True), "milk please")
            assert again.response == "Got it! Added 'Buy milk' to your list. Anything else?"
            assert titles(database) == ["Buy milk"]

    run(told())


@on_sqlite
def test_T6_what_was_applied_is_said_also_if_the_model_fails_the_second_time(database):
    async def told():
        async with chatting(database) as chat:
            context = replace(chat.context(), turn_id="turn-1")
            await chat.use(scripted(call("add_task", title="Buy milk"), "ok"))
            await chat.runner.run(context, "milk please")
            await chat.use(scripted({"error": {"kind": "agent"}}))
            again = await chat.runner.run(replace(context, retried=True), "milk please")
            assert again.response == "Got it! Added 'Buy milk' to your list. Anything else?"

    run(told())


def test_T6_half_a_turn_is_gone_on_with(database):
    """Two of three were added when the worker died: the third follows, and no other."""

    async def told():
        async with chatting(database) as chat:
            context = replace(chat.context(), turn_id="turn-1")
            two = [call("add_task", title="a"), call("add_task", title="b")]
            await chat.use(scripted(*two, {"error": {"kind": "agent"}}))
            await chat.runner.run(context, "add tasks: a, b, c")
            assert titles(database) == ["a", "b"]
            await chat.use("responder")
            again = await chat.runner.run(replace(context, retried=True), "add tasks: a, b, c")
            assert again.response == "Got it! Added 'a', 'b' and 'c' to your list. Anything else?"
            assert titles(database) == ["a", "b", "c"]

    run(told())


@on_sqlite
def test_T6_another_turn_does_it_again(database):
    async def told():
        async with chatting(database) as chat:
            for turn in ("one", "two"):
                await chat.runner.run(replace(chat.context(), turn_id=turn), "add Buy milk")
            assert titles(database) == ["Buy milk", "Buy milk"]

    run(told())
