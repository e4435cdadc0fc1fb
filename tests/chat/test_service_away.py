"""T7: the database goes away in the middle: a friendly sentence, and nothing half done."""

import asyncio
import gc
from contextlib import suppress

import pytest
from small_runner import SmallRunner
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlmodel import select

from bridle.chat import ChatService
from bridle.chat.db import Conversation, Database, Operation, StoredMessage, Task, Turn
from bridle.chat.errors import Unavailable
from bridle.chat.values import ServiceLimits
from rig import run

pytestmark = pytest.mark.slow

SENTENCE = "I'm having a bit of trouble right now. Please try again."
LIMITS = ServiceLimits(messages_a_minute=0)


class Outage:
    """The connection breaks at the n-th statement, and at every one after it until `over`."""

    def __init__(self, database):
        self.count, self.at = 0, None
        event.listen(database.engine, "before_cursor_execute", self._moment)

    def _moment(self, *_):
        self.count += 1
        if self.at is not None and self.count >= self.at:
            raise OperationalError("SELECT of ana", {}, Exception("server closed the connection"))

    def begin(self, at):
        self.count, self.at = 0, at

    def over(self):
        self.at = None


def rows(database, kind):
    with database.session_for("ana", reads=True) as session:
        return session.exec(select(kind)).all()


@pytest.fixture
def uncollected():
    """Nothing that lies about is swept up: what is let go of was let go of on purpose."""
    gc.disable()
    yield
    gc.enable()


def held(database):
    """How many connections are not back in the pool."""
    return database.engine.pool.checkedout()


def test_an_outage_at_any_statement_is_a_sentence_and_the_same_key_mends_it(
    database, uncollected, caplog
):
    """Every statement of a turn in its turn; afterwards the message is answered once."""

    async def story():
        service = ChatService(database, SmallRunner(database), LIMITS)
        outage = Outage(database)
        await service.reply("ana", "note first,second", key="whole")
        statements = outage.count
        for at in range(1, statements + 1):
            outage.begin(at)
            try:
                heard = await service.reply("ana", f"note a{at},b{at}", key=f"k{at}")
                assert not heard.success
            except Unavailable as refused:
                assert refused.message == SENTENCE
                assert refused.retryable and "Idempotency-Key" in refused.hint
            outage.over()
            assert held(database) == 0
            reply = await service.reply("ana", f"note a{at},b{at}", key=f"k{at}")
            wanted = [f"a{at}", f"b{at}"]
            made = [one.title for one in rows(database, Task) if one.title in wanted]
            assert made == (wanted if reply.success else wanted[: len(made)])
            assert len(made) == len(list(rows(database, Operation))) - len(
                [one for one in rows(database, Task) if one.title not in wanted]
            )
        assert {one.state for one in rows(database, Turn)} == {"done"}
        messages = rows(database, StoredMessage)
        assert len(messages) == 2 * len(rows(database, Conversation))
        await service.close()

    run(story())
    assert "SELECT of ana" not in "".join(
        one.getMessage() for one in caplog.records if one.levelname != "DEBUG"
    )


@pytest.mark.parametrize("moment", ["before_cursor_execute", "after_cursor_execute", "commit"])
def test_a_connection_that_is_cut_is_never_kept(postgres_server, postgres_url, uncollected, moment):
    """The server ends it before and after every statement and commit: the pool is whole again."""
    import psycopg

    database = Database(postgres_url, pool=2)

    async def story(admin):
        service = ChatService(database, SmallRunner(database), LIMITS)
        knife = Knife(database, admin, moment)
        await service.reply("ana", "note first,second")
        for at in range(1, knife.count + 1):
            knife.take(at)
            with suppress(Unavailable):
                await service.reply("ana", f"note a{at},b{at}", key=f"k{at}")
            assert knife.count >= at and held(database) == 0
            await service.reply("ana", f"note a{at},b{at}", key=f"k{at}")
            assert held(database) == 0
        await service.close()

    with psycopg.connect(postgres_server % "postgres", autocommit=True) as admin:
        run(story(admin))
    database.close()


class Knife:
    """Cuts the connection that is at work, at the n-th moment of its kind."""

    def __init__(self, database, admin, moment):
        self.count, self._at, self._admin = 0, None, admin
        event.listen(database.engine, moment, self._moment)

    def take(self, at):
        self.count, self._at = 0, at

    def _moment(self, connection, *_):
        self.count += 1
        if self.count == self._at:
            pid = connection.connection.driver_connection.info.backend_pid
            self._admin.execute("SELECT pg_terminate_backend(%s, 9000)", (pid,))


def test_a_server_that_is_started_anew_is_used_again(postgres_server, postgres_url):
    """Real connections, really cut: by the server, while they lie idle and while they work."""
    import psycopg

    name = postgres_url.split("?")[0].rpartition("/")[2]
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    database = Database(postgres_url)

    async def story():
        runner = SmallRunner(database)
        runner.gates["wait"] = asyncio.Event()
        service = ChatService(database, runner, LIMITS)
        first = await service.reply("ana", "one")
        told = asyncio.Event()
        task = asyncio.create_task(
            service.reply("ana", "wait", first.conversation_id, on_accepted=told.set)
        )
        await told.wait()
        with psycopg.connect(postgres_server % "postgres", autocommit=True) as admin:
            admin.execute(cut, (name,))
        runner.gates["wait"].set()
        assert (await task).response == "wait! I know 2 messages."
        await service.close()

    run(story())
    database.close()


def test_a_database_that_refuses_connections_is_a_sentence(postgres_server, postgres_url):
    import psycopg

    name = postgres_url.split("?")[0].rpartition("/")[2]
    database = Database(postgres_url)

    async def story():
        service = ChatService(database, SmallRunner(database), LIMITS)
        with psycopg.connect(postgres_server % "postgres", autocommit=True) as admin:
            admin.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            with pytest.raises(Unavailable) as refused:
                await service.reply("ana", "one", key="k")
            assert refused.value.message == SENTENCE
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            admin.execute(f"ALTER DATABASE {name} CONNECTION LIMIT -1")
        assert (await service.reply("ana", "one", key="k")).success
        await service.close()

    run(story())
    database.close()
