"""The sessions of a server: what every route, stream and bridge asks for. Knows nothing of HTTP.

A verb goes where its session is: one that is open here does it itself; one that another process
holds gets a letter, and its log tells what came of it; one that nobody holds is taken up here.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from bridle.protocols.session_values import (
    ApprovalAnswer,
    ApprovalOutcome,
    Budget,
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
from bridle.service.answering import Answering
from bridle.service.changes import Noticing
from bridle.service.choices import AllowedChoices
from bridle.service.engine_pool import EnginePool
from bridle.service.inbox_client import InboxClient
from bridle.service.inventory import Inventory
from bridle.service.open_sessions import CrashRecovery, OnChange, OpenSessions
from bridle.service.records import Reading
from bridle.service.search import Looking
from bridle.service.sending import Sending
from bridle.service.session_list import Asked, Detailing, Listing
from bridle.service.undo import Undoing
from bridle.service.verbs import Verbs, fork_title
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.reader import SessionFolder

if TYPE_CHECKING:
    from bridle.engine.session import Session
    from bridle.events import ApprovalAsked
    from bridle.policy import Mode

log = logging.getLogger(__name__)

_REST = 15.0  # seconds without anything, after which a session is let go
_WAIT = 5.0  # seconds that another process has to do what it was asked to


class LocalService:
    """Everything that can be asked of sessions. `workspaces` None: any folder.

    A session that rests for `rest` seconds is let go. Another process has `wait` seconds to do what
    it is handed. What its `offer.face` left behind is recovered.
    """

    def __init__(
        self,
        folder: SessionFolder,
        engines: EnginePool,
        workspaces: tuple[str, ...] | None,
        *,
        rest: float = _REST,
        wait: float = _WAIT,
        offer: AllowedChoices | None = None,
    ) -> None:
        self.folder = folder
        self.offer = offer or AllowedChoices()
        self.engines = engines
        self._tellers: dict[OnChange, bool] = {}  # and whether they want to hear of others' doings
        self._tasks: list[asyncio.Task[None]] = []
        self._rest = rest
        self._ground = WorkspaceScope(folder, workspaces)
        self.workspaces = self._ground.workspaces
        self._holding = OpenSessions(self._ground, engines, self._tell, rest, self.offer)
        self._listing = Listing(self._ground, self._holding)
        self._detailing = Detailing(self._ground, self._holding, engines, self._listing)
        self._reading = Reading(self._ground)
        self._posting = InboxClient(self._ground, self._holding, wait)
        self._sending = Sending(self._ground, self._holding, self._posting)
        self._answering = Answering(self._ground, self._holding, self._posting)
        self._verbs = Verbs(self._ground, self._holding, self._posting, self._tell)
        self._undoing = Undoing(self._ground, self._holding)
        self._looking = Looking(self._ground, self._holding)
        self.inventory = Inventory(self._ground, self._holding, engines)
        self._noticing = Noticing(self._ground, self._holding, self._tell)
        self._recovering = CrashRecovery(self._ground, self._holding)

    @property
    def stopping(self) -> bool:
        """Is the server being stopped?"""
        return self._holding.stopping

    @property
    def ready(self) -> bool:
        """Has it been started, and is it not being stopped?"""
        return bool(self._tasks) and not self.stopping

    async def start(self) -> None:
        """Take up what the last server left behind, in the background."""
        watching = self._noticing.watch(lambda: any(self._tellers.values()))
        works = (self._recover(), self._sweep(), watching)
        self._tasks = [asyncio.ensure_future(work) for work in works]

    async def recovered(self) -> None:
        """Come back when everything that was cut off has been looked at."""
        if self._tasks:
            await asyncio.wait(self._tasks[:1])

    async def stop(self, seconds: float) -> None:
        """Take nothing new; park what waits for a person, interrupt the rest; settle everything."""
        self._holding.stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._holding.close(seconds)
        await self._verbs.close()

    async def list(
        self,
        query: str = "",
        limit: int = 50,
        cursor: str = "",
        workspace: str = "",
        state: str = "",
    ) -> SessionPage:
        """A page of sessions, the newest first."""
        return await self._listing.page(Asked(query, limit, cursor, workspace, state))

    async def view(self, session_id: str) -> SessionInfo:
        """One in a line. Raise `UnknownSession`, also for foreign and malformed ids."""
        return await self._listing.view(session_id)

    async def detail(self, session_id: str) -> SessionDetail:
        """One with all that stands beside its conversation."""
        return await self._detailing.detail(session_id)

    async def create(self, wanted: NewSession, by: str) -> SessionInfo:
        """A new session, once its first record is on disk. Raise `UnknownWorkspace`."""
        return await self.view((await self._verbs.create(wanted, by)).id)

    async def resume(self, session_id: str, how: ResumeOptions, by: str) -> SessionInfo:
        """Take it up, perhaps elsewhere or with another model; what was left behind goes on."""
        await self._verbs.resume(session_id, how, by)
        return await self.view(session_id)

    async def change(self, session_id: str, change: SessionUpdate, by: str) -> SessionDetail:
        """Another title, tags, mode, model or agent."""
        await self._verbs.change(session_id, change, by)
        return await self.detail(session_id)

    async def delete(self, session_id: str, by: str) -> None:
        """Remove it. Raise `SessionBusy`, `SessionLocked`."""
        await self._verbs.delete(session_id)

    async def send(
        self, session_id: str, chat: PromptRequest, by: str, key: str = ""
    ) -> PromptAccepted:
        """A prompt, accepted once it is on disk. The same key and prompt again: the same turn."""
        return await self._sending.send(session_id, chat, by, key)

    async def withdraw(self, session_id: str, prompt: int, by: str) -> None:
        """Take back a prompt that waits, by its record. Raise `PromptBegun`, `NotFound`."""
        await self._sending.withdraw(session_id, prompt, by)

    async def answer(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str
    ) -> ApprovalOutcome:
        """Settle a question. Raise `ApprovalTaken`, `ApprovalChanged`, `ApprovalExpired`."""
        return await self._answering.answer(session_id, call_id, answer, by)

    async def question(self, session_id: str, call_id: str, shown: str) -> "ApprovalAsked | None":
        """What was asked there, if it was."""
        return await self._answering.question(session_id, call_id, shown)

    async def interrupt(self, session_id: str, by: str) -> None:
        """End the turn that runs or is parked; nothing to end is no error."""
        await self._verbs.interrupt(session_id, by)

    async def records(
        self, session_id: str, after: int = 0, before: int = 0, limit: int = 500
    ) -> RecordPage:
        """Records as the log has them: those after one, or (`before`) the last ones before one."""
        return await self._reading.records(session_id, after, before, limit)

    async def history(self, session_id: str) -> Transcript:
        """The conversation as it stands."""
        return await self._detailing.history(session_id)

    def export(self, session_id: str, form: str) -> AsyncIterator[bytes]:
        """The session as a file, in pieces: `jsonl` or `markdown`."""
        return self._reading.export(session_id, form)

    async def fork(self, session_id: str, fork: ForkRequest, by: str) -> SessionInfo:
        """A new session with its conversation up to a record."""
        title = fork_title((await self.view(session_id)).title)
        return await self.view(await self._verbs.fork(session_id, fork.at, title))

    async def mode_at(self, session_id: str, at: int) -> "Mode | None":
        """The mode that its conversation had at a record, where it had one of its own."""
        return await self._verbs.mode_at(session_id, at)

    async def rewind(self, session_id: str, rewind: RewindRequest, by: str) -> SessionDetail:
        """Make the conversation again what it was at a record."""
        await self._verbs.rewind(session_id, rewind.to, by)
        return await self.detail(session_id)

    async def compact(self, session_id: str, by: str) -> SessionDetail:
        """Shorten the conversation now."""
        await self._verbs.compact(session_id, by)
        return await self.detail(session_id)

    async def budget(self, session_id: str) -> Budget:
        """What it may use, and what it has used."""
        return await self._detailing.budget(session_id)

    async def set_budget(self, session_id: str, limits: SessionLimits, by: str) -> Budget:
        """Narrower limits, from the next turn on. A wider one is refused."""
        await self._verbs.set_budget(session_id, limits, by)
        return await self.budget(session_id)

    async def grants(self, session_id: str) -> Grants:
        """What was allowed for the session and still holds."""
        return await self._detailing.grants(session_id)

    async def revoke(self, session_id: str, grant: str, by: str) -> None:
        """Take a grant back; "" takes all of them back."""
        await self._answering.revoke(session_id, grant, by)

    async def undo_preview(self, session_id: str, turn: int = 0) -> UndoPreview:
        """What taking back a turn would do (0: the newest that changed something)."""
        return await self._undoing.preview(session_id, turn)

    async def undo(self, session_id: str, undo: UndoRequest, by: str) -> UndoResult:
        """Take back what a turn changed, as it was previewed."""
        return await self._undoing.undo(session_id, undo, by)

    async def undo_in(self, session: "Session", undo: UndoRequest, by: str) -> UndoResult:
        """The same in a session that whoever asks has open."""
        return await self._undoing.undo_in(session, undo, by)

    async def files(self, session_id: str, query: str = "", limit: int = 50) -> FilePaths:
        """Files of its workspace that match, the best first."""
        return await self._looking.files(session_id, query, limit)

    async def workspace_files(self, workspace: str, query: str = "", limit: int = 50) -> FilePaths:
        """Files of a workspace that match, the best first; nothing is the first workspace."""
        return await self._looking.workspace_files(workspace, query, limit)

    async def preview_rule(self, session_id: str, rule: str) -> RulePreview:
        """Past calls that a rule would have covered."""
        return await self._looking.preview_rule(session_id, rule)

    async def pending(self) -> PendingApprovals:
        """The open questions of all sessions, those of tasks too, the oldest first."""
        return PendingApprovals(await self._listing.pending())

    async def search(self, words: str, limit: int = 50) -> SearchHits:
        """Where the words stand, over all sessions."""
        return await self._looking.search(words, limit)

    def get_open(self, session_id: str) -> "Session | None":
        """That session, if it is open here."""
        return self._holding.get_open(session_id)

    def open(self) -> "tuple[Session, ...]":
        """All that are open here, tasks too."""
        return self._holding.open()

    def on_changed(self, tell: OnChange, *, others: bool = True) -> Callable[[], None]:
        """Call `tell` in the event loop when a session changes; what comes back ends that.

        With the session's id comes "opened", "changed", "closed" or "deleted". Without `others`
        it need not be told what other processes do, which nobody then has to look for.
        """
        self._tellers[tell] = others

        def enough() -> None:
            self._tellers.pop(tell, None)

        return enough

    def _tell(self, session_id: str, name: str) -> None:
        for tell in list(self._tellers):
            try:
                tell(session_id, name)
            except Exception:  # whoever listens, the others are told
                log.warning("a change could not be told", exc_info=True)

    async def _recover(self) -> None:
        try:
            count = await self._recovering.recover()
        except Exception:  # the sessions are there all the same
            log.warning("what was cut off could not all be looked at", exc_info=True)
            return
        if count:
            log.info("%d sessions were taken up that had been cut off", count)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._rest / 4))
            await self._holding.sweep()
