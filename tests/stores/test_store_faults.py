"""Power loss, a full disk and a broken one, at any call: nothing acknowledged is lost."""

import asyncio
import errno
import os
import random

import pytest

from bridle.errors import StoreFailed, UnknownSession
from bridle.events import Repaired, TextDelta, TraceEvent
from bridle.stores.jsonl import JsonlStore
from rig import run, seeds
from worn_disk import WornDisk

IDS = ("one", "two", "three")


class Story:
    """What some sessions wrote, and what of it was acknowledged."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.made = {name: [] for name in IDS}
        self.acknowledged = dict.fromkeys(IDS, 0)
        self.failed = 0

    async def write(self, logs, steps):
        """Append and settle, a little at random; go on when it fails."""
        for _ in range(steps):
            log = self.chance.choice(logs)
            for _ in range(self.chance.randrange(1, 5)):
                text = "x" * self.chance.choice((3, 50, 5000))
                self.made[log.session_id].append(log.append(TraceEvent(text, log.seq)))
            if self.chance.random() < 0.3:
                await asyncio.sleep(0)
            if self.chance.random() < 0.5:
                await asyncio.gather(*(self.settle(one) for one in {log, self.chance.choice(logs)}))

    async def settle(self, log):
        """Take note of what is acknowledged."""
        upto = log.seq
        try:
            await log.settled()
        except StoreFailed:
            self.failed += 1
        else:
            self.acknowledged[log.session_id] = upto

    async def first(self, state, disk, steps=25):
        """New sessions on this disk; what happens until they are closed."""
        store = JsonlStore(state, disk=disk)
        logs = [store.create(name) for name in IDS]
        logs[0].on_written(lambda records: None)  # watched: written without being waited for
        await self.write(logs, steps)
        await self.end(store, logs)

    async def again(self, state, disk, steps=8):
        """The sessions that can be taken up; on top of what they hold."""
        store, logs = JsonlStore(state, disk=disk), []
        for name in IDS:
            read = []
            try:
                logs.append(await store.resume(name, read.append))
            except UnknownSession:
                assert self.acknowledged[name] == 0
                continue
            except StoreFailed:
                self.failed += 1
                continue
            self.check(name, read)
            self.made[name] = read
            self.acknowledged[name] = logs[-1].durable
        if logs:
            await self.write(logs, steps)
        await self.end(store, logs)

    async def end(self, store, logs):
        for log in logs:
            upto = log.seq
            try:
                await log.close()
            except StoreFailed:
                self.failed += 1
            else:
                self.acknowledged[log.session_id] = upto
        store.close()

    def check(self, name, read):
        """Everything acknowledged is there, as it was, and nothing that was not written."""
        kept = [one for one in read if not isinstance(one.event, Repaired)]
        known = {one.seq: one for one in self.made[name]}
        upto = self.acknowledged[name]
        sure = [one for one in self.made[name] if one.seq <= upto]
        assert [one for one in read if one.seq <= upto] == sure
        assert all(known.get(one.seq) == one for one in kept)


async def look(state, story):
    """Take every session up on a sound disk, twice: the second time there is nothing to mend."""
    store = JsonlStore(state)
    for name in IDS:
        first, second = [], []
        try:
            log = await store.resume(name, first.append)
        except (UnknownSession, StoreFailed) as error:
            assert story.acknowledged[name] == 0, error
            continue
        story.check(name, [one for one in first if one.seq <= log.durable])
        log.append(TraceEvent("more"))
        await log.close()
        log = await store.resume(name, second.append)
        assert log.repair is None
        await log.close()
        assert second[:-1] == first
        assert list(store.read(name)) == second
    store.close()


def once(number, what):
    """A plan: this happens to that call, and to no other."""
    return lambda count, call: what if count == number else None


@pytest.mark.parametrize("seed", seeds(300))
def test_what_was_acknowledged_survives_a_loss_of_power_at_any_call(seed, state):
    """Unsynced bytes and unsynced entries are dropped, wholly or in part."""
    chance, story = random.Random(seed), Story(seed)
    disk = WornDisk(once(chance.randrange(1, 130), "power"))
    run(story.first(state, disk))
    disk.lose_power(chance)
    again = WornDisk(once(chance.randrange(1, 50), "power"))  # and while it is being mended
    run(story.again(state, again))
    again.lose_power(chance)
    run(look(state, story))


@pytest.mark.parametrize("seed", seeds(300))
def test_a_disk_that_fails_for_a_while_loses_nothing_and_the_session_goes_on(seed, state):
    """ENOSPC, EIO and short writes at any call, and then the power goes."""
    chance, story = random.Random(seed), Story(seed)
    start = chance.randrange(1, 100)
    end = start + chance.choice((1, 1, 3, 20))
    what = chance.choice((errno.ENOSPC, errno.EIO, "short"))
    calls = chance.choice((("write",), ("sync",), ("write", "sync", "sync_folder", "mkdir")))
    plan = lambda count, call: what if start <= count < end and call in calls else None  # noqa: E731

    disk = WornDisk(lambda count, call: plan(count, call))

    async def whole():
        store = JsonlStore(state, disk=disk)
        logs = [store.create(name) for name in IDS]
        await story.write(logs, 25)
        disk.plan = lambda count, call: None
        for log in logs:
            log.append(TraceEvent("it works again"))
            story.made[log.session_id].append(log.append(TraceEvent("last")))
            await log.settled()
            story.acknowledged[log.session_id] = log.seq
        disk.dead = True  # whatever was acknowledged has to be there now
        for log in logs:
            await log.close()
        store.close()
        return [list(store.read(log.session_id)) for log in logs]

    written = run(whole())
    disk.lose_power(chance)
    store = JsonlStore(state)
    assert [list(store.read(name)) for name in IDS] == written
    assert [[one.seq for one in found] for found in written] == [
        list(range(1, story.acknowledged[name] + 1)) for name in IDS
    ]
    story.made = dict(zip(IDS, written, strict=True))
    run(look(state, story))


def test_a_sync_that_failed_is_not_believed_the_second_time(state):
    """The system may have dropped the bytes, and say that all is well when it is asked again."""
    disk = WornDisk()

    async def story():
        store = JsonlStore(state, disk=disk)
        log = store.create("s")
        log.append(TraceEvent("one"))
        await log.settled()
        disk.plan = lambda count, call: errno.EIO if call == "sync" else None
        log.append(TraceEvent("two"))
        with pytest.raises(StoreFailed, match="Input/output error") as caught:
            await log.settled()
        told = log.durable
        disk.plan = lambda count, call: None
        await log.settled()
        await log.close()
        store.close()
        return caught.value.hint, told

    hint, told = run(story())
    disk.lose_power(random.Random(0))
    assert (told, "Check the disk" in hint) == (1, True)
    assert [one.event.kind for one in JsonlStore(state).read("s")] == ["one", "two"]


@pytest.mark.parametrize("seed", range(8))
def test_what_a_killed_process_left_is_durable_before_anything_is_built_on_it(seed, state):
    """It was in the kernel's hands alone: the file, its entry, and the entry of its folder."""
    disk = WornDisk()

    async def story():
        careless = JsonlStore(state, "process", disk)
        log = careless.create("s")
        log.append(TraceEvent("one"))
        await log.close()
        careless.close()
        store = JsonlStore(state, disk=disk)
        log = await store.resume("s", lambda record: None)
        told = log.durable
        await log.close()
        store.close()
        return told

    assert run(story()) == 1
    disk.lose_power(random.Random(seed))
    assert [one.event for one in JsonlStore(state).read("s")] == [TraceEvent("one")]


def test_lines_that_nobody_waits_for_do_not_pile_up_in_memory(state):
    """They are kept until they are durable, so once in a while they are made durable."""

    async def story():
        store, written = JsonlStore(state), asyncio.Event()
        log = store.create("s")
        log.on_written(lambda records: written.set())
        most = 0
        for number in range(20):
            written.clear()
            log.append(TextDelta("x" * 1_000_000))
            await written.wait()
            most = max(most, number + 1 - log.durable)
        await log.close()
        store.close()
        return most

    assert 1 < run(story()) < 8


def test_a_log_that_is_deleted_while_it_is_held_is_said_to_be_gone(state):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("one"))
        await log.settled()
        log.path.unlink()
        log.append(TraceEvent("two"))
        with pytest.raises(StoreFailed, match="it was deleted while it was in use") as caught:
            await log.settled()
        with pytest.raises(StoreFailed):
            await log.close()
        store.close()
        return caught.value.hint, os.listdir(state / "sessions" / "s")  # noqa: PTH208 - names only

    hint, left = run(story())
    assert "Start a new session" in hint
    assert left == []
