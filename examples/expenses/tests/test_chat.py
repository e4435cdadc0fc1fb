"""Conversations with the assistant, with its real tools and a real database."""

import asyncio

from bridle.testing import Scripted

from expenses.app import app


def talk(folder, *said, provider="responder"):
    """Return the replies to (user, message) pairs; each user has one conversation."""

    async def story():
        replies, places = [], {}
        async with app(str(folder / "chat.db"), provider) as chat:
            for user, message in said:
                reply = await chat.service.reply(user, message, places.get(user))
                places[user] = reply.conversation_id
                replies.append(reply.response)
        return replies

    return asyncio.run(story())


def test_what_was_spent_is_noted_and_added_up(tmp_path):
    assert talk(
        tmp_path,
        ("ana", "What did I spend?"),
        ("ana", "I spent 12.50 on lunch"),
        ("ana", "paid $30 for the train"),
        ("ana", "list my expenses"),
    ) == [
        "You have no expenses yet. Tell me what you spent.",
        "Noted: 12.50 for 'lunch'.",
        "Noted: 30.00 for 'the train'.",
        "1. lunch: 12.50\n2. the train: 30.00\nTogether 42.50.",
    ]


def test_two_people_know_nothing_of_one_another(tmp_path):
    assert talk(
        tmp_path,
        ("ana", "I spent 12.50 on lunch"),
        ("bob", "my expenses"),
        ("bob", "drop lunch"),
        ("ana", "drop lunch"),
        ("bob", "yes drop"),
        ("ana", "my expenses"),
    ) == [
        "Noted: 12.50 for 'lunch'.",
        "You have no expenses yet. Tell me what you spent.",
        "I couldn't find an expense about 'lunch'.",
        "Drop 'lunch' for good? Reply 'yes drop' to confirm.",
        "There's nothing waiting for your confirmation. What would you like to do?",
        "1. lunch: 12.50\nTogether 12.50.",
    ]


def test_only_the_phrase_drops_an_expense(tmp_path):
    question = "Drop 'lunch' for good? Reply 'yes drop' to confirm."
    assert talk(
        tmp_path,
        ("ana", "I spent 12.50 on lunch"),
        ("ana", "drop lunch"),
        ("ana", "yes"),
        ("ana", "yes drop"),
        ("ana", "my expenses"),
    )[1:] == [
        question,
        question,
        "'lunch' is no longer among your expenses.",
        "You have no expenses yet. Tell me what you spent.",
    ]


def test_whatever_a_model_says_the_sentence_is_ours(tmp_path):
    call = {"name": "add_expense", "arguments": {"what": "lunch", "amount": 12.5}}
    model = Scripted([{"calls": [call]}, "Inserted row 7 into the SQL database!"])
    assert talk(tmp_path, ("ana", "lunch was twelve fifty"), provider=model) == [
        "Noted: 12.50 for 'lunch'."
    ]
