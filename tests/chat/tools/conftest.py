"""The task tools for tests, in this process: the real SDK, the real database, any user's calls."""

import asyncio
from datetime import UTC, datetime

import pytest

from bridle.chat.tasks.tools import MCPToolServer
from bridle.chat.tools.identity import Binding

NOW = datetime(2026, 3, 25, 13, 30, tzinfo=UTC)  # a Wednesday


class Tools:
    """Calls of one event loop, one after the other, or all at once."""

    def __init__(self, database):
        self.server = MCPToolServer(database.session_factory)
        self.runner = asyncio.Runner()

    def run(self, work):
        return self.runner.run(work)

    def call(self, name, user="ana", *, operation="", zone="UTC", **arguments):
        return self.call_with(name, arguments, user, operation=operation, zone=zone)

    def call_with(self, name, arguments, user="ana", *, operation="", zone="UTC"):
        binding = Binding(user, "talk", operation, zone, now=NOW)
        return self.run(self.server.call(name, arguments, binding))

    def data(self, name, user="ana", **arguments):
        """What a call that works gives back."""
        found = self.call(name, user, **arguments)
        assert found["success"], found
        return found["data"]

    def code(self, name, user="ana", **arguments):
        """The code of a call that does not work."""
        found = self.call(name, user, **arguments)
        assert not found["success"], found
        return found["error"]["code"]

    def titles(self, user="ana", **arguments):
        return [one["title"] for one in self.data("list_tasks", user, **arguments)["tasks"]]

    def close(self):
        self.run(self.server.close())
        self.runner.close()


@pytest.fixture
def tools(database):
    """On SQLite and on PostgreSQL."""
    found = Tools(database)
    yield found
    found.close()


@pytest.fixture
def sqlite_tools(sqlite_url):
    """Where the database makes no difference."""
    from bridle.chat.db import Database

    database = Database(sqlite_url)
    found = Tools(database)
    yield found
    found.close()
    database.close()
