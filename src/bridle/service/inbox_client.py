"""Send commands to the process that owns a session, and find their outcome in its log.

If the owner ends meanwhile, the session is opened here, which handles the messages in its inbox.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from bridle.errors import AgentError, SessionError
from bridle.events import InboxMessageRefused
from bridle.protocols.session_catalog import LogReader
from bridle.protocols.session_errors import Unavailable
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.inbox_sender import without_secrets
from bridle.service.open_sessions import OpenSessions
from bridle.service.workspace_scope import WorkspaceScope

_TICK = 0.05  # seconds between two looks at the log
_TICKS_PER_OWNER = 10  # ticks between two looks at who owns it
T = TypeVar("T")


class MessageRefused(SessionError):
    """The owner of the session has refused a message."""


class InboxClient:
    """Sends messages to owners, and waits up to `timeout` seconds for what comes of each."""

    def __init__(self, scope: WorkspaceScope, sessions: OpenSessions, timeout: float) -> None:
        self._scope = scope
        self._sessions = sessions
        self._timeout = timeout

    async def is_needed(self, session_id: str) -> bool:
        """Whether another process owns the session. Raise `UnknownSession`, also if not allowed."""
        if self._sessions.get_open(session_id) is not None:
            return False
        await asyncio.to_thread(self._scope.session, session_id)
        if self._sessions.get_open(session_id) is not None:  # it was opened meanwhile
            return False
        owner = await asyncio.to_thread(self._scope.catalog.owner, session_id)
        return owner is not None and not owner.is_self

    async def send(
        self,
        session_id: str,
        message: InboxMessage,
        outcome: Callable[[Record], T | None],
        *,
        is_sent: bool = False,
    ) -> T:
        """Return what `outcome` finds in the log once the message was handled.

        `is_sent`: it is in the inbox already. Raise `MessageRefused`, or `Unavailable` if nothing
        was found in time.
        """
        self._sessions.check_running()
        catalog = self._scope.catalog
        reader = await asyncio.to_thread(catalog.reader, session_id, None)
        try:
            if not is_sent:
                safe = await asyncio.to_thread(without_secrets, message)
                await asyncio.to_thread(catalog.send, session_id, safe)
            return await self._outcome(session_id, message.id, reader, outcome)
        finally:
            reader.close()

    async def _outcome(
        self,
        session_id: str,
        message_id: str,
        reader: LogReader,
        outcome: Callable[[Record], T | None],
    ) -> T:
        for tick in range(1, int(self._timeout / _TICK) + 1):
            for record in await asyncio.to_thread(reader.read_new):
                _check(record, message_id)
                if (found := outcome(record)) is not None:
                    return found
            if tick % _TICKS_PER_OWNER == 0:
                await self._take_over(session_id)
            await asyncio.sleep(_TICK)
        owner = await asyncio.to_thread(self._scope.catalog.owner, session_id)
        raise Unavailable(
            f"it was sent to {owner.description if owner else 'another process'}, "
            "which owns the session and has not handled it yet",
            hint="It is kept and will be handled. You do not have to send it again.",
            more={"posted": True},
        )

    async def _take_over(self, session_id: str) -> None:
        """Open the session if no process owns it any more."""
        if not await self.is_needed(session_id):
            with suppress(AgentError):
                async with self._sessions.use(session_id) as session:
                    await session.check_inbox()


def _check(record: Record, message_id: str) -> None:
    event = record.event
    if isinstance(event, InboxMessageRefused) and event.letter == message_id:
        raise MessageRefused(event.message or "it was refused")
