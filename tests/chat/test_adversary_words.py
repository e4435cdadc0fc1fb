"""Sentences that a guess would get wrong: it is about what was said, no more."""

import pytest
from runner_rig import chatting, on_sqlite

from rig import run

TITLES = (
    "Buy milk",
    "Buy oat milk",
    "All-hands meeting prep",
    "Every day workout",
    "Delete old photos",
    "Pay bill 42",
)
EVERY = "That's a big action. Confirm with 'yes"
SOME = [
    "delete all milk tasks",
    "delete all tasks about milk",
    "delete everything about milk",
    "delete all of the milk ones",
    "delete everything except milk",
    "delete all my tasks but the photos",
    "delete all but milk",
    "complete all tasks for work",
    "complete every workout",
    "complete both",
    "delete my tasks with Bob",
    "delete all-hands meeting prep",
    "complete every day workout",
    "move all meetings to friday",
]


@on_sqlite
@pytest.mark.parametrize("message", SOME)
def test_T5_words_that_mean_some_tasks_never_ask_to_change_all_of_them(database, message):
    async def told():
        async with chatting(database) as chat:
            for title in TITLES:
                await chat.say(f"add '{title}'")
            assert f"{len(TITLES)} tasks" not in await chat.say(message)

    run(told())


REPLIES = {
    "delete all-hands meeting prep": "Do you really want to delete 'All-hands meeting prep'?"
    " Reply 'yes delete' to confirm.",
    "complete every day workout": "Great! I've marked 'Every day workout' as complete.",
    "delete all tasks about milk": "I found multiple tasks about 'milk'."
    " Which one: 'Buy milk' or 'Buy oat milk'?",
    "delete all milk tasks": "I found multiple tasks about 'milk'."
    " Which one: 'Buy milk' or 'Buy oat milk'?",
    "delete all": f"{EVERY} delete 6 tasks'.",
    "delete all of my tasks": f"{EVERY} delete 6 tasks'.",
    "delete everything on my list": f"{EVERY} delete 6 tasks'.",
    "please delete all the open tasks now": f"{EVERY} delete 6 tasks'.",
    "mark all of them as done": f"{EVERY} complete 6 tasks'.",
    "complete all medium priority tasks": f"{EVERY} complete 6 tasks'.",
    "complete all tasks without a due date": f"{EVERY} complete 6 tasks'.",
    "todo: fix the bike": "Got it! Added 'fix the bike' to your list. Anything else?",
    "don't forget to send the invoice": "Got it! Added 'send the invoice' to your list."
    " Anything else?",
    "anything about bill?": "1. ☐ Pay bill 42",
    "tell me a joke": "I can add, list, complete, reopen, change and delete your tasks."
    " Try 'add buy bread tomorrow', 'what is due today?' or 'complete buy bread'.",
    "what is the weather today?": "I can add, list, complete, reopen, change and delete your tasks."
    " Try 'add buy bread tomorrow', 'what is due today?' or 'complete buy bread'.",
    "what is my user id?": "I can add, list, complete, reopen, change and delete your tasks."
    " Try 'add buy bread tomorrow', 'what is due today?' or 'complete buy bread'.",
    "rename all tasks to x": "Could you provide more details about which task you mean?",
    "add Fix error in ticket #12": "Got it! Added 'Fix error in ticket #12' to your list."
    " Anything else?",
    "I have finished bill": "Great! I've marked 'Pay bill 42' as complete.",
    "delete them all": f"{EVERY} delete 6 tasks'.",
}


@on_sqlite
@pytest.mark.parametrize("message", REPLIES)
def test_T5_what_people_write_is_answered_as_they_mean_it(database, message):
    async def told():
        async with chatting(database) as chat:
            for title in TITLES:
                await chat.say(f"add '{title}'")
            assert await chat.say(message) == REPLIES[message]

    run(told())


DAYS = {
    "what's due tomorrow?": ["b"],
    "show me my tasks for tomorrow": ["b"],
    "tasks due tomorrow": ["b"],
    "what's due next week?": ["d"],
    "what do I have this week?": ["a", "b", "c"],
    "what's due today?": ["a"],
}


@on_sqlite
@pytest.mark.parametrize("message", DAYS)
def test_T5_a_list_for_a_day_holds_what_is_due_then(database, message):
    """It is a Wednesday."""

    async def told():
        async with chatting(database) as chat:
            for title, due in (("a", "today"), ("b", "tomorrow"), ("c", "sunday"), ("e", "")):
                await chat.say(f"add '{title}' {due}")
            await chat.say("add 'd' due 2026-03-18 09:00")
            lines = (await chat.say(message)).splitlines()
            assert [line.split(" ")[2] for line in lines] == DAYS[message]

    run(told())
