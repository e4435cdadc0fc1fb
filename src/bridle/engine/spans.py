"""What undo keeps where calls run side by side: one span after the other, none beside another.

A keeper knows one call at a time. Another agent may have several under way, so each begin and each
end closes the span before and, while something still runs, opens the next. Such a span is of the
whole workspace: nobody can tell which of them changes what. What it found is said of the call that
it was opened for.
"""

import asyncio
from typing import TYPE_CHECKING

from bridle.engine.hooks import CallMiddleware
from bridle.events import FilesChanged
from bridle.messages import ToolCall

if TYPE_CHECKING:
    from bridle.promises.keeping import Keeping

_ANY = "several calls at once"  # no tool has such a name, so it may touch any file


class Spans:
    """The spans of one turn."""

    def __init__(self, middleware: CallMiddleware) -> None:
        self._middleware = middleware
        self._under_way: dict[str, ToolCall] = {}
        self._span: tuple[Keeping, ToolCall] | None = None
        self._alone = asyncio.Lock()

    async def begin(self, call: ToolCall) -> "tuple[Keeping | None, FilesChanged | None]":
        """Have what stands there kept, before this call changes it; what others have changed."""
        async with self._alone:
            changed = await self._close()
            several = bool(self._under_way)
            self._under_way[call.id] = call
            try:
                return await self._open(call, several=several), changed
            except BaseException:
                del self._under_way[call.id]
                await self._go_on()
                raise

    async def end(self, call: ToolCall) -> FilesChanged | None:
        """What has changed since the span was opened; what still runs goes on in another."""
        async with self._alone:
            changed = await self._close()
            self._under_way.pop(call.id, None)
            await self._go_on()
            return changed

    async def _go_on(self) -> None:
        """Another span for what is still under way."""
        for other in self._under_way.values():
            await self._open(other, several=True)
            break

    async def _open(self, call: ToolCall, *, several: bool) -> "Keeping | None":
        kept = ToolCall(call.id, _ANY) if several else call
        keeping = await self._middleware.begin_undo(kept)
        self._span = None if keeping is None else (keeping, kept)
        return keeping

    async def _close(self) -> FilesChanged | None:
        if self._span is None:
            return None
        (keeping, call), self._span = self._span, None
        return await self._middleware.changed_files(keeping, call)
