"""For tests of commands and dialogs: a whole screen, a typed line, keys that a dialog believes."""

from time import monotonic

from textual import events

from rig import run
from tui.rig import own_house
from tui.screen_rig import app_at, until


def play(tmp_path, story, *replies, size=(100, 30), **flags):
    """Tell a story on the whole screen."""

    async def whole():
        async with app_at(own_house(tmp_path, *replies, **flags), size) as pilot:
            await story(pilot, pilot.app.backend)

    run(whole())


async def obey(pilot, line):
    """Type a command and press Enter."""
    pilot.app.main.composer.load(line)
    await pilot.press("enter")


async def press(pilot, key):
    """A key that the guard of a dialog believes: pressed a while after it was drawn."""
    await until(pilot, lambda: pilot.app.screen.guard.is_drawn)
    event = events.Key(key, key if len(key) == 1 else None)
    event.time = monotonic() + 1
    pilot.app.post_message(event)
    await pilot.pause()


async def opens(pilot, kind):
    """Until a screen of that kind is there; the screen."""
    await until(pilot, lambda: isinstance(pilot.app.screen, kind))
    return pilot.app.screen


async def closes(pilot):
    """Until the conversation is there again."""
    await until(pilot, lambda: pilot.app.screen is pilot.app.main)
