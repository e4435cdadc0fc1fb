"""Lists of sessions, and everything that is shown of one. Reads; opens nothing.

Only sessions that are shown are looked into, and not again while their logs stay as they are.
Everything that blocks runs in a thread.
"""

import asyncio
import math
from collections.abc import Hashable, Mapping

from msgspec.structs import asdict, replace

from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.engine.history import History
from bridle.engine.session import Session
from bridle.errors import AgentError
from bridle.protocols.session_catalog import HeadQuery, SessionHead
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import (
    STATES,
    ApprovalRequest,
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
    approval_request,
    context_usage,
    info_of_head,
    info_of_log,
    info_of_session,
    last_reason,
    queued_prompts,
    read_summary,
    valid_grants,
)
from bridle.service.session_limits import recorded_limits, to_session_limits
from bridle.service.workspace_scope import WorkspaceScope

_MOST = 200  # sessions in a page
_CACHED = 20_000  # sessions of which the newest description is kept


class SessionList:
    """The sessions of a service, and what is shown of them."""

    def __init__(self, scope: WorkspaceScope, sessions: OpenSessions, engines: EnginePool) -> None:
        self._scope = scope
        self._sessions = sessions
        self._engines = engines
        self._from_logs: dict[str, tuple[Hashable, SessionInfo]] = {}  # by id, with the version

    async def page(
        self, query: str, limit: int, cursor: str, workspace: str, state: str
    ) -> SessionPage:
        """Return a page of sessions, the newest first. Raise `BadRequest`."""
        if state and state not in STATES:
            raise BadRequest(
                f"there is no state {state[:40]!r}", hint=f"It is {', '.join(STATES)}."
            )
        allowed = self._scope.workspaces
        if workspace:
            allowed = (self._scope.workspace(workspace),)
        heads = HeadQuery(query, _position(cursor), allowed, owners=True)
        limit = min(max(1, limit), _MOST)
        here = {session.id: session for session in self._sessions.open()}
        page = await asyncio.to_thread(self._page, heads, limit, state, here)
        without = {info.workspace for info in page.sessions if not info.mode}
        modes = {folder: await self._sessions.usual_mode(folder) for folder in without}
        if not any(modes.values()):
            return page
        infos = (replace(info, mode=info.mode or modes[info.workspace]) for info in page.sessions)
        return replace(page, sessions=tuple(infos))

    async def info(self, session_id: str) -> SessionInfo:
        """Return one session. Raise `UnknownSession`."""
        session = self._sessions.get_open(session_id)
        info = await asyncio.to_thread(self._info, session_id, session)
        if info.mode:
            return info
        return replace(info, mode=await self._sessions.usual_mode(info.workspace))

    async def detail(self, session_id: str) -> SessionDetail:
        """Return one session with everything that is shown beside its conversation."""
        session = self._sessions.get_open(session_id)
        info, requests, history = await asyncio.to_thread(self._detail, session_id, session)
        engine = await self._usual_engine(info.workspace)
        limits = await asyncio.to_thread(self._limits, session_id, session, engine)
        return SessionDetail(
            **asdict(info) | {"mode": info.mode or (engine.parts.mode if engine else "")},
            todos=history.todos,
            pending=requests,
            queued=queued_prompts(history),
            metrics=history.metrics,
            context=context_usage(history, _window(session, engine, info.model)),
            limits=to_session_limits(limits),
            grants=valid_grants(history, _grant_seconds(engine)),
            children=await asyncio.to_thread(self._children, session_id),
        )

    async def grants(self, session_id: str) -> Grants:
        """Return the session's grants that are still valid."""
        head = await asyncio.to_thread(self._scope.session, session_id)
        history = await self._history(session_id)
        engine = await self._usual_engine(head.workspace)
        return Grants(valid_grants(history, _grant_seconds(engine)))

    async def transcript(self, session_id: str) -> Transcript:
        """Return the conversation as it is now."""
        await asyncio.to_thread(self._scope.session, session_id)
        if (session := self._sessions.get_open(session_id)) is not None:
            return Transcript(tuple(session.history.transcript), session.seq)
        summary = await asyncio.to_thread(self._summary, session_id)
        return Transcript(tuple(summary.history.transcript), summary.seq)

    async def pending(self) -> tuple[ApprovalRequest, ...]:
        """Return the pending approval requests of all sessions, the oldest first."""
        here = {session.id: session for session in self._sessions.open()}
        requests = await asyncio.to_thread(self._pending, here)
        return tuple(request for _, request in sorted(requests, key=lambda pair: pair[0]))

    def _page(
        self, query: HeadQuery, limit: int, state: str, here: Mapping[str, Session]
    ) -> SessionPage:
        infos: list[SessionInfo] = []
        last: SessionHead | None = None
        for head in self._scope.catalog.heads(query):
            info = self._info_of(head, here.get(head.id), head.owner)
            if state and info.state != state:
                continue
            if len(infos) == limit and last is not None:
                return SessionPage(tuple(infos), f"{last.changed!r}~{last.id}")
            infos.append(info)
            last = head
        return SessionPage(tuple(infos))

    def _info(self, session_id: str, session: Session | None) -> SessionInfo:
        head = self._scope.session(session_id)
        if session is not None:
            return info_of_session(session, head, self._reason(session))
        owner = self._scope.catalog.owner(session_id)
        return self._info_of(head, None, owner.description if owner is not None else "")

    def _info_of(self, head: SessionHead, session: Session | None, owner: str) -> SessionInfo:
        if session is not None and not session.is_closed:
            return info_of_session(session, head, self._reason(session))
        known = self._from_logs.get(head.id)
        if known is not None and known[0] == head.version and known[1].holder == owner:
            return known[1]
        try:
            summary = self._summary(head.id)
        except AgentError:  # it is damaged, or gone by now
            return info_of_head(head, owner)
        info = info_of_log(summary, head, owner)
        if len(self._from_logs) >= _CACHED:
            self._from_logs.clear()
        self._from_logs[head.id] = head.version, info
        return info

    def _reason(self, session: Session) -> str:
        """Return how the newest turn of a session that is open here has ended."""
        if session.last_reason is not None:
            return session.last_reason
        reasons = self._sessions.reasons
        if session.id not in reasons:
            reasons[session.id] = last_reason(self._scope.catalog, session.id)
        return session.last_reason or reasons[session.id]

    def _detail(
        self, session_id: str, session: Session | None
    ) -> tuple[SessionInfo, tuple[ApprovalRequest, ...], History]:
        info = self._info(session_id, session)
        pending = self._scope.catalog.pending(session_id)
        requests = tuple(approval_request(approval, info) for approval in pending)
        history = session.history if session is not None else self._summary(session_id).history
        return info, requests, history

    def _pending(self, here: Mapping[str, Session]) -> list[tuple[str, ApprovalRequest]]:
        catalog = self._scope.catalog
        requests = []
        for session_id in catalog.versions():
            if not (pending := catalog.pending(session_id)):
                continue
            head = catalog.head(session_id)
            if head is None or not self._scope.allows(head.workspace):
                continue
            owner = catalog.owner(session_id)
            words = owner.description if owner is not None else ""
            info = self._info_of(head, here.get(session_id), words)
            requests += [
                (approval.timestamp, approval_request(approval, info)) for approval in pending
            ]
        return requests

    def _children(self, session_id: str) -> tuple[str, ...]:
        """Return the tasks of a session, the oldest first."""
        heads = self._scope.catalog.heads(HeadQuery(parent=session_id))
        return tuple(sorted(head.id for head in heads))

    async def _history(self, session_id: str) -> History:
        if (session := self._sessions.get_open(session_id)) is not None:
            return session.history
        return (await asyncio.to_thread(self._summary, session_id)).history

    def _summary(self, session_id: str) -> LogSummary:
        return read_summary(self._scope.catalog, session_id)

    def _limits(self, session_id: str, session: Session | None, engine: Engine | None) -> Limits:
        """Return the limits that hold, or would if the session were opened."""
        if session is not None:
            return session.limits
        usual = engine.parts.limits if engine is not None else Limits()
        return recorded_limits(self._scope.catalog, session_id, usual)

    async def _usual_engine(self, workspace: str) -> Engine | None:
        """Return the engine that sessions of a folder usually have; None if there can be none."""
        try:
            return await self._engines.engine(EngineSpec(self._scope.workspace(workspace)))
        except AgentError:
            return None


def _window(session: Session | None, engine: Engine | None, model: str) -> int | None:
    if session is not None:
        return session.window
    info = engine.provider.info if engine is not None else None
    return info.context_window if info is not None and info.label == model else None


def _grant_seconds(engine: Engine | None) -> float:
    """Return how long a grant lasts if the log does not say."""
    return engine.parts.ask_grant_seconds if engine is not None else math.inf


def _position(cursor: str) -> tuple[float, str] | None:
    """Return where the previous page ended. Raise `BadRequest`."""
    if not cursor:
        return None
    changed, _, session_id = cursor.partition("~")
    try:
        return float(changed), session_id
    except ValueError:
        raise BadRequest(
            f"{cursor[:80]!r} is not a cursor", hint="Use the `next` of the page before."
        ) from None
