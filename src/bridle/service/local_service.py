"""The sessions of this machine, for every interface.

A verb goes to where its session is. If the session is open here, it is called directly. If another
process owns it, that process gets a message in the session's inbox, and the log shows the outcome.
If no process owns it, it is opened here.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from hashlib import blake2b
from os import PathLike
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.approvals import EXPIRED
from bridle.engine.engine import Engine, new_id
from bridle.engine.history import History, as_of
from bridle.engine.session import Session
from bridle.errors import (
    EmptyPrompt,
    SessionBusy,
    SessionClosed,
    SessionError,
    SessionLocked,
    UnknownApproval,
)
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    GrantRevoked,
    InterruptRequested,
    ModeChanged,
    PromptReceived,
    TitleChanged,
    When,
)
from bridle.messages import Part, to_parts
from bridle.policy import Mode
from bridle.protocols.codec import to_record
from bridle.protocols.session import Answer, Prompt
from bridle.protocols.session_catalog import SessionCatalog
from bridle.protocols.session_errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApprovalTaken,
    BadRequest,
    IdempotencyConflict,
    NotFound,
    PromptBegun,
    QueueFull,
    Unavailable,
)
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
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.followed_session import FollowedSession
from bridle.runtime.inbox_sender import new_message_id
from bridle.service.changes import ChangeWatcher, coalesced
from bridle.service.choices import AllowedChoices
from bridle.service.engine_pool import EnginePool, EngineSpec, previous_run
from bridle.service.inbox_client import InboxClient, MessageRefused
from bridle.service.inventory import rules_of, servers_of, tools_of
from bridle.service.log_feed import LogFeed
from bridle.service.log_follower import LogFollower
from bridle.service.open_sessions import (
    CrashRecovery,
    OnChange,
    OpenMarkers,
    OpenSessions,
    resume_session,
)
from bridle.service.records import LogRecords
from bridle.service.search import SessionSearch
from bridle.service.session_info import read_summary, valid_grants
from bridle.service.session_limits import with_changes
from bridle.service.session_list import SessionList
from bridle.service.undo import SessionUndo
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.file_catalog import FileCatalog

log = logging.getLogger(__name__)

_IDLE = 15.0  # seconds without anything, after which a session is closed
_INBOX_TIMEOUT = 5.0  # seconds that another process has to handle a message
_INTERRUPT_TIMEOUT = 2.0  # seconds that an interrupt is awaited; it continues all the same
_LONGEST = 500  # characters of a title or a tag
_KEY, _BODY = 24, 16  # hex digits of the hashes of an idempotency key and of what was sent
_WAITING, _WAITING_BYTES = 100, 20_000_000  # prompts that may wait in a session
_REMEMBERED = 256  # message ids that a session remembers; older ones are searched in its log
_FORK = re.compile(r" \(fork(?: (\d+))?\)$")
_APPROVAL = b'"data":{"type":"approval_'
_EXPIRY = "expiry"  # who answers a request whose time is over
_encode = msgspec.json.Encoder(order="deterministic").encode


class LocalService:
    """Everything that can be asked of the sessions in a state folder. Implements `SessionService`.

    `workspaces` None allows any folder. A session that is idle for `idle` seconds is closed.
    Another process has `timeout` seconds to handle a message. Sessions that a killed service of
    the same name (`choices.face`) left open are resumed at the start. `user` is who does something
    in a conversation that `open` returns.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        engines: EnginePool,
        workspaces: tuple[str, ...] | None,
        *,
        idle: float = _IDLE,
        timeout: float = _INBOX_TIMEOUT,
        choices: AllowedChoices | None = None,
        user: str = "me",
        catalog: SessionCatalog | None = None,
    ) -> None:
        self._user = user
        self.catalog: SessionCatalog = catalog or FileCatalog(folder)
        self.choices = choices or AllowedChoices()
        self.engines = engines
        self._idle = idle
        self._listeners: dict[OnChange, bool] = {}  # and whether they need other processes' changes
        self._tasks: list[asyncio.Task[None]] = []
        self._interrupting: set[asyncio.Task[None]] = set()
        self._sending: dict[tuple[str, str], tuple[str, asyncio.Task[int]]] = {}  # by session, key
        self._scope = WorkspaceScope(self.catalog, workspaces)
        self.workspaces = self._scope.workspaces
        markers = OpenMarkers(Path(folder))
        self._sessions = OpenSessions(
            self._scope, engines, markers, self.choices, idle=idle, on_change=self._report
        )
        self._list = SessionList(self._scope, self._sessions, engines)
        self._records = LogRecords(self._scope)
        self._inbox = InboxClient(self._scope, self._sessions, timeout)
        self._search = SessionSearch(self._scope)
        self._undo = SessionUndo(self._scope, Path(folder))
        self._changes = ChangeWatcher(self._scope, self._sessions.get_open, self._report)
        self._recovery = CrashRecovery(self._scope, self._sessions, markers)

    # Life

    @property
    def stopping(self) -> bool:
        """Whether the service is being stopped."""
        return self._sessions.stopping

    @property
    def ready(self) -> bool:
        """Whether it has been started and is not being stopped."""
        return bool(self._tasks) and not self.stopping

    async def start(self) -> None:
        """Resume what a killed service left behind, in the background."""
        watch = self._changes.run(lambda: any(self._listeners.values()))
        work = (self._recover(), self._sweep(), watch)
        self._tasks = [asyncio.ensure_future(each) for each in work]

    async def wait_for_recovery(self) -> None:
        """Return when everything that was cut off has been looked at."""
        if self._tasks:
            await asyncio.wait(self._tasks[:1])

    async def stop(self, seconds: float) -> None:
        """Take nothing new; park what waits for a person, interrupt the rest, flush everything."""
        self._sessions.stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._sessions.close(seconds)
        if self._interrupting:
            await asyncio.wait(self._interrupting)

    def get_open(self, session_id: str) -> Session | None:
        """Return that session, if it is open here."""
        return self._sessions.get_open(session_id)

    def open_sessions(self) -> tuple[Session, ...]:
        """Return all sessions that are open here, including tasks."""
        return self._sessions.open()

    def on_changed(self, listener: OnChange, *, others: bool = True) -> Callable[[], None]:
        """Call `listener` in the event loop when a session changes; return what ends that.

        It gets the session's id and "opened", "changed", "closed" or "deleted". Without `others`
        it may miss what other processes do, so that nobody needs to look for it.
        """
        self._listeners[listener] = others

        def unsubscribe() -> None:
            self._listeners.pop(listener, None)

        return unsubscribe

    async def changes(self) -> AsyncGenerator[None, None]:
        """Yield each time something about the sessions has changed. Never ends."""
        looking = None
        if not self._tasks:  # the service was not started, so nobody looks at other processes
            looking = asyncio.ensure_future(self._changes.run(lambda: True, owners=True))
        try:
            async with aclosing(coalesced(self.on_changed)) as changes:
                async for _ in changes:
                    yield
        finally:
            if looking is not None:
                looking.cancel()
                await asyncio.wait([looking])

    def _report(self, session_id: str, name: str) -> None:
        for listener in list(self._listeners):
            try:
                listener(session_id, name)
            except Exception:  # the other listeners are called all the same
                log.warning("a change could not be reported", exc_info=True)

    async def _recover(self) -> None:
        try:
            count = await self._recovery.recover()
        except Exception:  # the sessions can be used all the same
            log.warning("not all sessions that were cut off could be resumed", exc_info=True)
            return
        if count:
            log.info("resumed %d sessions that had been cut off", count)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._idle / 4))
            await self._sessions.sweep()

    # Reading

    async def subscribe(self, session_id: str, after: int = 0) -> AsyncGenerator[Record, None]:
        """Yield every record after that number: what was written, then live. Never ends.

        No gap and no repeat, also if the session is opened or closed here meanwhile. Raise
        `UnknownSession` if it is deleted.
        """
        last = after
        while True:
            session = self.get_open(session_id)
            source = session.subscribe(last) if session else self._follow(session_id, last)
            async with aclosing(source) as records:
                async for record in records:
                    last = record.seq
                    yield record

    async def _follow(self, session_id: str, after: int) -> AsyncGenerator[Record, None]:
        """Yield the records of a session until it is opened here."""
        follower = await LogFollower.open(self.catalog, session_id, after)
        try:
            while self.get_open(session_id) is None:
                while lines := await follower.read():
                    for line in lines:
                        yield to_record(line) if isinstance(line, bytes) else line
                await follower.wait()
        finally:
            follower.close()

    async def list(
        self,
        query: str = "",
        limit: int = 50,
        cursor: str = "",
        workspace: str = "",
        state: str = "",
    ) -> SessionPage:
        """Return a page of sessions, the newest first."""
        return await self._list.page(query, limit, cursor, workspace, state)

    async def info(self, session_id: str) -> SessionInfo:
        """Return one session. Raise `UnknownSession`, also if it belongs to another workspace."""
        return await self._list.info(session_id)

    async def detail(self, session_id: str) -> SessionDetail:
        """Return one session with everything that is shown beside its conversation."""
        return await self._list.detail(session_id)

    async def history(self, session_id: str) -> Transcript:
        """Return the conversation as it is now."""
        return await self._list.transcript(session_id)

    async def records(
        self, session_id: str, after: int = 0, before: int = 0, limit: int = 500
    ) -> RecordPage:
        """Return records after one, or (`before`) the last ones before one."""
        return await self._records.page(session_id, after, before, limit)

    def export(self, session_id: str, form: str) -> AsyncIterator[bytes]:
        """Return the session as a file, in pieces: `jsonl` or `markdown`."""
        return self._records.export(session_id, form)

    async def pending(self) -> PendingApprovals:
        """Return the pending approval requests of all sessions and tasks, the oldest first."""
        return PendingApprovals(await self._list.pending())

    async def search(self, words: str, limit: int = 50) -> SearchHits:
        """Return where the words occur, in all sessions."""
        return await self._search.text(words, limit)

    async def files(self, session_id: str, query: str = "", limit: int = 50) -> FilePaths:
        """Return files of its workspace that match, the best first."""
        session = self._sessions.get_open(session_id)
        workspace = session.workspace if session is not None else ""
        return await self._search.files(session_id, workspace, query, limit)

    async def workspace_files(self, workspace: str, query: str = "", limit: int = 50) -> FilePaths:
        """Return files of a workspace that match, the best first; "" is the first workspace."""
        return await self._search.workspace_files(workspace, query, limit)

    async def preview_rule(self, session_id: str, rule: str) -> RulePreview:
        """Return past calls that a rule would have covered."""
        return await self._search.covered_calls(session_id, rule)

    async def budget(self, session_id: str) -> Budget:
        """Return its limits, and what it has used."""
        detail = await self.detail(session_id)
        return Budget(detail.limits, detail.metrics, detail.context)

    async def grants(self, session_id: str) -> Grants:
        """Return its grants that are still valid."""
        return await self._list.grants(session_id)

    async def tools(self, session_id: str) -> Choices:
        """Return the tools that its model has, or would have if it were opened."""
        return tools_of(await self._engine(session_id))

    async def mcp_servers(self, session_id: str) -> Choices:
        """Return the MCP servers of its folder."""
        head = await asyncio.to_thread(self._scope.session, session_id)
        return await asyncio.to_thread(servers_of, self._scope.workspace(head.workspace))

    async def rules(self, session_id: str) -> Choices:
        """Return its mode, its grants and the rules that hold in it."""
        engine = await self._engine(session_id)
        if (session := self._sessions.get_open(session_id)) is not None:
            return rules_of(engine.parts.rules, session.mode, session.grants())
        summary = await asyncio.to_thread(read_summary, self.catalog, session_id)
        grants = valid_grants(summary.history, engine.parts.ask_grant_seconds)
        return rules_of(engine.parts.rules, summary.history.mode or engine.parts.mode, grants)

    async def mode_at(self, session_id: str, at: int) -> Mode | None:
        """Return the mode of its own that it had at a record; auto ends with a process."""
        await asyncio.to_thread(self._scope.session, session_id)
        state = await asyncio.to_thread(lambda: as_of(self.catalog.read(session_id), at))
        return state.mode if state.mode and state.mode != "auto" else None

    async def _engine(self, session_id: str) -> Engine:
        """Return the engine that runs it, or that sessions of its folder usually have."""
        head = await asyncio.to_thread(self._scope.session, session_id)
        for engine in self.engines.open():
            if engine.get_open(session_id) is not None:
                return engine
        return await self.engines.engine(EngineSpec(self._scope.workspace(head.workspace)))

    async def open(self, session_id: str) -> FollowedSession:
        """Return the session as a conversation, whichever process owns it. Close it after use."""
        feed = LogFeed(
            self.catalog,
            self.subscribe,
            self._info_with_mode,
            await self._info_with_mode(session_id),
        )
        await feed.start()
        return FollowedSession(self, feed, self._user)

    async def _info_with_mode(self, session_id: str) -> SessionInfo:
        info = await self.info(session_id)
        if self.get_open(session_id) is not None:
            return info
        return replace(info, mode=await asyncio.to_thread(self.catalog.owner_mode, session_id))

    # Sessions

    async def create(self, wanted: NewSession, by: str) -> SessionInfo:
        """Return a new session, once its first record is on disk. Raise `UnknownWorkspace`."""
        self._sessions.check_running()
        root = await asyncio.to_thread(self._scope.workspace, wanted.workspace_path)
        title = _one_line(wanted.title, "title")
        spec = EngineSpec(root, wanted.provider, wanted.model, wanted.agent)
        session = await self._sessions.create(spec)
        if wanted.mode is not None:
            session.emit_with_first_prompt(ModeChanged(wanted.mode, by, "chosen at the start"))
            session.history.mode = wanted.mode
        if title:
            session.emit_with_first_prompt(TitleChanged(title))
        await session.begin()
        return await self.info(session.id)

    async def resume(self, session_id: str, options: ResumeOptions, by: str) -> SessionInfo:
        """Open it, perhaps elsewhere or with another model, and continue what was left."""
        spec = await self._spec(session_id, options.workspace_path, _chosen(options))
        async with self._sessions.use(session_id, spec) as session:
            await session.begin()
            await resume_session(session)
        return await self.info(session_id)

    async def change(self, session_id: str, change: SessionUpdate, by: str) -> SessionDetail:
        """Change title, tags, mode, model or agent. Raise `SessionBusy`, `SessionLocked`."""
        tags = None if change.tags is None else [_one_line(tag, "tag") for tag in change.tags]
        title = None if change.title is None else _one_line(change.title, "title")
        if title == "" or (tags is not None and not all(tags)):
            raise BadRequest("a title or a tag is empty", hint="Leave it out, or enter some text.")
        chosen = _chosen(change)
        spec = await self._spec(session_id, "", chosen) if chosen else None
        async with self._sessions.use(session_id, spec) as session:
            if spec is not None:
                await session.begin()
            if title is not None and title != session.title:
                await session.rename(title)
            if tags is not None:
                await session.tag(tags)
            if change.mode is not None:
                await session.set_mode(change.mode, by=by)
        self._report(session_id, "changed")
        return await self.detail(session_id)

    async def rewind(self, session_id: str, rewind: RewindRequest, by: str) -> SessionDetail:
        """Make the conversation again what it was at a record."""
        async with self._sessions.use(session_id) as session:
            await session.rewind(rewind.to, by=by)
        return await self.detail(session_id)

    async def compact(self, session_id: str, by: str) -> SessionDetail:
        """Shorten the conversation now."""
        async with self._sessions.use(session_id) as session:
            await session.compact(by=by)
        return await self.detail(session_id)

    async def set_budget(self, session_id: str, limits: SessionLimits, by: str) -> Budget:
        """Lower limits from the next turn on. A higher limit is refused."""
        async with self._sessions.use(session_id) as session:
            await session.lower_limits(with_changes(session.limits, limits), by=by)
        return await self.budget(session_id)

    async def fork(self, session_id: str, fork: ForkRequest, by: str) -> SessionInfo:
        """Create a session with its conversation up to a record."""
        title = fork_title((await self.info(session_id)).title)
        self._sessions.check_running()
        if fork.at is not None and fork.at < 1:
            raise BadRequest(f"there is no record {fork.at}", hint="Records are numbered from 1.")
        if self._sessions.get_open(session_id) is not None:
            async with self._sessions.use(session_id) as session:
                await session.begin()  # what was said so far is to be in it
        copy = new_id()
        await asyncio.to_thread(self.catalog.fork, session_id, fork.at, copy, title)
        self._report(copy, "changed")
        return await self.info(copy)

    async def delete(self, session_id: str, by: str) -> None:
        """Delete it for good. Raise `SessionBusy`, `SessionLocked`."""
        self._sessions.check_running()
        await asyncio.to_thread(self._scope.session, session_id)
        await self._sessions.close_one(session_id)
        await asyncio.to_thread(self.catalog.delete, session_id)
        self._report(session_id, "deleted")

    async def undo_preview(self, session_id: str, turn: int = 0) -> UndoPreview:
        """Return what undoing a turn would do (0: the newest that changed something)."""
        return await self._undo.preview(session_id, turn)

    async def undo(self, session_id: str, undo: UndoRequest, by: str) -> UndoResult:
        """Undo what a turn changed, as it was previewed."""
        async with self._sessions.use(session_id) as session:
            return await self._undo.undo(session, undo, by)

    async def _spec(
        self, session_id: str, workspace: str, chosen: dict[str, str]
    ) -> EngineSpec | None:
        """Return what the session should run with, or None to leave that as it was."""
        if not workspace and not chosen:
            return None
        previous = await asyncio.to_thread(previous_run, self._scope, session_id, workspace)
        if chosen:
            return EngineSpec(previous.workspace, **chosen)
        return (await self._sessions.spec_as_before(previous))[0] if previous.moved else None

    # Interrupts

    async def interrupt(self, session_id: str, by: str) -> None:
        """End the turn that is running or parked. It is no error if there is none."""
        self._sessions.check_running()
        if (session := self._sessions.get_open(session_id)) is not None:
            await asyncio.to_thread(self._scope.session, session_id)
            await self._interrupt_here(session, by)
        elif await self._inbox.is_needed(session_id):
            await self._interrupt_there(session_id, by)
        elif await asyncio.to_thread(self._has_turn, session_id):
            try:
                async with self._sessions.use(session_id) as opened:
                    await self._interrupt_here(opened, by)
            except SessionLocked:  # another process was faster
                await self._interrupt_there(session_id, by)

    def _has_turn(self, session_id: str) -> bool:
        return read_summary(self.catalog, session_id).history.running > 0

    async def _interrupt_here(self, session: Session, by: str) -> None:
        """A tool that does not stop is not awaited for long."""
        task = asyncio.ensure_future(session.interrupt(by=by))
        self._interrupting.add(task)
        task.add_done_callback(self._interrupting.discard)
        done, _ = await asyncio.wait([task], timeout=_INTERRUPT_TIMEOUT)
        for each in done:
            each.result()

    async def _interrupt_there(self, session_id: str, by: str) -> None:
        message = InboxMessage(new_message_id(), "interrupt", by)

        def handled(record: Record) -> bool | None:
            event = record.event
            return (isinstance(event, InterruptRequested) and event.letter == message.id) or None

        await self._inbox.send(session_id, message, handled)

    # Prompts. Each is accepted once it is on disk, and once only, however often it is sent: the
    # idempotency key is kept in the log as the id of the message that brought the prompt. It is a
    # hash of the sender and the key, followed by a hash of what was sent.

    async def send(
        self, session_id: str, request: PromptRequest, by: str, key: str = ""
    ) -> PromptAccepted:
        """Return the turn of a prompt. The same key and prompt again are the same turn.

        Raise `SessionBusy`, `IdempotencyConflict`, `EmptyPrompt`, `QueueFull`.
        """
        self._sessions.check_running()
        when: When = "queue" if request.queue and request.when == "idle" else request.when
        if not request.prompt and not request.parts:
            raise EmptyPrompt("the prompt is empty", hint="Set prompt or parts.")
        words = to_parts(request.prompt) if request.prompt else ()
        prompt = _Prompt(
            session_id=session_id,
            content=request.prompt,
            parts=(*words, *request.parts) if request.parts else (),
            when=when,
            by=by,
            id=_idempotent_id(by, key, request) if key else "",
        )
        turn = await (self._deliver_once(prompt) if key else self._deliver(prompt))
        return PromptAccepted(session_id, turn)

    async def withdraw(self, session_id: str, prompt: int, by: str) -> None:
        """Withdraw a prompt that waits, by its record. Raise `PromptBegun`, `NotFound`."""
        async with self._sessions.use(session_id) as session:
            if prompt not in session.history.waiting:
                raise await asyncio.to_thread(self._not_waiting, session_id, prompt)
            await session.withdraw(prompt, by=by)

    def _not_waiting(self, session_id: str, prompt: int) -> PromptBegun | NotFound:
        record = next(self.catalog.read(session_id, prompt - 1), None)
        if record is None or record.seq != prompt or not isinstance(record.event, PromptReceived):
            return NotFound(f"record {prompt} of session {session_id} is not a prompt")
        return PromptBegun(f"prompt {prompt} no longer waits: it has started, or was withdrawn")

    async def _deliver_once(self, prompt: "_Prompt") -> int:
        """Callers that send the same while it is being sent get the same turn."""
        place = prompt.session_id, prompt.key
        if (sending := self._sending.get(place)) is None:
            task = asyncio.ensure_future(self._deliver(prompt))
            sending = self._sending[place] = prompt.id, task
            task.add_done_callback(lambda done: self._delivered(place, done))
        _check_same(prompt, sending[0])
        return await asyncio.shield(sending[1])  # a caller that gives up does not stop it

    def _delivered(self, place: tuple[str, str], task: "asyncio.Task[int]") -> None:
        self._sending.pop(place, None)
        if not task.cancelled():
            task.exception()  # retrieved here in case no caller is left

    async def _deliver(self, prompt: "_Prompt") -> int:
        if not await self._inbox.is_needed(prompt.session_id):
            try:
                async with self._sessions.use(prompt.session_id) as session:
                    return await self._deliver_here(session, prompt)
            except SessionLocked:
                pass  # another process was faster
        return await self._deliver_there(prompt)

    async def _deliver_here(self, session: Session, prompt: "_Prompt") -> int:
        known = session.history.inbox_ids
        if prompt.id and (len(known) >= _REMEMBERED or any(map(prompt.is_same_key, known))):
            turn = await asyncio.to_thread(self._earlier_turn, prompt)
            if turn:
                return turn
        if session.is_busy:
            _check_queue(session.history)
        return await session.send(prompt.prompt, when=prompt.when, by=prompt.by, letter=prompt.id)

    async def _deliver_there(self, prompt: "_Prompt") -> int:
        """Send it to the process that owns the session."""
        if prompt.id and (turn := await asyncio.to_thread(self._earlier_turn, prompt)):
            return turn
        await asyncio.to_thread(self._check_there, prompt)
        sent = await asyncio.to_thread(self._sent_id, prompt)
        new = f"{prompt.id}-{new_message_id()[:8]}" if prompt.id else new_message_id()
        message = InboxMessage(
            sent or new, "send", prompt.by, prompt.content, prompt.parts, when=prompt.when
        )

        def turn_of(record: Record) -> int | None:
            event = record.event
            is_it = isinstance(event, PromptReceived) and event.letter == message.id
            return getattr(event, "turn", 0) if is_it else None

        try:
            return await self._inbox.send(prompt.session_id, message, turn_of, is_sent=bool(sent))
        except MessageRefused as refused:
            raise SessionBusy(refused.message) from None
        except Unavailable:
            turn = await asyncio.to_thread(self._earlier_turn, prompt) if sent else 0
            if not turn:  # it was handled just before we looked
                raise
            return turn

    def _earlier_turn(self, prompt: "_Prompt") -> int:
        """Return the turn that this prompt has been given before; 0 if it is new."""
        words = b'"letter":"' + prompt.key.encode()
        for record in self.catalog.find(prompt.session_id, words):
            event = record.event
            if isinstance(event, PromptReceived) and prompt.is_same_key(event.letter):
                _check_same(prompt, event.letter)
                return event.turn
        return 0

    def _sent_id(self, prompt: "_Prompt") -> str:
        """Return the id of the message with this key that is in the inbox already, if one is."""
        if not prompt.id:
            return ""
        for message in self.catalog.inbox(prompt.session_id):
            if prompt.is_same_key(message.id):
                _check_same(prompt, message.id)
                return message.id
        return ""

    def _check_there(self, prompt: "_Prompt") -> None:
        history = read_summary(self.catalog, prompt.session_id).history
        if history.running and prompt.when == "idle":
            raise SessionBusy(f"session {prompt.session_id} is busy with turn {history.running}")
        _check_queue(history)

    # Approvals. The first answer wins, and everybody else is told who gave it.

    async def answer(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str
    ) -> ApprovalOutcome:
        """Answer an approval request; return the answer that counts, which is this one.

        Raise `ApprovalTaken`, `ApprovalChanged`, `ApprovalExpired`, `UnknownApproval`.
        """
        self._sessions.check_running()
        if not await self._inbox.is_needed(session_id):
            await asyncio.to_thread(self._check_asked, session_id, call_id)
            given = Answer(answer.allowed, answer.scope, answer.word, by, answer.rule)
            try:
                async with self._sessions.use(session_id) as session:
                    return await self._answer_here(session, call_id, given, answer.shown)
            except SessionLocked:
                pass  # another process was faster
        return await self._answer_there(session_id, call_id, answer, by)

    async def revoke(self, session_id: str, grant: str, by: str) -> None:
        """Revoke a grant; "" revokes all. Raise `NotFound`."""
        self._sessions.check_running()
        try:
            if not await self._inbox.is_needed(session_id):
                try:
                    async with self._sessions.use(session_id) as session:
                        return await _revoke(session, grant, by)
                except SessionLocked:
                    pass  # another process was faster
            message = InboxMessage(new_message_id(), "revoke", by, grant)

            def revoked(record: Record) -> bool | None:
                event = record.event
                return (isinstance(event, GrantRevoked) and event.letter == message.id) or None

            await self._inbox.send(session_id, message, revoked)
        except MessageRefused as refused:
            raise NotFound(refused.message) from None

    async def approval(self, session_id: str, call_id: str, shown: str) -> ApprovalAsked | None:
        """Return the approval request with this fingerprint, if there was one."""
        await asyncio.to_thread(self._scope.session, session_id)
        asked, _ = await asyncio.to_thread(self._approvals, session_id, call_id)
        return asked.get(shown)

    async def _answer_here(
        self, session: Session, call_id: str, answer: Answer, shown: str
    ) -> ApprovalOutcome:
        try:
            await session.answer(call_id, answer, shown=shown, by=answer.by)
        except (UnknownApproval, SessionClosed):
            self._sessions.check_running()
            await asyncio.to_thread(self._refuse, session.id, call_id, shown)
        _, answered = await asyncio.to_thread(self._approvals, session.id, call_id)
        return _outcome(answered[shown])

    async def _answer_there(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str
    ) -> ApprovalOutcome:
        """Send it to the process that owns the session, if the request is still pending."""
        shown = answer.shown
        await asyncio.to_thread(self._refuse, session_id, call_id, shown, may_be_pending=True)
        message = InboxMessage(
            new_message_id(),
            "answer",
            by,
            call_id=call_id,
            shown=shown,
            allowed=answer.allowed,
            scope=answer.scope,
            word=answer.word,
            rule=answer.rule,
        )

        def answer_in(record: Record) -> ApprovalAnswered | None:
            event = record.event
            return event if isinstance(event, ApprovalAnswered) and event.shown == shown else None

        try:
            counts = await self._inbox.send(session_id, message, answer_in)
        except MessageRefused as refused:
            await asyncio.to_thread(self._refuse, session_id, call_id, shown)
            raise UnknownApproval(refused.message) from None
        if counts.letter != message.id:
            raise _taken(counts)
        return _outcome(counts)

    def _approvals(
        self, session_id: str, call_id: str
    ) -> tuple[dict[str, ApprovalAsked], dict[str, ApprovalAnswered]]:
        """Return the requests about a call and their answers, by fingerprint, the newest first."""
        asked: dict[str, ApprovalAsked] = {}
        answered: dict[str, ApprovalAnswered] = {}
        for record in self.catalog.find(session_id, _APPROVAL):
            event = record.event
            if isinstance(event, ApprovalAsked) and event.call.id == call_id:
                asked.setdefault(event.shown, event)
            elif isinstance(event, ApprovalAnswered) and event.call_id == call_id:
                answered.setdefault(event.shown, event)
        return asked, answered

    def _check_asked(self, session_id: str, call_id: str) -> None:
        """Raise `UnknownApproval` before a session is opened for nothing."""
        if not self._approvals(session_id, call_id)[0]:
            raise UnknownApproval(
                f"there is no approval request for call {call_id[:60]!r} in session {session_id}",
                hint="GET /api/approvals lists the pending requests.",
            )

    def _refuse(
        self, session_id: str, call_id: str, shown: str, *, may_be_pending: bool = False
    ) -> None:
        """Raise why an answer does not count."""
        self._check_asked(session_id, call_id)
        asked, answered = self._approvals(session_id, call_id)
        if shown in answered:
            raise _taken(answered[shown])
        if shown not in asked or next(iter(asked)) != shown:
            raise ApprovalChanged(f"call {call_id} would no longer do what was shown")
        if not may_be_pending:
            raise ApprovalExpired(f"the turn that requested approval of call {call_id} is over")


class _Prompt(Struct, frozen=True, kw_only=True):
    """A prompt that is being sent. `id` is empty if there is no idempotency key."""

    session_id: str
    content: str
    parts: tuple[Part, ...]
    when: When
    by: str
    id: str = ""

    @property
    def prompt(self) -> Prompt:
        return self.parts or self.content

    @property
    def key(self) -> str:
        """The hash of the sender and the key."""
        return self.id[:_KEY]

    def is_same_key(self, message_id: str) -> bool:
        return message_id.startswith(self.key)


def fork_title(title: str) -> str:
    """Return the title of a fork: `… (fork)`, `… (fork 2)`."""
    if not title:
        return ""
    number = int(match[1] or 1) + 1 if (match := _FORK.search(title)) else 1
    ending = f" (fork {number})" if number > 1 else " (fork)"
    return _FORK.sub("", title)[: _LONGEST - len(ending)] + ending


def _chosen(options: ResumeOptions | SessionUpdate) -> dict[str, str]:
    """Return the model and agent that were chosen."""
    values = {name: getattr(options, name, None) for name in ("provider", "model", "agent")}
    return {name: value for name, value in values.items() if value}


def _one_line(text: str, what: str) -> str:
    """Return the words on one line. Raise `BadRequest` for too many."""
    words = " ".join(text.split())
    if len(words) > _LONGEST:
        raise BadRequest(f"the {what} is longer than {_LONGEST} characters")
    return words


def _idempotent_id(by: str, key: str, request: PromptRequest) -> str:
    sender = blake2b(f"{by}\0{key}".encode("utf-8", "backslashreplace"), digest_size=_KEY // 2)
    body = blake2b(_encode(request), digest_size=_BODY // 2)
    return sender.hexdigest() + body.hexdigest()


def _check_same(prompt: _Prompt, message_id: str) -> None:
    """Raise `IdempotencyConflict` if the key was used for something else."""
    size = _KEY + _BODY
    if message_id[:size] != prompt.id[:size]:
        raise IdempotencyConflict(
            "this Idempotency-Key was used for another prompt; nothing was sent"
        )


def _check_queue(history: History) -> None:
    """Raise `QueueFull` if no more prompts may wait."""
    waiting = history.waiting.values()
    if len(waiting) >= _WAITING:
        raise QueueFull(f"{len(waiting)} prompts are waiting, which is the limit; nothing was sent")
    if sum(map(_size, waiting)) >= _WAITING_BYTES:
        raise QueueFull("the waiting prompts are too large in total; nothing was sent")


def _size(prompt: PromptReceived) -> int:
    return len(prompt.content) + sum(len(getattr(part, "data", "")) for part in prompt.parts)


async def _revoke(session: Session, grant: str, by: str) -> None:
    try:
        await session.revoke(grant, by=by)
    except SessionClosed:
        raise
    except SessionError as error:
        raise NotFound(error.message, hint=error.hint) from None


def _taken(answered: ApprovalAnswered) -> ApprovalTaken | ApprovalExpired:
    if answered.by == _EXPIRY and not answered.allowed and answered.word == EXPIRED.word:
        return ApprovalExpired(
            f"the request about call {answered.call_id} has expired, which counts as a denial"
        )
    verb = "approved" if answered.allowed else "denied"
    return ApprovalTaken(
        f"{answered.by} has already {verb} this, and the first answer counts",
        more={"by": answered.by, "allowed": answered.allowed},
    )


def _outcome(answered: ApprovalAnswered) -> ApprovalOutcome:
    return ApprovalOutcome(
        call_id=answered.call_id,
        allowed=answered.allowed,
        by=answered.by,
        scope=answered.scope,
        word=answered.word,
        rule=answered.rule,
    )
