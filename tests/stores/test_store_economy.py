"""What the store asks of the system, and of memory: no more than it has to."""

import asyncio
import json
import subprocess
import tracemalloc

import pytest

from bridle.errors import SessionLocked
from bridle.events import TraceEvent
from bridle.stores.jsonl import JsonlStore
from rig import PYTHON, run
from worn_disk import WornDisk


async def calls_of(state, durability, *turns):
    """What each of these asks of the disk."""
    seen, said = [], []
    disk = WornDisk(lambda number, call: seen.append(call))
    store = JsonlStore(state, durability, disk)
    for turn in turns:
        seen.clear()
        await turn(store)
        said.append(list(seen))
    store.close()
    return said


def session(name, logs):
    async def turn(store):
        if name not in logs:
            logs[name] = store.create(name)
        logs[name].append(TraceEvent("x"))
        await logs[name].settled()

    return turn


def closing(logs):
    async def turn(store):
        for log in logs.values():
            await log.close()

    return turn


NEW = ["mkdir", "open", "open", "write"]
DURABLE = ["sync", "sync_folder"]
FOLDER = ["open", "sync_folder"]


def test_a_settled_line_is_one_write_and_one_sync(state):
    """A new session's folder and file have to be durable, too; the folders above only once."""
    (state / "sessions").mkdir(parents=True)
    logs = {}
    turns = [session("a", logs), session("a", logs), session("b", logs), closing(logs)]
    first, again, second, end = run(calls_of(state, "disk", *turns))
    assert first == [*NEW, *DURABLE, *FOLDER, *FOLDER, *FOLDER]
    assert again == ["write", "sync"]
    assert second == [*NEW, *DURABLE, *FOLDER]
    assert end == []


def test_in_the_hands_of_the_kernel_means_that_nothing_is_synced(state):
    (state / "sessions").mkdir(parents=True)
    logs = {}
    said = run(calls_of(state, "process", session("a", logs), session("a", logs), closing(logs)))
    assert said == [NEW, ["write"], []]


def test_sessions_that_begin_together_share_a_sync_of_their_folder(state):
    """All are written before the first is synced, so that a journal is written once for them."""
    (state / "sessions").mkdir(parents=True)
    logs = {}

    async def together(store):
        await asyncio.gather(*(session(f"s{number}", logs)(store) for number in range(20)))

    turns = [session("a", logs), together, closing(logs)]
    _, said, _ = run(calls_of(state, "disk", *turns))
    assert said == [*NEW * 20, *DURABLE * 20, *FOLDER]


def test_a_line_of_a_hundred_megabytes_needs_no_such_memory(state):
    async def story():
        store = JsonlStore(state, "process")
        log = store.create("s")
        for number in range(3):
            log.append(TraceEvent("x", number))
        await log.close()
        lines = log.path.read_bytes().splitlines(keepends=True)
        with log.path.open("wb") as file:
            file.write(lines[0])
            file.seek(150 << 20, 1)  # a hole: it reads as zeros
            file.write(b"\n" + b"".join(lines[1:]))
        tracemalloc.start()
        try:
            read = []
            log = await store.resume("s", read.append)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        await log.close()
        store.close()
        return peak, read

    peak, read = run(story())
    assert peak < 80 << 20
    assert [one.event for one in read[:-1]] == [TraceEvent("x", number) for number in range(3)]
    assert [(one.after, one.size, one.why) for one in read[-1].event.broken] == [
        (1, 150 << 20, "it is too long")
    ]


def test_taking_up_a_log_can_be_given_up_at_any_time(state):
    """Nothing of it stays open, and the next one can have it."""

    async def story():
        store = JsonlStore(state, "process")
        log = store.create("s")
        for number in range(3000):
            log.append(TraceEvent("x" * 1000, number))
        await log.close()
        for rounds in range(12):
            taking = asyncio.create_task(store.resume("s", lambda record: None))
            for _ in range(rounds):
                await asyncio.sleep(0)
            taking.cancel()
            await asyncio.wait([taking])
            if not taking.cancelled():
                await taking.result().close()
        read = []
        log = await store.resume("s", read.append)
        await log.close()
        store.close()
        return len(read)

    assert run(story()) == 3000


RACING = """
import asyncio, json, sys
from bridle.errors import SessionLocked
from bridle.events import TraceEvent
from bridle.stores.jsonl import JsonlStore

async def main(state, name):
    store, won = JsonlStore(state), 0
    sys.stdin.readline()
    for number in range(30):
        try:
            log = await store.resume("s", lambda record: None)
        except SessionLocked:
            continue
        log.append(TraceEvent(name, number))
        await log.close()
        won += 1
    store.close()
    print(json.dumps(won))

asyncio.run(main(*sys.argv[1:]))
"""


def test_of_many_processes_one_at_a_time_writes(state):
    """Whoever was let in has written exactly one line, in its place."""

    async def begin():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("first"))
        await log.settled()
        with pytest.raises(SessionLocked):
            await store.resume("s", lambda record: None)
        await log.close()
        store.close()

    run(begin())
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([PYTHON, "-c", RACING, str(state), name], **pipes) for name in "abc"]
    for one in racers:
        one.stdin.write("go\n")
        one.stdin.flush()
    won = [json.loads(one.communicate(timeout=240)[0]) for one in racers]
    records = list(JsonlStore(state).read("s"))
    assert [one.seq for one in records] == list(range(1, sum(won) + 2))
    found = [one.event.kind for one in records]
    assert [found.count(name) for name in "abc"] == won
