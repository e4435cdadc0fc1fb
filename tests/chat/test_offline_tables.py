"""Every row of the three tables of replies, word for word, with the rule-based responder."""

import re

import pytest
from runner_rig import chatting, on_sqlite

from rig import run

STORIES = {
    "T5 created": [("Add task buy milk", "Got it! Added 'buy milk' to your list. Anything else?")],
    "T5 list": [
        ("add Buy milk", None),
        ("add Call mom", None),
        ("complete Call mom", None),
        ("Show my tasks", "1. ☐ Buy milk\n2. ✓ Call mom"),
    ],
    "T5 completed": [
        ("add Buy milk", None),
        ("I finished the milk", "Great! I've marked 'Buy milk' as complete."),
        ("complete milk", "Great! I've marked 'Buy milk' as complete."),
    ],
    "T5 deleted": [
        ("add Buy milk", None),
        ("delete milk", "Do you really want to delete 'Buy milk'? Reply 'yes delete' to confirm."),
        ("yes delete", "I've removed 'Buy milk' from your tasks."),
        ("list", "Your list is empty. Tell me what to add."),
    ],
    "T5 updated": [
        ("add Buy milk", None),
        ("make milk high priority", "Updated! 'Buy milk' now has high priority."),
        (
            "move milk to next Friday 5pm",
            "Updated! 'Buy milk' now has a due date of Fri 20 Mar 2026 at 17:00.",
        ),
        ("rename milk to Buy tea", "Updated! 'Buy milk' now has the title 'Buy tea'."),
        ("tag tea with home and food", "Updated! 'Buy tea' now has the tags 'home' and 'food'."),
        ("remove the due date from tea", "Updated! 'Buy tea' now has no due date."),
    ],
    "T5 not found": [
        ("complete the zebra task", "I couldn't find a task about 'zebra' in your list."),
        ("find zebra", "I couldn't find a task about 'zebra' in your list."),
    ],
    "T5 ambiguous": [
        ("add Buy milk", None),
        ("add Buy oat milk", None),
        (
            "complete milk",
            "I found multiple tasks about 'milk'. Which one: 'Buy milk' or 'Buy oat milk'?",
        ),
        ("the second one", "Great! I've marked 'Buy oat milk' as complete."),
        ("complete buy milk", "Great! I've marked 'Buy milk' as complete."),
    ],
    "T5 invalid": [
        ("add a task", "Could you provide more details about the title of the task?"),
        ("delete", "Could you provide more details about which task you mean?"),
        ("add Buy milk", None),
        ("update milk", "Could you provide more details about what to change in 'Buy milk'?"),
        (
            "set the priority of milk to banana",
            "Could you provide more details about the priority (low, medium or high)?",
        ),
        ("add Rent due soonish", "Could you provide more details about the date you have in mind?"),
        ("", "Could you provide more details about what you would like me to do?"),
    ],
    "T5 bulk": [
        ("add tasks: one, two, three and four", None),
        ("delete all tasks", "That's a big action. Confirm with 'yes delete 4 tasks'."),
        ("yes delete", "That's a big action. Confirm with 'yes delete 4 tasks'."),
        ("yes delete 5 tasks", "That's a big action. Confirm with 'yes delete 4 tasks'."),
        ("yes delete 4 tasks", "I've removed 4 tasks from your list."),
        ("list", "Your list is empty. Tell me what to add."),
    ],
    "T5 bulk complete": [
        ("add tasks: one, two", None),
        ("mark everything as done", "That's a big action. Confirm with 'yes complete 2 tasks'."),
        ("Yes complete 2 tasks.", "Great! I've marked 2 tasks as complete."),
        ("list", "1. ✓ one\n2. ✓ two"),
        ("reopen all tasks", "That's a big action. Confirm with 'yes reopen 2 tasks'."),
        ("yes reopen 2 tasks", "Okay! 2 tasks are back on your list."),
        ("make all tasks high priority", "That's a big action. Confirm with 'yes change 2 tasks'."),
        ("yes change 2 tasks", "Updated! 2 tasks now have high priority."),
        ("delete all done tasks", "There are no tasks like that in your list."),
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_a_row_of_the_tables_with_the_responder(database, story):
    """T5: the exact words, on both databases."""

    async def told():
        async with chatting(database) as chat:
            for message, reply in STORIES[story]:
                said = await chat.say(message)
                assert reply is None or said == reply

    run(told())


def test_a_system_error_is_one_friendly_sentence(database):
    """T5, T7: the database goes away in the middle; nothing of it is shown."""

    async def told():
        async with chatting(database) as chat:
            await chat.say("add Buy milk")
            database.engine.dispose()
            broken = database.engine.connect
            database.engine.connect = None  # as if the server were gone
            try:
                result = await chat.run("add Buy tea")
            finally:
                database.engine.connect = broken
            assert result.response == "I'm having a bit of trouble right now. Please try again."
            assert (result.success, result.error) == (False, result.response)
            assert await chat.say("list") == "1. ☐ Buy milk"

    run(told())


@on_sqlite
def test_a_long_list_ends_with_and_n_more(database):
    """T4: about 500 characters; what is not shown is counted."""

    async def told():
        async with chatting(database) as chat:
            for number in range(60):
                await chat.say(f"add Water the plants on floor {number}")
            said = await chat.say("list")
            lines = said.splitlines()
            assert len(said) <= 500
            assert lines[0] == "1. ☐ Water the plants on floor 0"
            assert lines[-1] == f"and {60 - (len(lines) - 1)} more"

    run(told())


@on_sqlite
def test_follow_ups_are_understood_from_the_conversation(database):
    """T5, T6: «the third one», «it», a title in answer to a question; nothing is remembered."""

    async def told():
        async with chatting(database) as chat:
            await chat.say("add tasks: Report A, Report B, Call Bob")
            await chat.say("list")
            assert await chat.say("complete the third one") == (
                "Great! I've marked 'Call Bob' as complete."
            )
            assert await chat.say("reopen it") == "Okay! 'Call Bob' is back on your list."
            await chat.say("delete report")
            assert await chat.say("the b one") == (
                "Do you really want to delete 'Report B'? Reply 'yes delete' to confirm."
            )
            assert await chat.say("no") == "Okay, nothing was changed."
            assert (await chat.say("the second one")).startswith(
                "I can add, list, complete, reopen, change and delete your tasks. Try 'add "
            )

    run(told())


@on_sqlite
def test_undo_takes_back_a_completion_and_claims_nothing_else(database):
    """T5: what it cannot take back it does not say it took back."""

    async def told():
        async with chatting(database) as chat:
            await chat.say("add Buy milk")
            await chat.say("complete it")
            assert await chat.say("undo that") == "Okay! 'Buy milk' is back on your list."
            await chat.say("make it high priority")
            assert await chat.say("undo that") == (
                "I can add, list, complete, reopen, change and delete your tasks. "
                "What would you like to do?"
            )

    run(told())


@on_sqlite
@pytest.mark.parametrize("words", ["undo", "Undo that!", "please undo it", "take that back"])
def test_undo_said_in_words_takes_back_the_last_change(database, words):
    async def told():
        async with chatting(database) as chat:
            await chat.say("add Buy milk")
            await chat.say("complete buy milk")
            assert await chat.say(words) == "Okay! 'Buy milk' is back on your list."
            assert await chat.say(words) == "Great! I've marked 'Buy milk' as complete."
            await chat.say("add Call mom")
            assert await chat.say(words) == (
                "Do you really want to delete 'Call mom'? Reply 'yes delete' to confirm."
            )

    run(told())


@on_sqlite
@pytest.mark.parametrize("words", ["cancel that", "cancel it", "leave it", "don't do that"])
def test_a_question_is_cancelled_in_words(database, words):
    async def told():
        async with chatting(database) as chat:
            await chat.say("add Buy milk")
            await chat.say("delete buy milk")
            assert await chat.say(words) == "Okay, nothing was changed."
            assert "nothing waiting" in await chat.say("yes delete")

    run(told())


@on_sqlite
def test_several_tasks_can_be_named_in_one_message(database):
    """T5: each has to be one task; to delete several is a big action."""

    async def told():
        async with chatting(database) as chat:
            await chat.say("add tasks: Buy milk, Call mom, Pay rent")
            assert await chat.say("complete milk and rent") == (
                "Great! I've marked 2 tasks as complete."
            )
            assert await chat.say("list") == "1. ✓ Buy milk\n2. ☐ Call mom\n3. ✓ Pay rent"
            assert await chat.say("delete 1 and 3") == (
                "That's a big action. Confirm with 'yes delete 2 tasks'."
            )
            assert await chat.say("yes delete 2 tasks") == "I've removed 2 tasks from your list."
            assert await chat.say("delete mom and zebra") == (
                "I couldn't find a task about 'mom and zebra' in your list."
            )
            await chat.say("tag mom with family")
            assert await chat.say("delete tasks tagged family") == (
                "Do you really want to delete 'Call mom'? Reply 'yes delete' to confirm."
            )

    run(told())


@on_sqlite
def test_tasks_of_one_title_are_told_apart(database):
    """T5: ambiguity asks with options that differ."""

    async def told():
        async with chatting(database) as chat:
            await chat.say("add Buy milk")
            await chat.say("add Buy milk due tomorrow")
            assert await chat.say("complete milk") == (
                "I found multiple tasks about 'milk'. Which one: "
                "'Buy milk' (1) or 'Buy milk' (due Thu 12 Mar 2026) (2)?"
            )
            assert await chat.say("2") == "Great! I've marked 'Buy milk' as complete."
            assert await chat.say("list") == ("1. ☐ Buy milk\n2. ✓ Buy milk (due Thu 12 Mar 2026)")

    run(told())


@on_sqlite
def test_titles_that_differ_in_case_alone_are_told_apart(database):
    """T5: by their dates, by their numbers, or both are intent_meant."""

    async def told():
        async with chatting(database) as chat:
            await chat.say("add Call the dentist")
            await chat.say("remind me to call the dentist tomorrow at 3pm")
            asked = (
                "I found multiple tasks about 'dentist'. Which one: 'Call the dentist' (1) or "
                "'call the dentist' (due Thu 12 Mar 2026 at 15:00) (2)?"
            )
            deleting = (
                "Do you really want to delete 'call the dentist'? Reply 'yes delete' to confirm."
            )
            for answer in ("the one at 3pm", "the 15:00 one", "the Thursday one", "2"):
                assert await chat.say("delete the dentist one") == asked
                assert await chat.say(answer) == deleting
                await chat.say("no")
            await chat.say("delete the dentist one")
            assert await chat.say("both") == (
                "That's a big action. Confirm with 'yes delete 2 tasks'."
            )
            assert await chat.say("Yes, delete 2 tasks!") == "I've removed 2 tasks from your list."

    run(told())


@on_sqlite
@pytest.mark.parametrize(
    ("due", "message", "when"),
    [
        ("next friday", "make dinner due at 7pm", "Fri 20 Mar 2026 at 19:00"),
        ("next friday at 6pm", "move dinner to 19:30", "Fri 20 Mar 2026 at 19:30"),
        ("next friday", "move dinner to tonight", "Wed 11 Mar 2026 at 20:00"),
        ("next friday", "move dinner to tomorrow at 7pm", "Thu 12 Mar 2026 at 19:00"),
        ("next friday", "snooze dinner for 2 hours", "Wed 11 Mar 2026 at 14:00"),
        ("today", "make dinner due at 9am", "Thu 12 Mar 2026 at 09:00"),
        ("yesterday", "make dinner due at 7pm", "Wed 11 Mar 2026 at 19:00"),
    ],
)
def test_a_new_time_without_a_day_leaves_a_task_on_the_coming_day_it_is_due(
    database, due, message, when
):
    async def told():
        async with chatting(database) as chat:
            await chat.say(f"add dinner {due}")
            said = await chat.say(message)
            assert said == f"Updated! 'dinner' now has a due date of {when}."

    run(told())


@on_sqlite
def test_a_new_time_that_needs_am_or_pm_leaves_the_day_too(database):
    async def told():
        async with chatting(database) as chat:
            await chat.say("add dinner next friday")
            assert (await chat.say("make dinner due at 7")).startswith("Could you provide")
            said = await chat.say("pm")
            assert said == "Updated! 'dinner' now has a due date of Fri 20 Mar 2026 at 19:00."

    run(told())


@on_sqlite
def test_the_rest_of_a_long_list_is_shown_when_it_is_asked_for(database):
    """T4: page by page, with the numbers that the tasks then go by."""

    async def told():
        async with chatting(database) as chat:
            for number in range(1, 26):
                await chat.say(f"add Water the plants on floor {number}")
            first = (await chat.say("list")).splitlines()
            second = (await chat.say("more")).splitlines()
            lines = [one for one in (*first, *second) if not one.startswith("and ")]
            assert lines == [f"{n}. ☐ Water the plants on floor {n}" for n in range(1, 26)]
            assert await chat.say("next") == "That was the whole list."
            await chat.say("list")
            await chat.say("more")
            wanted = int(second[0].partition(".")[0]) + 1
            assert await chat.say(f"complete number {wanted}") == (
                f"Great! I've marked 'Water the plants on floor {wanted}' as complete."
            )

    run(told())


EVERYDAY = [
    ("don't let me forget the dentist tomorrow at 3pm", "Got it! Added 'the dentist'"),
    ("gotta buy milk", "Got it! Added 'buy milk'"),
    ("I should probably call mom", "Got it! Added 'call mom'"),
    ("throw eggs on there", "Got it! Added 'eggs'"),
    ("can you put 'buy bread' on my list?", "Got it! Added 'buy bread' to your list."),
    ("book a table for two Fri at noon", "Got it! Added 'book a table for two'"),
    ("pick up the kids at 4pm", "Got it! Added 'pick up the kids'"),
    ("anything overdue?", "There are no tasks like that"),
    ("anything this week?", "1. ☐ the dentist (due Thu 12 Mar 2026 at 15:00)\n2. ☐ book a table"),
    ("do I have anything tomorrow?", "1. ☐ the dentist"),
    ("when is the dentist?", "1. ☐ the dentist (due Thu 12 Mar 2026 at 15:00)"),
    ("I called mom", "Great! I've marked 'call mom' as complete."),
    ("I already bought milk, cross it off", "Great! I've marked 'buy milk' as complete."),
    ("add pay rent", "Got it!"),
    ("rent is paid", "Great! I've marked 'pay rent' as complete."),
    ("oops, I didn't finish the rent", "Okay! 'pay rent' is back on your list."),
    ("rent isn't due until the 15th", "Updated! 'pay rent' now has a due date of Sun 15 Mar 2026."),
    ("get rid of the table thing", "Do you really want to delete 'book a table for two'?"),
    ("Yes, delete!", "I've removed 'book a table for two' from your tasks."),
    ("never mind about Rome", "I couldn't find a task about 'Rome' in your list."),
    ("finished everything", "That's a big action. Confirm with 'yes complete "),
    ("show ben's tasks", "I can only help you with your own tasks."),
    ("show tasks of user ben", "I can only help you with your own tasks."),
    ("show today's tasks", "1. ☐ pick up the kids"),
    (
        "blah blah",
        "I can add, list, complete, reopen, change and delete your tasks. Try 'add buy bread",
    ),
    (
        f"add {'a' * 300}",
        (
            "Could you provide more details about the title of the task? "
            "It is too long: it has 300 characters, and at most 200 fit."
        ),
    ),
]


@on_sqlite
def test_what_people_say_every_day_is_understood_or_answered_with_an_example(database):
    async def told():
        async with chatting(database) as chat:
            said = [(message, await chat.say(message), start) for message, start in EVERYDAY]
            assert [one for one in said if not one[1].startswith(one[2])] == []

    run(told())


def answers(database, *messages):
    async def told():
        async with chatting(database) as chat:
            return [await chat.say(message) for message in messages]

    return run(told())


@on_sqlite
def test_a_date_is_moved_from_where_it_is(database):
    """T5: what has no date, or could go both ways, is asked about."""
    asked = "Could you provide more details about the date you have in mind?"
    moved = "Updated! 'pay rent' now has a due date of "
    talk = {
        "add pay rent due friday": None,
        "push the rent back a week": f"{moved}Fri 20 Mar 2026.",
        "bring rent forward by 2 days": f"{moved}Wed 18 Mar 2026.",
        "move the rent up a day": asked,
        "push the rent back an hour": asked,
        "move the rent to 20 March at 5pm": f"{moved}Fri 20 Mar 2026 at 17:00.",
        "push it back two hours": f"{moved}Fri 20 Mar 2026 at 19:00.",
        "make it a month later": f"{moved}Mon 20 Apr 2026 at 19:00.",
        "push the rent back 9000 years": asked,
        "remove the due date from rent": None,
        "delay the rent a day": asked,
        "tomorrow": f"{moved}Thu 12 Mar 2026.",
    }
    said = answers(database, *talk)
    wrong = [
        (message, reply)
        for (message, wanted), reply in zip(talk.items(), said, strict=True)
        if wanted is not None and not reply.startswith(wanted)
    ]
    assert wrong == []


@on_sqlite
def test_a_list_is_narrowed_to_the_day_that_is_asked_about(database):
    """Never silently to all tasks, and never to another day."""
    days = ("friday", "saturday", "monday", "24 March", "3 April")
    answers(database, *(f"add on {day}: {day} chore" for day in days), "add undated")
    lists = {
        "what's due friday?": ["friday"],
        "do I have anything on friday?": ["friday"],
        "anything on saturday?": ["saturday"],
        "what's due this weekend?": ["saturday"],
        "what do I have next week": ["monday"],
        "anything due by monday?": ["friday", "saturday", "monday"],
        "what's due before monday?": ["friday", "saturday"],
        "what's due this month": ["friday", "saturday", "monday", "24 March"],
        "what's due in April?": ["3 April"],
        "show me everything due on 24 March": ["24 March"],
    }
    for (message, wanted), reply in zip(lists.items(), answers(database, *lists), strict=True):
        titles = re.findall(r"☐ (.+?) chore", reply)
        assert titles == wanted, (message, reply)
    none, asked, list_ = answers(
        database, "what's due tomorrow?", "what's due on wednesday?", "next wednesday"
    )
    assert none == "There are no tasks like that in your list."
    assert asked.endswith("Today is that day already. Say 'today' or 'next wednesday'.")
    assert list_ == none


@on_sqlite
@pytest.mark.parametrize(
    ("language", "all_", "one", "none"),
    [
        ("en", "You have 3 tasks in your list.", "You have 1 task like that in your list.",
         "There are no tasks like that in your list."),
        ("es", "Tienes 3 tareas en tu lista.", "Tienes 1 tarea así en tu lista.",
         "No hay tareas así en tu lista."),
        ("ar", "في قائمتك مهام عددها 3.", "في قائمتك مهمة واحدة كهذه.",
         "لا توجد مهام كهذه في قائمتك."),
    ],
)  # fmt: skip
def test_how_many_is_answered_with_a_number(database, language, all_, one, none):
    async def told():
        async with chatting(database) as chat:
            await chat.say("add tasks: tea, rice and salt")
            await chat.say("complete tea")
            asked = "how many tasks do I have?", "how many are done?", "how many are overdue?"
            assert [await chat.say(words, language=language) for words in asked] == [
                all_, one, none,
            ]  # fmt: skip

    run(told())


@on_sqlite
def test_several_things_in_one_breath_are_one_task_and_that_is_said(database):
    """T5's own sentence, and then how to have several."""
    created = "Got it! Added 'milk, bread and butter' to your list. Anything else?"
    hint = "That is one task. To add them one by one, say 'add tasks: milk, bread and butter'."
    said = answers(
        database,
        "add milk, bread and butter",
        "add tasks: milk, bread and butter",
        "add 'eggs, ham and rice'",
        "add call Bob, then write the whole report",
        "add salt and pepper",
    )
    assert said == [
        f"{created} {hint}",
        "Got it! Added 'milk', 'bread' and 'butter' to your list. Anything else?",
        "Got it! Added 'eggs, ham and rice' to your list. Anything else?",
        "Got it! Added 'call Bob, then write the whole report' to your list. Anything else?",
        "Got it! Added 'salt and pepper' to your list. Anything else?",
    ]


@on_sqlite
def test_who_needs_nothing_more_is_not_told_what_can_be_done(database):
    okay = "Okay. Just tell me when you need something."
    said = answers(database, "add milk", "no thanks", "never mind", "that's all")
    assert said[1:] == [okay] * 3


@pytest.mark.parametrize(
    ("language", "added", "asked", "phrase", "deleted"),
    [
        (
            "es-MX",
            "¡Hecho! He añadido 'leche' a tu lista. ¿Algo más?",
            "¿De verdad quieres borrar 'leche'? Responde 'sí borrar' para confirmar.",
            "Sí borrar",
            "He quitado 'leche' de tus tareas.",
        ),
        (
            "ar",
            "تم! أضفت 'leche' إلى قائمتك. هل من شيء آخر؟",
            "هل تريد حقًا حذف 'leche'؟ أجب بـ 'نعم احذف' للتأكيد.",
            "نعم احذف",
            "أزلت 'leche' من مهامك.",
        ),
    ],
)
def test_the_fixed_sentences_are_in_the_users_language(
    sqlite_url, language, added, asked, phrase, deleted
):
    """T5: translatable data, one language from right to left."""
    from bridle.chat import Database

    async def told():
        database = Database(sqlite_url)
        async with chatting(database) as chat:
            assert await chat.say("add leche", language=language) == added
            assert await chat.say("delete leche", language=language) == asked
            assert await chat.say(phrase, language=language) == deleted
        database.close()

    run(told())


@on_sqlite
def test_replies_about_long_titles_stay_near_five_hundred_characters(database):
    """T4: a title may have 200 characters, and ten of them may be in one reply."""

    async def told():
        async with chatting(database) as chat:
            long = ["x" * 99 + f" {'y' * 95} {number}" for number in range(9)]
            for message in (
                "add tasks: " + ", ".join(one[:90] for one in long),
                *(f"add '{one}'" for one in long),
                "complete " + "x" * 99,
                "list",
                f"rename '{long[0]}' to {'z ' * 90}",
                f"delete '{long[1]}'",
                f"complete {'q' * 900}",
            ):
                assert 0 < len(await chat.say(message)) <= 520

    run(told())
