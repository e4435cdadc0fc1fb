"""The stream that comes out: recorded before told, no gap, no repeat, nobody loses another's."""

import asyncio
import random
from contextlib import aclosing

import pytest

from bridle.engine import stream
from bridle.engine.stream import Broadcast, DeltaBuffer
from bridle.events import TextDelta, ThinkingDelta, ToolCallArgsDelta, TraceEvent, TurnEnded
from bridle.protocols.store import Record
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import tool
from rig import call, make_engine, run, seeds, until


@tool(read_only=True)
async def look(n: int) -> str:
    """Look."""
    await asyncio.sleep(0)
    return "k" * n


def script(chance):
    """A few turns' worth of replies with text that streams and calls."""
    words = [" ".join("word" for _ in range(chance.randrange(1, 60))) for _ in range(6)]
    replies = [{"text": text, "pause": chance.choice([0.0, 0.0005])} for text in words]
    return [call("look", n=3), replies[0], replies[1], call("look", n=9), *replies[2:]]


async def watch(session, after, chance, stop):
    """What one watcher sees, from a number on, until the last turn has ended."""
    seen = []
    async with aclosing(session.subscribe(after)) as records:
        async for record in records:
            seen.append(record)
            if isinstance(record.event, TurnEnded) and record.event.turn == stop:
                return seen
            if chance.random() < 0.1:
                await asyncio.sleep(chance.random() / 500)
    raise AssertionError("the stream ended early")


@pytest.mark.parametrize("kind", ["disk", "memory"])
@pytest.mark.parametrize("seed", seeds(50))
def test_watchers_who_join_at_any_time_see_every_record_once(seed, kind, tmp_path):
    async def story():
        chance = random.Random(seed)
        store = JsonlStore(tmp_path) if kind == "disk" else MemoryStore()
        async with make_engine(Scripted(script(chance)), look, store=store) as engine:
            session = await engine.session()
            watchers = []

            async def join():
                await asyncio.sleep(chance.random() / 20)
                after = chance.randrange(0, max(1, session._log.seq))
                return after, await watch(session, after, chance, 4)

            watchers = [asyncio.create_task(join()) for _ in range(12)]
            turns = [await session.send("go", when="queue") for _ in range(4)]
            for turn in turns:
                await session.wait(turn)
            seen = await asyncio.gather(*watchers)
            return list(engine.store.read(session.id)), seen

    written, seen = run(story())
    assert [record.seq for record in written] == list(range(1, len(written) + 1))
    for after, records in seen:
        assert records == written[after : records[-1].seq]
        assert isinstance(records[-1].event, TurnEnded)


def test_what_is_told_is_in_the_file_already(tmp_path):
    """Recorded before told, byte for byte."""

    async def story():
        async with make_engine(["one two three"], store=JsonlStore(tmp_path)) as engine:
            session = await engine.session()
            turn = asyncio.create_task(session.send("go"))
            checked = 0
            async with aclosing(session.subscribe()) as records:
                async for record in records:
                    on_disk = [found.seq for found in engine.store.read(session.id)]
                    assert record.seq in on_disk
                    checked += 1
                    if isinstance(record.event, TurnEnded):
                        break
            await turn
            return checked

    assert run(story()) >= 6


def test_a_slow_watcher_gets_every_record_once_and_nobody_else_loses_anything(monkeypatch):
    monkeypatch.setattr(stream.Broadcast.join, "__defaults__", (20,))

    async def story():
        async with make_engine([{"text": "x " * 300, "chunk": 1, "pause": 0.0005}]) as engine:
            session = await engine.session()
            slow = session.subscribe()
            turn = await session.send("go")
            first = await anext(slow)
            last = await until(session, lambda event: isinstance(event, TurnEnded))
            await session.wait(turn)
            for number in range(50):  # more than a watcher has room for
                session.emit(TraceEvent("noise", number))
            seen = [first.seq]
            while seen[-1] < session.seq:
                seen.append((await anext(slow)).seq)
            session.emit(TraceEvent("news"))  # it is live again
            seen.append((await anext(slow)).seq)
            await slow.aclose()
            return seen, last, session.seq

    seen, last, newest = run(story())
    assert seen == list(range(1, newest + 1))
    assert last.event.reason == "done"


def test_closing_ends_every_subscription_also_one_that_comes_later(tmp_path):
    async def story():
        engine = make_engine(["ok"], store=JsonlStore(tmp_path))
        session = await engine.session()

        async def all_of_it():
            return [record.seq async for record in session.subscribe()]

        watching = asyncio.create_task(all_of_it())
        await session.wait(await session.send("go"))
        await engine.close()
        return await watching, await all_of_it()

    during, after = run(story())
    assert during == after == list(range(1, len(after) + 1))
    assert len(after) >= 6


def test_a_watcher_of_an_empty_session_waits_for_its_first_record(tmp_path):
    async def story():
        async with make_engine(["ok"], store=JsonlStore(tmp_path)) as engine:
            session = await engine.session()
            first = asyncio.create_task(until(session, lambda event: True))
            await asyncio.sleep(0)
            await session.send("go")
            return (await first).seq

    assert run(story()) == 1


def test_a_watcher_who_leaves_is_forgotten():
    async def story():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            async with aclosing(session.subscribe()) as records:
                await anext(records)
                during = session._log._on_written is not None
            return during, session._log._on_written

    assert run(story()) == (True, None)


def test_a_full_queue_takes_nothing_more_and_the_others_go_on():
    async def story():
        tower = Broadcast()
        small, large = tower.join(2), tower.join(10)
        records = [Record(n, "", TraceEvent("x", n)) for n in range(1, 6)]
        for record in records:
            tower.publish((record,))
        tower.end()
        return [r.seq async for r in small.records()], [r.seq async for r in large.records()]

    assert run(story()) == ([], [1, 2, 3, 4, 5])


def joined(pieces):
    """Hand deltas to the buffer in one go: what it recorded, and what came when it was closed."""

    async def story():
        seen = []
        deltas = DeltaBuffer(seen.append)
        for piece in pieces:
            deltas.add(piece)
        early = list(seen)
        deltas.close()
        return early, seen

    return run(story())


def test_what_comes_in_one_go_is_one_record():
    early, seen = joined([TextDelta(letter) for letter in "abcdef"])
    assert (early, seen) == ([], [TextDelta("abcdef")])


def test_pieces_of_different_kinds_and_calls_are_never_mixed():
    pieces = [ThinkingDelta("a"), ThinkingDelta("b"), TextDelta("c"), TextDelta("d")]
    pieces += [
        ToolCallArgsDelta("x", "1"),
        ToolCallArgsDelta("x", "2"),
        ToolCallArgsDelta("y", "3"),
    ]
    _, seen = joined(pieces)
    assert seen == [
        ThinkingDelta("ab"),
        TextDelta("cd"),
        ToolCallArgsDelta("x", "12"),
        ToolCallArgsDelta("y", "3"),
    ]


def test_a_fact_waits_behind_the_pieces_before_it():
    early, _ = joined([TextDelta("a"), TextDelta("b"), TextDelta("c"), TraceEvent("x")])
    assert early == [TextDelta("abc"), TraceEvent("x")]


def test_the_first_piece_goes_with_the_next_round_and_the_following_wait_for_the_clock():
    async def story():
        seen, done = [], asyncio.Event()

        def record(event):
            seen.append(event)
            if len(seen) == 2:
                done.set()

        deltas = DeltaBuffer(record)
        deltas.add(TextDelta("a"))
        await asyncio.sleep(0)
        first = list(seen)
        deltas.add(TextDelta("b"))
        deltas.add(TextDelta("c"))
        await asyncio.sleep(0)
        second = list(seen)
        await done.wait()
        deltas.close()
        return first, second, seen

    first, second, seen = run(story())
    assert first == second == [TextDelta("a")]
    assert seen == [TextDelta("a"), TextDelta("bc")]
