"""Questions and dialogs in windows without room, and windows that change all the time (S8)."""

import asyncio

import pytest

from rig import run
from tui.rig import call, own_house
from tui.screen_rig import app_at, say, seen, shows, until

COMMAND = "\n".join(f"echo line {number}" for number in range(30)) + "\ntouch LAST"


async def asked(pilot):
    await say(pilot, "go", wait=False)
    await until(pilot, lambda: pilot.app.main.approvals.panel.is_open)


def test_a_question_in_a_window_without_room_costs_no_time(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, call("shell", command="touch a"))) as pilot:
            await asked(pilot)
            panel, tries = pilot.app.main.approvals.panel, []
            await until(pilot, lambda: panel.is_armed)
            await pilot.resize_terminal(10, 3)
            drawn = panel._after_drawing
            panel._after_drawing = lambda *given: (tries.append(given), drawn(*given))
            panel.draw()  # as a new question would
            for _ in range(30):
                await pilot.pause(0.01)
            assert len(tries) < 20
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: panel.is_armed)
            await shows(pilot, "touch a")

    run(story())


@pytest.mark.parametrize("size", [(24, 7), (40, 10)])
def test_a_yes_counts_only_once_the_end_was_really_on_the_screen(tmp_path, size):
    async def story():
        house = own_house(tmp_path, call("shell", command=COMMAND), "done")
        async with app_at(house, size) as pilot:
            await asked(pilot)
            panel = pilot.app.main.approvals.panel
            panel._guard._quiet = 0.0
            await until(pilot, lambda: panel.is_armed)
            for _ in range(100):
                if panel.sheet.seen:
                    break
                await pilot.press("down")
                await pilot.pause()
            assert panel.sheet.seen
            last = panel.sheet._lines[-1].text.strip()
            assert last[:10] in seen(pilot), seen(pilot)

    run(story())


def test_a_storm_of_sizes_leaves_question_dialog_and_composer_in_place(tmp_path):
    sizes = [(80, 24), (1, 1), (200, 60), (24, 7), (3, 50), (120, 2), (60, 20), (20, 5)]

    async def story():
        house = own_house(tmp_path, call("shell", command=COMMAND), "done")
        async with app_at(house) as pilot:
            await asked(pilot)
            for width, height in sizes:
                await pilot.resize_terminal(width, height)
                await pilot.press("f1")
                await pilot.press("escape")
            await pilot.resize_terminal(80, 24)
            await shows(pilot, "Run this command?")
            assert pilot.app.failure is None

    run(asyncio.wait_for(story(), 50))
