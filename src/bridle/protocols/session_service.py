"""The sessions of a machine or a server, as every interface uses them.

`LocalService` implements this for the sessions of this machine, and `bridle.client.Client` for
those of a server. `by` is who does something; a server knows that from the token and ignores it.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from bridle.protocols.session import Conversation
from bridle.protocols.session_values import (
    ApprovalAnswer,
    ApprovalOutcome,
    Budget,
    Choices,
    FilePaths,
    ForkRequest,
    Grants,
    NewSession,
    PendingApprovals,
    PromptAccepted,
    PromptRequest,
    RecordPage,
    ResumeOptions,
    RewindRequest,
    RulePreview,
    SearchHits,
    SessionDetail,
    SessionInfo,
    SessionLimits,
    SessionPage,
    SessionUpdate,
    Transcript,
    UndoPreview,
    UndoRequest,
    UndoResult,
)


class SessionService(Protocol):
    """Everything that can be asked of sessions. Raises `AgentError` and nothing else."""

    async def list(
        self,
        query: str = "",
        limit: int = 50,
        cursor: str = "",
        workspace: str = "",
        state: str = "",
    ) -> SessionPage:
        """Return a page of sessions, the newest first."""
        ...

    async def info(self, session_id: str) -> SessionInfo:
        """Return one session. Raise `UnknownSession`."""
        ...

    async def detail(self, session_id: str) -> SessionDetail:
        """Return one session with everything that is shown beside its conversation."""
        ...

    async def history(self, session_id: str) -> Transcript:
        """Return the conversation as it is now."""
        ...

    async def records(
        self, session_id: str, after: int = 0, before: int = 0, limit: int = 500
    ) -> RecordPage:
        """Return records after one, or (`before`) the last ones before one."""
        ...

    def export(self, session_id: str, form: str) -> AsyncIterator[bytes]:
        """Return the session as a file, in pieces: `jsonl` or `markdown`."""
        ...

    async def pending(self) -> PendingApprovals:
        """Return the pending approval requests of all sessions, the oldest first."""
        ...

    async def search(self, words: str, limit: int = 50) -> SearchHits:
        """Return where the words occur, in all sessions."""
        ...

    async def files(self, session_id: str, query: str = "", limit: int = 50) -> FilePaths:
        """Return files of its workspace that match, the best first."""
        ...

    async def preview_rule(self, session_id: str, rule: str) -> RulePreview:
        """Return past calls that a rule would have covered."""
        ...

    async def tools(self, session_id: str) -> Choices: ...
    async def mcp_servers(self, session_id: str) -> Choices: ...
    async def rules(self, session_id: str) -> Choices:
        """Return its mode, its grants and the rules that hold in it."""
        ...

    def changes(self) -> AsyncGenerator[None, None]:
        """Yield each time something about the sessions has changed. Never ends."""
        ...

    async def open(self, session_id: str) -> Conversation:
        """Return the session as a conversation that can be watched and used. The caller closes it.

        No process becomes its owner because of that.
        """
        ...

    async def create(self, wanted: NewSession, by: str) -> SessionInfo: ...
    async def resume(self, session_id: str, options: ResumeOptions, by: str) -> SessionInfo:
        """Have it owned by a process, and continue what was left."""
        ...

    async def change(self, session_id: str, change: SessionUpdate, by: str) -> SessionDetail: ...
    async def delete(self, session_id: str, by: str) -> None: ...
    async def send(
        self, session_id: str, request: PromptRequest, by: str, key: str = ""
    ) -> PromptAccepted:
        """Return the turn of a prompt that is on disk. The same key again is the same turn."""
        ...

    async def withdraw(self, session_id: str, prompt: int, by: str) -> None:
        """Withdraw a prompt that waits, by the number of its record."""
        ...

    async def answer(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str
    ) -> ApprovalOutcome:
        """Answer an approval request. The first answer wins."""
        ...

    async def interrupt(self, session_id: str, by: str) -> None:
        """End the turn that is running or parked. It is no error if there is none."""
        ...

    async def fork(self, session_id: str, fork: ForkRequest, by: str) -> SessionInfo: ...
    async def rewind(self, session_id: str, rewind: RewindRequest, by: str) -> SessionDetail: ...
    async def compact(self, session_id: str, by: str) -> SessionDetail: ...
    async def budget(self, session_id: str) -> Budget: ...
    async def set_budget(self, session_id: str, limits: SessionLimits, by: str) -> Budget:
        """Lower limits from the next turn on. A higher limit is refused."""
        ...

    async def grants(self, session_id: str) -> Grants: ...
    async def revoke(self, session_id: str, grant: str, by: str) -> None:
        """Revoke a grant; "" revokes all."""
        ...

    async def undo_preview(self, session_id: str, turn: int = 0) -> UndoPreview:
        """Return what undoing a turn would do (0: the newest that changed something)."""
        ...

    async def undo(self, session_id: str, undo: UndoRequest, by: str) -> UndoResult:
        """Undo what a turn changed, as it was previewed."""
        ...
