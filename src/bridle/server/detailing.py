"""One session with all that stands beside its conversation: questions, prompts, limits, tasks.

Reads; takes nothing up. Everything that blocks runs in a thread.
"""

import asyncio
import math

from msgspec.structs import asdict

from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.engine.history import History
from bridle.engine.session import Session
from bridle.errors import AgentError
from bridle.server.bounds import kept_limits, to_view
from bridle.server.glimpse import Glimpse, glimpse
from bridle.server.ground import Ground
from bridle.server.holding import Holding
from bridle.server.listing import Listing
from bridle.server.opening import Engines, Wanted
from bridle.server.showing import context, granted, queued
from bridle.server.views import Budget, Grants, HistoryView, PendingView, SessionDetail, SessionView


class Detailing:
    """What there is to show of one session."""

    def __init__(
        self, ground: Ground, holding: Holding, engines: Engines, listing: Listing
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

    async def history(self, session_id: str) -> HistoryView:
        """The conversation as it stands."""
        if (session := self._holding.get_open(session_id)) is not None:
            await asyncio.to_thread(self._ground.known, session_id)
            return HistoryView(tuple(session.history.transcript), session.seq)
        seen = await asyncio.to_thread(self._glimpse, session_id)
        return HistoryView(tuple(seen.history.transcript), seen.seq)

    async def _history(self, session_id: str) -> tuple[History, str]:
        _, head = await asyncio.to_thread(self._ground.known, session_id)
        if (session := self._holding.get_open(session_id)) is not None:
            return session.history, head.workspace
        return (await asyncio.to_thread(self._glimpse, session_id)).history, head.workspace

    def _glimpse(self, session_id: str) -> Glimpse:
        self._ground.known(session_id)
        return glimpse(self._ground.folder, session_id)

    def _looked(
        self, session_id: str, session: Session | None
    ) -> tuple[SessionView, tuple[PendingView, ...], History]:
        view = self._listing.look(session_id, session)
        place, _ = self._ground.known(session_id)
        questions = self._listing.asks(place, view)
        if session is not None:
            return view, questions, session.history
        return view, questions, glimpse(self._ground.folder, session_id).history

    def _limits(self, session_id: str, session: Session | None, engine: Engine | None) -> Limits:
        """In a thread: those that hold, or would if the session were taken up."""
        if session is not None:
            return session.limits
        usual = engine.parts.limits if engine is not None else Limits()
        return kept_limits(self._ground.folder, session_id, usual)

    async def _usual(self, workspace: str) -> Engine | None:
        """The engine that sessions of a folder usually have; None where there can be none."""
        try:
            return await self._engines.engine(Wanted(self._ground.workspace(workspace)))
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
