"""What the tools of a session have beside their arguments, for as long as it is open.

A memory, the session's own folder, and a list of what has to be ended with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from bridle.policy import Mode
from bridle.promises.store import Log
from bridle.promises.tool import CWD

log = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds that all of it has to end
Closer = Callable[[], Awaitable[None]]


class Belongings:
    """One session's; made with it, and ended with it."""

    __slots__ = ("_closers", "_folder", "_log", "memory", "mode")

    def __init__(self, held: Log, mode: Callable[[], Mode]) -> None:
        self.memory: dict[str, Any] = {}
        self.mode = mode
        self._log = held
        self._folder: str | None = None
        self._closers: list[Closer] | None = None

    @property
    def folder(self) -> str:
        """The session's own folder on disk; empty where its log lies nowhere."""
        if self._folder is None:
            path = getattr(self._log, "path", "")
            self._folder = str(path).rpartition("/")[0]
        return self._folder

    @property
    def cwd(self) -> str:
        """Where the shell stands; empty: in the root."""
        found = self.memory.get(CWD, "")
        return found if isinstance(found, str) else ""

    def at_close(self, closer: Closer) -> None:
        """Have this awaited when the session is closed."""
        if self._closers is None:
            self._closers = []
        self._closers.append(closer)

    @property
    def is_empty(self) -> bool:
        """Is there nothing to end?"""
        return not self._closers

    @property
    def is_at_work(self) -> bool:
        """Does something run that would be ended? Whose method a closer is may say so."""
        owners = (getattr(closer, "__self__", None) for closer in self._closers or ())
        return any(getattr(owner, "is_at_work", False) for owner in owners)

    async def end(self) -> None:
        """End what was handed in, all at once; what fails or hangs is left to itself."""
        closers, self._closers = self._closers or [], None
        if not closers:
            return
        tasks = [asyncio.ensure_future(_ended(closer)) for closer in closers]
        _, late = await asyncio.wait(tasks, timeout=PATIENCE)
        for task in late:
            task.cancel()
        if late:
            log.warning("what tools had left running did not end within %g seconds", PATIENCE)
            await asyncio.wait(late, timeout=PATIENCE)


async def _ended(closer: Closer) -> None:
    try:
        await closer()
    except Exception:  # a tool's own: the session is closed all the same
        log.warning("what a tool had left running could not be ended", exc_info=True)
