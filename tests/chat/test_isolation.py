"""T3: whoever asks sees and writes their own rows only, on both databases, whatever is asked."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import exists, insert, literal_column, text, true
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import aliased
from sqlmodel import Field, col, delete, func, select, update

from bridle.chat.db import Conversation, Database, OwnedRow, StoredMessage, Task
from bridle.chat.errors import ForeignRow, Unavailable
from bridle.errors import ConfigError
from rig import SOAK

BOTH = settings(
    max_examples=100 if SOAK else 10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)


class Expense(OwnedRow, table=True):
    """A table of an application's own."""

    __tablename__ = "test_expense"

    id: int | None = Field(default=None, primary_key=True)
    what: str


@pytest.fixture
def hers(database):
    """The number of a task of Ana's; Ben has one too."""
    made = {}
    for user in ("ana", "ben"):
        with database.session_for(user) as session, session.begin():
            task = Task(title=f"of {user}")
            session.add(task)
            session.flush()
            made[user] = task.id
    return made["ana"]


def titles(database, user):
    with database.session_for(user, reads=True) as session:
        return [one.title for one in session.exec(select(Task))]


def test_another_users_rows_are_not_there_to_be_read(database, hers):
    twin = aliased(Task)
    with database.session_for("ben") as session:
        assert session.get(Task, hers) is None
        assert session.exec(select(Task).where(Task.id == hers)).all() == []
        assert session.exec(select(Task.title)).all() == ["of ben"]
        assert session.exec(select(func.count()).select_from(Task)).one() == 1
        assert session.exec(select(twin.title)).all() == ["of ben"]
        inner = select(Task.id).where(Task.user_id == "ana").scalar_subquery()
        assert session.exec(select(Task).where(Task.id == inner)).all() == []
        both = select(Task.title, twin.title).join(twin, col(twin.id) != col(Task.id))
        assert session.exec(both).all() == []
        loose = select(Task.title, twin.title).outerjoin(twin, col(twin.id) != col(Task.id))
        assert session.exec(loose).all() == [("of ben", None)]
        union = select(Task.title).union(select(twin.title))
        assert session.execute(select(union.subquery())).all() == [("of ben",)]
        known = select(Task).where(exists().where(col(twin.id) != col(Task.id)))
        assert session.exec(known).all() == []
        assert session.exec(select(Task.title).join(Conversation, true())).all() == []
        mixed = select(Task.id, Task.__table__.c.title)
        assert [title for _, title in session.exec(mixed)] == ["of ben"]


def test_another_users_rows_are_not_there_to_be_changed(database, hers):
    with database.session_for("ben") as session, session.begin():
        changed = session.exec(update(Task).where(col(Task.id) == hers).values(title="mine now"))
        gone = session.exec(delete(Task).where(col(Task.id) == hers))
        assert (changed.rowcount, gone.rowcount) == (0, 0)
    assert titles(database, "ana") == ["of ana"]


def test_no_row_can_be_written_for_another_user(database, hers):
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        session.add(Task(title="planted", user_id="ana"))
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        task = Task(title="planted")
        session.add(task)
        task.user_id = "ana"
        session.commit()
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        session.merge(Task(id=hers, title="planted", user_id="ana"))
        session.commit()
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        session.execute(insert(Task).values(user_id="ana", title="planted"))
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        session.bulk_save_objects([Task(title="planted", user_id="ana")])
    assert titles(database, "ana") == ["of ana"]


def test_no_row_can_be_given_away(database, hers):
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        session.exec(select(Task)).one().user_id = "ana"
        session.commit()
    with database.session_for("ben") as session, pytest.raises(DBAPIError):
        session.exec(update(Task).values(user_id="ana"))
    assert (titles(database, "ana"), titles(database, "ben")) == (["of ana"], ["of ben"])


def test_a_row_of_somebody_else_cannot_be_brought_along(database, hers):
    with database.session_for("ana") as session:
        stolen = session.get(Task, hers)
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        session.add(stolen)
    with database.session_for("ben") as session, pytest.raises(ForeignRow):
        session.delete(stolen)


def test_a_session_that_forgot_its_user_sees_and_writes_nothing(database, hers):
    with database.session_factory() as session:
        assert session.exec(select(Task)).all() == []
        assert session.get(Task, hers) is None
        assert session.exec(delete(Task)).rowcount == 0
    with database.session_factory() as session, pytest.raises(ForeignRow):
        session.add(Task(title="nobody's", user_id="ana"))


def test_a_session_never_changes_hands(database):
    with database.session_for("ana") as session, pytest.raises(ForeignRow):
        session.own("ben")
    for nobody in ("", "\0", "x" * 201):
        with pytest.raises(ForeignRow):
            database.session_for(nobody)


def test_words_of_sql_are_refused_in_a_session_since_nothing_scopes_them(database, hers):
    table = Task.__table__
    for asked in (
        text("SELECT title FROM chat_task"),
        select(table),
        select(Task.id, table.alias().c.title),
        select(aliased(Task), table.c.title),
        select(Task.title).join(Conversation.__table__, true()),
        select(Task).where(Task.id == select(func.count()).select_from(table).scalar_subquery()),
        select(aliased(Task).id, table.c.title),
        select(Task).where(Task.id.in_(select(table.c.id))),
        select(Task).where(text("1 = 1 OR 1 = 1")),
        select(Task.id, literal_column("(SELECT max(title) FROM chat_task)")),
        update(Task).values(title=select(table.c.title).limit(1).scalar_subquery()),
        delete(Task).where(Task.id.in_(select(table.c.id))),
    ):
        with database.session_for("ben") as session, pytest.raises(ForeignRow):
            session.execute(asked)


def test_no_message_stands_in_a_conversation_of_somebody_else(database):
    """The foreign key runs over the user too."""
    with database.session_for("ana") as session, session.begin():
        session.add(Conversation(id="c1"))
    with database.session_for("ben") as session, pytest.raises(DBAPIError):
        session.add(StoredMessage(conversation_id="c1", position=0, role="user", content="x"))
        session.commit()


def test_a_connection_of_postgres_that_forgot_its_user_sees_nothing(postgres_url):
    """Row-level security: past every session of ours, in plain SQL."""
    database = Database(postgres_url)
    with database.session_for("ana") as session, session.begin():
        session.add(Task(title="of ana"))
    with database.engine.begin() as connection:
        ask = text("SELECT title FROM chat_task WHERE user_id = 'ana'")
        who = text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
        assert connection.execute(who).scalar() is False
        assert connection.execute(ask).all() == []
        assert connection.execute(text("UPDATE chat_task SET title = 'x'")).rowcount == 0
        assert connection.execute(text("DELETE FROM chat_task")).rowcount == 0
    scope = text("SELECT set_config('app.user_id', 'ben', true)")
    plant = text(
        "INSERT INTO chat_spent (user_id, period, messages, dollars, until)"
        " VALUES ('ana', 'x', 0, 0, 0)"
    )
    for said in ((), (scope,)):
        with pytest.raises(DBAPIError, match="row-level security"), database.engine.begin() as link:
            for one in said:
                link.execute(one)
            link.execute(plant)
    with database.engine.begin() as connection:
        connection.execute(text("SELECT set_config('app.user_id', 'ana', true)"))
        assert connection.execute(ask).all() == [("of ana",)]
    with database.engine.begin() as connection:
        assert connection.execute(ask).all() == []  # the scope ended with its transaction
    database.close()


def test_a_login_that_owns_the_tables_is_under_guard_too(postgres_server, postgres_url):
    """FORCE: a plain login migrates, and sees nothing without a user."""
    import psycopg

    name = postgres_url.split("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres_server % "postgres", autocommit=True) as admin:
        admin.execute(f"CREATE ROLE owner_{name} LOGIN")
        admin.execute(f"CREATE DATABASE own_{name} OWNER owner_{name}")
        plain = (postgres_server % f"own_{name}").replace("postgres:@", f"owner_{name}:@")
        database = Database(plain)
        database.migrate()
        database.check()
        with database.session_for("ana") as session, session.begin():
            session.add(Task(title="of ana"))
        with database.engine.begin() as connection:
            assert connection.execute(text("SELECT title FROM chat_task")).all() == []
        assert titles(database, "ana") == ["of ana"]
        database.close()
        admin.execute(f"DROP DATABASE own_{name} WITH (FORCE)")
        admin.execute(f"DROP ROLE owner_{name}")


def test_check_says_when_the_guard_of_a_table_is_off(postgres_url):
    database = Database(postgres_url)
    with database._unguarded() as engine, engine.begin() as connection:
        connection.execute(text("ALTER TABLE chat_task NO FORCE ROW LEVEL SECURITY"))
    with pytest.raises(ConfigError, match="chat_task"):
        database.check()
    database.close()


def test_tables_of_an_application_are_under_the_same_guard(database):
    database.install(Expense)
    database.install(Expense)  # said again, nothing changes
    with database.session_for("ana") as session, session.begin():
        session.add(Expense(what="train"))
    with database.session_for("ben") as session:
        assert session.exec(select(Expense)).all() == []
        with pytest.raises(DBAPIError):
            session.add(Expense(what="bus"))
            session.flush()
            session.exec(update(Expense).values(user_id="ana"))
    with database.session_for("ana") as session:
        assert [one.what for one in session.exec(select(Expense))] == ["train"]


@BOTH
@given(st.lists(st.tuples(NAMES, st.sampled_from(["add", "change", "delete"])), max_size=12))
def test_whoever_acts_and_whatever_their_names_are_only_own_rows_change(database, acts):
    """T3, for any names: each user's rows are what that user's acts alone come to."""
    model = {}
    with database._unguarded() as engine, engine.begin() as connection:
        connection.execute(text("DELETE FROM chat_task"))
    for number, (user, act) in enumerate(acts):
        mine = model.setdefault(user, [])
        with database.session_for(user) as session, session.begin():
            if act == "add":
                session.add(Task(title=f"t{number}"))
                mine.append(f"t{number}")
            elif act == "change":
                session.exec(update(Task).values(title=f"c{number}"))
                mine[:] = [f"c{number}"] * len(mine)
            else:
                session.exec(delete(Task))
                mine.clear()
    assert {user: titles(database, user) for user in model} == model


def test_a_database_that_is_away_is_said_in_a_sentence(tmp_path):
    """T7."""
    database = Database(f"postgresql://nobody@/nothing?host={tmp_path}", patience=2)
    with pytest.raises(Unavailable) as refused:
        database.check()
    assert refused.value.message == "I'm having a bit of trouble right now. Please try again."
    database.close()


def test_who_starts_a_chat_is_told_what_the_database_says(tmp_path):
    database = Database(f"postgresql://nobody:secret@/nothing?host={tmp_path}", patience=2)
    with pytest.raises(Unavailable, match="cannot be used: connection") as refused:
        database.migrate()
    assert "--database" in refused.value.hint
    assert "secret" not in f"{refused.value.message} {refused.value.hint}"
    database.close()
