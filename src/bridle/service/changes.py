"""What other processes do to sessions, noticed by a look at the folder now and then.

Only where somebody wants to be told. Which session changed is said, and not what.
"""

import asyncio
import time
from collections.abc import Callable

from bridle.service.open_sessions import OpenSessions
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.session_index import LogEntry, log_entries

_EVERY = 1.0  # seconds between two looks
_SHARE = 20  # a look that takes long is not taken often: so many times as long
Print = tuple[int, int, float]


class Noticing:
    """Looks at the folder while it runs."""

    def __init__(
        self, ground: WorkspaceScope, holding: OpenSessions, tell: Callable[[str, str], None]
    ) -> None:
        self._ground = ground
        self._holding = holding  # what is open here tells of itself
        self._tell = tell
        self._known: dict[str, Print] | None = None

    async def watch(self, is_wanted: Callable[[], bool]) -> None:
        """Look, again and again, while somebody wants to know, until it is cancelled.

        The first look is taken in any case: whoever comes is told all that changed after it.
        """
        await self.look()
        while True:
            began = time.monotonic()
            if is_wanted():
                await self.look()
            took = time.monotonic() - began
            await asyncio.sleep(max(_EVERY, took * _SHARE))

    async def look(self) -> None:
        """Tell what has changed since the last look. The first tells nothing."""
        now = await asyncio.to_thread(self._look)
        before, self._known = self._known, now
        if before is None:
            return
        for session_id, print_ in now.items():
            if before.get(session_id) != print_ and self._holding.get_open(session_id) is None:
                self._tell(session_id, "changed")
        for session_id in before.keys() - now.keys():
            self._tell(session_id, "deleted")

    def _look(self) -> dict[str, Print]:
        try:
            found = log_entries(self._ground.folder.folder)
        except OSError:  # it may be there again at the next look
            return self._known or {}
        return {one.id: (one.inode, one.size, one.changed) for one in found if self._is_ours(one)}

    def _is_ours(self, place: LogEntry) -> bool:
        if self._ground.workspaces is None:
            return True
        head = self._ground.head(place)
        return head is not None and self._ground.allows(head.workspace)
