"""The end of a command's time, come as soon as it has said something: nobody waits, nobody is late.

The clock of the event loop is put forward. What has come until then does not depend on how busy
the machine is.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from bridle.events import Event, ToolOutputDelta

TIME = 60  # seconds that a command has; none of them is waited for


def out_of_time(enough: Callable[[str], object]) -> Callable[[Event], None]:
    """What hears a command: its time is over once it has said enough."""
    said: list[str] = []

    def hear(event: Event) -> None:
        assert isinstance(event, ToolOutputDelta)
        said.append(event.text)
        if enough("".join(said)):
            said.clear()
            loop: Any = asyncio.get_running_loop()
            passed = loop.time
            loop.time = lambda: passed() + TIME

    return hear
