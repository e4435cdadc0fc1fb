"""Interrupts in awkward moments: none is lost, none hits another turn, and each comes to its end.

Who gives up waiting for one takes nothing back.
"""

import asyncio

import pytest

from bridle.engine import turn_runner
from bridle.errors import SessionBusy
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    Compacted,
    ResponseCompleted,
    TraceEvent,
)
from bridle.messages import Message, Text
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.store import InboxMessage
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from rig import Thing, call, endings, events, make_engine, results, run, until

NOT_RUN = "not run: the turn ended before it began"


class Slow(MemoryStore):
    """A store that takes its time: while it is shut, nothing is settled."""

    def __init__(self):
        super().__init__()
        self.open, self.reached = asyncio.Event(), asyncio.Event()
        self.open.set()

    def create(self, session_id):
        log = super().create(session_id)
        log.settled = self._settled
        return log

    async def _settled(self):
        if not self.open.is_set():
            self.reached.set()
            await self.open.wait()


async def _write(arguments, context):
    return "written"


WRITES = Thing(_write, read_only=False)


def begun(event):
    return isinstance(event, CallIntended)


def traced(kind):
    return lambda event: isinstance(event, TraceEvent) and event.kind == kind


def shutting(store, reply):
    """A model that says this, and from then on the store takes its time."""

    def answer(request):
        store.open.clear()
        return reply

    return answer


def test_a_tool_is_given_up_also_when_who_interrupted_has_gone(monkeypatch):
    monkeypatch.setattr(turn_runner, "INTERRUPT_SECONDS", 0.05)

    async def story():
        store, release = Slow(), asyncio.Event()

        async def deaf(arguments, context):
            store.open.clear()
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        async with make_engine([call("thing"), "ok"], Thing(deaf), store=store) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, begun)
            interrupting = asyncio.create_task(session.interrupt())
            await store.reached.wait()
            interrupting.cancel()
            await asyncio.wait([interrupting])
            store.open.set()
            result = await session.wait(turn)
            again = await session.wait(await session.send("more"))
            release.set()
            await asyncio.sleep(0)  # the tool hears it, and its task ends
            return result.reason, again.text, endings(engine, session.id)

    assert run(story()) == ("interrupted", "ok", ["interrupted", "done"])


@pytest.mark.parametrize("answered", [False, True])
def test_an_interrupt_ends_a_turn_that_is_just_being_parked(answered):
    """Also where its answer comes in the same moment."""

    async def story():
        store, ran = Slow(), []

        async def write(arguments, context):
            ran.append(arguments)

        model = Scripted([shutting(store, call("thing")), "never", "never"])
        tool = Thing(write, read_only=False)
        async with make_engine(model, tool, store=store, on_ask="park") as engine:
            session = await engine.session()
            await session.send("go")
            await store.reached.wait()  # it is parked in the log, and not yet on disk
            interrupting = asyncio.create_task(session.interrupt())
            await asyncio.sleep(0)
            (asked,) = session.history.pending.values()
            saying = asyncio.create_task(
                session.answer(asked.call.id, True, shown=asked.shown, by="bo")
                if answered
                else asyncio.sleep(0)
            )
            await asyncio.sleep(0)
            store.open.set()
            await asyncio.gather(interrupting, saying)
            state = session.is_parked, session.is_busy
            return state, endings(engine, session.id), results(engine, session.id), ran

    found = run(story())
    assert found == ((False, False), ["interrupted"], [("call_1", NOT_RUN, True)], [])


def test_an_interrupt_before_a_close_ends_the_turn_and_does_not_park_it():
    async def story():
        async with make_engine([call("thing")], WRITES, on_ask="wait") as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: isinstance(event, ApprovalAsked))
            interrupting = asyncio.create_task(session.interrupt(by="bo"))
            await asyncio.sleep(0)
            await session.close()
            await interrupting
            return (await session.wait(turn)).reason, endings(engine, session.id)

    assert run(story()) == ("interrupted", ["interrupted"])


async def _two_turns(engine, release, cancels):
    """A run, and somebody else's prompt in line behind it; `cancels` is told of the run."""
    session = await engine.session()
    running = asyncio.create_task(engine.run("mine", session=session))
    await asyncio.sleep(0)
    cancelling = asyncio.create_task(cancels(session, running))
    other = await session.send("other", when="queue")
    release.set()
    result = await session.wait(other)
    await asyncio.wait([running, cancelling])
    return result.reason, endings(engine, session.id), running.cancelled()


def test_a_run_that_is_cancelled_after_its_own_turn_ends_nobody_elses(state):
    async def story():
        release = asyncio.Event()

        async def hold(arguments, context):
            await release.wait()

        async def cancels(session, running):
            await session.wait(1)  # it waits before the run does, and is told first
            running.cancel()

        script = [call("thing"), "one", "two"]
        async with make_engine(script, Thing(hold), store=JsonlStore(state)) as engine:
            return await _two_turns(engine, release, cancels)

    assert run(story()) == ("done", ["done", "done"], True)


def test_a_run_that_is_cancelled_as_its_turn_ends_closes_its_session():
    async def story():
        store = Slow()
        async with make_engine([shutting(store, "one")], store=store) as engine:
            running = asyncio.create_task(engine.run("go"))
            await store.reached.wait()
            running.cancel()
            await asyncio.sleep(0)
            store.open.set()
            await asyncio.wait([running])
            return running.cancelled(), engine.summaries()

    assert run(story()) == (True, [])


def test_an_interrupt_that_names_its_turn_ends_no_other():
    async def story():
        release = asyncio.Event()

        async def hold(arguments, context):
            await release.wait()

        async with make_engine([call("thing"), "one"], Thing(hold)) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, begun)
            await session.interrupt(turn=turn + 1)
            release.set()
            return (await session.wait(turn)).text, events(engine, session.id, TraceEvent)

    assert run(story()) == ("one", [])


def test_an_interrupt_by_letter_that_found_nothing_to_stop_stops_nothing_later(state):
    """Its file may come back after a loss of power: the log knows that it is done."""

    async def story():
        store, letter = JsonlStore(state), InboxMessage("i", "interrupt", "bo")
        script = ["one", call("thing")]
        async with make_engine(script, WRITES, store=store, on_ask="park") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            store.send_message(session.id, letter)
            await session.check_inbox()
            await session.wait(await session.send("more"))
        store = JsonlStore(state)
        store.send_message(session.id, letter)
        async with make_engine([], WRITES, store=store, on_ask="park") as engine:
            again = await engine.session(session.id)
            return again.is_parked, endings(engine, session.id)

    assert run(story()) == (True, ["done"])


def test_a_second_interrupt_by_letter_is_known_as_done_too(state):
    """The first has stopped the turn already, and the second is not left without a trace."""

    async def story():
        release = asyncio.Event()

        async def linger(arguments, context):
            try:
                await asyncio.Event().wait()
            finally:
                await release.wait()

        store = JsonlStore(state)
        async with make_engine([call("thing")], Thing(linger), store=store) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, begun)
            first = asyncio.create_task(session.interrupt())
            await until(session, traced("interrupt"))
            store.send_message(session.id, InboxMessage("i", "interrupt", "bo"))
            taking = asyncio.create_task(session.check_inbox())
            await asyncio.sleep(0)
            release.set()
            await asyncio.gather(first, taking)
            await until(session, lambda event: "i" in session.history.inbox_ids)
            return dict(session.history.inbox_ids), endings(engine, session.id)

    assert run(story()) == ({"i": None}, ["interrupted"])


class Summing:
    """A model with a small window that, from a moment on, thinks for ever."""

    info = ProviderInfo("summing", "m", context_window=3000, max_output=100)

    def __init__(self):
        self.thinks, self.asked, self.release = False, asyncio.Event(), asyncio.Event()

    async def stream(self, request):
        if self.thinks:
            self.asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                await self.release.wait()
        yield ResponseCompleted("complete", Message("assistant", (Text("ok " * 200),)))

    async def close(self):
        pass


async def _shortening(engine, model):
    """A session whose conversation is being shortened, and who waits for that."""
    session = await engine.session()
    for _ in range(3):
        await session.wait(await session.send("x" * 900))
    model.thinks = True
    compacting = asyncio.create_task(session.compact())
    await model.asked.wait()
    return session, compacting


def test_a_close_ends_a_shortening_and_what_waits_behind_it():
    async def story():
        model = Summing()
        model.release.set()
        async with make_engine(model) as engine:
            session, compacting = await _shortening(engine, model)
            later = await session.send("later", when="queue")
            hearing = asyncio.create_task(session.wait(later))
            with pytest.raises(SessionBusy) as busy:
                await session.send("now")
            await session.close()
            ends = await compacting, (await hearing).reason
            return busy.value.message, session.id, ends, events(engine, session.id, Compacted)

    words, found, ends, shortened = run(story())
    assert words == f"session {found} is busy"
    assert (ends, shortened) == ((False, "interrupted"), [])


def test_a_shortening_that_was_given_up_twice_leaves_an_idle_session():
    async def story():
        model = Summing()
        async with make_engine(model) as engine:
            session, compacting = await _shortening(engine, model)
            later = await session.send("later", when="queue")
            for _ in range(2):
                compacting.cancel()
                await asyncio.sleep(0)
            await asyncio.wait([compacting])
            model.thinks = False
            model.release.set()
            return (await session.wait(later)).reason, session.is_busy

    assert run(story()) == ("done", False)


def test_a_shortening_begins_no_turn_that_nobody_asked_for(state):
    """A prompt that was left behind waits for who goes on, or for the next prompt."""

    async def story():
        async with make_engine([{"delay": 60.0}], store=JsonlStore(state)) as engine:
            session = await engine.session()
            await session.send("one")
            await session.send("two", when="queue")
        async with make_engine([], store=JsonlStore(state)) as engine:
            again = await engine.session(session.id)
            gained = await again.compact()
            left = [prompt.content for prompt in again.history.waiting.values()]
            return gained, again.is_busy, left, endings(engine, session.id)

    assert run(story()) == (False, False, ["two"], ["interrupted"])
