"""Readers of a log that somebody else writes: nothing blocks, no gap, no repeat."""

import random
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.events import TraceEvent
from bridle.stores import reader
from bridle.stores.jsonl import JsonlStore
from bridle.stores.reader import SessionFolder
from rig import PYTHON, run, seeds

WRITING = """
import asyncio, random, sys
from bridle.events import TraceEvent
from bridle.stores.jsonl import JsonlStore

async def main(state, seed):
    chance, store = random.Random(seed), JsonlStore(state)
    log = store.create("s")
    log.on_written(lambda records: None)
    log.append(TraceEvent("first"))
    await log.settled()
    print("there", flush=True)
    for number in range(400):
        log.append(TraceEvent("x" * chance.choice((1, 100, 20_000)), number))
        if chance.random() < 0.3:
            await asyncio.sleep(0)
        if chance.random() < 0.05:
            await log.settled()
    await log.close()
    store.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.parametrize("seed", seeds(30))
def test_who_follows_a_live_log_sees_every_record_once(seed, state):
    """In another process, from any number on, while it grows."""
    command = [PYTHON, "-c", WRITING, str(state), str(seed)]
    folder, chance, seen, late = SessionFolder(state), random.Random(seed), [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        with folder.reader("s") as reader:
            over = False
            while True:
                found = reader.read_new()
                seen += found
                if found and chance.random() < 0.2:
                    after = chance.randrange(seen[-1].seq)
                    late.append((after, [one.seq for one in folder.read("s", after)]))
                if over and not found:
                    break
                over = child.poll() is not None
    assert [one.seq for one in seen] == list(range(1, 402))
    assert seen == list(folder.read("s"))
    for after, numbers in late:
        assert numbers == list(range(after + 1, after + 1 + len(numbers)))


@pytest.mark.parametrize("torn", [b"", b'{"seq":9', b'{"seq":9\n', b"\0\0\0\n", b"\n"])
@pytest.mark.parametrize("seed", seeds(10))
def test_who_follows_sees_through_a_killed_writer_and_the_next_one(seed, torn, state):
    """The line on which it died is cut by the next holder; no reader trips over it."""
    chance = random.Random(seed)
    command = [PYTHON, "-c", WRITING, str(state), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        with SessionFolder(state).reader("s") as reader:
            seen = reader.read_new()
            while len(seen) < chance.randrange(2, 200) and child.poll() is None:
                seen += reader.read_new()
            child.send_signal(signal.SIGKILL)
            child.wait()
            path = SessionFolder(state).path("s")
            with path.open("ab") as file:  # as if it had died in the middle of one
                file.write(torn)
            seen += reader.read_new()
            run(go_on(state))
            seen += [*reader.read_new(), *reader.read_new()]
    assert seen == list(SessionFolder(state).read("s"))
    assert [one.seq for one in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].event == TraceEvent("more")


async def go_on(state):
    store = JsonlStore(state)
    log = await store.resume("s", lambda record: None)
    log.append(TraceEvent("more"))
    await log.close()
    store.close()


async def write(state, events):
    store = JsonlStore(state, "process")
    log = store.create("s")
    for event in events:
        log.append(event)
    await log.close()
    store.close()
    return log.path


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    """A log of 300 records of all lengths, and its bytes."""
    chance, state = random.Random(1), tmp_path_factory.mktemp("long")
    events = [TraceEvent("x" * chance.choice((1, 40, 900)), number) for number in range(300)]
    path = run(write(state, events))
    return state, path, path.read_bytes()


@given(after=st.integers(0, 310), near=st.integers(200, 5000))
def test_reading_begins_at_any_number_without_reading_what_is_before(long_log, after, near):
    state, *_ = long_log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_NEAR", near)
        found = [one.seq for one in SessionFolder(state).read("s", after)]
    assert found == list(range(after + 1, 301))


@given(data=st.data())
def test_damage_never_leads_a_reader_past_a_whole_record(long_log, data):
    """A number that was altered must not be believed when the place is looked for."""
    state, path, content = long_log
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 5))):
        start = content.index(b'{"seq":%d,' % data.draw(st.integers(1, 300)))
        damaged[start + data.draw(st.integers(0, 12))] = data.draw(st.sampled_from(b"0159,x\n"))
    path.write_bytes(damaged)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader, "_NEAR", data.draw(st.integers(200, 5000)))
            after = data.draw(st.integers(0, 300))
            whole = [one for one in SessionFolder(state).read("s") if one.seq > after]
            assert list(SessionFolder(state).read("s", after)) == whole
    finally:
        path.write_bytes(content)


def test_numbers_that_were_altered_together_lead_nobody_astray(long_log):
    """A whole stretch says that it is older than it is."""
    state, path, content = long_log
    damaged = content
    for number in range(210, 260):
        damaged = damaged.replace(b'{"seq":%d,' % number, b'{"seq":%d,' % (number - 100))
    path.write_bytes(damaged)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader, "_NEAR", 3000)
            found = [one.seq for one in SessionFolder(state).read("s", 205)]
    finally:
        path.write_bytes(content)
    assert found == [206, 207, 208, 209, *range(260, 301)]


def test_who_only_wants_what_comes_gets_only_that(state):
    run(write(state, [TraceEvent("x", number) for number in range(2000)]))
    with SessionFolder(state).reader("s", None) as reader:
        assert reader.read_new() == []
        run(go_on(state))
        assert [one.event for one in reader.read_new()] == [TraceEvent("more")]
        assert reader.read_new() == []


def test_a_reader_leaves_the_lock_and_the_file_alone(state):
    path = Path(run(write(state, [TraceEvent("x")])))
    before = path.stat()
    with SessionFolder(state).reader("s") as reader:
        reader.read_new()
        run(go_on(state))
    assert (path.stat().st_ino, path.stat().st_mode) == (before.st_ino, before.st_mode)
