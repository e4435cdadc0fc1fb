"""What a user's rows hold for messages that are sent again, and for how long."""

import asyncio

from small_runner import SmallRunner
from sqlmodel import select

from bridle.chat import ChatService
from bridle.chat.db import Operation, StoredMessage, Task, Turn
from bridle.chat.values import ServiceLimits
from rig import run


def count(database, user, kind, *where):
    with database.session_for(user, reads=True) as session:
        return len(session.exec(select(kind).where(*where)).all())


def kept(database, user):
    """How many operations and keys of that user are there."""
    return count(database, user, Operation), count(database, user, Turn, Turn.key.is_not(None))


def test_operations_and_keys_are_kept_for_a_while_and_then_swept(database):
    """T6: with the next conversation of the same user; what they did and said stays."""

    async def story():
        runner = SmallRunner(database)
        service = ChatService(database, runner, ServiceLimits(messages_a_minute=0))
        strict = ChatService(database, runner, ServiceLimits(messages_a_minute=0, keep_days=0.0))
        first = await service.reply("ana", "note one", key="k1")
        await service.reply("bob", "note two", key="k1")
        await service.reply("ana", "hello")
        assert kept(database, "ana") == (1, 1)  # they are new
        again = await service.reply("ana", "note one", key="k1")
        assert (again.replayed, again.conversation_id) == (True, first.conversation_id)
        await strict.reply("ana", "hello", first.conversation_id)
        assert kept(database, "ana") == (1, 1)  # not in the middle of a conversation
        await strict.reply("ana", "hello", key="k2")
        assert kept(database, "ana") == (0, 1)  # only the key that has just come
        assert kept(database, "bob") == (1, 1)
        assert count(database, "ana", Task) == 1
        assert count(database, "ana", StoredMessage) == 8
        await service.close()
        await strict.close()

    run(story())


class Late(SmallRunner):
    """Says nothing of what it noted until it may."""

    def __init__(self, database):
        super().__init__(database)
        self.noted, self.may = asyncio.Event(), asyncio.Event()

    async def run(self, context, message):
        result = await super().run(context, message)
        if message.startswith("note "):
            self.noted.set()
            await self.may.wait()
        return result


def test_the_operations_of_a_turn_that_still_runs_are_not_swept(database):
    """T6: they are what keeps a worker that takes the turn over from doing them again."""

    async def story():
        runner = Late(database)
        strict = ChatService(database, runner, ServiceLimits(messages_a_minute=0, keep_days=0.0))
        talking = asyncio.create_task(strict.reply("ana", "note one"))
        await runner.noted.wait()
        await strict.reply("ana", "hello")
        assert count(database, "ana", Operation) == 1
        runner.may.set()
        await talking
        await strict.reply("ana", "hello")
        assert count(database, "ana", Operation) == 0
        await strict.close()

    run(story())
