"""The chat's database: the tables, the migrations, and what it says when it is away."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError, StatementError
from sqlmodel import select

from bridle.chat.db import Database, Task
from bridle.chat.db.migrate import differences, upgrade
from bridle.chat.errors import Unavailable
from bridle.errors import ConfigError
from rig import run


def test_a_row_comes_back_as_it_was(database):
    """T6: a synchronous session, on both databases."""
    with database.session_for("ana") as session, session.begin():
        session.add(Task(title="Buy milk", tags=["home"]))
    with database.session_for("ana", reads=True) as session:
        found = session.exec(select(Task)).one()
    assert (found.title, found.tags, found.user_id) == ("Buy milk", ["home"], "ana")
    assert found.created_at.utcoffset().total_seconds() == 0


def test_the_tables_are_what_the_classes_say(database):
    with database._unguarded() as engine:
        assert differences(engine) == []


def test_check_finds_a_good_database_good(database):
    database.check()


def test_an_older_database_is_brought_up_to_date_and_keeps_its_rows(empty_urls):
    for url in empty_urls:
        database = Database(url)
        with database._unguarded() as engine:
            upgrade(engine, "0001")
            with engine.begin() as connection:
                connection.execute(text(_OLD_TASK))
            with pytest.raises(ConfigError, match="not up to date"):
                database.check()
        database.migrate()
        database.check()
        with database.session_for("ana") as session:
            assert [one.title for one in session.exec(select(Task))] == ["old"]
        with database.session_for("ben") as session:
            assert session.exec(select(Task)).all() == []
        with database._unguarded() as engine:
            assert differences(engine) == []
        database.close()


_OLD_TASK = (
    "INSERT INTO chat_task (user_id, title, notes, priority, due_has_time, tags, completed,"
    " created_at, updated_at) VALUES ('ana', 'old', '', 'Low', false, '[]', false,"
    " '2026-01-01 00:00:00', '2026-01-01 00:00:00')"
)


def test_many_that_migrate_at_once_find_it_done(empty_urls):
    for url in empty_urls:
        databases = [Database(url) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda one: one.migrate(), databases))
        for one in databases:
            one.check()
            one.close()


def test_a_new_file_in_which_another_writes_is_waited_for(tmp_path):
    """SQLite refuses at once to begin its write-ahead log beside a writer: we try again."""
    path, tries = tmp_path / "new.db", []
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE other (id)")
    writer.execute("BEGIN IMMEDIATE")

    def said(line):
        if line == "PRAGMA journal_mode=WAL":
            tries.append(line)
        if len(tries) == 2:
            writer.close()

    database = Database(str(path), patience=30)
    listens = {"insert": True}  # before anything of ours is said
    event.listen(database.engine, "connect", lambda one, _: one.set_trace_callback(said), **listens)
    with database.engine.begin() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()
    assert len(tries) == 2


def test_work_that_waits_for_work_that_waits_for_it_is_done_anew(postgres_url):
    """PostgreSQL gives up one of the two; nobody hears of it, and both are done once."""
    database, tries = Database(postgres_url), []
    with database.session_for("ana") as session, session.begin():
        session.add_all([Task(title="", tags=["a"]), Task(title="", tags=["b"])])
    met = threading.Barrier(2)

    def both(name, first, second):
        def what(session):
            tries.append(name)
            rows = session.exec(select(Task.id).order_by(Task.id)).all()
            session.get(Task, rows[first], with_for_update=True).title += name
            if tries.count(name) == 1:
                met.wait(30)
            session.get(Task, rows[second], with_for_update=True).title += name

        return database.run("ana", what)

    async def story():
        await asyncio.gather(both("x", 0, 1), both("y", 1, 0))

    run(story())
    assert 3 <= len(tries) <= 8  # the one that was given up may meet the other one again
    with database.session_for("ana", reads=True) as session:
        assert {"".join(sorted(one.title)) for one in session.exec(select(Task))} == {"xy"}
    database.close()


def test_work_that_is_given_up_again_and_again_ends_with_a_sentence(sqlite_url):
    database, tries = Database(sqlite_url), []

    class Deadlock(Exception):
        sqlstate = "40P01"

    def what(session):
        tries.append(session)
        raise OperationalError("UPDATE", {}, Deadlock())

    with pytest.raises(Unavailable, match="a bit of trouble"):
        run(database.run("ana", what))
    assert len(tries) == 4
    assert database.engine.pool.checkedout() == 0
    database.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://x/y", "no such://"])
def test_a_url_that_cannot_serve_is_refused(url):
    with pytest.raises(ConfigError):
        Database(url)


def test_a_password_is_not_shown():
    database = Database("postgresql://ana:hunter2@localhost/x")
    assert "hunter2" not in repr(database)
    database.close()


def test_a_moment_without_a_zone_is_refused(database):
    with database.session_for("ana") as session, pytest.raises(StatementError):
        session.add(Task(title="x", due_at=datetime(2026, 1, 1)))  # noqa: DTZ001
        session.commit()


def test_importing_the_chat_imports_no_database():
    code = "import sys, bridle.chat; print('sqlmodel' in sys.modules, 'mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
