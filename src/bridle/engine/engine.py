"""The engine: what sessions share, and the sessions that are open here. It owns and closes them."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from weakref import WeakValueDictionary

from msgspec import UNSET

from bridle.engine.engine_config import EngineConfig
from bridle.engine.foreign.agent import shut_down
from bridle.engine.history import History
from bridle.engine.hub import Hub, HubEvent, LiveSummary, Topic
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionClosed
from bridle.events import SessionStarted
from bridle.messages import Message
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.session import Prompt, TurnResult
from bridle.protocols.store import Log, Store

log = logging.getLogger(__name__)

_INBOX_RETRY_SECONDS = 1.0


class Engine:
    """Creates and resumes sessions, and runs single prompts for callers that need no stream."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config.changed(begin=self._begin)
        self._sessions: dict[str, Session] = {}
        self._temporary: set[Session] = set()  # opened by `run`, and given to nobody else
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closed = False
        self._hub: Hub | None = None  # made for the first subscriber
        self._on_closed = self._forget  # one bound method for all sessions
        self._inbox_checks: set[asyncio.Task[None]] = set()

    @property
    def config(self) -> RequestConfig:
        """The settings of requests, unless a session has its own."""
        return self._config.config

    @property
    def provider(self) -> Provider:
        """The model's provider."""
        return self._config.provider

    @property
    def parts(self) -> EngineConfig:
        """What its sessions share. Do not change it: `EngineConfig.changed` returns a copy."""
        return self._config

    @property
    def store(self) -> Store:
        """Where the sessions are stored."""
        return self._config.store

    async def session(self, session_id: str | None = None, *, keep_turns: bool = False) -> Session:
        """Create a session, resume an old one by its id, or return it if it is open here.

        `keep_turns`: each waiting prompt gets the turn that an earlier process gave it, in order.
        Otherwise the next turn takes all of them.
        """
        session = await self._get_or_open(session_id, keep_turns)
        self._temporary.discard(session)
        return session

    async def _get_or_open(self, session_id: str | None, keep_turns: bool = False) -> Session:
        if self._closed:
            raise SessionClosed("the engine is closed")
        if session_id is None:
            return self._begin(self._config)
        lock = self._opening.setdefault(session_id, asyncio.Lock())
        async with lock:
            if (closing := self._sessions.get(session_id)) is not None and closing.is_closed:
                await closing.close()  # wait until it has released the log
            return self.get_open(session_id) or await self._resume(session_id, keep_turns)

    def _begin(self, parts: EngineConfig) -> Session:
        """Create a session with this configuration, which may be a subagent's."""
        if self._closed:
            raise SessionClosed("the engine is closed")
        return self._open(parts.store.create(new_id()), History(), parts, resumed=False)

    async def _resume(self, session_id: str, keep_turns: bool) -> Session:
        history = History()
        log = await self._config.store.resume(session_id, history.apply)
        session = self._open(log, history, self._config, resumed=True)
        try:
            if keep_turns and not history.parent:
                session.expect_waiting()  # before the inbox is read: its prompts come after these
            await session.recover()
            if self._closed:
                raise SessionClosed("the engine is closed")
        except BaseException:
            with suppress(AgentError):
                await session.close()
            raise
        return session

    def get_open(self, session_id: str) -> Session | None:
        """Return a session if it is open here."""
        session = self._sessions.get(session_id)
        return None if session is None or session.is_closed else session

    def sessions(self) -> tuple[Session, ...]:
        """Return the sessions that are open here, subagents included."""
        return tuple(session for session in self._sessions.values() if not session.is_closed)

    def summaries(self) -> list[LiveSummary]:
        """Return the open sessions, each in one line: busy, pending approvals, cost."""
        return self._get_hub().summaries()

    def subscribe(self, topic: Topic | None = None) -> AsyncGenerator[HubEvent, None]:
        """Yield live what happens in all open sessions: everything, or one topic."""
        return self._get_hub().subscribe(topic)

    def _get_hub(self) -> Hub:
        if self._hub is None:
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
        """Run one prompt in one turn, and return its result. Without a session, create one.

        `messages` is a conversation from elsewhere that goes before. Cancelling `run` interrupts
        the turn. A session that was not open before is closed afterwards.
        """
        used = session if isinstance(session, Session) else await self._get_or_open(session)
        try:
            if messages is not None:
                used.add_history(messages)
            turn = 0
            try:
                turn = await used.send(prompt, by=by)
                return await used.wait(turn)
            except asyncio.CancelledError:
                await used.interrupt(by=by, turn=turn)  # only this turn, not somebody else's
                raise
        finally:
            if used in self._temporary and not used.is_busy:  # busy: somebody else's turn
                await used.close()

    async def close(self) -> None:
        """Interrupt what runs, make every log durable, close connections and threads."""
        self._closed = True
        self._config.store.listen(None)
        async with AsyncExitStack() as stack:  # whatever fails, the rest is closed, too
            if self._hub is not None:
                stack.callback(self._hub.end)
            stack.callback(self._config.store.close)
            if self._config.small is not None:
                stack.push_async_callback(self._config.small.close)
            stack.push_async_callback(self._config.provider.close)
            for source in self._config.sources:
                stack.push_async_callback(source.close)
            if (agent := self._config.agent) is not None:
                stack.push_async_callback(shut_down, agent)
            for session in list(self._sessions.values()):
                stack.push_async_callback(session.close)
            if self._inbox_checks:
                stack.push_async_callback(self._cancel_inbox_checks)

    async def __aenter__(self) -> "Engine":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _open(self, log: Log, history: History, parts: EngineConfig, *, resumed: bool) -> Session:
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
        session = Session(parts, log, history, opening, self._on_closed)
        if not self._sessions:
            parts.store.listen(self._check_inboxes)
        self._sessions[session.id] = session
        self._temporary.add(session)
        if self._hub is not None:
            self._hub.add(session)
        return session

    def _check_inboxes(self) -> None:
        """Look into all inboxes: one of them has a new message."""
        for session in self._sessions.values():
            check = asyncio.ensure_future(_check_inbox(session))
            self._inbox_checks.add(check)
            check.add_done_callback(self._inbox_checks.discard)

    async def _cancel_inbox_checks(self) -> None:
        """Stop looking: messages that are left wait for the next owner of their session."""
        for check in self._inbox_checks:
            check.cancel()
        await asyncio.wait(self._inbox_checks)

    def _forget(self, session: Session) -> None:
        self._temporary.discard(session)
        if self._hub is not None:
            self._hub.remove(session)
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        if not self._sessions:
            self._config.store.listen(None)


async def _check_inbox(session: Session) -> None:
    """Read a session's inbox. While the disk does not work, messages stay there."""
    is_logged = False
    while not session.is_closed:
        try:
            await session.check_inbox()
            break
        except AgentError as error:
            if not is_logged:
                log.warning("the inbox of session %s: %s", session.id, error.message)
            is_logged = True
        await asyncio.sleep(_INBOX_RETRY_SECONDS)


def new_id() -> str:
    """Return a new session id: the time, and something unique."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(5)}"
