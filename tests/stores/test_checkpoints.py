"""A large log is taken up from its tail, by a checkpoint that its own hash proves."""

import asyncio
import errno
import random

import pytest

from bridle.events import Checkpoint, PromptReceived, Repaired, TextDelta, TraceEvent
from bridle.messages import Message, Text
from bridle.stores.jsonl import JsonlStore
from rig import run
from worn_disk import WornDisk


def noise(count):
    return [TraceEvent("noise", number) for number in range(count)]


async def write(state, *blocks):
    """A log with these blocks of events, and a checkpoint after each but the last."""
    store = JsonlStore(state, "process")
    log = store.create("s")
    for index, block in enumerate(blocks):
        for event in block:
            log.append(event)
        if index < len(blocks) - 1:
            log.append(Checkpoint(log.head, (Message("user", (Text(f"{index} so far"),)),)))
    size = log.size
    await log.close()
    store.close()
    return log.path, size


async def take(state, *events):
    """Take it up, add events: the records that were read, the log, all that is there after."""
    store, read = JsonlStore(state, "process"), []
    log = await store.resume("s", read.append)
    found = log.seq, log.head, log.size, log.repair
    for event in events:
        log.append(event)
    await log.close()
    store.close()
    return read, found, list(store.read("s"))


def test_a_log_is_taken_up_from_its_newest_checkpoint_on(state):
    _, size = run(write(state, noise(30), noise(20), noise(7)))
    read, found, after = run(take(state, TraceEvent("more")))
    assert read == after[51:-1]
    assert isinstance(read[0].event, Checkpoint)
    assert found == (59, after[-2].hash, size, None)
    assert [one.seq for one in after] == list(range(1, 61))


def test_the_size_counts_from_the_newest_checkpoint(state):
    async def story():
        store = JsonlStore(state, "process")
        log = store.create("s")
        sizes = [log.size]
        for event in (TraceEvent("a"), Checkpoint(log.head), TraceEvent("a")):
            log.append(event)
            sizes.append(log.size)
        await log.close()
        store.close()
        return sizes

    nothing, one, none, again = run(story())
    assert (nothing, none, again) == (0, 0, one)


def test_a_checkpoint_that_was_altered_is_passed_over_for_an_earlier_one(state):
    path, _ = run(write(state, noise(30), noise(20), noise(7)))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1 so far", b"9 so far"))
    read, found, _ = run(take(state))
    assert read[0].event == Checkpoint(
        read[0].event.previous, (Message("user", (Text("0 so far"),)),)
    )
    assert [one.seq for one in read] == [*range(31, 52), *range(53, 61)]
    assert [one.why for one in found[3].broken] == ["its hash does not fit"]
    path.write_bytes(content.replace(b"so far", b"to far"))
    read, found, _ = run(take(state))
    assert [one.seq for one in read] == [*range(1, 31), *range(32, 52), *range(53, 61)]
    assert [one.after for one in found[3].broken] == [30, 51]


def test_a_torn_checkpoint_is_cut_and_the_one_before_it_is_taken(state):
    path, _ = run(write(state, noise(5), noise(5), []))
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    read, found, after = run(take(state))
    assert [one.seq for one in read] == [*range(6, 13)]
    assert read[-1].event == found[3]
    assert found[3].torn == after[-1].event.torn > 0


def test_damage_before_a_checkpoint_does_not_matter_any_more(state):
    path, _ = run(write(state, noise(30), noise(20), noise(7)))
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"detail":13}', b'"detail":14}'))
    read, found, _ = run(take(state))
    assert (read[0].seq, found[3]) == (52, None)


def test_text_that_looks_like_a_checkpoint_is_none(state):
    text = '"data":{"type":"checkpoint","previous":"'
    fake = {"seq": 1, "timestamp": "t", "data": {"type": "checkpoint", "previous": ""}}
    run(write(state, [PromptReceived(text), TraceEvent("x", fake), TraceEvent(text, text)]))
    read, *_ = run(take(state))
    assert [one.seq for one in read] == [1, 2, 3]


@pytest.mark.parametrize("pad", [0, 1, 30, 90, 1000])
def test_a_checkpoint_is_found_wherever_the_blocks_begin(state, pad, monkeypatch):
    """The file is looked through in blocks, from its end; a mark may lie across two of them."""
    monkeypatch.setattr("bridle.stores.log_format._SMALL_BLOCK", 64)
    monkeypatch.setattr("bridle.stores.log_format._BLOCK", 64)
    monkeypatch.setattr("bridle.stores.reader._BLOCK", 64)
    run(write(state, noise(3), [TextDelta("x" * pad), *noise(10)]))
    read, *_ = run(take(state))
    assert [one.seq for one in read] == [4, *range(6, 16)]


def test_taking_up_the_tail_is_the_same_as_taking_up_all_of_it(state):
    """For the records after the checkpoint, the number and the hash to go on from."""
    path, _ = run(write(state, noise(30), noise(9)))
    tail, found, after = run(take(state))
    mark = b'"type":"checkpoint"'
    content = path.read_bytes()
    assert content.count(mark) == 1
    assert tail == after[30:]
    assert found[:2] == (40, after[-1].hash)
    assert not [one for one in after if isinstance(one.event, Repaired)]


async def all_written(store, log, written):
    """Without waiting for the disk to sync; one that fails is asked again."""
    while len(written) < log.seq:
        store.schedule(log, now=True)
        await asyncio.sleep(0.001)


async def lose_power(state, seed, apart, plan=None):
    """Lines that nobody waits for, and the power goes: the file before and after."""
    disk, written = WornDisk(), []
    store = JsonlStore(state, disk=disk)
    log = store.create("s")
    log.on_written(written.extend)
    log.append(TraceEvent("start"))
    await log.settled()
    disk.plan = plan or disk.plan
    for event in (*noise(3), Checkpoint, *noise(2), Checkpoint, TraceEvent("end")):
        log.append(event(log.head) if event is Checkpoint else event)
        if apart:
            await all_written(store, log, written)
    await all_written(store, log, written)
    assert [one.seq for one in store.read("s")] == list(range(1, log.seq + 1))
    whole = log.path.read_bytes()
    await log.release()
    store.close()
    disk.lose_power(random.Random(seed))
    return whole, log.path.read_bytes()


def outlived(whole, left):
    """The checkpoints that are there, while something before them is not."""
    found, start = [], 0
    for line in whole.splitlines(keepends=True):
        is_there = left[start : start + len(line)] == line
        if b'"type":"checkpoint"' in line and is_there and left[:start] != whole[:start]:
            found.append(line)
        start += len(line)
    return found


@pytest.mark.parametrize("apart", [True, False], ids=["each alone", "in one batch"])
def test_without_power_no_checkpoint_outlives_a_line_before_it(state, apart):
    """Nobody who takes the log up looks there again: the loss would never be told."""
    left = [run(lose_power(state / str(seed), seed, apart)) for seed in range(30)]
    assert [outlived(*one) for one in left] == [[]] * 30
    assert len({len(after) for _, after in left}) > 1  # something was lost


@pytest.mark.parametrize("call", ["sync", "write"])
def test_a_checkpoint_waits_for_the_lines_before_it_also_when_the_disk_fails(state, call):
    def failing():
        left = [errno.EIO, errno.ENOSPC, errno.EIO]
        return lambda count, name: left.pop() if name == call and left else None

    left = [run(lose_power(state / str(seed), seed, False, failing())) for seed in range(30)]
    assert [outlived(*one) for one in left] == [[]] * 30
