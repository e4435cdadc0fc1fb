"""An engine: what sessions share, and the sessions that are open. It owns them and closes them."""

import secrets
import time
from types import TracebackType

from bridle.engine.history import History
from bridle.engine.parts import Parts
from bridle.engine.session import Session
from bridle.errors import SessionClosed
from bridle.events import SessionStarted
from bridle.promises.provider import Provider
from bridle.promises.session import Prompt, TurnResult
from bridle.promises.store import Log, Store


class Engine:
    """Starts sessions, takes them up again, and runs prompts for those who want no stream."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sessions: dict[str, Session] = {}
        self._closed = False

    @property
    def provider(self) -> Provider:
        """The model's side."""
        return self._parts.provider

    @property
    def store(self) -> Store:
        """Where the sessions are kept."""
        return self._parts.store

    async def session(self, session_id: str | None = None) -> Session:
        """A new session, or an old one taken up again; one that is open here is handed out."""
        if self._closed:
            raise SessionClosed("the engine is closed")
        if session_id is None:
            return self._open(self._parts.store.create(new_id()), History(), resumed=False)
        if (known := self._sessions.get(session_id)) is not None:
            return known
        history = History()
        log = await self._parts.store.resume(session_id, history.apply)
        return self._open(log, history, resumed=True)

    async def run(
        self, prompt: Prompt, *, session: Session | str | None = None, by: str = "me"
    ) -> TurnResult:
        """One prompt, one turn, one result. Without a session it is a new one."""
        if isinstance(session, Session):
            return await session.wait(await session.send(prompt, by=by))
        own = await self.session(session)
        try:
            return await own.wait(await own.send(prompt, by=by))
        finally:
            await self._let_go(own)

    async def close(self) -> None:
        """Interrupt what runs, settle every log, let go of connections and threads."""
        self._closed = True
        for session in list(self._sessions.values()):
            await self._let_go(session)
        await self._parts.provider.close()
        if self._parts.small is not None:
            await self._parts.small.close()
        close = getattr(self._parts.store, "close", None)
        if close is not None:
            close()

    async def __aenter__(self) -> "Engine":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _open(self, log: Log, history: History, *, resumed: bool) -> Session:
        parts, info = self._parts, self._parts.provider.info
        opening = SessionStarted(
            log.session_id,
            parts.face,
            resumed,
            workspace=parts.workspace.root,
            model=f"{info.name}/{info.model}" if info.model else info.name,
            version=parts.version,
        )
        session = self._sessions[log.session_id] = Session(parts, log, history, opening)
        return session

    async def _let_go(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        await session.close()


def new_id() -> str:
    """A session's id: when it began, and something that no other has."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(5)}"
