"""Which session a thread is. A session begun for a thread has its name as a tag, so the log knows.

A thread that is named like a session is that session: a front end can go on with any of them.
"""

import asyncio
from weakref import WeakValueDictionary

from bridle.errors import UnknownSession
from bridle.protocols.session_values import NewSession, SessionUpdate
from bridle.service.local_service import LocalService
from bridle.stores.log_format import SESSION_ID

_TAG = "agui:"
_KNOWN = 10_000  # threads that are remembered; the others are looked for


class Threads:
    """Finds sessions by threads, and begins them."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._finding: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def session(self, sessions: LocalService, thread: str) -> str:
        """The thread's session. Raise `UnknownSession`."""
        found = await self._find(sessions, thread)
        if not found:
            raise UnknownSession("nothing was said in this thread yet", hint="Send a message.")
        return found

    async def opened(self, sessions: LocalService, thread: str, new: NewSession, by: str) -> str:
        """The thread's session, begun where there is none."""
        lock = self._finding.setdefault(thread, asyncio.Lock())
        async with lock:  # two who begin a thread begin one session
            if found := await self._find(sessions, thread):
                return found
            view = await sessions.create(new, by)
            await sessions.change(view.id, SessionUpdate(tags=(_TAG + thread,)), by)
            return self._keep(thread, view.id)

    async def _find(self, sessions: LocalService, thread: str) -> str:
        known = self._known.get(thread) or (thread if SESSION_ID.fullmatch(thread) else "")
        if known and await _is_there(sessions, known):
            return self._keep(thread, known)
        self._known.pop(thread, None)
        for found in await asyncio.to_thread(_tagged, sessions, _TAG + thread):
            if await _is_there(sessions, found):
                return self._keep(thread, found)
        return ""

    def _keep(self, thread: str, session_id: str) -> str:
        while len(self._known) >= _KNOWN:
            del self._known[next(iter(self._known))]
        self._known[thread] = session_id
        return session_id


def _tagged(sessions: LocalService, tag: str) -> list[str]:
    """In a thread: the sessions with that tag, the newest first."""
    return [one.id for one in sessions.catalog.sessions() if tag in one.tags]


async def _is_there(sessions: LocalService, session_id: str) -> bool:
    try:
        await sessions.info(session_id)
    except UnknownSession:
        return False
    return True
