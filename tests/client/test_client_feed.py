"""A broken stream is taken up again: no gap, no repeat, and what was lost is unlearned (A12)."""

import random

import pytest
from stream_rig import first, followed, frames, line, read, story

from bridle.client import stream_feed as feed_module
from bridle.events import PromptReceived, TextDelta, TraceEvent, TurnEnded
from rig import run, seeds


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(feed_module, "DELAYS", (0.0,))


@pytest.mark.parametrize("seed", seeds(100))
def test_a_stream_cut_at_any_byte_is_whole_in_the_end(seed):
    """(A12)"""
    dice = random.Random(seed)
    lines = story(dice.randint(4, 20))

    def play(after):
        settled = dice.randint(after, len(lines))
        whole = frames(lines, after, settled)
        return whole[: dice.randint(0, len(whole))] if dice.random() < 0.8 else whole

    async def work():
        async with followed(play) as (feed, stage):
            found = await first(feed, len(lines))
            assert found == read(lines)
            assert (feed.seq, feed.history.turn) == (len(lines), 1)
            assert feed.turns.results[1].reason == "done"
            assert stage.asked == sorted(stage.asked)

    run(work())


def test_it_comes_back_with_the_newest_record_that_would_survive_the_server():
    """(A12) What has no id was not settled, and is asked for again; nobody sees it twice."""
    lines = story(6)
    plays = [frames(lines[:4], 0, 2), frames(lines, 2, 6)]

    async def work():
        async with followed(lambda after: plays.pop(0) if plays else b"") as (feed, stage):
            assert await first(feed, 6) == read(lines)
            assert stage.asked[:2] == [0, 2]

    run(work())


def test_what_the_server_lost_is_unlearned_and_told_anew():
    """(A12) Killed with -9, it has another record 3 than the one that was seen."""
    before = story(4)
    after = [
        *before[:2],
        line(3, TextDelta("another "), "2026-01-01T00:00:09Z"),
        line(4, TurnEnded(1, "interrupted"), "2026-01-01T00:00:09Z"),
    ]
    plays = [frames(before, 0, 2), frames(after, 2, 4), frames(after, 0, 4)]
    told = []

    async def work():
        async with followed(lambda at: plays.pop(0) if plays else b"", told.append) as (feed, _):
            found = await first(feed, 7)
            await feed.until(lambda: feed.seq == 4)
            assert found[:4] == read(before)
            assert found[4].event == TraceEvent("resync", {"after": 2})
            assert found[5:] == read(after)[2:]
            assert feed.turns.results[1].reason == "interrupted"

    run(work())
    assert any("lost" in text for text in told)


def test_a_resync_of_one_who_was_slow_repeats_nothing():
    lines = story(5)
    slow = frames(lines[:3], 0, 3) + b'event: resync\ndata: {"after":3}\n\n'
    plays = [slow, frames(lines, 3, 5)]

    async def work():
        async with followed(lambda after: plays.pop(0) if plays else b"") as (feed, stage):
            assert await first(feed, 5) == read(lines)
            assert stage.asked[:2] == [0, 3]

    run(work())


def test_a_stop_and_the_way_back_are_told():
    lines = story(4)
    stopping = frames(lines[:2], 0, 2) + b"event: stopping\ndata: {}\n\n"
    plays = [stopping, frames(lines, 2, 4)]
    told = []

    async def work():
        async with followed(lambda at: plays.pop(0) if plays else b"", told.append) as (feed, _):
            await first(feed, 4)

    run(work())
    assert told[:2] == ["the server is stopping; trying again", "connected again"]


def test_several_watch_one_stream_each_from_its_own_place():
    lines = story(8)

    async def work():
        async with followed(lambda after: frames(lines, after, 8)) as (feed, _):
            assert await first(feed, 8) == read(lines)
            assert await first(feed, 3, after=5) == read(lines)[5:]
            assert feed.history.title == "hi"

    run(work())


def test_a_prompt_that_waits_makes_it_busy_before_the_turn_begins():
    lines = [line(1, PromptReceived("hi", 1))]

    async def work():
        async with followed(lambda after: frames(lines, after, 1)) as (feed, _):
            await first(feed, 1)
            assert list(feed.history.waiting) == [1]

    run(work())
