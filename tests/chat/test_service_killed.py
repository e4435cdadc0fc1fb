"""kill -9 of a worker at seeded moments: nothing half applied, nothing twice, the talk goes on."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from chat_worker import make_service
from sqlmodel import select

from bridle.chat.db import Database, Operation, StoredMessage, Task, Turn
from rig import run, seeds

HERE = Path(__file__).parent
STORY = {
    "small": ["note milk,bread", "hello", "note tea"],
    "real": ["Add task buy milk", "Show my tasks", "Add task call Bob"],
}
TITLES = {"small": ["milk", "bread", "tea"], "real": ["buy milk", "call Bob"]}


@pytest.fixture(scope="module")
def workers():
    """The process that makes workers; told an order, it says how the worker ended."""
    process = subprocess.Popen(
        [sys.executable, HERE / "chat_worker.py"],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )

    def order(**wanted):
        process.stdin.write(json.dumps(wanted) + "\n")
        return json.loads(process.stdout.readline())

    yield order
    process.stdin.close()
    process.stdout.close()
    process.wait(30)


def rows(database, kind):
    with database.session_for("ana", reads=True) as session:
        return session.exec(select(kind)).all()


async def go_on(database, kind):
    """Another worker is sent the same messages, as a client does that heard no answer."""
    service, tools = make_service(database, kind)
    conversation, replies = None, []
    for number, message in enumerate(STORY[kind]):
        reply = await service.reply("ana", message, conversation, key=f"k{number}")
        conversation = reply.conversation_id
        replies.append([number, reply.response, reply.message_id])
    more = await service.reply("ana", "hello", conversation)
    assert more.response
    await service.close()
    if tools is not None:
        await tools.close()
    return replies


def check(database, kind, heard):
    replies = run(go_on(database, kind))
    assert heard == replies[: len(heard)]  # what the dead one answered is answered again
    titles = [one.title for one in rows(database, Task)]
    assert [one.casefold() for one in titles] == [one.casefold() for one in TITLES[kind]]
    applied = [one for one in rows(database, Operation) if not one.key.startswith("refused")]
    assert len(applied) == len(TITLES[kind])
    assert {one.state for one in rows(database, Turn)} == {"done"}
    messages = sorted(rows(database, StoredMessage), key=lambda one: one.position)
    assert [one.position for one in messages] == list(range(2 * len(STORY[kind]) + 2))
    said = [one.content for one in messages if one.role == "user"]
    assert said == [*STORY[kind], "hello"]


def killed_at(workers, url, kind, last, path):
    code = workers(url=url, kind=kind, last=last, file=str(path), messages=STORY[kind])
    text = path.read_text() if path.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    return code, lines


@pytest.fixture(params=["small", "real"])
def kind(request):
    return request.param


@pytest.fixture(params=["sqlite", "postgres"])
def fresh(request, fresh_urls):
    """Makes a fresh database's URL, as often as it is called."""
    return lambda: fresh_urls(request.param)


@pytest.mark.timeout(600)
def test_a_worker_that_is_killed_leaves_nothing_half_done_and_nothing_twice(
    workers, fresh, kind, tmp_path
):
    """T6, T7: 100 seeded moments in a soak, 10 otherwise, on each database."""
    code, whole = killed_at(workers, fresh(), kind, 0, tmp_path / "whole")
    assert code == 0
    moments = whole.pop()[1]
    killed = 0
    for seed in seeds(100 if kind == "real" else 50):
        last = random.Random(seed).randint(1, moments)
        url = fresh()
        code, heard = killed_at(workers, url, kind, last, tmp_path / f"{seed}")
        killed += code == -9
        database = Database(url)
        try:
            check(database, kind, [one for one in heard if one[0] != "moments"])
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, killed before moment {last}: {error}") from error
        finally:
            database.close()
    assert killed


def test_another_worker_goes_on_while_the_dead_ones_client_stays_silent(workers, fresh, tmp_path):
    """Nobody asks again for the first message: it is answered all the same, before the next."""
    conversations, moment = set(), 0
    while not conversations:  # until it is killed after the first message has been stored
        moment += 5
        url = fresh()
        code, heard = killed_at(workers, url, "small", moment, tmp_path / f"killed{moment}")
        assert (code, heard) == (-9, [])
        database = Database(url)
        conversations = {one.conversation_id for one in rows(database, Turn)}
        if not conversations:
            database.close()

    async def story():
        service, _ = make_service(database, "small")
        for conversation in conversations:
            reply = await service.reply("ana", "hello", conversation)
            assert reply.response == "hello! I know 2 messages."
        await service.close()

    run(story())
    assert len(conversations) == 1 and len(rows(database, Task)) == 2
    database.close()


def test_processes_that_share_a_conversation_keep_one_order(workers, fresh, tmp_path):
    """Three processes send at once: each message is answered, after the one before it."""
    url = fresh()
    database = Database(url)

    async def start():
        service, _ = make_service(database, "small")
        return (await service.reply("ana", "start")).conversation_id

    conversation = run(start())
    stories = [[f"p{process} m{number}" for number in range(8)] for process in range(3)]
    order = {"kind": "small", "last": 0, "file": str(tmp_path / "answers"), "at_once": True}
    assert workers(url=url, conversation=conversation, stories=stories, **order) == [0, 0, 0]
    messages = sorted(rows(database, StoredMessage), key=lambda one: one.position)
    asked = [one.content for one in messages if one.role == "user"]
    answered = [one.content for one in messages if one.role == "assistant"]
    assert sorted(asked) == sorted(["start", *(one for story in stories for one in story)])
    known = [min(2 * number, 20) for number in range(len(asked))]
    wanted = [f"{one}! I know {seen} messages." for one, seen in zip(asked, known, strict=True)]
    assert answered == wanted
    database.close()
