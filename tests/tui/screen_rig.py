"""The whole screen in a test: a real house with a scripted model, keys, and what is seen."""

from contextlib import asynccontextmanager
from time import monotonic

from bridle.tui.app import BridleApp

PATIENCE = 240.0  # seconds until a test that waits in vain gives up


@asynccontextmanager
async def app_at(house, size=(80, 24), theme=""):
    """The screen on this house, opened; left at the end. Gives the pilot."""
    app = BridleApp(lambda: house, theme=theme)
    try:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.main.is_ready or app.failure)
            yield pilot
    finally:
        if app.backend is not None:
            await app.backend.leave()


async def until(pilot, condition):
    """Wait until it holds, and what changed is drawn."""
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end, f"it never came:\n{seen(pilot)}"
        await pilot.pause(0.01)
    await drawn(pilot)


async def drawn(pilot, tries=50):
    """Wait until no frame is due; one that streams has one due at any time."""
    await pilot.pause()
    main = getattr(pilot.app, "main", None)
    while main is not None and main._drawing is not None and (tries := tries - 1):
        await pilot.pause(0.01)
    await pilot.pause()


async def say(pilot, text, *, wait=True):
    """Type a prompt and send it; wait for the turn's end."""
    before = state(pilot).turn
    pilot.app.main.composer.load(text)
    await pilot.press("enter")
    if wait:
        await until(pilot, lambda: state(pilot).turn > before and not state(pilot).busy)


def state(pilot):
    """What the screen knows of the session."""
    return pilot.app.main.conversation.fold.state


def blocks(pilot):
    """What the conversation is made of."""
    return pilot.app.main.conversation.fold.blocks


def seen(pilot):
    """The lines on the screen, as text."""
    screen = pilot.app.screen
    width, height = screen.size
    lines = screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip()[:width] for strip in lines[:height])


async def shows(pilot, words):
    """Wait until these words are on the screen."""
    await until(pilot, lambda: words in seen(pilot))
