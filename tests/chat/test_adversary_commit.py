"""The connection is lost in the very moment of the commit: what was kept is said to be kept."""

from sqlalchemy.exc import OperationalError
from sqlmodel import select

from bridle.chat.db import Task
from bridle.chat.tasks.tools import TASKS
from bridle.chat.tools.apply_once import ApplyOnce
from bridle.chat.tools.identity import Binding


def losing(database, *, before):
    """Sessions of which the first loses its connection before or after it commits."""
    lost = []

    def factory():
        session = database.session_factory()
        commit = session.commit

        def breaking():
            if lost:
                return commit()
            lost.append(True)
            if not before:
                commit()
            raise OperationalError("COMMIT", {}, ConnectionError("the server is gone"))

        session.commit = breaking
        return session

    return factory


def titles(database):
    with database.session_for("ana", reads=True) as session:
        return [one.title for one in session.exec(select(Task))]


def test_T7_a_commit_whose_answer_was_lost_is_found_again(database):
    apply = ApplyOnce(TASKS, losing(database, before=False))
    found = apply("add_task", {"title": "Buy milk"}, Binding("ana", operation="turn:0"))
    assert (found["success"], titles(database)) == (True, ["Buy milk"])


def test_T7_a_commit_that_never_was_is_no_success(database):
    apply = ApplyOnce(TASKS, losing(database, before=True))
    bound = Binding("ana", operation="turn:0")
    found = apply("add_task", {"title": "Buy milk"}, bound)
    assert (found["error"]["code"], titles(database)) == ("processing_error", [])
    assert apply("add_task", {"title": "Buy milk"}, bound)["success"]
    assert titles(database) == ["Buy milk"]
