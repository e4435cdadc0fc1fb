"""What a turn asks the database for, and that the first one of a worker is like the others."""

import sys
from statistics import median

import pytest
from sqlalchemy import event
from sqlmodel import func, select

from bridle.chat import ChatApp
from bridle.chat.db.tables import TABLES
from rig import run


def counted(engine):
    """Every query from here on, with the ends of transactions."""
    asked = []
    event.listen(engine, "before_cursor_execute", lambda *of: asked.append(of[2]))
    event.listen(engine, "commit", lambda connection: asked.append("COMMIT"))
    return asked


async def said(app, asked, message, place):
    before = len(asked)
    reply = await app.service.reply("ana", message, place)
    return len(asked) - before, reply


@pytest.mark.parametrize("message", ["hello", "add task buy milk"])
def test_a_turn_asks_no_more_of_the_database_the_longer_a_conversation_is(database, message):
    """As many queries for the thirtieth message as for the third, and a known number of them."""
    most = 12 if message == "hello" else 18

    async def story():
        async with ChatApp(database=database, provider="responder") as app:
            asked, place, counts = counted(database.engine), None, []
            for _ in range(30):
                count, reply = await said(app, asked, message, place)
                place = reply.conversation_id
                counts.append(count)
        assert median(counts) <= most, counts  # a new minute has a row of its own, now and then
        assert min(counts[-5:]) == min(counts)

    run(story())


def test_warming_up_leaves_nothing_behind(database):
    async def story():
        async with ChatApp(database=database, provider="responder") as app:
            kept = []
            for table in TABLES:
                with app.database.engine.connect() as connection:
                    kept.append(
                        connection.scalar(select(func.count()).select_from(table.__table__))
                    )
        assert kept == [0] * len(TABLES)

    run(story())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_first_message_imports_nothing_and_opens_no_connection(database):
    async def story():
        async with ChatApp(database=database, provider="responder") as app:
            opened = []
            event.listen(database.engine, "connect", lambda *of: opened.append(of))
            before = set(sys.modules)
            await app.service.reply("ana", "add task buy milk")
            new = {name for name in set(sys.modules) - before if not name.startswith("encodings")}
        assert (new, opened) == (set(), [])

    run(story())
