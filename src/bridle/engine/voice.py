"""How the tools of a turn speak: from any thread, and only as long as the turn runs.

What only a person says, a tool cannot say; one that has asked a person can pass on what they said.
"""

import asyncio
import logging
import threading
from collections.abc import Callable

from bridle.events import ApprovalAnswered, Event, GrantRevoked, ModeChanged, PromptWithdrawn

log = logging.getLogger(__name__)
_PERSONAL = frozenset({ApprovalAnswered, GrantRevoked, ModeChanged, PromptWithdrawn})


class Voice:
    """Says events where the turn says them; after `close` nothing is heard any more."""

    __slots__ = ("_emit", "_home", "_loop", "_open")

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._home = threading.get_ident()
        self._open = True

    def __call__(self, event: Event) -> None:
        if type(event) in _PERSONAL:
            log.warning("a tool cannot say %s: that is a person's to say", type(event).__name__)
        else:
            self.of_a_person(event)

    def of_a_person(self, event: Event) -> None:
        """For a tool that has asked a person: what they said, too."""
        if threading.get_ident() == self._home:
            self._say(event)
        elif self._open:
            self._loop.call_soon_threadsafe(self._say, event)

    def close(self) -> None:
        """The turn is over."""
        self._open = False

    def _say(self, event: Event) -> None:
        if self._open:
            self._emit(event)
