"""The chat's database: sessions that belong to a user, migrations, and work in a thread.

Everything here blocks, except `run`, which does its work in a worker thread. If the database fails,
`Unavailable` is raised, with a sentence for the person who chats.
"""

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from bridle.chat.db.engine import READ_ONLY, make_engine, parse_url
from bridle.chat.db.migrate import check, install, upgrade
from bridle.chat.db.session import OwnedRow, OwnedSession
from bridle.chat.errors import TROUBLE, Unavailable

_log = logging.getLogger(__name__)
T = TypeVar("T")
_DEADLOCK = "40P01"  # as PostgreSQL names it
_START = "Check that it is running and that --database is right, and start again."
_PAUSES = (0.03, 0.1, 0.3)  # seconds before work is done anew that the database gave up


class Database:
    """One database, by URL or by the path of a SQLite file. Any number of processes may share it.

    ```python
    database = Database("chat.db")
    database.migrate()
    with database.session_for("ana") as session, session.begin():
        session.add(Task(title="Buy milk"))
    ```
    """

    def __init__(self, url: str, *, pool: int = 8, patience: float = 5.0) -> None:
        self.url = parse_url(url)
        self.patience = patience
        self.is_postgres = self.url.get_backend_name() == "postgresql"
        self.engine = make_engine(self.url, patience=patience, pool=pool, guarded=True)
        self._reading = self.engine.execution_options(**{READ_ONLY: True})
        self._threads = ThreadPoolExecutor(pool, thread_name_prefix="chat-data")

    def __repr__(self) -> str:
        return f"Database({self.url.render_as_string(hide_password=True)!r})"

    def session_factory(self) -> OwnedSession:
        """Return a session without an owner. It sees nothing until `own(user_id)` is called."""
        return OwnedSession(self.engine, expire_on_commit=False)

    def session_for(self, user_id: str, *, reads: bool = False) -> OwnedSession:
        """Return a session over one user's rows. One that only reads blocks nobody."""
        engine = self._reading if reads else self.engine
        return OwnedSession(engine, expire_on_commit=False).own(user_id)

    def now(self, session: OwnedSession) -> float:
        """Return the time for leases: the server's, if machines share a server."""
        if not self.is_postgres:
            return time.time()
        connection = session.bare()  # which begins the transaction, and hears the clock
        if session.clock is not None:
            return float(session.clock)
        asked = text("SELECT extract(epoch FROM clock_timestamp())")
        return float(connection.execute(asked).scalar_one())

    def migrate(self) -> None:
        """Bring the tables up to date. Several processes may do it at once."""
        with self._unguarded() as engine, _report_to_operator():
            upgrade(engine)

    def check(self) -> None:
        """Raise `Unavailable` or `ConfigError` unless it is reachable, up to date and guarded."""
        with self._unguarded() as engine, report_unavailable():
            check(engine)

    def install(self, *tables: type[OwnedRow]) -> None:
        """Create tables of your own with the same protection. Existing tables are not changed."""
        with self._unguarded() as engine, _report_to_operator():
            install(engine, tables)

    async def run(
        self, user_id: str, what: Callable[[OwnedSession], T], *, reads: bool = False
    ) -> T:
        """Run a function in one transaction of that user, in a worker thread.

        After a deadlock it is run again, at most three times, after a pause in which the other
        transaction can finish.
        """

        def once() -> T:
            with self.session_for(user_id, reads=reads) as session, session.begin():
                return what(session)

        def whole() -> T:
            with report_unavailable():
                for pause in _PAUSES:
                    try:
                        return once()
                    except OperationalError as error:
                        if not _is_deadlock(error):
                            raise
                    time.sleep(pause * random.uniform(0.7, 1.3))  # the other one goes first
                return once()

        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, context.run, whole)

    def close(self) -> None:
        """Close every connection and every thread."""
        self._threads.shutdown(wait=True)
        self.engine.dispose()

    @contextmanager
    def _unguarded(self) -> Iterator[Engine]:
        engine = make_engine(self.url, patience=60.0, pool=1, guarded=False)
        try:
            yield engine
        finally:
            engine.dispose()


@contextmanager
def report_unavailable() -> Iterator[None]:
    """Turn errors of the database into `Unavailable`; log the details."""
    try:
        yield
    except (DBAPIError, PoolTimeout) as error:
        _log.warning("the chat's database failed: %s", _error_name(error))
        _log.debug("the chat's database failed", exc_info=error)
        raise Unavailable(TROUBLE, error) from error


@contextmanager
def _report_to_operator() -> Iterator[None]:
    """Turn errors of the database into `Unavailable` with its own message, for operators."""
    try:
        yield
    except (DBAPIError, PoolTimeout) as error:
        words = str(getattr(error, "orig", None) or error).strip().splitlines()
        sentence = (
            f"the chat's database cannot be used: {words[0] if words else _error_name(error)}"
        )
        raise Unavailable(sentence, error, hint=_START) from error


def _is_deadlock(error: OperationalError) -> bool:
    """Did PostgreSQL abort the transaction because of a deadlock?"""
    return getattr(error.orig, "sqlstate", None) == _DEADLOCK


def _error_name(error: SQLAlchemyError) -> str:
    """Return the kind of error, without the query and its values, which are the user's."""
    origin: Any = getattr(error, "orig", None)
    return type(origin).__name__ if origin is not None else type(error).__name__
