"""What may stand where a log should be: a typed error says so, and it is left as it is."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from bridle.errors import SessionLocked, StoreFailed, UnknownSession
from bridle.events import PromptReceived, TraceEvent
from bridle.stores.jsonl import JsonlStore
from bridle.stores.locks import program_of
from rig import PYTHON, run


def folder_of(state):
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    return folder


def fifo(state, tmp_path):
    os.mkfifo(folder_of(state) / "log.jsonl")


def folder(state, tmp_path):
    (folder_of(state) / "log.jsonl").mkdir()


def link(state, tmp_path):
    (tmp_path / "target").write_text("precious\n")
    (folder_of(state) / "log.jsonl").symlink_to(tmp_path / "target")


def linked_folder(state, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "log.jsonl").write_text("precious\n")
    (state / "sessions").mkdir(parents=True)
    (state / "sessions" / "s").symlink_to(tmp_path / "other")


def device(state, tmp_path):
    (folder_of(state) / "log.jsonl").symlink_to("/dev/zero")


def file_for_folder(state, tmp_path):
    (state / "sessions").mkdir(parents=True)
    (state / "sessions" / "s").write_text("precious\n")


def notes(state, tmp_path):
    (folder_of(state) / "log.jsonl").write_text("somebody's\nnotes\n")


def table(state, tmp_path):
    (folder_of(state) / "log.jsonl").write_text('{"a":1}\n[1,2]\n3\n"x"\nnull\n')


def zeros(state, tmp_path):
    (folder_of(state) / "log.jsonl").write_bytes(bytes(5000) + b"\n" + bytes(100))


NEWER = (
    '{"seq":1,"timestamp":"2036-01-31T10:30:01.000Z","data":{"type":"session_start",'
    '"sessionId":"s","format":2,"news":{}},"hash":"00"}\n{"seq":2,"v":2}\n{"torn'
)


def newer(state, tmp_path):
    (folder_of(state) / "log.jsonl").write_text(NEWER)


ODD = [fifo, folder, link, linked_folder, device, file_for_folder, notes, table, zeros, newer]


def tree(path):
    """Names, kinds and contents of everything below."""
    found = {}
    for one in sorted(path.rglob("*")):
        mode = one.lstat().st_mode
        content = one.read_bytes() if one.is_file() and not one.is_symlink() else b""
        found[str(one.relative_to(path))] = (mode, content)
    return found


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_log_is_refused_at_once_and_left_as_it_is(odd, state, tmp_path):
    """A8."""
    odd(state, tmp_path)
    before = tree(tmp_path)

    async def story():
        store, seen = JsonlStore(state), []
        with pytest.raises(StoreFailed) as caught:
            await asyncio.wait_for(store.resume("s", seen.append), 20)
        try:
            for record in store.read("s"):
                assert odd is newer, record
        except StoreFailed:
            assert odd is not newer
        log = store.create("s")
        log.append(TraceEvent("x"))
        with pytest.raises(StoreFailed):
            await log.close()
        store.close()
        return caught.value

    error = run(story())
    assert error.message.startswith("the log of session s cannot be read: ")
    assert error.hint
    assert tree(tmp_path) == before
    if odd is newer:
        assert "a newer bridle wrote it (format 2)" in error.message
        assert "at least as new" in error.hint


def test_a_file_without_a_byte_is_an_empty_log(state):
    """Whoever made it died before the first line; nothing of it was acknowledged."""
    (folder_of(state) / "log.jsonl").write_bytes(b"")

    async def story():
        store, seen = JsonlStore(state), []
        log = await store.resume("s", seen.append)
        log.append(PromptReceived("go"))
        await log.close()
        store.close()
        return seen, [one.seq for one in store.read("s")]

    assert run(story()) == ([], [1])


def test_files_stay_private_under_a_wide_umask(state):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("x"))
        await log.close()
        store.close()
        return log.path

    before = os.umask(0)
    try:
        path = run(story())
    finally:
        os.umask(before)
    modes = [one.stat().st_mode & 0o777 for one in (path, path.parent, path.parent.parent, state)]
    assert modes == [0o600, 0o700, 0o700, 0o700]


HOLDING = """
import asyncio, sys
from bridle.events import TraceEvent
from bridle.stores.jsonl import JsonlStore

async def main():
    store = JsonlStore(sys.argv[2])
    log = store.create("s")
    log.append(TraceEvent("x"))
    await log.settled()
    print("held", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


def test_who_holds_a_session_is_named_and_a_killed_holder_holds_nothing(state, tmp_path):
    script = tmp_path / "bridle"
    script.write_text(HOLDING)
    command = [PYTHON, script, "run", state]

    async def take():
        store = JsonlStore(state)
        try:
            log = await asyncio.wait_for(store.resume("s", lambda record: None), 20)
            await log.close()
        finally:
            store.close()

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as child:
        child.stdout.readline()
        with pytest.raises(SessionLocked) as caught:
            run(take())
        child.kill()
    assert caught.value.message == f"session s is in use by process {child.pid} (bridle run)"
    run(take())


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/bin/python3.12", "/home/x/bin/bridle", "run", "secret"], "bridle run"),
        (["python", "-m", "bridle", "sessions", "show"], "bridle sessions"),
        (["/x/bridle", "--yes", "run"], "bridle"),
        (["python3", "-c", "print(1)"], "python3"),
        (["python3"], "python3"),
        (["evil\x1b[2J"], ""),
        ([""], ""),
    ],
)
def test_a_program_is_named_as_it_was_typed_without_its_arguments(words, name):
    assert program_of(words) == name


def test_a_session_that_is_deleted_is_gone_for_its_readers(state):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("x"))
        await log.close()
        store.close()
        return log.path

    path = Path(run(story()))
    with JsonlStore(state).reader("s") as reader:
        assert [one.seq for one in reader.read_new()] == [1]
        path.unlink()
        with pytest.raises(UnknownSession, match="was deleted"):
            reader.read_new()
