"""Without power, on a full disk, on a broken one: nothing is said to be stored that is not.

The story of `crash_story` on a disk that fails. Whoever was told of something finds it; no effect
happens before its intent would survive; and when the disk works again the session goes on.
"""

import asyncio
import errno
import random

import pytest

from bridle.engine import engine
from bridle.errors import StoreFailed
from bridle.events import PromptReceived, TraceEvent
from bridle.protocols.store import InboxMessage
from bridle.providers.scripted import Scripted
from bridle.stores import jsonl
from bridle.stores.jsonl import JsonlStore
from rig import call, events, make_engine, run, seeds
from worn_disk import WornDisk

pytest.register_assert_rewrite("crash_judge")
from crash_judge import judge, look_at_wreck  # noqa: E402 - after the line above
from crash_story import Person, plainly, tell  # noqa: E402
from crashing import Notes, Points, instrument  # noqa: E402

pytestmark = pytest.mark.slow


def full(disk):
    disk.plan = lambda count, call: errno.ENOSPC if call == "write" else None


def repaired(disk):
    disk.plan = lambda count, call: None


class Play:
    """The story in this process, on a disk of the test's choice."""

    def __init__(self, folder, seed, monkeypatch):
        self.folder, self.chance = folder, random.Random(seed)
        folder.mkdir()
        self.notes = Notes(folder)
        instrument(Points(0), self.notes, monkeypatch.setattr)
        monkeypatch.setattr(engine, "_INBOX_RETRY_SECONDS", 0.01)

    def tell(self, disk, attempt=plainly):
        """Play it, or what is left of it. Without power nobody waits for anything."""
        person = Person(self.folder, self.notes, Points(0), self.post, self.chance)
        person.check = lambda: self.need_power(disk)
        person.at_last = lambda: repaired(disk)
        run(tell(person, JsonlStore(self.folder / "state", disk=disk), attempt))

    @staticmethod
    def need_power(disk):
        if disk.dead:
            raise StoreFailed("there is no power")

    def post(self, session_id, letter):
        """Put a letter into the inbox, as another process would."""
        JsonlStore(self.folder / "state").send_message(session_id, letter)
        self.notes.add("posted", letter=letter.id, verb=letter.verb)

    def tell_until(self, at):
        """Play it until the power goes at that call to the disk: did it come to that?"""
        disk = WornDisk(lambda count, call: "power" if count == at else None)
        try:
            self.tell(disk)
        except StoreFailed:
            disk.lose_power(self.chance)
            return True
        return False


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """How many calls to the disk a story makes that nobody disturbs."""
    with pytest.MonkeyPatch.context() as patch:
        play = Play(tmp_path_factory.mktemp("whole") / "story", 0, patch)
        disk = WornDisk()
        play.tell(disk)
        judge(play.folder, set())
    return disk.count


@pytest.mark.parametrize("seed", seeds(200))
def test_what_was_acknowledged_survives_a_loss_of_power_and_no_effect_came_too_early(
    seed, tmp_path, monkeypatch, calls
):
    """At any call to the disk, and for some again while the session is taken up."""
    at, number = random.Random(seed).randrange(1, calls), 0
    while not (play := Play(tmp_path / f"{number}", seed, monkeypatch)).tell_until(at):
        at, number = at * 3 // 4, number + 1  # it had fewer calls this time
    unknown = look_at_wreck(play.folder, torn_only=False)
    if seed % 3 == 0 and play.tell_until(play.chance.randrange(1, 30)):
        unknown |= look_at_wreck(play.folder, torn_only=False)
    play.tell(WornDisk())
    judge(play.folder, unknown)


@pytest.mark.parametrize("seed", seeds(200))
def test_a_disk_that_is_full_or_broken_for_a_while_is_survived_in_the_same_process(
    seed, tmp_path, monkeypatch, calls
):
    """ENOSPC and EIO at any write, any sync, anything; then it works again, then the power goes."""
    play = Play(tmp_path / "story", seed, monkeypatch)
    chance = play.chance
    start = chance.randrange(1, calls)
    end = start + chance.choice((1, 2, 5, 30))
    what = chance.choice((errno.ENOSPC, errno.EIO))
    names = chance.choice((("write",), ("sync",), ("write", "sync", "sync_folder", "mkdir")))
    disk = WornDisk(lambda count, call: what if start <= count < end and call in names else None)

    async def attempt(work, once):
        while True:
            try:
                return await work()
            except StoreFailed as error:
                assert error.hint
                if once:
                    return None

    play.tell(disk, attempt)
    disk.lose_power(chance)
    assert not judge(play.folder, set()).noted("gone")


def test_a_prompt_that_cannot_be_stored_is_not_acknowledged_and_nothing_is_done(state):
    async def story():
        disk, ran, model = WornDisk(), [], Scripted([call("change"), "ok", "later"])

        async def change() -> str:
            ran.append(1)
            return "changed"

        async with make_engine(
            model, change, store=JsonlStore(state, disk=disk), mode="auto"
        ) as engine:
            session = await engine.session()
            full(disk)
            with pytest.raises(StoreFailed, match="No space left") as refused:
                await session.send("go")
            first = await session.wait(1)
            asked = len(model.requests)
            repaired(disk)
            again = await session.wait(await session.send("again"))
            return refused.value.hint, first.reason, asked, again.reason, ran

    hint, first, asked, again, ran = run(story())
    assert hint
    assert (first, asked, again, ran) == ("failed", 0, "done", [1])


def test_an_intent_that_cannot_be_stored_keeps_the_effect_from_happening(state):
    """Intent, settled, effect: in this order or not at all."""

    async def story():
        disk, ran = WornDisk(), []

        def fill(request):
            full(disk)
            return call("change")

        async def change() -> str:
            ran.append(1)
            return "changed"

        async with make_engine(
            Scripted([fill, "ok"]), change, store=JsonlStore(state, disk=disk), mode="auto"
        ) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            before = list(ran)
            repaired(disk)
            again = await session.wait(await session.send("again"))
            return result.reason, type(result.error), before, again.text, ran

    assert run(story()) == ("failed", StoreFailed, [], "ok", [])


def letters_done(engine, session_id):
    """The prompts with their letters, and the letters that were refused."""
    sent = [(one.content, one.letter) for one in events(engine, session_id, PromptReceived)]
    traces = events(engine, session_id, TraceEvent)
    return sent, [one.detail for one in traces if one.kind == "letter_refused"]


async def stored(work):
    """Do it until it is stored: an attempt to write may have begun before the disk was repaired."""
    while True:
        try:
            return await work()
        except StoreFailed:
            await asyncio.sleep(0.01)


def test_a_letter_is_neither_lost_nor_refused_by_a_disk_that_is_full(state, monkeypatch):
    """It stays until its record is stored, and is done once: on resume, and while it is held."""
    monkeypatch.setattr(jsonl, "_POLL", 3600.0)  # the test itself says when letters are taken

    async def story():
        async with make_engine(["hello"], store=JsonlStore(state)) as engine:
            session = await engine.session()
            await session.wait(await session.send("hi"))
        JsonlStore(state).send_message(session.id, InboxMessage("a", "send", "bo", content="more"))
        disk = WornDisk()
        store = JsonlStore(state, disk=disk)
        async with make_engine(Scripted(["ok"], loop=True), store=store) as engine:
            full(disk)
            with pytest.raises(StoreFailed):
                await engine.session(session.id)
            repaired(disk)
            again = await engine.session(session.id)
            await again.wait(2)
            full(disk)
            more = InboxMessage("b", "send", "bo", content="and more")
            JsonlStore(state).send_message(session.id, more)
            with pytest.raises(StoreFailed):
                await again.check_inbox()
            repaired(disk)
            await stored(again.check_inbox)
            await again.wait(await again.send("last", when="queue"))
            left = list((store.path(session.id).parent / "inbox").glob("*.json"))
            return letters_done(engine, session.id), left

    (sent, refused), left = run(story())
    assert sent == [("hi", ""), ("more", "a"), ("and more", "b"), ("last", "")]
    assert (refused, left) == ([], [])
