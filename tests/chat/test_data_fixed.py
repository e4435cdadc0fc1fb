"""T3: statements that are built once are about their session's owner, whatever they are handed."""

import pytest
from sqlmodel import select

from bridle.chat.db import Task
from bridle.chat.db.session import (
    owned_select,
    parameter,
    prepare_insert,
    prepare_select,
    prepare_update,
    table_of,
)
from bridle.chat.db.tables import Operation, utc_now
from bridle.chat.errors import ForeignRow
from bridle.chat.tools.apply_once import RecordedOperation, find_operation, record_operation

TASK = table_of(Task).c
READ = prepare_select(owned_select(Task, (TASK.title,), TASK.title == parameter("called")))
RENAME = prepare_update(Task, {"title": parameter("better")}, TASK.title == parameter("called"))
ADD = prepare_insert(Operation)
ROW = {"key": "k", "turn_id": "", "tool": "t", "arguments": "", "result": {}}


@pytest.fixture
def hers(database):
    """A task of Ana's."""
    with database.session_for("ana") as session, session.begin():
        session.add(Task(title="of ana"))
    return "of ana"


def test_rows_of_somebody_else_are_neither_read_nor_changed(database, hers):
    with database.session_for("ben") as session, session.begin():
        for names in ({}, {"whose": "ana"}, {"user_id": "ana"}):
            assert READ.execute(session, {"called": hers, **names}).all() == []
        assert (
            RENAME.execute(session, {"called": hers, "better": "x", "whose": "ana"}).rowcount == 0
        )
    with database.session_for("ana") as session:
        assert READ.execute(session, {"called": hers}).scalars().all() == [hers]


def test_a_row_is_its_sessions_owners_even_if_it_is_said_to_be_anothers(database):
    with database.session_for("ben") as session, session.begin():
        ADD.execute(session, {**ROW, "user_id": "ana", "created_at": utc_now()})
    with database.session_for("ana") as session:
        assert session.exec(select(Operation)).all() == []
        assert find_operation(session, "k") is None
    with database.session_for("ben") as session:
        assert find_operation(session, "k") == RecordedOperation("t", "", {})


def test_a_session_of_nobody_says_nothing(database, hers):
    with database.session_factory() as session:
        with pytest.raises(ForeignRow):
            READ.execute(session, {"called": hers})
        with pytest.raises(ForeignRow):
            record_operation(session, "k", "", RecordedOperation("t", "", {}))


def test_a_query_that_does_not_say_whose_rows_it_is_about_is_not_kept():
    with pytest.raises(ForeignRow):
        prepare_select(select(TASK.title))
