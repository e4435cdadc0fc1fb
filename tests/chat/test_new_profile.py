"""Another assistant on the same parts, whole: the expenses of the guide, on both databases.

Nothing of tasks is in it: its own table, tools, sentences, phrase and rules.
"""

import ast
import re
import sys
from pathlib import Path

import pytest
from runner_rig import call, scripted
from sqlmodel import select

from bridle.chat.db import Operation
from rig import run

ROOT = Path(__file__).parents[2]
CHAT = ROOT / "src" / "bridle" / "chat"
NOTHING = "You have no expenses yet. Tell me what you spent."


@pytest.fixture
def app(monkeypatch):
    """The function that makes the assistant of the guide."""
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "expenses"))
    from expenses.app import app as made

    return made


class Talk:
    """Several users, a conversation each."""

    def __init__(self, app):
        self.app = app
        self.places = {}

    async def say(self, user, message):
        reply = await self.app.service.reply(user, message, self.places.get(user))
        self.places[user] = reply.conversation_id
        return reply.response


def told(app, database, *said, provider="responder"):
    """What each (user, message) is answered."""

    async def story():
        async with app(database, provider) as chat:
            talk = Talk(chat)
            return [await talk.say(*one) for one in said]

    return run(story())


def test_T3_two_users_of_another_assistant_are_kept_apart(app, database):
    assert told(
        app,
        database,
        ("ana", "I spent 12.50 on lunch"),
        ("bob", "paid 3 for lunch"),
        ("ana", "drop lunch"),
        ("bob", "yes drop"),
        ("bob", "yes delete"),
        ("ana", "yes delete"),
        ("ana", "YES DROP!"),
        ("ana", "my expenses"),
        ("bob", "my expenses"),
    ) == [
        "Noted: 12.50 for 'lunch'.",
        "Noted: 3.00 for 'lunch'.",
        "Drop 'lunch' for good? Reply 'yes drop' to confirm.",
        "There's nothing waiting for your confirmation. What would you like to do?",
        "There's nothing waiting for your confirmation. What would you like to do?",
        "Drop 'lunch' for good? Reply 'yes drop' to confirm.",
        "'lunch' is no longer among your expenses.",
        "You have no expenses yet. Tell me what you spent.",
        "1. lunch: 3.00\nTogether 3.00.",
    ]


def test_T3_a_model_cannot_reach_the_rows_of_another_user(app, database):
    """It names the user, it guesses the id: it is refused, and no claim of it is said."""

    async def story():
        model = scripted(
            call("add_expense", what="lunch", amount=87.5), "ok",
            call("list_expenses", user_id="ana"), "Here is all of Ana's.",
            call("drop_expense", expense_id=1), "I dropped it.",
            call("list_expenses"), "ok",
        )  # fmt: skip
        async with app(database, model) as chat:
            talk = Talk(chat)
            said = [
                await talk.say("ana", "lunch, 87.50"),
                await talk.say("bob", "show me ana's"),
                await talk.say("bob", "drop number one"),
                await talk.say("ana", "mine?"),
            ]
            with chat.database.session_for("bob", reads=True) as session:
                kept = session.exec(select(Operation)).all()
        assert said == [
            "Noted: 87.50 for 'lunch'.",
            "A request cannot choose the user.",
            f"{NOTHING} There is no such thing in this list.",
            "1. lunch: 87.50\nTogether 87.50.",
        ]
        assert [one.result["error"]["refused"] for one in kept] == [["user_id"]]
        assert "87.5" not in str([one.messages for one in model.requests[2:6]])

    run(story())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_T5_a_bulk_question_of_another_assistant_does_not_speak_of_tasks(app, database):
    both = {
        "calls": [
            {"name": "drop_expense", "arguments": {"expense_id": 1}},
            {"name": "drop_expense", "arguments": {"expense_id": 2}},
        ]
    }
    model = scripted(
        call("add_expense", what="tea", amount=2), "ok",
        call("add_expense", what="cake", amount=4), "ok",
        both, "Both are gone.",
    )  # fmt: skip
    said = [("ana", "tea 2"), ("ana", "cake 4"), ("ana", "drop both"), ("ana", "yes drop 2")]
    replies = told(app, database, *said, provider=model)
    assert replies[2] == "That's a big action. Confirm with 'yes drop 2'."
    assert replies[3] == "'cake' is no longer among your expenses."


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("said", ["Your expense 1 is lunch.", "See expense_1.", "The expense id."])
def test_T5_what_an_id_looks_like_is_the_profiles_to_say(app, database, said):
    model = scripted(call("find_expenses", what="lunch"), said)
    story = [("ana", "I spent 12.50 on lunch")]
    told(app, database, *story)
    replies = told(app, database, ("ana", "find lunch"), provider=model)
    assert replies == ["Sorry, I didn't quite get that. What would you like to do?"]


def test_T2_the_general_part_does_not_know_the_tasks():
    """Outside `chat/tasks` and the tables, the word stands where the default is chosen, no more."""
    allowed = {"runner.py", "app.py", "__init__.py"}
    found = {
        path.name for path in CHAT.glob("*.py") if "bridle.chat.tasks" in path.read_text("utf-8")
    }
    assert found <= allowed
    spoken = re.compile(r"\b(?:tasks?|todos?)\b", re.I)
    sentences = [*(CHAT / "i18n").glob("*.json"), CHAT / "reply_filter.py", CHAT / "matching.py"]
    held = [path.name for path in sentences if spoken.search(_strings(path))]
    assert held == []


def _strings(path):
    """What a file says, without what it says of itself."""
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return text
    every = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return " ".join(str(one.value) for one in every if "\n" not in str(one.value))


def test_the_path_to_the_example_is_not_left_behind():
    assert str(ROOT / "examples" / "expenses") not in sys.path
