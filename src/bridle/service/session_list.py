"""Lists of sessions, and one of them in a line. Reads; takes nothing up.

Which are the newest is known from the folder alone. Only those that are shown are looked into, and
not again while their logs stay as they are. Everything that blocks runs in a thread.
"""

import asyncio
import math
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import asdict, replace

from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.engine.history import History
from bridle.engine.session import Session
from bridle.errors import AgentError, StoreFailed
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import (
    STATES,
    ApprovalRequest,
    Budget,
    Grants,
    SessionDetail,
    SessionInfo,
    SessionPage,
    Transcript,
)
from bridle.service.engine_pool import EnginePool, EngineSpec
from bridle.service.open_sessions import OpenSessions
from bridle.service.session_info import (
    LogSummary,
    context,
    granted,
    last_reason,
    of_head,
    of_log,
    of_open,
    pending_view,
    queued,
    summarize_log,
)
from bridle.service.session_limits import kept_limits, to_view
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.locks import describe_process, lock_owners, owner_pid
from bridle.stores.pending_approvals import PendingApproval, pending_in
from bridle.stores.session_index import LogEntry, SessionEntry, log_entries, read_entries

_MOST = 200  # in one page
Print = tuple[int, int, float]  # inode, size, time of change: what a log is known again by


class Asked(Struct, frozen=True):
    """Which sessions are wanted."""

    query: str = ""
    limit: int = 50
    cursor: str = ""
    workspace: str = ""
    state: str = ""


class Listing:
    """What there is to show of sessions."""

    def __init__(self, ground: WorkspaceScope, holding: OpenSessions) -> None:
        self._ground = ground
        self._holding = holding
        self._views: dict[str, tuple[Print, SessionInfo]] = {}  # from logs alone
        self._labels: dict[str, tuple[Print, SessionEntry]] = {}
        self._asking: dict[str, tuple[Print, list[PendingApproval]]] = {}

    async def page(self, asked: Asked) -> SessionPage:
        """A page of sessions, the newest first. Raise `BadRequest`."""
        if asked.state and asked.state not in STATES:
            raise BadRequest(
                f"there is no state {asked.state[:40]!r}", hint=f"It is {', '.join(STATES)}."
            )
        after = _place_of(asked.cursor)
        here = {one.id: one for one in self._holding.open()}
        found = await asyncio.to_thread(self._page, asked, after, here)
        silent = {one.workspace for one in found.sessions if not one.mode}
        modes = {one: await self._holding.usual_mode(one) for one in silent}
        shown = (replace(one, mode=one.mode or modes[one.workspace]) for one in found.sessions)
        return replace(found, sessions=tuple(shown)) if any(modes.values()) else found

    async def view(self, session_id: str) -> SessionInfo:
        """One in a line. Raise `UnknownSession`."""
        view = await asyncio.to_thread(self.look, session_id, self._holding.get_open(session_id))
        if view.mode:
            return view
        return replace(view, mode=await self._holding.usual_mode(view.workspace))

    async def pending(self) -> tuple[ApprovalRequest, ...]:
        """The open questions of all sessions, the oldest first."""
        here = {one.id: one for one in self._holding.open()}
        found = await asyncio.to_thread(lambda: list(self._questions(here)))
        return tuple(view for _, view in sorted(found, key=lambda one: one[0]))

    def look(self, session_id: str, session: Session | None) -> SessionInfo:
        """In a thread: one session in a line. Raise `UnknownSession`."""
        place, head = self._ground.known(session_id)
        if session is not None:
            return of_open(session, place, head, self.reason(session))
        pid = owner_pid(self._ground.folder.path(session_id))
        return self._from_log(place, head, "" if pid is None else describe_process(pid))

    def asks(self, place: LogEntry, view: SessionInfo) -> tuple[ApprovalRequest, ...]:
        """In a thread: the open questions of one session."""
        found = self._pending(place)
        return tuple(pending_view(one.asked, one.seq, view, posted=one.posted) for one in found)

    def children(self, session_id: str) -> tuple[str, ...]:
        """In a thread: the tasks of a session, the oldest first."""
        heads = [self._ground.head(place) for place in self._places()]
        return tuple(
            sorted(one.id for one in heads if one is not None and one.parent == session_id)
        )

    def reason(self, session: Session) -> str:
        """In a thread: how the newest turn of a session that is open here has ended."""
        if session.last_reason is not None:
            return session.last_reason
        reasons = self._holding.reasons
        if session.id not in reasons:
            reasons[session.id] = last_reason(self._ground.folder, session.id)
        return session.last_reason or reasons[session.id]

    def _page(
        self, asked: Asked, after: tuple[float, str] | None, here: Mapping[str, Session]
    ) -> SessionPage:
        limit = min(max(1, asked.limit), _MOST)
        found: list[SessionInfo] = []
        last: LogEntry | None = None
        for place, view in self._wanted(asked, after, here):
            if len(found) == limit and last is not None:
                return SessionPage(tuple(found), f"{last.changed!r}~{last.id}")
            found.append(view)
            last = place
        return SessionPage(tuple(found))

    def _wanted(
        self, asked: Asked, after: tuple[float, str] | None, here: Mapping[str, Session]
    ) -> Iterator[tuple[LogEntry, SessionInfo]]:
        words = " ".join(asked.query.split()).casefold()
        within = self._ground.workspace(asked.workspace) if asked.workspace else ""
        locks = lock_owners()
        for place in self._places():
            if after is not None and (place.changed, place.id) >= after:
                continue
            head = self._ground.head(place)
            if head is None or not self._ground.allows(head.workspace, within):
                continue
            if words and not _matches(self._label(place, head), words):
                continue
            view = self._one(place, head, locks, here)
            if not asked.state or view.state == asked.state:
                yield place, view

    def _places(self) -> list[LogEntry]:
        """All logs, the newest first; what is gone is forgotten."""
        try:
            found = log_entries(self._ground.folder.folder)
        except OSError as error:
            raise StoreFailed(
                f"the sessions cannot be listed: {error.strerror or error}", error
            ) from error
        there = {one.id for one in found}
        self._ground.forget(there)
        for table in (self._views, self._labels, self._asking):
            for gone in table.keys() - there:
                table.pop(gone, None)
        return found

    def _one(
        self,
        place: LogEntry,
        head: SessionEntry,
        locks: Mapping[tuple[int, int], int],
        here: Mapping[str, Session],
    ) -> SessionInfo:
        if (session := here.get(place.id)) is not None and not session.is_closed:
            return of_open(session, place, head, self.reason(session))
        pid = locks.get(head.file)
        return self._from_log(place, head, "" if pid is None else describe_process(pid))

    def _from_log(self, place: LogEntry, head: SessionEntry, holder: str) -> SessionInfo:
        print_ = (place.inode, place.size, place.changed)
        known = self._views.get(place.id)
        if known is not None and known[0] == print_ and known[1].holder == holder:
            return known[1]
        try:
            seen = summarize_log(self._ground.folder, place.id)
        except AgentError:  # it is damaged, or gone by now
            return replace(of_head(place, head), holder=holder)
        view = of_log(seen, place, head, holder)
        self._views[place.id] = print_, view
        return view

    def _label(self, place: LogEntry, head: SessionEntry) -> SessionEntry:
        """Title and tags as they are now."""
        print_ = (place.inode, place.size, place.changed)
        known = self._labels.get(place.id)
        if known is not None and known[0] == print_:
            return known[1]
        found = next(read_entries([place]), head)._replace(end=b"")
        self._labels[place.id] = print_, found
        return found

    def _pending(self, place: LogEntry) -> list[PendingApproval]:
        print_ = (place.inode, place.size, place.changed)
        known = self._asking.get(place.id)
        if known is not None and known[0] == print_ and not known[1]:
            return []  # where somebody is asked, an answer may have been posted since
        found = pending_in(place, self._ground.folder)
        self._asking[place.id] = print_, found
        return found

    def _questions(self, here: Mapping[str, Session]) -> Iterator[tuple[str, ApprovalRequest]]:
        locks = lock_owners()
        for place in self._places():
            if not (found := self._pending(place)):
                continue
            head = self._ground.head(place)
            if head is None or not self._ground.allows(head.workspace):
                continue
            view = self._one(place, head, locks, here)
            for one in found:
                yield one.timestamp, pending_view(one.asked, one.seq, view, posted=one.posted)


def _matches(found: SessionEntry, words: str) -> bool:
    said = (found.id, found.title, found.workspace, *found.tags)
    return any(words in " ".join(text.split()).casefold() for text in said)


def _place_of(cursor: str) -> tuple[float, str] | None:
    """Where the page before ended. Raise `BadRequest`."""
    if not cursor:
        return None
    changed, _, session_id = cursor.partition("~")
    try:
        return float(changed), session_id
    except ValueError:
        raise BadRequest(
            f"{cursor[:80]!r} is no cursor", hint="Use the `next` of the page before."
        ) from None


class Detailing:
    """What there is to show of one session."""

    def __init__(
        self, ground: WorkspaceScope, holding: OpenSessions, engines: EnginePool, listing: Listing
    ) -> None:
        self._ground = ground
        self._holding = holding
        self._engines = engines
        self._listing = listing

    async def detail(self, session_id: str) -> SessionDetail:
        """All of it. Raise `UnknownSession`."""
        session = self._holding.get_open(session_id)
        view, questions, history = await asyncio.to_thread(self._looked, session_id, session)
        engine = await self._usual(view.workspace)
        limits = await asyncio.to_thread(self._limits, session_id, session, engine)
        return SessionDetail(
            **asdict(view) | {"mode": view.mode or (engine.parts.mode if engine else "")},
            todos=history.todos,
            pending=questions,
            queued=queued(history),
            metrics=history.metrics,
            context=context(history, _window(session, engine, view.model)),
            limits=to_view(limits),
            grants=granted(history, _lasting(engine)),
            children=await asyncio.to_thread(self._listing.children, session_id),
        )

    async def budget(self, session_id: str) -> Budget:
        """What it may use, and what it has used."""
        found = await self.detail(session_id)
        return Budget(found.limits, found.metrics, found.context)

    async def grants(self, session_id: str) -> Grants:
        """What was allowed for it and still holds."""
        history, workspace = await self._history(session_id)
        return Grants(granted(history, _lasting(await self._usual(workspace))))

    async def history(self, session_id: str) -> Transcript:
        """The conversation as it stands."""
        if (session := self._holding.get_open(session_id)) is not None:
            await asyncio.to_thread(self._ground.known, session_id)
            return Transcript(tuple(session.history.transcript), session.seq)
        seen = await asyncio.to_thread(self._glimpse, session_id)
        return Transcript(tuple(seen.history.transcript), seen.seq)

    async def _history(self, session_id: str) -> tuple[History, str]:
        _, head = await asyncio.to_thread(self._ground.known, session_id)
        if (session := self._holding.get_open(session_id)) is not None:
            return session.history, head.workspace
        return (await asyncio.to_thread(self._glimpse, session_id)).history, head.workspace

    def _glimpse(self, session_id: str) -> LogSummary:
        self._ground.known(session_id)
        return summarize_log(self._ground.folder, session_id)

    def _looked(
        self, session_id: str, session: Session | None
    ) -> tuple[SessionInfo, tuple[ApprovalRequest, ...], History]:
        view = self._listing.look(session_id, session)
        place, _ = self._ground.known(session_id)
        questions = self._listing.asks(place, view)
        if session is not None:
            return view, questions, session.history
        return view, questions, summarize_log(self._ground.folder, session_id).history

    def _limits(self, session_id: str, session: Session | None, engine: Engine | None) -> Limits:
        """In a thread: those that hold, or would if the session were taken up."""
        if session is not None:
            return session.limits
        usual = engine.parts.limits if engine is not None else Limits()
        return kept_limits(self._ground.folder, session_id, usual)

    async def _usual(self, workspace: str) -> Engine | None:
        """The engine that sessions of a folder usually have; None where there can be none."""
        try:
            return await self._engines.engine(EngineSpec(self._ground.workspace(workspace)))
        except AgentError:
            return None


def _window(session: Session | None, engine: Engine | None, model: str) -> int | None:
    if session is not None:
        return session.window
    info = engine.provider.info if engine is not None else None
    return info.context_window if info is not None and info.label == model else None


def _lasting(engine: Engine | None) -> float:
    """How long a yes for the session lasts, where the log does not say."""
    return engine.parts.ask_grant_seconds if engine is not None else math.inf
