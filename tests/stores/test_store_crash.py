"""Killed at any time: what was acknowledged is there, and the lock is free (SECURITY, durability).

Real processes, really killed.
"""

import asyncio
import random
import signal
import subprocess
from contextlib import contextmanager

import pytest

from bridle.engine.history import fold
from bridle.errors import SessionLocked
from bridle.events import PromptReceived
from bridle.stores.jsonl import JsonlStore
from rig import PYTHON, make_engine, run, seeds

WRITING = """
import asyncio, sys
from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.workspace.workspace import Workspace

async def main(state, chatty):
    def answer(request):
        return {"text": "word " * 200, "pause": 0.0001 if chatty else 0.0}
    engine = Engine(EngineConfig(Scripted(answer), {}, JsonlStore(state), Workspace("/")))
    session = await engine.session()
    for number in range(1000):
        await session.send(f"prompt {number}", when="queue")
        print(session.id, number, flush=True)
        if chatty:
            await asyncio.sleep(0.01)

asyncio.run(main(sys.argv[1], sys.argv[2] == "chatty"))
"""


@contextmanager
def writer(state, how):
    """A process that sends prompts and says which ones were acknowledged."""
    command = [PYTHON, "-c", WRITING, str(state), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.send_signal(signal.SIGKILL)


def acknowledged(child, at_least):
    """Read so many acknowledgements, kill the process, and read the ones that were under way."""
    lines = [child.stdout.readline() for _ in range(at_least)]
    child.send_signal(signal.SIGKILL)
    rest = [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    pairs = [line.split() for line in lines + rest]
    return pairs[0][0], [int(number) for _, number in pairs]


@pytest.mark.parametrize("seed", seeds(50))
def test_an_acknowledged_prompt_survives_kill_9(seed, state):
    chance = random.Random(seed)
    with writer(state, chance.choice(["chatty", "quick"])) as child:
        session_id, numbers = acknowledged(child, chance.randrange(1, 40))
    store = JsonlStore(state)
    records = list(store.read(session_id))
    prompts = [one.event.content for one in records if isinstance(one.event, PromptReceived)]
    assert prompts[: len(numbers)] == [f"prompt {number}" for number in numbers]
    assert [record.seq for record in records] == list(range(1, len(records) + 1))

    async def resume():
        async with make_engine(lambda request: "ok", store=store) as engine:
            session = await engine.session(session_id)
            turn = await session.send("go on", when="queue")
            return turn, (await session.wait(turn)).text

    turn, text = run(resume())
    assert (text, turn) == ("ok", fold(records).turn + 1)


def test_another_process_is_locked_out_and_told_by_whom_until_that_is_killed(state):
    async def story():
        with writer(state, "chatty") as child:
            session_id = child.stdout.readline().split()[0]
            store = JsonlStore(state)
            with pytest.raises(
                SessionLocked, match=rf"process {child.pid} \(python[\d.]*\)$"
            ) as caught:
                await asyncio.wait_for(store.resume(session_id, lambda record: None), 20)
            reading = []
            while len(reading) < 3:  # of the third nobody was told yet
                reading = [record.seq for record in store.read(session_id)]
            child.send_signal(signal.SIGKILL)
            child.wait()
            log = await store.resume(session_id, lambda record: None)
            await log.close()
            store.close()
            return caught.value.hint, reading[:3]

    hint, reading = run(story())
    assert hint
    assert reading == [1, 2, 3]
