"""An engine: what sessions share, and the sessions that are open. It owns them and closes them."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from msgspec import UNSET

from bridle.engine.history import History
from bridle.engine.parts import Parts
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionClosed
from bridle.events import SessionStarted
from bridle.messages import Message
from bridle.promises.provider import Provider, RequestConfig
from bridle.promises.session import Prompt, TurnResult
from bridle.promises.store import Log, Store

if TYPE_CHECKING:
    from bridle.engine.hub import Hub
    from bridle.engine.told import LiveSummary, Told, Topic
    from bridle.promises.agent import BaseAgent

log = logging.getLogger(__name__)

_AGAIN = 1.0  # seconds until letters that could not be taken are looked at again
_FAREWELL = 15.0  # seconds that an agent has to shut down


class Engine:
    """Starts sessions, takes them up again, and runs prompts for those who want no stream."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts = parts.changed(begin=self._begin)
        self._sessions: dict[str, Session] = {}
        self._passing: set[Session] = set()  # opened by a run, and nobody else was handed them
        # two who ask for one session get the same one
        self._taking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closed = False
        self._hub: Hub | None = None  # made when somebody wants to hear of all sessions
        self._forgotten = self._forget  # one for all sessions
        self._errands: set[asyncio.Task[None]] = set()

    @property
    def config(self) -> RequestConfig:
        """The settings of a request, where a session has no others."""
        return self._parts.config

    @property
    def provider(self) -> Provider:
        """The model's side."""
        return self._parts.provider

    @property
    def parts(self) -> Parts:
        """What its sessions share. Change nothing in it: `Parts.changed` makes another."""
        return self._parts

    @property
    def store(self) -> Store:
        """Where the sessions are kept."""
        return self._parts.store

    async def session(self, session_id: str | None = None, *, promised: bool = False) -> Session:
        """A new session, or an old one taken up again; one that is open here is handed out.

        `promised`: each prompt that waits there gets the turn that it was given by the process
        before, in its order. Otherwise the next turn takes all of them in.
        """
        session = await self._take(session_id, promised)
        self._passing.discard(session)
        return session

    async def _take(self, session_id: str | None, promised: bool = False) -> Session:
        if self._closed:
            raise SessionClosed("the engine is closed")
        if session_id is None:
            return self._begin(self._parts)
        lock = self._taking.setdefault(session_id, asyncio.Lock())
        async with lock:
            if (leaving := self._sessions.get(session_id)) is not None and leaving.is_closed:
                await leaving.close()  # until it has let the log go
            return self._known(session_id) or await self._resume(session_id, promised)

    def _begin(self, parts: Parts) -> Session:
        """A new session with these parts, which may be a child's."""
        if self._closed:
            raise SessionClosed("the engine is closed")
        return self._open(parts.store.create(new_id()), History(), parts, resumed=False)

    async def _resume(self, session_id: str, promised: bool) -> Session:
        history = History()
        log = await self._parts.store.resume(session_id, history.apply)
        session = self._open(log, history, self._parts, resumed=True)
        try:
            if promised and not history.parent:
                session.promise()  # before letters are taken: what they bring comes after it
            await session.recover()
            if self._closed:
                raise SessionClosed("the engine is closed")
        except BaseException:
            with suppress(AgentError):
                await session.close()
            raise
        return session

    def _known(self, session_id: str) -> Session | None:
        session = self._sessions.get(session_id)
        return None if session is None or session.is_closed else session

    def opened(self, session_id: str) -> Session | None:
        """That session, if it is open here."""
        return self._known(session_id)

    def sessions(self) -> tuple[Session, ...]:
        """Those that are open here, tasks too."""
        return tuple(one for one in self._sessions.values() if not one.is_closed)

    def summaries(self) -> "list[LiveSummary]":
        """The open sessions, each in one line: busy, waiting for answers, what it cost."""
        return self._hearing().summaries()

    def subscribe(self, topic: "Topic | None" = None) -> "AsyncGenerator[Told, None]":
        """What happens in all open sessions, live: everything, or one topic."""
        return self._hearing().subscribe(topic)

    def _hearing(self) -> "Hub":
        if self._hub is None:
            from bridle.engine.hub import Hub

            self._hub = Hub()
            for session in self._sessions.values():
                self._hub.add(session)
        return self._hub

    async def run(
        self,
        prompt: Prompt,
        messages: Iterable[Message] | None = None,
        *,
        session: Session | str | None = None,
        by: str = "me",
    ) -> TurnResult:
        """One prompt, one turn, one result. Without a session it is a new one.

        `messages` is a conversation from elsewhere that goes before. Cancelling it interrupts the
        turn. A session that was not open before is closed after.
        """
        used = session if isinstance(session, Session) else await self._take(session)
        try:
            if messages is not None:
                used.bring(messages)
            turn = 0
            try:
                turn = await used.send(prompt, by=by)
                return await used.wait(turn)
            except asyncio.CancelledError:
                await used.interrupt(by=by, turn=turn)  # not somebody else's
                raise
        finally:
            if used in self._passing and not used.is_busy:  # busy: with somebody else's turn
                await used.close()

    async def close(self) -> None:
        """Interrupt what runs, settle every log, let go of connections and threads."""
        self._closed = True
        self._parts.store.listen(None)
        async with AsyncExitStack() as leaving:  # whatever fails, the rest is closed, too
            if self._hub is not None:
                leaving.callback(self._hub.end)
            leaving.callback(self._parts.store.close)
            if self._parts.small is not None:
                leaving.push_async_callback(self._parts.small.close)
            leaving.push_async_callback(self._parts.provider.close)
            for source in self._parts.sources:
                leaving.push_async_callback(source.close)
            if (agent := self._parts.agent) is not None:
                leaving.push_async_callback(_shut_down, agent)
            for session in list(self._sessions.values()):
                leaving.push_async_callback(session.close)
            leaving.push_async_callback(self._drop_errands)

    async def __aenter__(self) -> "Engine":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _open(self, log: Log, history: History, parts: Parts, *, resumed: bool) -> Session:
        info = parts.provider.info
        opening = SessionStarted(
            log.session_id,
            parts.face,
            resumed,
            workspace=parts.workspace.root,
            model=info.label,
            version=parts.version,
            effort=parts.config.effort or UNSET,
        )
        session = Session(parts, log, history, opening, self._forgotten)
        if not self._sessions:
            parts.store.listen(self._ring)
        self._sessions[session.id] = session
        self._passing.add(session)
        if self._hub is not None:
            self._hub.add(session)
        return session

    def _ring(self) -> None:
        """Somebody has put a letter into an inbox; whose it is, is not said."""
        for session in self._sessions.values():
            errand = asyncio.ensure_future(_hear(session))
            self._errands.add(errand)
            errand.add_done_callback(self._errands.discard)

    async def _drop_errands(self) -> None:
        """Letters that were not taken by now wait for the next who holds their session."""
        for errand in self._errands:
            errand.cancel()
        if self._errands:
            await asyncio.wait(self._errands)

    def _forget(self, session: Session) -> None:
        self._passing.discard(session)
        if self._hub is not None:
            self._hub.remove(session)
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        if not self._sessions:
            self._parts.store.listen(None)


async def _shut_down(agent: "BaseAgent") -> None:
    """Have another agent leave nothing behind; what it cannot let go of is said, not waited for."""
    leaving = asyncio.ensure_future(_farewell(agent))
    await asyncio.wait((leaving,), timeout=_FAREWELL)
    if not leaving.done():
        leaving.cancel()
        log.warning("the agent did not shut down within %g seconds", _FAREWELL)
        await asyncio.wait((leaving,), timeout=1.0)


async def _farewell(agent: "BaseAgent") -> None:
    try:
        await agent.shutdown()
    except Exception:  # it is somebody else's, and the engine is closed all the same
        log.warning("the agent could not be shut down", exc_info=True)


async def _hear(session: Session) -> None:
    """Have its letters taken; while the disk does not work they stay where they are."""
    told = False
    while not session.is_closed:
        try:
            await session.take_letters()
            break
        except AgentError as error:
            if not told:
                log.warning("the inbox of session %s: %s", session.id, error.message)
            told = True
        await asyncio.sleep(_AGAIN)


def new_id() -> str:
    """A session's id: when it began, and something that no other has."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(5)}"
