"""Any beginning of any log is a proper tree of spans, and what is live equals what is read."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rig_spans import (
    TOOLS,
    Collected,
    answered,
    asked_for,
    check_tree,
    folded,
    random_replies,
    sent,
    tools_of,
    traced_engine,
)

from bridle.engine.trace import trace
from bridle.events import TurnEnded, TurnParked
from bridle.protocols.codec import to_record
from rig import run, seeds, until

LOGS = sorted((Path(__file__).parent.parent / "logs").glob("*.jsonl"))


def records_of(path):
    return [to_record(line) for line in path.read_bytes().splitlines()]


ASKING = (
    {"on_ask": "deny"},
    {"approver": lambda asked: _said(True)},
    {"approver": lambda asked: _said(False)},
    {"on_ask": "park"},
)


async def _said(yes):
    return yes


async def play(seed, collected):
    """A random session of a few turns: some asked, some refused, parked, interrupted."""
    luck = random.Random(seed)
    replies = [one for turn in range(4) for one in random_replies(seed * 7 + turn)]
    rest = ASKING[seed % len(ASKING)]
    async with traced_engine(replies, *TOOLS, collected=collected, **rest) as engine:
        session = await engine.session()
        for _ in range(2 + seed % 2):
            turn = await session.send("go")
            if luck.random() < 0.3:
                wanted = luck.randrange(4, 20) + session.seq
                await until(session, lambda event, at=wanted: _is_late(session, event, at))
                await session.interrupt()
            await session.wait(turn)
            while session.is_parked and luck.random() < 0.9:
                for one in list(session.history.pending.values()):
                    said = luck.random() < 0.5
                    await session.answer(one.call.id, said, shown=one.shown, by="ann")
                await session.wait(turn)
            if session.is_parked:
                break
    return list(engine.store.read(session.id))


def _is_late(session, event, at):
    return session.seq >= at or isinstance(event, TurnEnded | TurnParked)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_every_beginning_of_an_old_log_is_a_proper_tree(path):
    records = records_of(path)
    for end in range(len(records) + 1):
        check_tree(trace(records[:end]), records[:end])


@pytest.mark.parametrize("seed", seeds(200))
def test_every_beginning_of_a_session_is_a_proper_tree_with_each_call_once(seed):
    records = run(play(seed, Collected()))
    for end in range(len(records) + 1):
        some = records[:end]
        check_tree(trace(some), some)
        if some:
            over = [one.call_id for one in tools_of(trace(some)) if one.status != "open"]
            assert sorted(over) == sorted(answered(some))
    parked = isinstance(records[-1].event, TurnParked)  # then some of its calls have not begun
    wanted = answered(records) if parked else asked_for(records)
    assert sorted(one.call_id for one in tools_of(trace(records))) == sorted(wanted)


@pytest.mark.parametrize("seed", seeds(200))
def test_the_spans_that_are_sent_live_are_those_of_the_log(seed):
    collected = Collected()
    records = run(play(seed, collected))
    assert sent(collected.spans()) == folded(records)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_log_with_lines_lost_moved_and_a_jumping_clock_is_a_proper_tree(data):
    path = data.draw(st.sampled_from(LOGS))
    kept = data.draw(st.lists(st.sampled_from(records_of(path)), max_size=40))
    times = st.sampled_from(["", "never", "2026-01-31T10:30:02.000Z", "1980-01-01T00:00:00Z"])
    jumped = [
        replace(one, timestamp=data.draw(times)) if data.draw(st.booleans()) else one
        for one in kept
    ]
    root = trace(jumped)
    nodes = list(root.walk()) if root is not None else []
    for node in nodes:
        assert node.span.over
        for below in node.below:
            assert node.span.start <= below.span.start <= below.span.end <= node.span.end
