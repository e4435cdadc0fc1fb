"""The promise of undo: before something changes the workspace, what stands there is kept."""

from typing import Protocol

from bridle.events import FilesChanged
from bridle.messages import ToolCall


class Keeping(Protocol):
    """What is kept for one turn. Trouble is said in the `uncovered` of a change, never raised."""

    async def before(self, call: ToolCall) -> None:
        """Keep what stands there, before this call has its effect."""
        ...

    async def after(self, call: ToolCall) -> FilesChanged | None:
        """What the call changed; None where nothing."""
        ...


class Keeper(Protocol):
    """Keeps what turns change, for a workspace."""

    def keep(self, session_id: str, turn: int) -> Keeping: ...
