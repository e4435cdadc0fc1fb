"""T6, T7: kill -9 of workers under load, over HTTP: nothing half done, nothing twice, none lost.

Half of the moments are counted inside the worker (before its n-th doing in the database), half are
chosen from outside, after so many answers. Clients ask again with the same Idempotency-Key.
"""

import asyncio
import random

import pytest
from fleet_rig import Client, fleet, talking, yard
from sqlmodel import select

from bridle.chat.db import Database, Operation, StoredMessage, Task, Turn
from rig import SOAK

KILLS = 100 if SOAK else 10
USERS = ("ana", "bob", "cem", "dora")
WORKERS = 3
# what is said in a round about one thing, and how many changes each message makes
STORY = (
    ("Add task {0}", 1),
    ("Add tasks: {0}ten, {0}elf", 2),
    ("Complete {0}ten", 1),
    ("Make {0}ten high priority", 1),
    ("Rename {0}ten to {0}zehn", 1),
    ("Delete {0}elf", 0),
    ("yes delete", 1),
    ("yes delete", 0),
    ("Show tasks about {0}", 0),
    ("Delete {0}zehn", 0),
    ("yes delete", 1),
)
CALM = "milkwortblossom"


def word(number):
    """One that is like no other, also to somebody who forgives slips."""
    return "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=12))


async def expected(url):
    """What is answered to a round when nobody dies."""
    async with fleet(url, 1) as made, talking() as http:
        client, talk, heard = Client(http, lambda: made.workers, "calm"), None, []
        for number, (message, _) in enumerate(STORY):
            found = await client.insist(message.format(CALM), talk, key=f"k{number}")
            talk = found["conversation_id"]
            heard.append(found["response"])
        return heard


class Story:
    """One user's rounds in one conversation, until it is told to stop."""

    def __init__(self, client, replies):
        self.client, self.replies = client, replies
        self.talk, self.rounds, self.said = None, 0, []
        self._next = asyncio.Event()

    async def heard(self):
        """Wait for the next answer."""
        self._next.clear()
        await self._next.wait()

    async def tell(self, ended):
        while not ended():
            name = word(f"{self.client.user}{self.rounds}")
            for number, (message, _) in enumerate(STORY):
                sent, key = message.format(name), f"{self.rounds}-{number}"
                found = await self.client.insist(sent, self.talk, key=key)
                self.talk = found["conversation_id"]
                wanted = self.replies[number].replace(CALM, name)
                assert found["response"] == wanted, (sent, found["response"])
                self.said += [("user", sent), ("assistant", wanted)]
                self._next.set()
            self.rounds += 1

    async def check(self, database):
        """The conversation, the tasks and the operations: each exactly once."""
        assert await self.client.messages(self.talk) == self.said
        names = [word(f"{self.client.user}{number}") for number in range(self.rounds)]
        tasks = await self.client.tasks()
        assert [one["title"] for one in tasks] == names
        with database.session_for(self.client.user, reads=True) as session:
            applied = len(session.exec(select(Operation)).all())
            states = [one.state for one in session.exec(select(Turn))]
            places = sorted(one.position for one in session.exec(select(StoredMessage)))
            assert len(session.exec(select(Task)).all()) == self.rounds
        assert applied == self.rounds * sum(count for _, count in STORY)
        assert set(states) == {"done"} and len(states) == self.rounds * len(STORY)
        assert places == list(range(2 * len(states)))


async def kill(made, stories, chance):
    """One moment: by the worker's own count, or after so many answers to somebody."""
    if chance.random() < 0.5:
        worker = await made.start(last=chance.randint(1, 150))
    else:
        worker = await made.start()
        for _ in range(chance.randint(1, 4)):
            await asyncio.wait_for(stories[0].heard(), 30)
        worker.kill()
    await worker.gone.wait()


async def killed(url, calm, seed):
    chance = random.Random(seed)
    replies = await expected(calm)
    async with fleet(url, WORKERS - 1) as made, talking() as http:
        clients = [Client(http, lambda: made.workers, user) for user in USERS]
        stories = [Story(client, replies) for client in clients]
        over = asyncio.Event()
        telling = [asyncio.create_task(one.tell(over.is_set)) for one in stories]
        try:
            for _ in range(KILLS):
                killing = asyncio.create_task(kill(made, stories, chance))
                await asyncio.wait({killing, *telling}, return_when=asyncio.FIRST_COMPLETED)
                for one in telling:
                    assert not one.done(), one.result()
                await killing
            over.set()
            await asyncio.gather(*telling)
        finally:
            for one in telling:
                one.cancel()
            await asyncio.gather(*telling, return_exceptions=True)
        assert made.deaths == KILLS
        database = Database(url)
        for one in stories:
            await one.check(database)
        database.close()
    return stories


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_T6_killed_workers_leave_nothing_half_done_and_nothing_twice(kind, fresh_urls):
    """100 seeded moments in a soak, 10 otherwise; every conversation goes on in another worker."""
    stories = asyncio.run(killed(fresh_urls(kind), fresh_urls(kind), 7))
    assert all(one.rounds for one in stories)
    assert "Traceback" not in yard().logged()
