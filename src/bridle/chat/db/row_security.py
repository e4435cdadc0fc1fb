"""Restrict rows to their user inside the database itself.

PostgreSQL: row-level security, forced on the tables' owner too, for a role that cannot bypass it. A
connection that has not set a user sees and writes nothing. SQLite has no such feature: a trigger
keeps each row with its user, and the session restricts queries.
"""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, text

ROLE = "bridle_chat"
_MINE = "user_id = NULLIF(current_setting('app.user_id', true), '')"
_BYPASSES = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = session_user"


def secure(connection: Connection, tables: Sequence[str]) -> None:
    """Protect these tables. It can be called again."""
    if connection.dialect.name == "sqlite":
        for table in tables:
            connection.exec_driver_sql(_keep_with_owner(table))
        return
    named = connection.dialect.identifier_preparer.quote
    if bypasses_row_security(connection):
        connection.execute(text(_make_role()))
        connection.execute(text(_grant_schema()))
    for table in tables:
        for line in _policy_statements(named(table)):
            connection.execute(text(line))
        if _role_exists(connection):
            changes = f"SELECT, INSERT, UPDATE, DELETE ON {named(table)}"
            connection.execute(text(f"GRANT {changes} TO {ROLE}"))
    if _role_exists(connection) and bypasses_row_security(connection):
        connection.execute(text(_grant_sequences()))


def bypasses_row_security(connection: Connection) -> bool:
    """Can the login bypass row-level security, so that it must take the guarded role?"""
    return bool(connection.execute(text(_BYPASSES)).scalar())


def unguarded_tables(connection: Connection, tables: Sequence[str]) -> list[str]:
    """Return the tables that are not protected, on PostgreSQL."""
    guarded = text(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
        " AND relrowsecurity AND relforcerowsecurity"
    )
    found = set(connection.execute(guarded).scalars())
    return [table for table in tables if table not in found]


def _role_exists(connection: Connection) -> bool:
    there = text("SELECT 1 FROM pg_roles WHERE rolname = :role")
    return connection.execute(there, {"role": ROLE}).scalar() is not None


def _make_role() -> str:
    """Create the role. It belongs to the whole server, so another database may have created it."""
    return f"""DO $$ BEGIN
        CREATE ROLE {ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END $$"""


def _grant_schema() -> str:
    return f"""DO $$ BEGIN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO {ROLE}', current_schema());
    END $$"""


def _grant_sequences() -> str:
    return f"""DO $$ BEGIN
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO {ROLE}', current_schema());
    END $$"""


def _policy_statements(table: str) -> Iterator[str]:
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
    yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
    yield f"DROP POLICY IF EXISTS owner_only ON {table}"
    yield f"CREATE POLICY owner_only ON {table} USING ({_MINE}) WITH CHECK ({_MINE})"


def _keep_with_owner(table: str) -> str:
    return (
        f'CREATE TRIGGER IF NOT EXISTS "{table}_keeps_owner" BEFORE UPDATE OF user_id ON "{table}"'
        " WHEN NEW.user_id IS NOT OLD.user_id"
        " BEGIN SELECT RAISE(ABORT, 'a row stays with its user'); END"
    )
