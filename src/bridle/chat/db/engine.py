"""Open SQLite and PostgreSQL so that both behave alike.

SQLite: one file, write-ahead log, foreign keys, and write transactions that take the lock when they
begin, so two of them wait for each other instead of failing half-way.
PostgreSQL: limits on waiting, and the guarded role if the login could bypass row-level security.
"""

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError, OperationalError

from bridle.chat.db.row_security import ROLE
from bridle.errors import ConfigError

READ_ONLY = "bridle_reads"  # an execution option: this transaction only reads
_HOLDS_WRITE_LOCK = "bridle_writes"  # of a connection: it holds the turn to write
_AGAIN = 0.01  # seconds until a file that is locked is tried again
_IDLE = 1.0  # seconds after which a connection is tried before it is used


def parse_url(url: str) -> URL:
    """Parse the URL of a database or the path of a SQLite file. Raise `ConfigError`."""
    if "://" not in url:
        url = f"sqlite:///{Path(url).expanduser()}"
    try:
        found = make_url(url)
        kind = found.get_backend_name()
    except ArgumentError as error:
        raise ConfigError("the database's URL cannot be read", error) from error
    if kind in ("postgresql", "postgres"):
        return found.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise ConfigError(f"a chat can use SQLite or PostgreSQL, but not {kind}")
    if not found.database or found.database == ":memory:":
        raise ConfigError(
            "a chat needs a database that other processes can open", hint="Use a file."
        )
    return found


def make_engine(url: URL, *, patience: float, pool: int, guarded: bool) -> Engine:
    """Create an engine. A `guarded` one cannot bypass row-level security on PostgreSQL."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, patience, pool)
    limits = f"-c statement_timeout={int(patience * 3000)} -c lock_timeout={int(patience * 1000)}"
    engine = create_engine(
        url,
        pool_size=pool,
        max_overflow=0,
        pool_timeout=patience,
        connect_args={"connect_timeout": max(2, int(patience)), "options": limits},
    )
    if guarded:
        event.listen(engine, "connect", _take_role)
    event.listen(engine, "checkin", _note_checkin)
    event.listen(engine, "checkout", _check_connection)
    return engine


def _sqlite(url: URL, patience: float, pool: int) -> Engine:
    assert url.database is not None
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        pool_size=pool,
        max_overflow=0,
        pool_timeout=patience * 2,
        connect_args={"timeout": patience, "check_same_thread": False},
    )

    def opened(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, by ourselves
        _use_write_ahead_log(connection, patience)
        for line in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {line}")

    def begun(connection: Any) -> None:
        if connection.get_execution_options().get(READ_ONLY):
            connection.exec_driver_sql("BEGIN")
            return
        turn.take(connection, patience)
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    turn = _WriteLock()
    event.listen(engine, "connect", opened)
    event.listen(engine, "begin", begun)
    event.listen(engine, "checkin", turn.leave)
    return engine


def _use_write_ahead_log(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to the write-ahead log.

    If several processes open a new file at once, SQLite ignores its timeout here and fails at once
    because the file is locked. So we try again ourselves.
    """
    end = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(_AGAIN)


class _WriteLock:
    """Lets one thread of this process write at a time.

    SQLite has one writer, and the others try again after ever longer pauses, in no order. With
    many threads some would wait forever. So only one thread of a process tries.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self, connection: Any, patience: float) -> None:
        """Wait for the lock. Raise `OperationalError`, as SQLite does."""
        if connection.info.get(_HOLDS_WRITE_LOCK):
            return
        if not self._lock.acquire(timeout=patience):
            raise OperationalError("BEGIN", {}, sqlite3.OperationalError("database is locked"))
        connection.info[_HOLDS_WRITE_LOCK] = True

    def leave(self, connection: Any, record: Any) -> None:
        """Release the lock: the transaction has ended and the connection goes back to the pool."""
        if record.info.pop(_HOLDS_WRITE_LOCK, False):
            self._lock.release()


def _take_role(connection: Any, record: Any) -> None:
    """Take the guarded role if the login could bypass row-level security."""
    connection.autocommit = True
    bypasses = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = session_user"
    row = connection.execute(bypasses).fetchone()
    if row is None or row[0]:
        connection.execute(f"SET ROLE {ROLE}")
    connection.autocommit = False


def _note_checkin(connection: Any, record: Any) -> None:
    record.info["left"] = time.monotonic()


def _check_connection(connection: Any, record: Any, proxy: Any) -> None:
    """Test a connection that was idle: the server may have been restarted."""
    if time.monotonic() - record.info.get("left", time.monotonic()) < _IDLE:
        return
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except Exception as error:
        raise DisconnectionError("the connection is gone") from error
