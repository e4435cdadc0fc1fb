"""Prompts that come over the server: on disk before they are acknowledged, and each once."""

import asyncio
import threading

import pytest
from sessions_rig import HOLDS, Held, ended, made, refused, serving, spoken

from bridle.errors import EmptyPrompt, SessionBusy, UnknownSession
from bridle.events import MessageAdded, PromptReceived, PromptWithdrawn, SessionStarted
from bridle.protocols.session_errors import (
    IdempotencyConflict,
    NotFound,
    PromptBegun,
    QueueFull,
    ServerStopping,
    UnknownWorkspace,
)
from bridle.protocols.session_values import NewSession, PromptAccepted, PromptRequest, SessionInfo
from bridle.stores.disk import Disk
from bridle.stores.jsonl import JsonlStore
from bridle.stores.reader import SessionFolder
from rig import run


class Gated(Disk):
    """A disk whose syncs wait for the test."""

    def __init__(self):
        self.free, self.waits = threading.Event(), threading.Event()
        self.free.set()
        self.sync = self._sync

    def _sync(self, handle):
        if not self.free.is_set():
            self.waits.set()
        assert self.free.wait(20)
        Disk.sync(handle)


def prompts(sessions, session_id):
    found = sessions.catalog.read(session_id)
    return [one.event for one in found if isinstance(one.event, PromptReceived)]


def test_a_session_is_on_disk_before_its_first_prompt_and_outlives_the_server(tmp_path):
    async def story():
        async with serving(tmp_path, []) as sessions:
            view = await sessions.create(NewSession(title=" a  title ", mode="plan"), "ann")
            kinds = [type(one.event).__name__ for one in sessions.catalog.read(view.id)]
            assert kinds == ["SessionStarted", "ModeChanged", "TitleChanged"]
        async with serving(tmp_path, []) as sessions:
            again = await sessions.info(view.id)
            assert (again.title, again.mode, again.state) == ("a title", "plan", "idle")
            assert again.workspace == view.workspace == str(tmp_path / "work")
            assert (view.holder, again.holder) == ("here", "")
            assert (await sessions.list()).sessions == (again,)

    run(story())


def test_a_prompt_is_acknowledged_only_once_it_is_on_disk(tmp_path):
    disk = Gated()

    async def story():
        store = lambda: JsonlStore(tmp_path / "state", disk=disk)  # noqa: E731 - one line, used once
        async with serving(tmp_path, ["hello"], store=store) as sessions:
            name = await made(sessions)
            disk.free.clear()
            sending = asyncio.ensure_future(sessions.send(name, PromptRequest("go"), "ann"))
            await asyncio.to_thread(disk.waits.wait, 20)
            assert [one.content for one in prompts(sessions, name)] == ["go"]  # it is written
            assert not sending.done()
            assert sessions.get_open(name).durable < sessions.get_open(name).seq
            disk.free.set()
            assert await sending == PromptAccepted(name, 1)
            assert sessions.get_open(name).durable >= 2
            assert await ended(sessions, name) == "done"

    run(story())


def test_the_same_key_and_prompt_are_the_same_turn_even_after_a_restart(tmp_path):
    async def story():
        async with serving(tmp_path, ["hello", "again"]) as sessions:
            name = await made(sessions)
            first = await asyncio.gather(
                *(sessions.send(name, PromptRequest("go"), "ann", "key") for _ in range(5))
            )
            assert first == [PromptAccepted(name, 1)] * 5
            assert await ended(sessions, name) == "done"
            assert await sessions.send(name, PromptRequest("go"), "ann", "key") == PromptAccepted(
                name, 1
            )
        async with serving(tmp_path, ["other"]) as sessions:
            assert await sessions.send(name, PromptRequest("go"), "ann", "key") == PromptAccepted(
                name, 1
            )
            await refused(
                sessions.send(name, PromptRequest("stop"), "ann", "key"), IdempotencyConflict
            )
            later = PromptRequest("go", queue=True)
            await refused(sessions.send(name, later, "ann", "key"), IdempotencyConflict)
            other = await sessions.send(
                name, PromptRequest("go"), "bob", "key"
            )  # his key is another
            assert other == PromptAccepted(name, 2)
            assert await ended(sessions, name, 2) == "done"
            assert [one.by for one in prompts(sessions, name)] == ["ann", "bob"]

    run(story())


def test_a_key_is_known_again_when_a_session_has_forgotten_the_letter(tmp_path):
    async def story():
        async with serving(tmp_path, lambda: __import__("bridle").provider("offline")) as sessions:
            name = await made(sessions)
            assert (await sessions.send(name, PromptRequest("go"), "ann", "old")).turn == 1
            await ended(sessions, name, 1)
            history = sessions.get_open(name).history
            history.inbox_ids.clear()
            history.inbox_ids.update(dict.fromkeys(map(str, range(256))))
            assert (await sessions.send(name, PromptRequest("go"), "ann", "old")).turn == 1

    run(story())


def test_a_refused_prompt_may_be_sent_again_with_its_key(tmp_path):
    async def story():
        held = Held()
        async with serving(tmp_path, [HOLDS, "done", "second"], held) as sessions:
            name = await made(sessions)
            await sessions.send(name, PromptRequest("go"), "ann")
            await held.begun.wait()
            busy = await refused(
                sessions.send(name, PromptRequest("more"), "ann", "k"), SessionBusy
            )
            assert "busy with turn 1" in busy.message
            held.free.set()
            assert await ended(sessions, name) == "done"
            assert await sessions.send(name, PromptRequest("more"), "ann", "k") == PromptAccepted(
                name, 2
            )
            assert await ended(sessions, name, 2) == "done"

    run(story())


def test_a_prompt_waits_for_the_turn_or_steers_it(tmp_path):
    async def story():
        held = Held()
        async with serving(tmp_path, [HOLDS, "first", "second"], held) as sessions:
            name = await made(sessions)
            await sessions.send(name, PromptRequest("go"), "ann")
            await held.begun.wait()
            steer = PromptRequest("this way", when="next_step")
            assert await sessions.send(name, steer, "bob") == PromptAccepted(name, 1)
            assert await sessions.send(
                name, PromptRequest("then", queue=True), "cy"
            ) == PromptAccepted(name, 2)
            detail = await sessions.detail(name)
            assert [(one.prompt, one.by, one.turn) for one in detail.queued] == [
                ("this way", "bob", 1),
                ("then", "cy", 2),
            ]
            assert detail.state == "running"
            held.free.set()
            assert await ended(sessions, name, 2) == "done"
            said = [one.event for one in sessions.catalog.read(name)]
            turns = [
                (one.message.content, one.turn) for one in said if isinstance(one, MessageAdded)
            ]
            assert turns == [("go", 1), ("this way", 1), ("then", 2)]

    run(story())


@pytest.mark.parametrize("chat", [PromptRequest(), PromptRequest("  ")])
def test_a_prompt_that_says_nothing_is_refused(tmp_path, chat):
    async def story():
        async with serving(tmp_path, []) as sessions:
            name = await made(sessions)
            await refused(sessions.send(name, chat, "ann"), EmptyPrompt)
            assert prompts(sessions, name) == []

    run(story())


TRICKS = ["", ".", "..", "../x", "a/b", "%2e%2e", "x\0y", "no-such-session", "~", "ü" * 300]


@pytest.mark.parametrize("name", TRICKS)
def test_an_id_with_tricks_is_an_unknown_session(tmp_path, name):
    async def story():
        async with serving(tmp_path, []) as sessions:
            for work in (
                sessions.info(name),
                sessions.detail(name),
                sessions.records(name),
                sessions.history(name),
                sessions.send(name, PromptRequest("go"), "ann"),
                sessions.interrupt(name, "ann"),
                sessions.delete(name, "ann"),
                sessions.undo_preview(name),
            ):
                await refused(work, UnknownSession)
            with pytest.raises(UnknownSession):
                async for _ in sessions.export(name, "jsonl"):
                    pass

    run(story())


def test_a_session_of_another_folder_is_unknown_and_so_is_the_folder(tmp_path):
    async def story():
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        async with serving(tmp_path, ["hello"], workspaces=(str(elsewhere),)) as sessions:
            foreign = await made(sessions)
            await spoken(sessions, foreign)
        async with serving(tmp_path, ["hello"]) as sessions:
            for work in (
                sessions.info(foreign),
                sessions.send(foreign, PromptRequest("go"), "ann"),
                sessions.records(foreign),
                sessions.interrupt(foreign, "ann"),
            ):
                await refused(work, UnknownSession)
            assert (await sessions.list()).sessions == ()
            assert (await sessions.search("hello")).hits == ()
            for path in (str(elsewhere), "/", str(tmp_path / "work" / "..") + "/elsewhere", "work"):
                await refused(sessions.create(NewSession(path), "ann"), UnknownWorkspace)
            below = tmp_path / "work" / "below"
            below.mkdir()
            await refused(sessions.create(NewSession(str(below)), "ann"), UnknownWorkspace)

    run(story())


def test_two_who_need_a_session_at_once_share_one(tmp_path):
    async def story():
        async with serving(tmp_path, ["one", "two", "three"]) as sessions:
            name = await made(sessions)
        async with serving(tmp_path, ["one", "two", "three"]) as sessions:
            later = [PromptRequest(f"prompt {number}", queue=True) for number in range(3)]
            turns = await asyncio.gather(*(sessions.send(name, one, "ann") for one in later))
            assert sorted(one.turn for one in turns) == [1, 2, 3]
            assert await ended(sessions, name, 3) == "done"
            log = SessionFolder(tmp_path / "state").read(name)
            starts = [one for one in log if isinstance(one.event, SessionStarted)]
            assert [one.event.resumed for one in starts] == [False, True]

    run(story())


def test_a_server_that_stops_takes_nothing_new(tmp_path):
    async def story():
        async with serving(tmp_path, ["one"]) as sessions:
            name = await made(sessions)
            assert sessions.ready
            await sessions.stop(5)
            assert not sessions.ready
            await refused(sessions.send(name, PromptRequest("go"), "ann"), ServerStopping)
            await refused(sessions.create(NewSession(), "ann"), ServerStopping)
            assert isinstance(await sessions.info(name), SessionInfo)  # what only reads goes on

    run(story())


def test_a_prompt_that_waits_can_be_taken_back_and_one_that_has_begun_cannot(tmp_path):
    async def story():
        hold = Held()
        async with serving(tmp_path, [HOLDS, "one", "three"], hold) as sessions:
            name = await made(sessions)
            await sessions.send(name, PromptRequest("first"), "ann")
            await hold.begun.wait()
            for words in ("second", "third"):
                await sessions.send(name, PromptRequest(words, queue=True), "ann")
            session = sessions.get_open(name)
            first, *_ = (one.seq for one in sessions.catalog.read(name) if _is_prompt(one))
            second, third = (one.seq for one in (await sessions.detail(name)).queued)
            await sessions.withdraw(name, second, "bob")
            assert [one.seq for one in (await sessions.detail(name)).queued] == [third]
            assert (await session.wait(2)).reason == "interrupted"
            for late in (first, second):
                no = await refused(sessions.withdraw(name, late, "bob"), PromptBegun)
                assert (no.status_code, no.code) == (409, "prompt_begun")
            await refused(sessions.withdraw(name, 1, "bob"), NotFound)
            await refused(sessions.withdraw(name, 999, "bob"), NotFound)
            hold.free.set()
            assert await ended(sessions, name, 3) == "done"
            said = [one.content for one in (await sessions.history(name)).messages]
            assert [one for one in said if one in ("first", "second", "third")] == [
                "first",
                "third",
            ]
            records = [one.event for one in sessions.catalog.read(name)]
            gone = [one for one in records if isinstance(one, PromptWithdrawn)]
            assert gone == [PromptWithdrawn(second, 2, "bob")]

    run(story())


def test_only_so_many_prompts_wait_and_the_next_is_refused(tmp_path):
    """What has a key and was accepted is still the same turn."""

    async def story():
        hold = Held()
        async with serving(tmp_path, [HOLDS], hold) as sessions:
            name = await made(sessions)
            await sessions.send(name, PromptRequest("first"), "ann")
            await hold.begun.wait()
            for number in range(99):
                await sessions.send(name, PromptRequest(str(number), queue=True), "ann")
            last = await sessions.send(name, PromptRequest("last", queue=True), "ann", "key")
            no = await refused(
                sessions.send(name, PromptRequest("x", queue=True), "ann"), QueueFull
            )
            assert (no.status_code, no.code) == (429, "queue_full")
            assert no.message == "100 prompts are waiting, which is the limit; nothing was sent"
            assert (
                await sessions.send(name, PromptRequest("last", queue=True), "ann", "key") == last
            )
            queued = (await sessions.detail(name)).queued
            for one in queued:
                await sessions.withdraw(name, one.seq, "ann")
            for letter in "abc":
                await sessions.send(name, PromptRequest(letter * 9_000_000, queue=True), "ann")
            await refused(sessions.send(name, PromptRequest("x", queue=True), "ann"), QueueFull)

    run(story())


def _is_prompt(record):
    return isinstance(record.event, PromptReceived)


def test_a_session_takes_the_next_prompt_in_the_moment_in_which_its_turn_has_ended(tmp_path):
    """Whoever has read that a turn ended is not told that it runs."""

    async def story():
        async with serving(tmp_path, ["ok"] * 10) as sessions:
            name = await made(sessions)
            assert [await spoken(sessions, name) for _ in range(10)] == list(range(1, 11))

    run(story())
