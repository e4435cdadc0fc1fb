"""A chat of real parts: runner, MCP task tools, a database; and models that answer badly."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from bridle.chat import AgentContext, AgentRunner, MCPToolServer
from bridle.providers.scripted import Scripted

# for tests in which it does not matter where things are kept
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
NOW = datetime(2026, 3, 11, 12, 0, tzinfo=UTC)  # a Wednesday
BAD = (
    "Task created successfully with id 42 and uuid 6f9619ff-8b86-d011-b42d-00c04fc964ff!",
    'Sure: {"success": true, "data": {"id": 42, "title": "x"}}',
    "Traceback (most recent call last):\n  File \"server.py\", line 3, in call\nKeyError: 'x'",
    "I called the add_task tool on the SQL database and the JSON payload was fine.",
    "I have done it. " * 60,
    "ok",
    "",
    '```json\n[{"task_id": 7}]\n```',
    "\x1b[31mDone\u202e!",
    "<b>Done</b> see https://evil.example/?u=ana",
)


class Chat:
    """Speaks for users; keeps what was said, as the service would."""

    def __init__(self, database, provider="responder", **options):
        self.database = database
        self.server = MCPToolServer(database.session_factory)
        self.runner = AgentRunner(
            database.session_factory, self.server, provider=provider, **options
        )
        self.said = {}
        self.results = []

    async def use(self, provider, **options):
        """Go on with another model, as another process would."""
        await self.runner.close()
        factory = self.database.session_factory
        self.runner = AgentRunner(factory, self.server, provider=provider, **options)

    def context(self, user="ana", conversation="c1", **more):
        past = self.said.setdefault((user, conversation), [])
        made = AgentContext.from_request(user, conversation, past)
        more.setdefault("now", NOW)
        more.setdefault("language", "en")
        return AgentContext(made.user_id, conversation, made.message_history, **more)

    async def run(self, message, user="ana", conversation="c1", on_text=None, **more):
        """The whole result of one message."""
        context = self.context(user, conversation, **more)
        result = await self.runner.run(context, message, on_text=on_text)
        past = self.said[user, conversation]
        past.append({"role": "user", "content": message})
        past.append({"role": "assistant", "content": result.response})
        self.results.append(result)
        return result

    async def say(self, message, user="ana", conversation="c1", **more):
        """What is answered to one message."""
        return (await self.run(message, user, conversation, **more)).response

    async def close(self):
        await self.runner.close()
        await self.server.close()


@asynccontextmanager
async def chatting(database, provider="responder", **options):
    chat = Chat(database, provider, **options)
    try:
        yield chat
    finally:
        await chat.close()


def scripted(*replies):
    """A model that plays these replies."""
    return Scripted(list(replies))


def call(name, **arguments):
    return {"calls": [{"name": name, "arguments": arguments}]}
