"""What a server says while a call runs, as output for a person. Bounded, and not too often."""

import time
from typing import Any

from bridle.protocols.tool import ToolContext
from bridle.workspace.text import one_line

_MOST = 500  # lines of one call
_EVERY = 0.1  # seconds between two of them


class Progress:
    """Hears how far a call is, and says so, each line once, and that all is done in any case."""

    def __init__(self, context: ToolContext[Any]) -> None:
        self._context = context
        self._said = ""
        self._at = 0.0
        self._left = _MOST
        self._whole = False  # was it said that all is done?

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        """One notice, as the SDK hands it on."""
        now = time.monotonic()
        words = _words(progress, total, message)
        last = bool(total) and progress >= (total or 0) and not self._whole
        too_soon = now - self._at < _EVERY and not last
        if self._left <= 0 or words == self._said or too_soon:
            return
        self._said, self._at = words, now
        self._whole = self._whole or last
        self._left -= 1
        self._context.say(f"{words}\n")


def _words(progress: float, total: float | None, message: str | None) -> str:
    how_far = f"{progress:g}/{total:g}" if total else f"{progress:g}"
    return f"{how_far} {one_line(message, 200)}" if message else how_far
