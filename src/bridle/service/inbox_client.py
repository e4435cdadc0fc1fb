"""Verbs for a session that another process holds: a letter, and what its log then says of it.

Whoever holds the session takes the letter. Should they let go meanwhile, it is taken up here. What
the verbs mean is not known here.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from bridle.errors import AgentError, SessionError
from bridle.events import InboxMessageRefused
from bridle.protocols.session_errors import Unavailable
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.inbox_sender import send_message
from bridle.service.open_sessions import OpenSessions
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.locks import describe_process, owner_pid
from bridle.stores.reader import LogReader

_TICK = 0.05  # seconds between two looks at the log
_LOOK = 10  # ticks between two looks at who holds it
T = TypeVar("T")


class MessageRefused(SessionError):
    """Who holds the session has refused a letter."""


class InboxClient:
    """Puts letters, and waits a while for what comes of them."""

    def __init__(self, ground: WorkspaceScope, holding: OpenSessions, patience: float) -> None:
        self._ground = ground
        self._holding = holding
        self._patience = patience

    async def elsewhere(self, session_id: str) -> bool:
        """Does another process hold it? Raise `UnknownSession`, also where it is foreign."""
        if self._holding.get_open(session_id) is not None:
            return False
        await asyncio.to_thread(self._ground.known, session_id)
        if self._holding.get_open(session_id) is not None:  # meanwhile
            return False
        pid = await asyncio.to_thread(owner_pid, self._ground.folder.path(session_id))
        return pid not in (None, os.getpid())

    async def post(
        self,
        session_id: str,
        letter: InboxMessage,
        outcome: Callable[[Record], T | None],
        *,
        again: bool = False,
    ) -> T:
        """What `outcome` finds in the log once the letter was done. `again`: it lies there already.

        Raise `MessageRefused` where it was refused, `Unavailable` where nothing was seen in time.
        """
        self._holding.check_taking()
        folder = self._ground.folder
        reader = await asyncio.to_thread(folder.reader, session_id, None)
        try:
            if not again:
                await asyncio.to_thread(send_message, folder, session_id, letter)
            return await self._outcome(session_id, letter.id, reader, outcome)
        finally:
            reader.close()

    async def _outcome(
        self, session_id: str, letter: str, reader: LogReader, outcome: Callable[[Record], T | None]
    ) -> T:
        for tick in range(int(self._patience / _TICK)):
            for record in await asyncio.to_thread(reader.read_new):
                _check(record, letter)
                if (found := outcome(record)) is not None:
                    return found
            if tick % _LOOK == _LOOK - 1:
                await self._take_over(session_id)
            await asyncio.sleep(_TICK)
        pid = await asyncio.to_thread(owner_pid, self._ground.folder.path(session_id))
        raise Unavailable(
            f"it was handed to {describe_process(pid or 0)}, "
            "which holds the session and has not taken it yet",
            hint="It is kept, and taken as soon as that process looks. Nothing has to be repeated.",
            more={"posted": True},
        )

    async def _take_over(self, session_id: str) -> None:
        """Where nobody holds the session any more it is taken up, which does its letters."""
        if not await self.elsewhere(session_id):
            with suppress(AgentError):
                async with self._holding.use(session_id) as session:
                    await session.check_inbox()


def _check(record: Record, letter: str) -> None:
    event = record.event
    if isinstance(event, InboxMessageRefused) and event.letter == letter:
        raise MessageRefused(event.message or "it was refused")
