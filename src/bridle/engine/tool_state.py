"""What the tools of a session keep between calls, and how they emit events during a turn."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from bridle.events import ApprovalAnswered, Event, GrantRevoked, ModeChanged, PromptWithdrawn
from bridle.policy import Mode
from bridle.protocols.store import Log
from bridle.protocols.tool import CWD

log = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0  # for all close callbacks together
Closer = Callable[[], Awaitable[None]]
_USER_ONLY = frozenset({ApprovalAnswered, GrantRevoked, ModeChanged, PromptWithdrawn})


class ToolState:
    """One session's: a memory, the session's own folder, and callbacks to await when it closes."""

    __slots__ = ("_closers", "_folder", "_log", "memory", "mode")

    def __init__(self, log: Log, mode: Callable[[], Mode]) -> None:
        self.memory: dict[str, Any] = {}
        self.mode = mode
        self._log = log
        self._folder: str | None = None
        self._closers: list[Closer] = []

    @property
    def folder(self) -> str:
        """The session's own folder on disk; empty if its log is not kept in one."""
        if self._folder is None:
            path = getattr(self._log, "path", "")
            self._folder = str(path).rpartition("/")[0]
        return self._folder

    @property
    def cwd(self) -> str:
        """The shell's current folder; empty for the workspace's root."""
        cwd = self.memory.get(CWD, "")
        return cwd if isinstance(cwd, str) else ""

    def at_close(self, closer: Closer) -> None:
        """Await `closer` when the session is closed."""
        self._closers.append(closer)

    @property
    def is_empty(self) -> bool:
        """Is there nothing to await when the session is closed?"""
        return not self._closers

    @property
    def is_at_work(self) -> bool:
        """Does something still run that closing the session would end?

        A closer may be the method of an object that says so by its own `is_at_work`.
        """
        owners = (getattr(closer, "__self__", None) for closer in self._closers)
        return any(getattr(owner, "is_at_work", False) for owner in owners)

    async def close(self) -> None:
        """Await all close callbacks at once. Those that fail or hang are logged and left."""
        closers, self._closers = self._closers, []
        if not closers:
            return
        tasks = [asyncio.ensure_future(_run_closer(closer)) for closer in closers]
        _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
        if late:
            log.warning(
                "some tools of the session were still running %g seconds after it was closed",
                CLOSE_SECONDS,
            )
            await asyncio.wait(late, timeout=CLOSE_SECONDS)


async def _run_closer(closer: Closer) -> None:
    try:
        await closer()
    except Exception:  # a tool's own code: the session is closed all the same
        log.warning("a tool of the session could not be closed", exc_info=True)


class ToolEmitter:
    """Emits a turn's events from any thread, until `close`.

    Tools may not emit what only a person does (answers, mode changes), except through
    `emit_unrestricted`, which is for tools that ask a person.
    """

    __slots__ = ("_emit", "_loop", "_open", "_thread")

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._open = True

    def __call__(self, event: Event) -> None:
        if type(event) in _USER_ONLY:
            log.warning("a tool may not emit %s: only a person does that", type(event).__name__)
        else:
            self.emit_unrestricted(event)

    def emit_unrestricted(self, event: Event) -> None:
        """Emit any event: for tools that ask a person, and pass on the answer."""
        if threading.get_ident() == self._thread:
            self._emit_if_open(event)
        elif self._open:
            self._loop.call_soon_threadsafe(self._emit_if_open, event)

    def close(self) -> None:
        """Ignore what tools emit from here on: the turn is over."""
        self._open = False

    def _emit_if_open(self, event: Event) -> None:
        if self._open:
            self._emit(event)
