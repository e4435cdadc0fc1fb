"""Every row of the tables again, with a model that answers badly: the guard makes it right."""

import pytest
from runner_rig import BAD, call, chatting, scripted

from bridle.chat import Database
from rig import run


async def prepared(chat, *titles):
    """Tasks that are there already; their ids by title."""
    from bridle.chat.tools.identity import Binding

    found = {}
    for title in titles:
        result = await chat.server.call("add_task", {"title": title}, Binding("ana", "c1"))
        found[title] = result["data"]["id"]
    return found


async def answered(chat, message, *replies):
    """What the user reads when the model replies like this."""
    await chat.use(scripted(*replies))
    return await chat.run(message)


@pytest.fixture
def sqlite(sqlite_url):
    found = Database(sqlite_url)
    yield found
    found.close()


@pytest.mark.parametrize("said", BAD)
def test_T5_created_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            result = await answered(chat, "Add task x", call("add_task", title="Buy milk"), said)
            assert result.response == "Got it! Added 'Buy milk' to your list. Anything else?"
            assert result.success

    run(told())


@pytest.mark.parametrize("said", [*BAD, "1) Buy milk [42]\n2) Call mom [43]", "- Buy milk"])
def test_T5_list_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            ids = await prepared(chat, "Buy milk", "Call mom")
            await answered(chat, "done", call("complete_task", task_id=ids["Call mom"]), "ok")
            result = await answered(chat, "show my tasks", call("list_tasks"), said)
            assert result.response == "1. ☐ Buy milk\n2. ✓ Call mom"

    run(told())


@pytest.mark.parametrize("said", BAD)
def test_T5_completed_and_updated_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            one = (await prepared(chat, "Buy milk"))["Buy milk"]
            done = await answered(chat, "did it", call("complete_task", task_id=one), said)
            assert done.response == "Great! I've marked 'Buy milk' as complete."
            change = call("update_task", task_id=one, priority="High", due="tomorrow")
            new = await answered(chat, "change it", change, said)
            assert new.response == (
                "Updated! 'Buy milk' now has high priority and a due date of Thu 12 Mar 2026."
            )

    run(told())


@pytest.mark.parametrize("said", [*BAD, "Deleted!", "Please type YES to confirm."])
def test_T5_deleting_asks_and_only_the_phrase_deletes_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            one = (await prepared(chat, "Buy milk"))["Buy milk"]
            asked = await answered(chat, "delete milk", call("delete_task", task_id=one), said)
            assert asked.response == (
                "Do you really want to delete 'Buy milk'? Reply 'yes delete' to confirm."
            )
            gone = await chat.run("yes delete")
            assert gone.response == "I've removed 'Buy milk' from your tasks."

    run(told())


@pytest.mark.parametrize("said", BAD)
def test_T5_not_found_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            sentence = "I couldn't find a task about 'zebra' in your list."
            wrong = call("complete_task", task_id=999)
            assert (
                await answered(chat, "complete the zebra task", wrong, said)
            ).response == sentence
            search = call("search_tasks", query="zebra")
            assert (await answered(chat, "complete the zebra", search, said)).response == sentence
            delete = call("delete_task", task_id=999)
            assert (await answered(chat, "delete zebra", delete, said)).response == sentence

    run(told())


@pytest.mark.parametrize("said", [*BAD, "Which? 1 = Buy milk (id 1), 2 = Buy oat milk (id 2)"])
def test_T5_ambiguous_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            await prepared(chat, "Buy milk", "Buy oat milk")
            search = call("search_tasks", query="milk")
            result = await answered(chat, "complete milk", search, said)
            assert result.response == (
                "I found multiple tasks about 'milk'. Which one: 'Buy milk' or 'Buy oat milk'?"
            )

    run(told())


def test_T5_a_model_that_chooses_for_the_user_is_stopped(sqlite):
    """The words fit two tasks: code asks which, and neither is changed."""

    async def told():
        async with chatting(sqlite) as chat:
            ids = await prepared(chat, "Buy milk", "Buy oat milk")
            steps = (
                call("search_tasks", query="milk"),
                call("complete_task", task_id=ids["Buy milk"]),
            )
            result = await answered(chat, "complete milk", *steps, "Done!")
            assert result.response == (
                "I found multiple tasks about 'milk'. Which one: 'Buy milk' or 'Buy oat milk'?"
            )
            listed = await answered(chat, "list", call("list_tasks"), "x")
            assert listed.response == "1. ☐ Buy milk\n2. ☐ Buy oat milk"

    run(told())


def test_T5_what_is_done_is_completed_last(sqlite):
    """Two tasks fit the words, and only one of them is open: there is nothing to ask."""

    async def told():
        async with chatting(sqlite) as chat:
            ids = await prepared(chat, "Buy milk", "Buy oat milk")
            await answered(chat, "x", call("complete_task", task_id=ids["Buy oat milk"]), "ok")
            steps = call("list_tasks"), call("complete_task", task_id=ids["Buy milk"])
            result = await answered(chat, "complete milk", *steps, "ok")
            assert result.response == "Great! I've marked 'Buy milk' as complete."

    run(told())


def test_T5_a_question_about_the_list_is_the_models_to_answer(sqlite):
    async def told():
        async with chatting(sqlite) as chat:
            await prepared(chat, "Buy milk", "Call mom")
            said = "I would start with 'Buy milk'."
            result = await answered(chat, "what should I do first?", call("list_tasks"), said)
            assert result.response == said

    run(told())


@pytest.mark.parametrize("said", BAD)
def test_T5_invalid_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            empty = await answered(chat, "add a task", call("add_task", title=" "), said)
            assert empty.response == "Could you provide more details about the title of the task?"
            one = (await prepared(chat, "Buy milk"))["Buy milk"]
            bad = call("update_task", task_id=one, due="the 45th of smarch")
            date = await answered(chat, "move it", bad, said)
            assert date.response == (
                "Could you provide more details about the date you have in mind?"
            )
            worse = call("update_task", task_id=one, priority="banana")
            level = await answered(chat, "prio", worse, said)
            assert level.response == (
                "Could you provide more details about the priority (low, medium or high)?"
            )

    run(told())


def test_T5_T7_a_system_error_whatever_the_model_says(sqlite):
    async def told():
        async with chatting(sqlite) as chat:
            sorry = "I'm having a bit of trouble right now. Please try again."
            fault = {"error": {"kind": "agent", "message": "secret detail", "status": 500}}
            broken = await answered(chat, "hello there my friend", fault)
            assert (broken.success, broken.response, broken.error) == (False, sorry, sorry)
            after = await answered(chat, "add x", call("add_task", title="Buy milk"), fault)
            assert after.response == "Got it! Added 'Buy milk' to your list. Anything else?"

    run(told())


@pytest.mark.parametrize("said", BAD)
def test_T5_bulk_whatever_the_model_says(sqlite, said):
    async def told():
        async with chatting(sqlite) as chat:
            ids = await prepared(chat, "one", "two", "three", "four")
            wanted = call("bulk_delete", task_ids=list(ids.values()))
            asked = await answered(chat, "delete everything", wanted, said)
            assert asked.response == "That's a big action. Confirm with 'yes delete 4 tasks'."
            gone = await chat.run("yes delete 4 tasks")
            assert gone.response == "I've removed 4 tasks from your list."

    run(told())


def test_T5_many_single_deletes_are_one_big_action(sqlite):
    """A model that deletes one by one does not get around the phrase."""

    async def told():
        async with chatting(sqlite) as chat:
            ids = await prepared(chat, "one", "two", "three")
            wanted = [
                {"name": "delete_task", "arguments": {"task_id": one}} for one in ids.values()
            ]
            asked = await answered(chat, "clean up", {"calls": wanted}, "All deleted.")
            assert asked.response == "That's a big action. Confirm with 'yes delete 3 tasks'."
            assert (await chat.run("yes delete 3 tasks")).response == (
                "I've removed 3 tasks from your list."
            )

    run(told())


@pytest.mark.parametrize("said", BAD)
def test_T5_small_talk_is_never_shown_as_the_model_said_it(sqlite, said):
    """No call was made: what is wrong is cut out, or the assistant says what it can do."""
    from bridle.chat.reply_filter import FilterFacts, find_problems

    async def told():
        async with chatting(sqlite) as chat:
            result = await answered(chat, "what do you think of today?", said)
            assert find_problems(result.response, FilterFacts(hidden=("evil",))) == []

    run(told())
