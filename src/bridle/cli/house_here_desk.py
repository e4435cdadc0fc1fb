"""What is asked about all sessions of this user, whichever process holds them. Shows nothing.

The work is done by what a server does it with, without a server: it reads logs, hands letters to
whoever holds a session, and takes up here what nobody holds. It is made when it is first needed.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridle.cli.commands.sessions.edit import take
from bridle.cli.find import find_session
from bridle.cli.user_input import user_name
from bridle.config.settings import Settings
from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.errors import SessionLocked
from bridle.events import ApprovalAsked
from bridle.protocols.session import Answer, Conversation
from bridle.stores.locks import describe_process, owner_pid
from bridle.stores.reader import SessionFolder
from bridle.tui.house import HOW_RESTORED, Asked, Found, Listed, Named, Undone
from bridle.tui.house_asked import asked_of, ending
from bridle.tui.house_listed import listed

if TYPE_CHECKING:
    from bridle.cli.catalogue import Menu
    from bridle.service.local_service import LocalService

_FAREWELL = 5.0  # seconds that what was taken up here has to end
_PAGE = 200


class Desk:
    """Everything around the one session that is talked to."""

    def __init__(
        self, folder: SessionFolder, settings: Settings, flags: dict[str, Any], face: str
    ) -> None:
        self.folder = folder
        self._settings = settings
        self._flags = flags
        self._face = face
        self._sessions: LocalService | None = None

    @property
    def sessions_of_all(self) -> "LocalService":
        """What does the work."""
        if self._sessions is None:
            from bridle.cli.opening import opening
            from bridle.service.engine_pool import EnginePool
            from bridle.service.local_service import LocalService

            kept = {"resume": None, "go_on": False, "worktree": None, "mode": None, "yes": False}
            engines = EnginePool(opening({**self._flags, **kept}, self._face))
            self._sessions = LocalService(self.folder, engines, None)
        return self._sessions

    async def close(self) -> None:
        """Let go of what was taken up here."""
        if self._sessions is not None:
            await self._sessions.stop(_FAREWELL)

    def path(self, session_id: str) -> Path:
        """Where its log lies."""
        return self.folder.path(session_id)

    def holds(self, session_id: str) -> bool:
        """Was that session taken up here for an errand?"""
        return self._sessions is not None and self._sessions.get_open(session_id) is not None

    async def sessions(self, query: str, limit: int) -> tuple[Listed, ...]:
        """The newest that fit, and what each does."""
        found: list[Listed] = []
        cursor = ""
        while len(found) < limit:
            most = min(_PAGE, limit - len(found))
            page = await self.sessions_of_all.list(query, most, cursor)
            found += (listed(one, describe_process(os.getpid())) for one in page.sessions)
            if not (cursor := page.next):
                break
        return tuple(found)

    async def preview(self, session_id: str, lines: int) -> str:
        """The end of a session's conversation as plain text."""
        history = await self.sessions_of_all.history(session_id)
        return ending(history.messages, lines)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raise `SessionLocked`."""
        found = await asyncio.to_thread(find_session, self.folder, session_id)
        await asyncio.to_thread(take, found, lambda session: session.rename(title))

    async def delete(self, session_id: str) -> None:
        """Remove a session for good. Raise `SessionBusy`, `SessionLocked`."""
        pid = await asyncio.to_thread(owner_pid, self.path(session_id))
        if pid not in (None, os.getpid()):
            raise SessionLocked(
                f"session {session_id} is in use by {describe_process(pid or 0)}, "
                "and was not deleted",
                hint="Stop it there first.",
            )
        await self.sessions_of_all.delete(session_id, user_name())

    async def search(self, words: str, limit: int) -> tuple[Found, ...]:
        """Where that was said."""
        found = await self.sessions_of_all.search(words, limit)
        return tuple(
            Found(
                session_id=one.session_id,
                seq=one.seq,
                title=one.title,
                text=one.text,
                kind=one.kind,
            )
            for one in found.hits
        )

    async def undo_preview(self, session_id: str, turn: int) -> Undone:
        """What an undo would do. Raise `NotFound` where there is nothing to take back."""
        seen = await self.sessions_of_all.undo_preview(session_id, turn)
        files = tuple((one.path, HOW_RESTORED[one.how], one.diff) for one in seen.files)
        return Undone(
            turn=seen.turn,
            files=files,
            uncovered=seen.uncovered,
            clashes=tuple((one.path, one.why, one.diff) for one in seen.clashes),
            token=seen.token,
        )

    async def undo(self, session: Conversation, shown: Undone) -> None:
        """Do exactly that, also to what changed since, and say so in the session's log.

        Raise `ApprovalChanged`.
        """
        from bridle.protocols.session_values import UndoRequest

        wanted = UndoRequest(shown.turn, shown.token, "overwrite")
        if isinstance(session, Session):
            await self.sessions_of_all.undo_in(session, wanted, user_name())
            return
        from bridle.client import RemoteSession, UndoPreview  # it takes long to load

        if isinstance(session, RemoteSession):
            undoing = UndoPreview(turn=shown.turn, token=shown.token)
            await session.undo(undoing, clashes="overwrite")
        else:
            await self.sessions_of_all.undo(session.id, wanted, user_name())

    async def models(self, chosen: str) -> tuple[Named, ...]:
        """The models that are known here."""
        from bridle.cli.house_here_facts import to_named

        return to_named(await self._menu().models(), chosen)

    async def agents(self, chosen: str) -> tuple[Named, ...]:
        """Who can carry turns here."""
        from bridle.cli.house_here_facts import to_named

        return to_named(await self._menu().agents(), chosen)

    def _menu(self) -> "Menu":
        from bridle.cli.catalogue import Menu
        from bridle.service.choices import AllowedChoices

        return Menu(self._settings, AllowedChoices())

    async def files(self, workspace: str, query: str, limit: int) -> tuple[str, ...]:
        """Files of a folder that fit, the best first."""
        where = await asyncio.to_thread(os.path.realpath, workspace)
        return (await self.sessions_of_all.workspace_files(where, query, limit)).paths

    async def pending(self) -> tuple[Asked, ...]:
        """The questions that wait; those whose answer is on its way are left out."""
        found = (await self.sessions_of_all.pending()).approvals
        told = (asked_of(one) for one in found if not one.posted)
        return tuple(one for one in told if one is not None)

    async def answer(self, session_id: str, asked: ApprovalAsked, answer: Answer) -> None:
        """Have an answer count: through who holds the session, or with a letter that waits."""
        from bridle.cli.house_here_letters import answer_elsewhere

        await answer_elsewhere(self, session_id, asked, answer)

    def news(self, engines: Callable[[], Iterable[Engine]]) -> AsyncGenerator[None, None]:
        """Something about the sessions changed, here or in another process."""
        from bridle.cli.house_here_news import news

        return news(self.folder, engines)
