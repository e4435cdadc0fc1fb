"""T3, T5, T6: many people at once, half of them with a model that attacks, over HTTP and workers.

Each of them has a secret in everything that is theirs. Nobody is ever sent a byte of anybody
else's, nothing is lost or changes its place, and nobody's word answers another's question.
"""

import asyncio
import random
from contextlib import suppress

import aiohttp
import pytest
from fleet_rig import Client, fleet, talking, yard
from hostile_lane import Board, Lane, Person
from sqlmodel import select

from bridle.chat.db import Database, Operation, Task
from rig import SOAK

pytestmark = pytest.mark.slow

PEOPLE = 50 if SOAK else 20
REQUESTS = 200 if SOAK else 20
WORKERS = 3


def people(board, http, made, seed):
    """Each with two conversations: half of them have the attacker's model."""
    found = []
    for number in range(PEOPLE):
        person = Person(number, board, seed)
        client = Client(http, lambda: made.workers, person.user, person.heard)
        kind = "hostile" if number % 2 else "plain"
        found.append((person, [Lane(person, kind, client), Lane(person, "beside", client)]))
    return found


async def live(person, lanes):
    """Both conversations at once, request after request."""

    async def talk(lane):
        while person.requests < REQUESTS or lane.conversation is None:
            await lane.step()

    await asyncio.gather(*map(talk, lanes))


async def compare(person, lanes):
    for lane in lanes:
        assert await lane.client.messages(lane.conversation) == lane.said
    tasks = await lanes[0].client.tasks()
    assert {one["title"].split()[-1]: one["completed"] for one in tasks} == person.tasks
    status, listed = await lanes[0].client.call("GET", f"/api/{person.user}/conversations")
    mine = {one["id"] for one in listed["conversations"]}
    assert status == 200 and mine == {one.conversation for one in lanes}


async def watch(person, client, worker):
    """The live list of one person, read for as long as it comes."""
    url = f"http://127.0.0.1:{worker.port}/api/{person.user}/tasks/events"
    headers = {"Authorization": f"Bearer {client.token}"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with client.http.get(url, headers=headers, timeout=timeout) as answer:
        assert answer.status == 200
        async for data in answer.content:
            person.heard(data, counts=0)


async def whole(url, seed):
    board = Board()
    async with fleet(url, WORKERS, hostile=True) as made, talking(300) as http:
        found = people(board, http, made, seed)
        watching = [
            asyncio.create_task(watch(person, lanes[0].client, made.workers[number % WORKERS]))
            for number, (person, lanes) in enumerate(found[::5])
        ]
        await asyncio.gather(*(live(*one) for one in found))
        assert not any(one.done() for one in watching)
        for one in watching:
            one.cancel()
        for one in watching:
            with suppress(asyncio.CancelledError):
                await one
        for one in found:
            await compare(*one)
        assert made.deaths == 0
    return board, [person for person, _ in found]


@pytest.mark.timeout(3_000)
def test_T3_T6_nobody_gets_a_byte_of_anybody_else_and_nothing_is_lost(database_url):
    """50 people with 200 requests each in a soak, otherwise 20 with 20."""
    board, found = asyncio.run(whole(database_url, 1))
    assert board.leaks == []
    assert all(one.requests >= REQUESTS for one in found)
    database = Database(database_url)
    refused = 0
    for person in found:
        with database.session_for(person.user, reads=True) as session:
            titles = [one.title for one in session.exec(select(Task))]
            refused += len([one for one in session.exec(select(Operation)) if "refused" in one.key])
        assert len(titles) == len(person.tasks)
        assert all(person.marker in one and "PLANTED" not in one for one in titles)
    database.close()
    assert refused == board.overrides > 0
    logged = yard().logged()
    assert "tried to set" in logged
    assert "zq" not in logged.lower() and "Traceback" not in logged


async def asked(lane):
    await lane.add()
    await lane.ask()


async def elsewhere(lane, talks):
    """Says it in a conversation of somebody else."""
    status, _ = await lane.client.say("yes delete", lane.chance.choice(talks))
    assert status == 404


@pytest.mark.timeout(300)
def test_T5_a_yes_of_one_never_answers_the_question_of_another(database_url):
    """All say it at the same moment: where they were asked, where not, and where others were."""

    async def story():
        board = Board()
        async with fleet(database_url, 2, hostile=True) as made, talking() as http:
            found = people(board, http, made, 2)[:20]
            await asyncio.gather(*(asked(lanes[0]) for _, lanes in found))
            await asyncio.gather(*(lanes[1].add() for _, lanes in found))
            moves = []
            for _, (first, second) in found:
                theirs = board.others(first, board.conversations)
                moves += [first.confirm("yes delete"), second.confirm("yes delete")]
                moves.append(elsewhere(first, theirs))
            random.Random(3).shuffle(moves)
            await asyncio.gather(*moves)
            for person, (first, second) in found:
                assert set(person.tasks) == set(second.ids) and len(second.ids) == 1
                assert first.ids == {}
                await compare(person, (first, second))
        assert board.leaks == []

    asyncio.run(story())
