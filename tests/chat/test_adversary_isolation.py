"""T3: ways around the scoping of a session, on both databases: each is refused or sees own rows."""

import pytest
from sqlalchemy import column, table, text
from sqlmodel import func, select, update

from bridle.chat.db import Task
from bridle.chat.errors import ForeignRow

UNION = "union select title from chat_task"
BY_NAME = table("chat_task", column("title")).alias()


@pytest.fixture
def hers(database):
    """The number of a task of Ana's; Ben has one too."""
    made = {}
    for user in ("ana", "ben"):
        with database.session_for(user) as session, session.begin():
            session.add(task := Task(title=f"of {user}"))
            session.flush()
            made[user] = task.id
    return made["ana"]


def changed(session, number, **options):
    return session.execute(update(Task), [{"id": number, "title": "stolen"}], **options)


WAYS = {
    "rows by their keys": changed,
    "a change without the classes": lambda session, number: session.execute(
        update(Task).where(Task.id == number).values(title="stolen"),
        execution_options={"dml_strategy": "core_only"},
    ),
    "words behind a query": lambda session, _: session.exec(select(Task.title).suffix_with(UNION)),
    "words before it": lambda session, _: session.exec(select(Task.title).prefix_with("ALL")),
    "a hint": lambda session, _: session.exec(select(Task.title).with_statement_hint(UNION)),
    "a table by its name": lambda session, _: session.exec(select(Task.title, BY_NAME.c.title)),
    "an operator with a query in it": lambda session, _: session.exec(
        select(Task.title.op("|| (select max(title) from chat_task) ||")("x"))
    ),
    "another user for the database": lambda session, _: session.exec(
        select(Task.title, func.set_config("app.user_id", "ana", False))
    ),
    "a query in a function": lambda session, _: session.exec(
        select(Task.title, func.query_to_xml("select title from chat_task", True, False, ""))
    ),
    "the connection": lambda session, _: session.connection().execute(
        text("select title from chat_task")
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_T3_a_way_around_the_scope_is_refused(database, hers, way):
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        WAYS[way](session, hers)
    with database.session_for("ana", reads=True) as session:
        assert [one.title for one in session.exec(select(Task))] == ["of ana"]


def test_T3_what_people_need_is_not_refused(database, hers):
    with database.session_for("ben") as session, session.begin():
        session.execute(update(Task).where(Task.title == "of ben"), {"notes": "mine"})
        assert session.exec(select(func.lower(Task.title), Task.notes)).all() == [
            ("of ben", "mine")
        ]
        assert session.exec(select(Task.title).where(Task.title.op("LIKE")("of%"))).all() == [
            "of ben"
        ]
    with database.session_for("ana", reads=True) as session:
        assert [one.notes for one in session.exec(select(Task))] == [""]
