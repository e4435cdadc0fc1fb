"""A session that another process writes, which is killed: who watches sees no gap (A10)."""

import asyncio
import random
import signal
import sys

import pytest
from watching_rig import House, note, read, seqs

from bridle.errors import SessionLocked
from rig import run, seeds

WRITER = """
import asyncio, sys
from bridle.events import TraceEvent
from bridle.stores.jsonl import JsonlStore

async def main():
    log = await JsonlStore(sys.argv[1]).resume(sys.argv[2], lambda record: None)
    number = 0
    while True:
        number += 1
        log.append(TraceEvent("note", {"number": number, "text": "x" * (number * 37 % 5000)}))
        if number % 3:
            await asyncio.sleep(0)
        else:
            await log.settled()

asyncio.run(main())
"""


async def taken(house, session_id):
    """The session, as soon as the lock of the one who was killed is gone."""
    while True:
        try:
            return await house.open(session_id)
        except SessionLocked:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("seed", seeds(30))
def test_a_writer_that_is_killed_leaves_no_gap_and_no_repeat_to_those_who_watch(tmp_path, seed):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            await house.let_go(session)
            many = random.Random(seed).randrange(2, 400)
            words = ("-c", WRITER, str(tmp_path), session.id)
            writer = await asyncio.create_subprocess_exec(sys.executable, *words)
            stream = house.streams.session(session.id)
            watching = asyncio.create_task(read(stream, lambda one: one[1]["seq"] >= many))
            late = asyncio.create_task(
                read(house.streams.session(session.id, 1), lambda one: bool(end) and is_end(one))
            )
            end = []

            def is_end(event):
                return event[1]["seq"] == end[0]

            early = await watching
            writer.send_signal(signal.SIGKILL)
            await writer.wait()
            session = await taken(house, session.id)
            end.append(session.seq + 1)
            session.emit(note("end"))
            assert seqs(early) == list(range(1, seqs(early)[-1] + 1))
            assert seqs(await late) == list(range(2, end[0] + 1))

    run(work())
