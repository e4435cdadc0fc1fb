"""Letters for whoever holds a session, and the bell that says there may be one."""

import asyncio
import subprocess
import time

import pytest
from msgspec.structs import replace

from bridle.errors import UnknownSession
from bridle.events import PromptReceived, TraceEvent
from bridle.protocols.store import InboxMessage
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from rig import PYTHON, run

POSTING = """
import sys
from bridle.protocols.store import InboxMessage
from bridle.stores.jsonl import JsonlStore

JsonlStore(sys.argv[1]).send_message("s", InboxMessage("b", "interrupt"))
"""


def untimed(found):
    """The letters without the time at which they were posted."""
    return [replace(letter, at=0.0) for letter in found]


def stores(state):
    return {"files": lambda: JsonlStore(state), "memory": MemoryStore}


@pytest.mark.parametrize("kind", ["files", "memory"])
def test_a_letter_stays_until_it_is_discarded_also_over_a_resume(kind, state):
    async def story():
        store = stores(state)[kind]()
        log = store.create("s")
        log.append(TraceEvent("x"))
        await log.settled()
        letters = [InboxMessage(name, "send", content=name) for name in "abc"]
        for letter in letters:
            store.send_message("s", letter)
        first = log.inbox_messages()
        log.discard(letters[1])
        log.discard(letters[1])
        await log.close()
        log = await store.resume("s", lambda record: None)
        second = log.inbox_messages()
        await log.close()
        store.close()
        return untimed(first) == letters, untimed(second) == [letters[0], letters[2]]

    assert run(story()) == (True, True)


@pytest.mark.parametrize("kind", ["files", "memory"])
def test_a_letter_for_nobody_is_refused(kind, state):
    store = stores(state)[kind]()
    with pytest.raises(UnknownSession):
        store.send_message("nobody", InboxMessage("a", "send"))
    assert not state.exists()


@pytest.mark.parametrize("kind", ["files", "memory"])
def test_who_listens_hears_of_each_letter_and_who_has_stopped_hears_nothing(kind, state):
    async def story():
        store, rung = stores(state)[kind](), asyncio.Event()
        log = store.create("s")
        log.append(TraceEvent("x"))
        await log.settled()
        store.send_message("s", InboxMessage("before", "send"))
        store.listen(rung.set)
        heard = []
        for name in "ab":
            store.send_message("s", InboxMessage(name, "send"))
            await rung.wait()
            rung.clear()
            heard.append(log.inbox_messages()[-1].id)
        store.listen(None)
        store.send_message("s", InboxMessage("c", "send"))
        await asyncio.sleep(0.3)  # longer than it takes to hear of it
        await log.close()
        store.close()
        return heard, rung.is_set()

    assert run(story()) == (["a", "b"], False)


def test_a_letter_from_another_process_is_heard(state):
    async def story():
        store, rung = JsonlStore(state), asyncio.Event()
        log = store.create("s")
        log.append(TraceEvent("x"))
        await log.settled()
        store.listen(rung.set)
        command = [PYTHON, "-c", POSTING, str(state)]
        await asyncio.to_thread(subprocess.run, command, check=True)
        await rung.wait()
        found = log.inbox_messages()
        await log.close()
        store.close()
        return found

    assert untimed(run(story())) == [InboxMessage("b", "interrupt")]


def test_a_store_in_memory_numbers_tells_and_is_as_durable_as_it_gets():
    async def story():
        store, told = MemoryStore(), []
        log = store.create("s")
        log.on_written(told.extend)
        made = [log.append(PromptReceived("one"), b"{}"), log.append(PromptReceived("two"))]
        await log.settled()
        return log, made, told, list(store.read("s")), list(store.read("s", 1))

    log, made, told, read, rest = run(story())
    assert made == told == read
    assert rest == made[1:]
    assert (log.seq, log.durable, log.head, log.size) == (2, 2, "", 0)
    assert time.strptime(made[0].timestamp[:19], "%Y-%m-%dT%H:%M:%S")
