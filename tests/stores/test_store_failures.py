"""When the disk says no: a typed error to the sender, nothing acknowledged, order kept, and it
works again once the cause is gone."""

import asyncio
import errno
import os
import subprocess
import tempfile
import threading
from functools import partial
from pathlib import Path

import pytest

from bridle.errors import StoreFailed
from bridle.events import PromptReceived, TraceEvent
from bridle.providers.scripted import Scripted
from bridle.stores.disk import Disk
from bridle.stores.jsonl import JsonlStore
from bridle.stores.log_file import SessionsDir, Writer
from bridle.tools.function import tool
from rig import PYTHON, call, endings, make_engine, run
from worn_disk import WornDisk


def numbers(store, session_id):
    return [record.seq for record in store.read(session_id)]


def test_a_prompt_that_cannot_be_stored_is_not_acknowledged(state):
    """And the next one is, once the cause is gone; nothing is lost or out of order."""

    async def story():
        state.write_text("in the way")
        model = Scripted(["ok"])
        async with make_engine(model, store=JsonlStore(state)) as engine:
            session = await engine.session()
            with pytest.raises(StoreFailed) as caught:
                await session.send("one")
            first = await session.wait(1)
            asked = len(model.requests)
            state.unlink()
            second = await session.wait(await session.send("two"))
            prompts = [
                record.event.content
                for record in engine.store.read(session.id)
                if isinstance(record.event, PromptReceived)
            ]
            found = numbers(engine.store, session.id), endings(engine, session.id)
        return caught.value, first, asked, second, prompts, *found

    error, first, asked, second, prompts, found, ended = run(story())
    assert "cannot be written: Not a directory" in error.message
    assert error.hint
    assert (first.reason, type(first.error), asked) == ("failed", StoreFailed, 0)
    assert (second.text, prompts) == ("ok", ["one", "two"])
    assert found == list(range(1, len(found) + 1))
    assert ended == ["failed", "done"]


class Below:
    """The disk below a session's log, which can be full for a while."""

    def __init__(self, session):
        self.handle = session._log._file.handle
        self.kept = os.dup(self.handle)

    def fill(self):
        full = os.open("/dev/full", os.O_RDWR)
        os.dup2(full, self.handle, inheritable=False)
        os.close(full)

    def empty(self):
        os.dup2(self.kept, self.handle, inheritable=False)
        os.close(self.kept)


def test_no_effect_happens_whose_intent_is_not_stored(state):
    """The disk is full between the reply and the call; later the session goes on."""

    async def story():
        done, disks = [], []

        @tool
        async def change() -> str:
            done.append(1)
            return "k"

        def reply(request):
            disks.append(Below(session))
            disks[0].fill()
            return call("change")

        store = JsonlStore(state)
        model = Scripted([reply, "ok"])
        async with make_engine(model, change, mode="auto", store=store) as engine:
            session = await engine.session()
            first = await session.wait(await session.send("go"))
            during = list(done)
            disks[0].empty()
            second = await session.wait(await session.send("again"))
            found = numbers(store, session.id)
        return during, first.reason, type(first.error), second.text, found

    during, reason, error, text, found = run(story())
    assert (during, reason, error, text) == ([], "failed", StoreFailed, "ok")
    assert found == list(range(1, len(found) + 1))


def test_batches_that_fail_together_are_written_and_told_in_order(state):
    """Two are on their way when the first fails: neither overtakes, none is told twice."""

    async def story():
        state.write_text("in the way")
        store, seen, gate = JsonlStore(state), [], threading.Event()
        log = store.create("s")
        log.on_written(lambda records: seen.extend(record.seq for record in records))
        store._writer.run(gate.wait)
        for number in range(3):  # three batches, all behind the gate
            log.append(TraceEvent("x", number))
            await asyncio.sleep(0)
        failing = asyncio.create_task(log.settled())
        await asyncio.sleep(0)
        gate.set()
        with pytest.raises(StoreFailed):
            await failing
        with pytest.raises(StoreFailed):
            await log.settled()
        told = list(seen)
        state.unlink()
        log.append(TraceEvent("x", 3))
        await log.close()
        store.close()
        return told, seen, [record.event.detail for record in store.read("s")]

    assert run(story()) == ([], [1, 2, 3, 4], [0, 1, 2, 3])


def test_closing_a_log_that_cannot_be_written_says_so_and_lets_go(state):
    async def story():
        state.write_text("in the way")
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("x"))
        with pytest.raises(StoreFailed):
            await log.close()
        with pytest.raises(StoreFailed):
            await log.close()
        state.unlink()
        await asyncio.sleep(0.1)  # a timer that was pending must not bring it back to life
        store.close()
        return state.exists()

    assert run(story()) is False


def test_who_waits_for_a_later_line_is_not_refused_for_an_earlier_one(state):
    """The first try has failed; before that is known the cause is gone and a line more is there."""

    async def story():
        state.write_text("in the way")
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("x", 0))
        first = asyncio.create_task(log.settled())
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # now the writer has it
        assert log._unfinished
        while log._file.failure is None:  # the loop hears nothing of it meanwhile
            os.sched_yield()
        state.unlink()
        log.append(TraceEvent("x", 1))
        second = asyncio.create_task(log.settled())
        told = await asyncio.gather(first, second, return_exceptions=True)
        await log.close()
        store.close()
        return told, [record.event.detail for record in store.read("s")]

    (first, second), kept = run(story())
    assert (type(first), second, kept) == (StoreFailed, None, [0, 1])


def test_who_waits_for_an_earlier_line_is_not_refused_for_a_later_one(state):
    """The disk is full for the second line, but the first one has been written, and is synced."""
    disk = WornDisk()

    async def story():
        store, is_written = JsonlStore(state, disk=disk), asyncio.Event()
        log = store.create("s")
        log.append(TraceEvent("x", 0))
        await log.settled()
        log.on_written(lambda records: is_written.set())
        log.append(TraceEvent("x", 1))
        await is_written.wait()
        disk.plan = lambda count, call: errno.ENOSPC if call == "write" else None
        first = asyncio.create_task(log.settled())
        await asyncio.sleep(0)
        log.append(TraceEvent("x", 2))
        second = asyncio.create_task(log.settled())
        told = await asyncio.gather(first, second, return_exceptions=True)
        durable = log.durable
        disk.plan = lambda count, call: None
        await log.close()
        store.close()
        return told, durable, [record.event.detail for record in store.read("s")]

    (first, second), durable, kept = run(story())
    assert (first, type(second), durable, kept) == (None, StoreFailed, 2, [0, 1, 2])


def test_an_engine_whose_log_cannot_be_written_still_closes_everything(state):
    def writers():
        return {one for one in threading.enumerate() if one.name == "bridle-writer"}

    async def story():
        state.write_text("in the way")
        engine = make_engine(["ok"] * 3, store=JsonlStore(state))
        sessions = [await engine.session() for _ in range(3)]
        for session in sessions:
            with pytest.raises(StoreFailed):
                await session.send("go")
            await session.wait(1)
        with pytest.raises(StoreFailed):
            await engine.close()
        return [session.is_closed for session in sessions]

    before = writers()
    assert run(story()) == [True] * 3
    assert writers() <= before


def test_a_name_that_no_file_system_takes_is_a_failure_and_not_a_hang(tmp_path):
    """The writer's thread outlives whatever a batch raises."""

    async def story():
        store = JsonlStore(f"{tmp_path}/a\0b")
        log = store.create("s")
        log.append(TraceEvent("x"))
        with pytest.raises(StoreFailed, match="null"):
            await log.settled()
        store.close()

    run(story())


def test_a_log_of_the_same_name_is_never_overwritten(state):
    async def story():
        store = JsonlStore(state)
        first, second = store.create("s"), store.create("s")
        first.append(TraceEvent("first"))
        await first.settled()
        second.append(TraceEvent("second"))
        with pytest.raises(StoreFailed, match="exists"):
            await second.settled()
        await first.close()
        store.close()
        return [record.event.kind for record in store.read("s")]

    assert run(story()) == ["first"]


def test_the_writer_can_be_closed_and_used_again(state):
    writer, numbers = Writer(SessionsDir(Disk(), str(state))), []
    for number in range(2):
        writer.run(partial(numbers.append, number))
        writer.close()
    writer.close()
    assert numbers == [0, 1]


def test_who_settles_a_log_while_it_closes_is_answered(state):
    """The line came after the last batch was handed over: it is stored, or refused in words."""

    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("one"))
        told = []
        log.on_written(told.extend)

        async def settle():
            for _ in iter(lambda: bool(told), True):  # in the round in which the close goes on
                await asyncio.sleep(0)
            log.append(TraceEvent("two"))
            await log.settled()

        late = asyncio.create_task(settle())
        await log.close()
        await asyncio.wait([late], timeout=240)
        store.close()
        assert late.done()
        refused = isinstance(late.exception(), StoreFailed)
        return refused or numbers(store, "s") == [1, 2]

    assert run(story())


def test_a_log_that_cannot_be_mended_is_a_failure_with_a_type(state):
    class Worn(Disk):
        @staticmethod
        def cut(handle, size):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("one"))
        await log.close()
        with log.path.open("ab") as file:
            file.write(b"torn")
        with pytest.raises(StoreFailed, match="cannot be read: Input/output error"):
            await JsonlStore(state, disk=Worn()).resume("s", print)
        await (await store.resume("s", lambda record: None)).close()  # the lock was let go
        store.close()

    run(story())


FULL = """
import asyncio, resource, sys
from bridle.errors import StoreFailed
from bridle.events import TraceEvent
from bridle.stores.jsonl import JsonlStore

async def main():
    store = JsonlStore(sys.argv[1])
    log = store.create("s")
    log.append(TraceEvent("small"))
    await log.settled()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    log.append(TraceEvent("large", "x" * 20_000))
    log.append(TraceEvent("after"))
    try:
        await log.settled()
    except StoreFailed as failed:
        print(failed.message)
    log.append(TraceEvent("later"))
    try:
        await log.settled()
    except StoreFailed as failed:
        print("again")
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append(TraceEvent("last"))
    await log.close()
    store.close()
    for record in store.read("s"):
        print(record.seq, record.event.kind)

asyncio.run(main())
"""


def child(code, *arguments):
    done = subprocess.run(
        [PYTHON, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=240
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_disk_that_is_full_and_has_room_again(state):
    """A write that stops half way: the same bytes are written again at the same place."""
    said = child(FULL, state)
    assert said == [
        "the log of session s cannot be written: File too large",
        "again",
        "1 small",
        "2 large",
        "3 after",
        "4 later",
        "5 last",
    ]


RIGHTS = """
import asyncio, os, sys
from pathlib import Path
from bridle.errors import StoreFailed
from bridle.events import TraceEvent
from bridle.stores.jsonl import JsonlStore

folder = Path(sys.argv[1])
mode = int(sys.argv[2], 8)
if os.getuid() == 0:  # rights do not bind the administrator
    os.chown(folder, 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)

async def main():
    (folder / "sessions").mkdir()
    (folder / "sessions").chmod(mode)
    store = JsonlStore(folder)
    log = store.create("s")
    log.append(TraceEvent("one"))
    for _ in range(2):
        try:
            await log.settled()
        except StoreFailed as failed:
            print(failed.message)
    (folder / "sessions").chmod(0o700)
    log.append(TraceEvent("two"))
    await log.close()
    store.close()
    for record in store.read("s"):
        print(record.seq, record.event.kind)

asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["500", "300"])
def test_a_folder_without_the_rights_and_with_them_again(mode):
    """500: no entry can be made. 300: it can, but not made durable, so nothing is acknowledged."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101 - a Path would say no more
        place = Path(folder) / "state"
        place.mkdir()
        said = child(RIGHTS, place, mode)
    denied = "the log of session s cannot be written: Permission denied"
    assert said == [denied, denied, "1 one", "2 two"]
