"""Runs the screen: opens it, hears the signals, settles the house, says how to go on.

The house is made in a thread, after the first picture; it is left when the screen is gone.
"""

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from bridle.cli.failure import DONE, INTERRUPTED, report
from bridle.cli.turn import ENDING, on_signals

if TYPE_CHECKING:
    from bridle.tui.house import House


def talk(flags: dict[str, Any]) -> int:
    """The whole of it; the exit code."""
    return asyncio.run(_talk(flags))


async def _talk(flags: dict[str, Any]) -> int:
    from bridle.tui.app import BridleApp

    app = BridleApp(lambda: _house(flags), theme=flags.get("theme") or "")
    code = DONE
    try:
        with on_signals(app.send_away, *ENDING):
            code = await app.run_async() or DONE
    finally:
        house = app.house
        if house is not None:
            await house.leave()
            tell_resuming(house)
    if app.failure is not None:
        return report(app.failure)
    return INTERRUPTED if code == INTERRUPTED else code


def _house(flags: dict[str, Any]) -> "House":
    from bridle.cli.house_here import OwnHouse
    from bridle.cli.setup import Setup

    return OwnHouse(Setup(flags), flags, told=[])


def tell_resuming(house: "House") -> None:
    """How to go on with the session that was left."""
    if house.is_begun:
        print(f"To go on: bridle --resume {house.session.id}", file=sys.stderr)  # noqa: T201
