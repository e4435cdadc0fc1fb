"""What is to be done once is done, also on a machine that stood still for longer than that."""

import time

from textual.timer import Timer

from bridle.tui.timers import call_later
from rig import run
from tui.rig import own_house
from tui.screen_rig import app_at, say, shows, until


def test_what_is_due_while_the_machine_stands_still_is_done_when_it_goes_on(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            done = []
            call_later(0.001, pilot.app.main, lambda: done.append("it"))
            time.sleep(0.05)  # noqa: ASYNC251 - nothing goes on meanwhile
            await until(pilot, lambda: done)
            assert done == ["it"]

    run(story())


def test_what_is_taken_back_is_not_done(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, {"text": "x"})) as pilot:
            done = []
            call_later(0.001, pilot.app.main, lambda: done.append("first")).cancel()
            call_later(0.002, pilot.app.main, lambda: done.append("second"))
            await until(pilot, lambda: done)
            assert done == ["second"]

    run(story())


def test_frames_come_also_where_every_timer_of_textual_for_one_time_is_lost(tmp_path, monkeypatch):
    """S8: one that waits a millisecond is, when a machine stands still for two."""
    ticks = Timer._tick

    async def lost(self, **rest):
        if self._repeat != 0:
            await ticks(self, **rest)

    monkeypatch.setattr(Timer, "_tick", lost)

    async def story():
        async with app_at(own_house(tmp_path, {"text": "Hello there."})) as pilot:
            await say(pilot, "hi")
            await shows(pilot, "Hello there.")

    run(story())
