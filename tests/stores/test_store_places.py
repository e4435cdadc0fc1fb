"""A log that somebody else moves, replaces or cuts while it is in use; modes; no empty folders."""

import asyncio
import errno
import os
import stat

import pytest

from bridle.errors import StoreFailed
from bridle.events import TraceEvent
from bridle.stores.disk import Disk
from bridle.stores.jsonl import JsonlStore
from rig import run


def moved(path):
    path.rename(path.with_name("away"))


def replaced(path):
    path.rename(path.with_name("away"))
    path.write_text("foreign\n")


def copied(path):
    """As editors write: a new file of the same content takes the name."""
    path.with_name("new").write_bytes(path.read_bytes())
    path.with_name("new").rename(path)


def linked(path):
    moved(path)
    path.symlink_to("away")


def folder_moved(path):
    path.parent.rename(path.parent.with_name("other"))


def cut(path):
    os.truncate(path, 10)


def emptied(path):
    path.write_bytes(b"")


WORDS = {
    moved: "it was deleted while it was in use",
    folder_moved: "it was deleted while it was in use",
    replaced: "another file was put in its place while it was in use",
    copied: "another file was put in its place while it was in use",
    linked: "another file was put in its place while it was in use",
    cut: "another process cut it off while it was in use",
    emptied: "another process cut it off while it was in use",
}


@pytest.mark.parametrize("durability", ["disk", "process"])
@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("meddle", WORDS)
def test_a_log_that_is_no_longer_where_it_was_acknowledges_nothing(
    meddle, resumed, durability, state
):
    """Neither once nor later, and what was put there is left alone."""

    async def story():
        store = JsonlStore(state, durability)
        log = store.create("s")
        log.append(TraceEvent("one"))
        await log.settled()
        if resumed:
            await log.close()
            log = await store.resume("s", lambda record: None)
        meddle(log.path)
        there = log.path.read_bytes() if meddle in (replaced, cut, emptied) else b""
        said = []
        for _ in range(3):
            log.append(TraceEvent("two"))
            with pytest.raises(StoreFailed) as caught:
                await log.settled()
            said.append(caught.value)
        if there:
            assert log.path.read_bytes() == there
        with pytest.raises(StoreFailed):
            await log.close()
        store.close()
        return said

    for error in run(story()):
        assert error.message == f"the log of session s cannot be written: {WORDS[meddle]}"
        assert "What could not be written does not count as done." in error.hint


def test_a_log_and_a_folder_that_others_could_read_are_private_once_taken_up(state):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("one"))
        await log.close()
        log.path.chmod(0o644)
        log.path.parent.chmod(0o755)
        await (await store.resume("s", lambda record: None)).close()
        store.close()
        return [stat.S_IMODE(one.stat().st_mode) for one in (log.path, log.path.parent)]

    assert run(story()) == [0o600, 0o700]


class Full(Disk):
    """No room: for a file's bytes, or for the file itself."""

    def __init__(self, call):
        self.call = call

    def write(self, handle, data, offset):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open(self, path, flags, mode=0o777, *, dir_fd=None):
        if self.call == "open" and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.open(path, flags, mode, dir_fd=dir_fd)


@pytest.mark.parametrize("call", ["write", "open"])
def test_a_first_line_that_finds_no_room_leaves_no_session(call, state):
    async def story():
        store = JsonlStore(state, disk=Full(call))
        log = store.create("s")
        log.append(TraceEvent("one"))
        with pytest.raises(StoreFailed, match="No space left"):
            await log.close()
        store.close()

    run(story())
    assert list((state / "sessions").iterdir()) == []


def test_a_log_that_may_only_be_read_is_said_to_be_not_writable(state, monkeypatch):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("one"))
        await log.close()
        real = os.open

        def refusing(path, flags, *rest, **more):
            if path == "log.jsonl" and flags & os.O_RDWR:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return real(path, flags, *rest, **more)

        monkeypatch.setattr(os, "open", refusing)
        with pytest.raises(StoreFailed) as caught:
            await store.resume("s", lambda record: None)
        store.close()
        return caught.value.message

    assert asyncio.run(story()) == ("the log of session s cannot be written: Read-only file system")
