"""The sessions of an engine by their ids, and which one is the current one.

A thin view: sessions, messages and titles are what the logs say. Only the choice of the current
one is this process's own. A verb for a session that there is not answers False, None or nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from bridle.engine.engine import Engine
from bridle.engine.history import fold
from bridle.engine.session import Session
from bridle.errors import UnknownSession
from bridle.events import Event, MessageAdded, Rewound
from bridle.messages import Message
from bridle.promises.store import SessionSummary

Messages = list[Message]  # by a name of its own: the class below has a verb `list`


class SessionStore:
    """Creates, finds, lists and deletes sessions. Any number of tasks may use it at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._current = ""
        self._choosing = asyncio.Lock()  # two who ask for the current one get the same

    @property
    def current_id(self) -> str:
        """The id of the current session; nothing where there is none yet."""
        return self._current

    async def create(self, title: str = "") -> Session:
        """A new session, which is the current one from here on."""
        session = await self._engine.session()
        if title.strip():
            await session.rename(title)
        self._current = session.id
        return session

    async def get(self, session_id: str) -> Session | None:
        """That session, taken up again where it is not open. Raise `SessionLocked`."""
        try:
            return await self._engine.session(session_id)
        except UnknownSession:
            return None

    async def current(self) -> Session:
        """The current session; a new one where there is none."""
        async with self._choosing:
            found = await self.get(self._current) if self._current else None
            return found or await self.create()

    async def set_current(self, session_id: str) -> bool:
        """Make that session the current one."""
        if not await self._exists(session_id):
            return False
        self._current = session_id
        return True

    async def list(self) -> list[SessionSummary]:
        """All sessions: open ones in which nothing was said yet, then the newest first."""
        kept = await asyncio.to_thread(self._engine.store.sessions)
        known = {one.id for one in kept}
        opened = [one for one in self._engine.summaries() if one.id not in known]
        return [*(SessionSummary(one.id, title=one.title) for one in opened), *kept]

    async def delete(self, session_id: str) -> bool:
        """Close the session and remove its log for good. Raise `SessionLocked`."""
        session = self._engine.opened(session_id)
        if session is not None:
            await session.close()
        if self._current == session_id:
            self._current = ""
        try:
            await asyncio.to_thread(self._engine.store.delete, session_id)
        except UnknownSession:  # also one that was open, and in which nothing was said
            return session is not None
        return True

    async def add_message(self, session_id: str, message: Message) -> bool:
        """Put a message at the end of the conversation. Raise `SessionBusy` while a turn runs."""
        return await self._note(session_id, MessageAdded(message))

    async def get_messages(self, session_id: str) -> Messages:
        """The conversation, as a list of the caller's own."""
        if (session := self._engine.opened(session_id)) is not None:
            return list(session.history.transcript)
        return await asyncio.to_thread(self._read, session_id)

    async def clear_messages(self, session_id: str) -> bool:
        """Begin with an empty conversation. The log keeps the old one. Raise `SessionBusy`."""
        return await self._note(session_id, Rewound(0))

    async def update_title(self, session_id: str, title: str) -> bool:
        """Give the session a title."""
        if (session := await self.get(session_id)) is None:
            return False
        await session.rename(title)
        return True

    async def _note(self, session_id: str, event: Event) -> bool:
        """Change the conversation, in one step with seeing that no turn runs or is parked."""
        if (session := await self.get(session_id)) is None:
            return False
        session.check_idle()
        await session.note(event)
        return True

    async def _exists(self, session_id: str) -> bool:
        if self._engine.opened(session_id) is not None:
            return True
        try:
            await asyncio.to_thread(_first, self._engine.store.read, session_id)
        except UnknownSession:
            return False
        return True

    def _read(self, session_id: str) -> Messages:
        """From the log of a session that is not open here; nobody's lock is needed."""
        try:
            return list(fold(self._engine.store.read(session_id)).transcript)
        except UnknownSession:
            return []


def _first(read: Callable[[str], Any], session_id: str) -> None:
    """Look for a session: its first record tells."""
    for _ in read(session_id):
        return
