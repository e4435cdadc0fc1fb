"""Many watchers: what is told is kept once, read in batches, and waits for nobody."""

import asyncio
import gc
import random
import threading
import weakref
from contextlib import aclosing

import pytest

from bridle.engine import stream
from bridle.engine.stream import Broadcast, Channel, follow, start_now
from bridle.errors import StoreFailed
from bridle.events import TraceEvent
from bridle.protocols.store import Record
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from rig import make_engine, run, seeds


def noise(number):
    return TraceEvent("noise", number)


class Counting(MemoryStore):
    """Counts how often it was read, and how far."""

    def __init__(self):
        super().__init__()
        self.reads = []
        self.ahead = 0
        self.closed = 0
        self.kept = []  # so that nobody but the reader closes them

    def read(self, session_id, after=0):
        self.reads.append(after)
        self.kept.append(self._read(session_id, after))
        return self.kept[-1]

    def _read(self, session_id, after):
        try:
            for record in MemoryStore.read(self, session_id, after):
                self.ahead += 1
                yield record
        finally:
            self.closed += 1


def a_log(count=0, store=None):
    """A log with so many records, and who tells of it."""
    store = store or Counting()
    log = store.create("s")
    for number in range(count):
        log.append(noise(number))
    return store, log, Broadcast(log)


async def some(records, count):
    return [(await anext(records)).seq for _ in range(count)]


def test_a_long_log_is_never_held_whole():
    """A watcher who reads slowly is a few hundred records behind the reader, however many."""

    async def story():
        store, log, tower = a_log(3000)
        ahead = []
        async with aclosing(start_now(follow(store, log, tower))) as records:
            for _ in range(3000):
                record = await anext(records)
                ahead.append(store.ahead - record.seq)
        return max(ahead), store.closed, len(tower)

    most, closed, left = run(story())
    assert 0 < most <= stream._BATCH
    assert (closed, left) == (1, 0)


def test_one_who_leaves_in_the_middle_lets_go_of_the_log():
    async def story():
        store, log, tower = a_log(1000)
        async with aclosing(start_now(follow(store, log, tower))) as records:
            seen = await some(records, 1)
            before = store.closed
        return seen, before, store.closed, len(tower)

    assert run(story()) == ([1], 0, 1, 0)


def test_one_who_has_seen_everything_reads_nothing():
    async def story():
        store, log, tower = a_log(50)
        async with aclosing(start_now(follow(store, log, tower, after=50))) as records:
            log.append(noise("new"))
            return await some(records, 1), store.reads

    assert run(story()) == ([51], [])


def test_a_watcher_is_there_from_the_moment_it_asks():
    """Not from the moment in which it is first waited for."""

    async def story():
        store, log, tower = a_log()
        records = start_now(follow(store, log, tower))
        told = len(tower), log._on_written is not None
        log.append(noise(1))
        seen = await some(records, 1)
        await records.aclose()
        return told, seen, store.reads, len(tower), log._on_written

    assert run(story()) == ((1, True), [1], [], 0, None)


def test_one_who_asks_and_never_listens_is_forgotten():
    async def story():
        store, log, tower = a_log()
        records = start_now(follow(store, log, tower))
        before = len(tower)
        del records
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return before, len(tower), log._on_written

    assert run(story()) == (1, 0, None)


def test_one_who_has_much_to_read_joins_when_it_is_near(monkeypatch):
    """So that a long log does not make a slow watcher of anybody."""
    monkeypatch.setattr(stream, "_NEAR", 100)

    async def story():
        store, log, tower = a_log(1000)
        joined = []
        async with aclosing(start_now(follow(store, log, tower))) as records:
            seen = []
            for number in range(1500):
                seen += await some(records, 1)
                joined.append(len(tower))
                if number < 500:
                    log.append(noise("meanwhile"))
        return seen, joined[0], joined[-1], store.reads

    seen, first, last, reads = run(story())
    assert seen == list(range(1, 1501))
    assert (first, last) == (0, 1)
    assert len(reads) == 2


@pytest.mark.parametrize("near", [0, 20, 5000])
@pytest.mark.parametrize("seed", seeds(40))
def test_a_hundred_watchers_who_come_at_any_time_see_every_record_once(seed, near, monkeypatch):
    """Whoever joins at whichever moment, near or far: no gap, no repeat, and then the end."""
    monkeypatch.setattr(stream, "_NEAR", near)
    monkeypatch.setattr(stream, "_BATCH", 16)

    async def story():
        chance = random.Random(seed)
        store, log, tower = a_log(chance.randrange(60))
        total = 300

        async def watch(start):
            for _ in range(start):
                await asyncio.sleep(0)
            after = chance.randrange(log.seq + 1)
            seen = []
            async with aclosing(start_now(follow(store, log, tower, after))) as records:
                async for record in records:
                    seen.append(record.seq)
                    if chance.random() < 0.05:
                        await asyncio.sleep(0)
            return after, seen

        watchers = [asyncio.create_task(watch(chance.randrange(200))) for _ in range(100)]
        while log.seq < total:
            for _ in range(chance.randrange(4)):
                log.append(noise(log.seq))
            await asyncio.sleep(0)
        tower.end()
        return log.seq, await asyncio.gather(*watchers), len(tower)

    newest, seen, left = run(story())
    assert [one for after, one in seen] == [list(range(after + 1, newest + 1)) for after, _ in seen]
    assert left == 0


def test_what_all_have_passed_is_let_go():
    """However many watch, what is told is kept once, and no longer than the slowest needs it."""

    class Thing:
        pass

    async def story():
        channel = Channel()
        quick, slow = channel.join(), channel.join()
        kept = []
        for _ in range(3):
            thing = Thing()
            kept.append(weakref.ref(thing))
            channel.publish([thing])
        del thing
        for _ in range(3):
            await quick.batch()
        before = [one() is not None for one in kept]
        for _ in range(3):
            await slow.batch()
        after = [one() is not None for one in kept]
        channel.leave(quick)
        channel.leave(slow)
        del quick, slow
        return before, after, [one() is not None for one in kept]

    before, after, at_last = run(story())
    assert before == [True, True, True]
    assert after == [False, False, True]  # the newest: those who join stand behind it
    assert at_last == [False, False, False]


def test_one_who_is_dropped_holds_nothing_and_wakes():
    async def story():
        channel = Channel()
        slow = channel.join(backlog=3)
        for number in range(5):
            channel.publish([number])
        return await slow.batch(), slow.lagging, len(channel)

    assert run(story()) == ((), True, 0)


def test_a_long_chain_is_let_go_without_a_deep_recursion():
    async def story():
        channel = Channel()
        watcher = channel.join(backlog=10**9)
        for number in range(200_000):
            channel.publish([number])
        channel.leave(watcher)
        del watcher
        return len(channel)

    assert run(story()) == 0


def test_what_was_written_in_one_go_is_one_wake_up():
    async def story():
        channel = Channel()
        watchers = [channel.join() for _ in range(3)]
        waiting = [asyncio.create_task(one.batch()) for one in watchers]
        await asyncio.sleep(0)
        channel.publish(range(1000))
        return await asyncio.gather(*waiting)

    assert run(story()) == [range(1000)] * 3


def test_a_log_that_cannot_be_read_is_said_to_the_watcher_and_to_nobody_else():
    class Failing(Counting):
        def _read(self, session_id, after):
            yield from list(super()._read(session_id, after))[:3]
            raise StoreFailed("the disk is gone")

    async def story():
        store, log, tower = a_log(10, Failing())
        with pytest.raises(StoreFailed):
            await some(start_now(follow(store, log, tower)), 10)
        log.append(noise("on it goes"))
        return log.seq, len(tower)

    assert run(story()) == (11, 0)


def test_one_who_is_cancelled_while_a_thread_reads_leaves_no_reader_behind():
    async def story():
        reading, go_on = threading.Event(), threading.Event()

        class Slow(Counting):
            def _read(self, session_id, after):
                for record in super()._read(session_id, after):
                    reading.set()
                    go_on.wait()
                    yield record

        store, log, tower = a_log(10, Slow())
        watcher = asyncio.create_task(some(start_now(follow(store, log, tower)), 1))
        await asyncio.to_thread(reading.wait)
        watcher.cancel()
        await asyncio.sleep(0)
        waits = not watcher.done()
        go_on.set()
        await asyncio.wait([watcher])
        return waits, watcher.cancelled(), store.closed, len(tower)

    assert run(story()) == (True, True, 1, 0)


def test_one_who_was_too_slow_reads_on_and_is_live_again(tmp_path, monkeypatch):
    monkeypatch.setattr(Channel.join, "__defaults__", (10,))

    async def story():
        async with make_engine(["ok"], store=JsonlStore(tmp_path)) as engine:
            session = await engine.session()
            slow = session.subscribe()
            for number in range(100):
                session.emit(noise(number))
                if number % 25 == 0:
                    await session._log.settled()
            await session._log.settled()
            seen = await some(slow, 100)
            session.emit(noise("new"))
            seen += await some(slow, 1)
            await slow.aclose()
            return seen, len(session.broadcast)

    seen, left = run(story())
    assert seen == list(range(1, 102))
    assert left == 0


def test_a_session_that_nobody_watches_tells_nobody():
    async def story():
        async with make_engine(["ok", "ok"]) as engine:
            session = await engine.session()
            await session.wait(await session.send("one"))
            quiet = session._log._on_written
            async with aclosing(session.subscribe()) as records:
                first = await anext(records)
            return quiet, first.seq, session._log._on_written

    assert run(story()) == (None, 1, None)


def test_two_who_listen_are_told_in_the_order_of_the_log():
    async def story():
        channel = Channel()
        one, other = channel.join(), channel.join()
        for number in range(1, 4):
            channel.publish([Record(number, "", noise(number))])
        channel.end()
        return [[record.seq async for record in watcher.records()] for watcher in (one, other)]

    assert run(story()) == [[1, 2, 3], [1, 2, 3]]
