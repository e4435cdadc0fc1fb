"""The sessions of a server: what every route, stream and bridge asks for. Knows nothing of HTTP.

A verb goes where its session is: one that is open here does it itself; one that another process
holds gets a letter, and its log tells what came of it; one that nobody holds is taken up here.
"""

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from bridle.server.opening import Engines
from bridle.server.views import (
    ApprovalAnswer,
    ApprovalOutcome,
    Budget,
    Change,
    Chat,
    ChatAccepted,
    Fork,
    Grants,
    HistoryView,
    Hits,
    LimitsView,
    NewSession,
    Paths,
    Pendings,
    Records,
    Resume,
    Rewind,
    RulePreview,
    SessionDetail,
    SessionList,
    SessionView,
    Undo,
    UndoOutcome,
    UndoPreview,
)
from bridle.stores.reading import SessionFolder

if TYPE_CHECKING:
    from bridle.engine.session import Session

Tell = Callable[[str, str], None]  # session id; "opened", "changed", "closed" or "deleted"


class Sessions:
    """Everything that can be asked of sessions. `workspaces` None: any folder."""

    def __init__(
        self, folder: SessionFolder, engines: Engines, workspaces: tuple[str, ...] | None
    ) -> None:
        self.folder = folder
        self.engines = engines
        self.workspaces = workspaces

    @property
    def stopping(self) -> bool:
        """Is the server being stopped?"""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Has it been started, with all that was cut off looked at, and is it not stopping?"""
        raise NotImplementedError

    async def start(self) -> None:
        """Take up what the last server left behind, in the background."""
        raise NotImplementedError

    async def stop(self, seconds: float) -> None:
        """Take nothing new; park what waits for a person, interrupt the rest; settle everything."""
        raise NotImplementedError

    async def list(
        self,
        query: str = "",
        limit: int = 50,
        cursor: str = "",
        workspace: str = "",
        state: str = "",
    ) -> SessionList:
        """A page of sessions, the newest first."""
        raise NotImplementedError

    async def view(self, session_id: str) -> SessionView:
        """One in a line. Raise `UnknownSession`, also for foreign and malformed ids."""
        raise NotImplementedError

    async def detail(self, session_id: str) -> SessionDetail:
        """One with all that stands beside its conversation."""
        raise NotImplementedError

    async def create(self, wanted: NewSession, by: str) -> SessionView:
        """A new session, once its first record is on disk. Raise `UnknownWorkspace`."""
        raise NotImplementedError

    async def resume(self, session_id: str, how: Resume, by: str) -> SessionView:
        """Take it up, perhaps elsewhere or with another model; what was left behind goes on."""
        raise NotImplementedError

    async def change(self, session_id: str, change: Change, by: str) -> SessionDetail:
        """Another title, tags, mode, model or agent."""
        raise NotImplementedError

    async def delete(self, session_id: str, by: str) -> None:
        """Remove it, and what was kept to undo it. Raise `SessionBusy`, `SessionLocked`."""
        raise NotImplementedError

    async def send(self, session_id: str, chat: Chat, by: str, key: str = "") -> ChatAccepted:
        """A prompt, accepted once it is on disk. The same key and prompt again: the same turn."""
        raise NotImplementedError

    async def answer(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str
    ) -> ApprovalOutcome:
        """Settle a question. Raise `ApprovalTaken`, `ApprovalChanged`, `ApprovalExpired`."""
        raise NotImplementedError

    async def interrupt(self, session_id: str, by: str) -> None:
        """End the turn that runs or is parked; nothing to end is no error."""
        raise NotImplementedError

    async def records(
        self, session_id: str, after: int = 0, before: int = 0, limit: int = 500
    ) -> Records:
        """Records as the log has them: those after one, or (`before`) the last ones before one."""
        raise NotImplementedError

    async def history(self, session_id: str) -> HistoryView:
        """The conversation as it stands."""
        raise NotImplementedError

    def export(self, session_id: str, form: str) -> AsyncIterator[bytes]:
        """The session as a file, in pieces: `jsonl` or `markdown`."""
        raise NotImplementedError

    async def fork(self, session_id: str, fork: Fork, by: str) -> SessionView:
        """A new session with its conversation up to a record."""
        raise NotImplementedError

    async def rewind(self, session_id: str, rewind: Rewind, by: str) -> SessionDetail:
        """Make the conversation again what it was at a record."""
        raise NotImplementedError

    async def compact(self, session_id: str, by: str) -> SessionDetail:
        """Shorten the conversation now."""
        raise NotImplementedError

    async def budget(self, session_id: str) -> Budget:
        """What it may use, and what it has used."""
        raise NotImplementedError

    async def set_budget(self, session_id: str, limits: LimitsView, by: str) -> Budget:
        """Narrower limits, from the next turn on. A wider one is refused."""
        raise NotImplementedError

    async def grants(self, session_id: str) -> Grants:
        """What was allowed for the session and still holds."""
        raise NotImplementedError

    async def revoke(self, session_id: str, grant: str, by: str) -> None:
        """Take a grant back; "" takes all of them back."""
        raise NotImplementedError

    async def undo_preview(self, session_id: str, turn: int = 0) -> UndoPreview:
        """What taking back a turn would do (0: the newest that changed something)."""
        raise NotImplementedError

    async def undo(self, session_id: str, undo: Undo, by: str) -> UndoOutcome:
        """Take back what a turn changed, as it was previewed."""
        raise NotImplementedError

    async def files(self, session_id: str, query: str = "", limit: int = 50) -> Paths:
        """Files of its workspace that match, the best first."""
        raise NotImplementedError

    async def preview_rule(self, session_id: str, rule: str) -> RulePreview:
        """Past calls that a rule would have covered."""
        raise NotImplementedError

    async def pending(self) -> Pendings:
        """The open questions of all sessions, those of tasks too, the oldest first."""
        raise NotImplementedError

    async def search(self, words: str, limit: int = 50) -> Hits:
        """Where the words stand, over all sessions."""
        raise NotImplementedError

    def opened(self, session_id: str) -> "Session | None":
        """That session, if it is open here."""
        raise NotImplementedError

    def open(self) -> "tuple[Session, ...]":
        """All that are open here, tasks too."""
        raise NotImplementedError

    def on_changed(self, tell: Tell) -> Callable[[], None]:
        """Call `tell` in the event loop when a session changes; what comes back ends that."""
        raise NotImplementedError
