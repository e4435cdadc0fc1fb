"""The sessions of this user before one is opened: what `bridle --resume` lets choose from."""

import os
from collections.abc import AsyncGenerator
from typing import Any

from bridle.cli.house_here_desk import Desk
from bridle.cli.house_here_words import plainly
from bridle.cli.options import to_settings
from bridle.config.loader import load_settings
from bridle.config.paths import state_folder
from bridle.stores.reader import SessionFolder
from bridle.tui.house import Listed


class EarlierSessions:
    """A list of sessions that needs no model: implements `tui.house.SessionList`."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self.workspace = os.path.realpath(flags.get("workspace") or ".")
        settings = load_settings(to_settings({**flags, "resume": None})).settings
        self._desk = Desk(SessionFolder(state_folder(os.environ)), settings, flags, "tui")

    async def sessions(self, query: str = "", limit: int = 200) -> tuple[Listed, ...]:
        """Return the newest sessions that fit, and what each does."""
        return await self._desk.sessions(query, limit)

    async def preview(self, session_id: str, lines: int = 40) -> str:
        """Return the end of a session's conversation as plain text."""
        return await self._desk.preview(session_id, lines)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raise `SessionLocked` if another process has it open."""
        with plainly():
            await self._desk.rename(session_id, title)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good. Raise `SessionLocked` if another process has it open."""
        await self._desk.delete(session_id)

    def news(self) -> AsyncGenerator[None, None]:
        """Yield each time something about the sessions changed. Never ends."""
        return self._desk.news(lambda: ())

    async def close(self) -> None:
        """Close what was opened to list them."""
        await self._desk.close()
