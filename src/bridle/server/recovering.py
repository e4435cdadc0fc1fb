"""What a server left behind that was killed: found, taken up, said in the logs, and gone on with.

Where to look is known from the marks of the sessions that were open, and, should the power have
failed, from which logs are the newest. Only sessions that this server's like carried last are
touched: what another program left, or a server with other rules, is its own to take up again.
"""

import asyncio
import logging
from collections.abc import Iterator

from bridle.errors import AgentError, SessionLocked, UnknownSession
from bridle.server.glimpse import glimpse
from bridle.server.ground import Ground
from bridle.server.holding import Holding
from bridle.server.marking import Marks
from bridle.stores.inbox_files import read_messages
from bridle.stores.session_index import last_run, log_entries

log = logging.getLogger(__name__)

_NEWEST = 200  # logs that are looked into whether they are marked or not


class Recovering:
    """Takes up what was cut off."""

    def __init__(self, ground: Ground, holding: Holding) -> None:
        self._ground = ground
        self._holding = holding
        self._marks = Marks(ground.folder)

    async def recover(self) -> int:
        """All of it, one after the other; how many there were."""
        count = 0
        for session_id in await asyncio.to_thread(lambda: list(self._left())):
            if self._holding.stopping:
                break
            count += await self._take_up(session_id)
        return count

    async def _take_up(self, session_id: str) -> bool:
        try:
            async with self._holding.use(session_id) as session:  # it goes on by itself
                if session.history.parent and session.is_parked:
                    await session.interrupt(by="server")  # the turn that began the task is over
        except SessionLocked:
            return False  # somebody else has taken it up
        except AgentError as error:
            log.warning("session %s was cut off, and stays so: %s", session_id, error.message)
            return False
        return True

    def _left(self) -> Iterator[str]:
        """In a thread: the sessions in which something was under way, the oldest first."""
        marked = self._marks.left()
        newest = [one.id for one in log_entries(self._ground.folder.folder)[:_NEWEST]]
        for session_id in sorted({*marked, *newest}):
            if self._is_left(session_id):
                yield session_id
            elif session_id in marked and self._is_done_with(session_id):
                self._marks.remove(session_id)

    def _is_done_with(self, session_id: str) -> bool:
        """Is its mark of no use? Another server's is its own to look at."""
        if self._holding.get_open(session_id) is not None:
            return False
        face = last_run(self._ground.folder.path(session_id)).interface
        return face in ("", self._holding.face)

    def _is_left(self, session_id: str) -> bool:
        try:
            self._ground.known(session_id)
            path = self._ground.folder.path(session_id)
            if last_run(path).interface != self._holding.face:
                return False
            history = glimpse(self._ground.folder, session_id).history
            return history.running > 0 or bool(history.waiting or read_messages(path.parent))
        except UnknownSession:
            return False
        except AgentError as error:  # whoever asks for it is told
            log.warning("session %s cannot be looked into: %s", session_id, error.message)
            return False
