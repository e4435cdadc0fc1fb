"""A session that another process holds, attached to: watched, answered, steered, stopped.

A background session is reached through the process that carries it, which can do everything with
it. Any other holder gets letters. Which of the two it is, is found out here and nowhere else.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, cast

from bridle.cli.house_here_desk import Desk
from bridle.errors import AgentError, SessionLocked
from bridle.stores.locks import describe_owner, owner_pid
from bridle.stores.session_index import get_session

if TYPE_CHECKING:  # what talks HTTP takes long to load, and most sessions are nobody else's
    from bridle.cli.house_here_followed import Followed
    from bridle.client import RemoteSession, SessionInfo


class Attached:
    """The session, and what it takes to be attached to it."""

    def __init__(
        self, session: "Followed | RemoteSession", leaving: AsyncExitStack, *, by_letters: bool
    ) -> None:
        self.session = session
        self._leaving = leaving
        self._by_letters = by_letters

    @property
    def model(self) -> str:
        """Provider and model of whoever carries it."""
        return self._told.model

    @property
    def agent(self) -> str:
        """Who carries its turns."""
        return self._told.agent or "loop"

    @property
    def workspace(self) -> str:
        """Where it works."""
        return self._told.workspace

    @property
    def _told(self) -> "Followed | SessionInfo":
        return cast("Followed | SessionInfo", getattr(self.session, "line", self.session))

    async def use(self, **chosen: str) -> None:
        """Another model or agent. Raise `SessionLocked` where its holder cannot be asked that."""
        if self._by_letters:
            raise SessionLocked(
                f"session {self.session.id} is in use by another process, which keeps its model",
                hint="Change it there, or go on in a copy of it: /fork.",
            )
        await cast("RemoteSession", self.session).configure(**chosen)

    async def close(self) -> None:
        """Look no longer; it goes on where it is."""
        await self.session.close()
        await self._leaving.aclose()


async def attached(desk: Desk, session_id: str) -> Attached | None:
    """Attached to whoever holds that session; None where no other process does."""
    log = desk.folder.path(session_id)
    pid = await asyncio.to_thread(owner_pid, log)
    if pid is None or (pid == os.getpid() and not desk.holds(session_id)):
        return None
    return await _in_background(session_id, pid) or await _by_letters(desk, session_id)


async def _in_background(session_id: str, pid: int) -> Attached | None:
    """Through the process that carries background sessions, where that is who holds it."""
    from bridle.cli.supervising import carrier_of, supervised

    carrier = carrier_of(session_id)
    if carrier is None or carrier.pid != pid:
        return None
    leaving = AsyncExitStack()
    try:
        client = await leaving.enter_async_context(supervised(session_id))
        return Attached(await client.session(session_id), leaving, by_letters=False)
    except AgentError:  # it cannot be talked to: letters reach it all the same
        await leaving.aclose()
        return None
    except BaseException:
        await leaving.aclose()
        raise


async def _by_letters(desk: Desk, session_id: str) -> Attached:
    from bridle.cli.house_here_followed import Followed

    found = await asyncio.to_thread(get_session, desk.folder.folder, session_id)
    if found is None:
        raise SessionLocked(
            f"session {session_id} is in use by {describe_owner(desk.path(session_id))}"
        )
    followed = Followed(desk.folder, found[1], desk.sessions_of_all)
    await followed.begin()
    return Attached(followed, AsyncExitStack(), by_letters=True)
