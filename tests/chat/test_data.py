"""The chat's database: the tables, the migrations, and what it says when it is away."""

import pytest
from sqlalchemy import text
from sqlmodel import select

from bridle.chat.data import Database, Task
from bridle.chat.data.migrating import differences, upgrade


def test_a_row_comes_back_as_it_was(database):
    """T6: a synchronous session, on both databases."""
    with database.owned("ana") as session, session.begin():
        session.add(Task(title="Buy milk", tags=["home"]))
    with database.owned("ana", reads=True) as session:
        found = session.exec(select(Task)).one()
    assert (found.title, found.tags, found.user_id) == ("Buy milk", ["home"], "ana")
    assert found.created_at.utcoffset().total_seconds() == 0


def test_the_tables_are_what_the_classes_say(database):
    with database._unguarded() as engine:
        assert differences(engine) == []


def test_check_finds_a_good_database_good(database):
    database.check()
