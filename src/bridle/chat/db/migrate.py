"""Migrations: bring the tables up to date, step by step.

Alembic runs the steps without its own configuration files; they are in `migrations/`. Several
processes may start at once: one migrates, and the others wait and find it done.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from sqlmodel import SQLModel

from bridle.chat.db.row_security import secure, unguarded_tables
from bridle.chat.db.session import OwnedRow
from bridle.chat.db.tables import TABLES
from bridle.errors import ConfigError

VERSIONS = "chat_version"  # the table that remembers the last step
_LOCK = 0x62726964  # any number that nobody else locks
_OURS = frozenset(str(table.__tablename__) for table in TABLES)


def upgrade(engine: Engine, to: str = "head") -> None:
    """Run the missing migrations, all or none of them."""
    script = _scripts()
    with _exclusive_transaction(engine) as connection:

        def wanted(revision: Any, context: Any) -> Any:
            return script._upgrade_revs(to, revision)

        with EnvironmentContext(Config(), script, fn=wanted) as environment:
            environment.configure(connection=connection, **_settings())
            environment.run_migrations()


def differences(engine: Engine) -> list[Any]:
    """Return the differences between the tables and their classes."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=_settings())
        return list(compare_metadata(context, SQLModel.metadata))


def check(engine: Engine) -> None:
    """Raise `ConfigError` unless all migrations were run and every table is protected."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSIONS})
        if context.get_current_revision() != _scripts().get_current_head():
            raise ConfigError(
                "the chat's tables are not up to date", hint="Run: bridle chat-server migrate"
            )
        if connection.dialect.name == "postgresql":
            open_ones = unguarded_tables(connection, sorted(_OURS))
            if open_ones:
                names = ", ".join(open_ones)
                raise ConfigError(f"row-level security is off for {names}")


def install(engine: Engine, tables: Iterable[type[OwnedRow]]) -> None:
    """Create these tables if they are missing, and protect them."""
    found = [SQLModel.metadata.tables[str(table.__tablename__)] for table in tables]
    with _exclusive_transaction(engine) as connection:
        SQLModel.metadata.create_all(connection, tables=found)
        secure(connection, [table.name for table in found])


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent / "migrations"))


@contextmanager
def _exclusive_transaction(engine: Engine) -> Iterator[Connection]:
    """Open a transaction during which no other process migrates."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        yield connection


def _settings() -> dict[str, Any]:
    return {
        "version_table": VERSIONS,
        "target_metadata": SQLModel.metadata,
        "transactional_ddl": True,
        "compare_type": True,
        "include_object": _is_ours,
    }


def _is_ours(thing: Any, name: str | None, kind: str, found: bool, other: Any) -> bool:
    table = thing if kind == "table" else getattr(thing, "table", None)
    return table is None or table.name in _OURS
