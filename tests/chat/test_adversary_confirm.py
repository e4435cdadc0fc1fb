"""The world changes between a question and its phrase: nothing is done that was not asked about."""

from dataclasses import replace

from runner_rig import call, chatting, on_sqlite, scripted
from sqlmodel import select

from bridle.chat.db import Task
from rig import run


def titles(database, user="ana"):
    with database.session_for(user, reads=True) as session:
        return [one.title for one in session.exec(select(Task).order_by(Task.id))]


def story(database, *steps):
    """Each step: what is said (in which conversation), and what is answered."""

    async def told():
        async with chatting(database) as chat:
            for said, answer in steps:
                words, _, where = said.partition(" @")
                reply = await chat.say(words, conversation=where or "c1")
                assert answer is None or reply == answer, said

    run(told())


def asked(title):
    return f"Do you really want to delete '{title}'? Reply 'yes delete' to confirm."


def test_T5_a_task_renamed_since_the_question_is_asked_about_again(database):
    story(
        database,
        ("add Buy milk", None),
        ("delete milk", asked("Buy milk")),
        ("rename milk to Pay taxes @c2", "Updated! 'Buy milk' now has the title 'Pay taxes'."),
        ("yes delete", asked("Pay taxes")),
        ("no", "Okay, nothing was changed."),
        ("delete taxes", asked("Pay taxes")),
        ("yes delete", "I've removed 'Pay taxes' from your tasks."),
    )
    assert titles(database) == []


@on_sqlite
def test_T5_a_task_deleted_since_the_question_is_named_by_its_title(database):
    story(
        database,
        ("add Buy milk", None),
        ("delete milk", asked("Buy milk")),
        ("delete milk @c2", asked("Buy milk")),
        ("yes delete @c2", "I've removed 'Buy milk' from your tasks."),
        ("yes delete", "I couldn't find a task about 'Buy milk' in your list."),
        (
            "yes delete",
            "There's nothing waiting for your confirmation. What would you like to do?",
        ),
    )


def test_T5_when_some_of_many_are_gone_the_question_is_put_anew_with_the_right_count(database):
    story(
        database,
        ("add tasks: a1, a2 and a3", None),
        ("delete all tasks", "That's a big action. Confirm with 'yes delete 3 tasks'."),
        ("delete a1 @c2", asked("a1")),
        ("yes delete @c2", None),
        ("add a9 @c2", None),
        ("yes delete 3 tasks", "That's a big action. Confirm with 'yes delete 2 tasks'."),
        ("yes delete 3 tasks", "That's a big action. Confirm with 'yes delete 2 tasks'."),
        ("yes delete 2 tasks", "I've removed 2 tasks from your list."),
    )
    assert titles(database) == ["a9"]


@on_sqlite
def test_T5_when_all_of_many_are_gone_nothing_is_asked_again(database):
    story(
        database,
        ("add tasks: a1 and a2", None),
        ("delete all tasks", "That's a big action. Confirm with 'yes delete 2 tasks'."),
        ("delete all tasks @c2", None),
        ("yes delete 2 tasks @c2", "I've removed 2 tasks from your list."),
        ("yes delete 2 tasks", "I couldn't find a task about 'a1' in your list."),
    )


@on_sqlite
def test_T5_a_phrase_after_another_question_is_not_taken_for_the_old_one(database):
    """The person may well mean the bread; so nothing is deleted, and that is said."""
    story(
        database,
        ("add tasks: Buy eggs, Buy bread and Old bread", None),
        ("delete eggs", asked("Buy eggs")),
        (
            "delete bread",
            "I found multiple tasks about 'bread'. Which one: 'Buy bread' or 'Old bread'?",
        ),
        (
            "yes delete",
            "You asked for something else in between, so nothing was changed. Please ask me again.",
        ),
    )
    assert titles(database) == ["Buy eggs", "Buy bread", "Old bread"]


@on_sqlite
def test_T5_a_turn_tried_again_never_answers_the_question_that_it_put_itself(database):
    """The worker dies after the question was put anew and before anybody has read it."""

    async def told():
        async with chatting(database) as chat:
            for words in ("add Buy milk", "delete milk"):
                await chat.say(words)
            await chat.say("rename milk to Pay taxes", conversation="c2")
            context = chat.context(turn_id="turn-1")
            for retried in (False, True, True):
                again = await chat.runner.run(replace(context, retried=retried), "yes delete")
                assert again.response == asked("Pay taxes")
            chat.said["ana", "c1"] += [
                {"role": "user", "content": "yes delete"},
                {"role": "assistant", "content": asked("Pay taxes")},
            ]
            assert titles(database) == ["Pay taxes"]
            assert await chat.say("yes delete") == "I've removed 'Pay taxes' from your tasks."

    run(told())


@on_sqlite
def test_T5_beyond_what_a_look_shows_a_question_can_still_be_answered(database):
    """Somebody with more tasks than one look at the list holds."""
    with database.session_for("ana") as session, session.begin():
        session.add_all([Task(title=f"t{n}") for n in range(505)])

    async def told():
        async with chatting(database) as chat:
            await chat.use(
                scripted(call("search_tasks", query="t504"), call("delete_task", task_id=505), "ok")
            )
            assert await chat.say("delete t504") == asked("t504")
            assert await chat.say("yes delete") == "I've removed 't504' from your tasks."

    run(told())
