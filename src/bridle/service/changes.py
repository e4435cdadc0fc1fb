"""Notice what other processes do to sessions, by looking at the catalog now and then."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping

from bridle.engine.session import Session
from bridle.errors import StoreFailed
from bridle.protocols.session_catalog import HeadQuery
from bridle.service.open_sessions import OnChange
from bridle.service.workspace_scope import WorkspaceScope

_EVERY = 1.0  # seconds between two looks
_SHARE = 20  # if a look takes long, the pause is this many times as long
_PAUSE = 0.1  # seconds between two reports: a turn that streams changes its session all the time


class ChangeWatcher:
    """Reports which sessions other processes have changed or deleted."""

    def __init__(
        self,
        scope: WorkspaceScope,
        get_open: Callable[[str], Session | None],
        on_change: OnChange,
    ) -> None:
        self._scope = scope
        self._get_open = get_open  # sessions that are open here report by themselves
        self._on_change = on_change
        self._known: Mapping[str, Hashable] | None = None
        self._owners = False

    async def run(self, is_wanted: Callable[[], bool], *, owners: bool = False) -> None:
        """Look again and again while somebody wants to know, until cancelled.

        With `owners` another owner counts as a change, too. The first look is taken in any case, so
        that nothing after it is missed.
        """
        self._owners = owners
        await self.look()
        while True:
            began = time.monotonic()
            if is_wanted():
                await self.look()
            took = time.monotonic() - began
            await asyncio.sleep(max(_EVERY, took * _SHARE))

    async def look(self) -> None:
        """Report what has changed since the last look. The first look reports nothing."""
        now = await asyncio.to_thread(self._versions)
        before, self._known = self._known, now
        if before is None:
            return
        for session_id, version in now.items():
            if before.get(session_id) != version and self._get_open(session_id) is None:
                self._on_change(session_id, "changed")
        for session_id in before.keys() - now.keys():
            self._on_change(session_id, "deleted")

    def _versions(self) -> Mapping[str, Hashable]:
        scope = self._scope
        try:
            if scope.workspaces is None:
                return scope.catalog.versions(owners=self._owners)
            heads = scope.catalog.heads(HeadQuery(workspaces=scope.workspaces, owners=self._owners))
            return {head.id: (head.version, head.owner) for head in heads}
        except StoreFailed:  # the next look may succeed
            return self._known or {}


async def coalesced(
    subscribe: Callable[[OnChange], Callable[[], None]],
) -> AsyncGenerator[None, None]:
    """Yield each time something has changed; many changes at once are one. Never ends."""
    changed = asyncio.Event()
    unsubscribe = subscribe(lambda session_id, name: changed.set())
    try:
        while True:
            await changed.wait()
            changed.clear()
            yield
            await asyncio.sleep(_PAUSE)
    finally:
        unsubscribe()
