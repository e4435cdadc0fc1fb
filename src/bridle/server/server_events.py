"""What is told of all sessions at once: each line of the list as it changes, and every question.

Runs while somebody listens. Which sessions have changed is said by them; how they look now is asked
for a moment later, so that much that happens at once is one line. How a line comes about is not
known here, nor who listens.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from bridle.engine.stream import Channel, Watcher
from bridle.errors import AgentError, UnknownSession
from bridle.events import ApprovalAnswered
from bridle.protocols.session_catalog import SessionCatalog
from bridle.protocols.session_values import (
    ApprovalRequest,
    PendingApprovals,
    SessionDetail,
    SessionInfo,
    SessionPage,
)
from bridle.server.sse import KEEP_ALIVE, QUIET, event_bytes, event_data
from bridle.service.threads import in_thread

if TYPE_CHECKING:
    from bridle.engine.session import Session

_TOGETHER = 0.1  # seconds in which the changes of a session are one
_ROOM = 1_000  # notices that one who listens may be behind
_SHOWN = 100  # sessions in a snapshot
log = logging.getLogger(__name__)


class SessionChanged(Struct, frozen=True, rename="camel"):
    """A session was opened, has changed, was closed or deleted; then it is no more than its id."""

    how: Annotated[
        str, Meta(extra_json_schema={"enum": ["opened", "changed", "closed", "deleted"]})
    ]
    session: SessionInfo


class ApprovalSettled(Struct, frozen=True, rename="camel"):
    """A question is no longer open. `answered` is the `approval_answered` record's data.

    It is empty where nobody answered: the turn ended, or the question's time.
    """

    session_id: str
    call_id: str
    shown: str
    answered: dict[str, Any] = {}


class SessionSource(Protocol):
    """As much of the server's sessions as a feed looks at."""

    catalog: SessionCatalog

    def get_open(self, session_id: str) -> "Session | None": ...


class ListedSessions(SessionSource, Protocol):
    """As much of the server's sessions as is looked at here."""

    async def list(self, query: str = "", limit: int = 50) -> SessionPage: ...
    async def info(self, session_id: str) -> SessionInfo: ...
    async def detail(self, session_id: str) -> SessionDetail: ...
    async def pending(self) -> PendingApprovals: ...


class ServerEvents:
    """The one who looks, and those who are told."""

    def __init__(self, sessions: ListedSessions) -> None:
        self.over = False
        self._sessions = sessions
        self._channel: Channel[bytes] = Channel()
        self._lines: dict[str, SessionInfo] = {}  # as they were last told
        self._pending: dict[
            str, dict[str, ApprovalRequest]
        ] = {}  # open questions, by what was shown
        self._changed: dict[str, str] = {}  # sessions to look at, and what is said of them
        self._waiter: asyncio.Future[None] | None = None
        self._task = asyncio.create_task(self._run())

    def __len__(self) -> int:
        return len(self._channel)

    def join(self) -> Watcher[bytes]:
        """One more, who is told what changes from here on."""
        return self._channel.join(_ROOM)

    def leave(self, watcher: Watcher[bytes]) -> None:
        """That one has gone."""
        self._channel.leave(watcher)

    async def snapshot(self) -> bytes:
        """The newest sessions as they are, for one who has just come."""
        found = await self._sessions.list(limit=_SHOWN)
        for line in found.sessions:
            self._lines.setdefault(line.id, _plain(line))
        return event_bytes("sessions", found)

    def changed(self, session_id: str, how: str) -> None:
        """Something happened in that session."""
        if how != "changed" or session_id not in self._changed:
            self._changed[session_id] = how
        self._wake()

    async def close(self) -> None:
        """No more for anybody."""
        self.over = True
        self._channel.end()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await self._begin()
            await self._watch()
        finally:
            self.over = True
            self._channel.end()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        spoke = loop.time()
        while True:
            changed, self._changed = self._changed, {}
            for session_id, how in changed.items():
                await self._tell_of(session_id, how)
            if loop.time() - spoke >= QUIET:
                spoke = loop.time()
                self._channel.publish([KEEP_ALIVE])
            await asyncio.sleep(_TOGETHER)
            await self._pause(spoke + QUIET - loop.time())

    async def _begin(self) -> None:
        """What is open already: it is not told, but how it is settled will be."""
        try:
            found = (await self._sessions.pending()).approvals
        except AgentError as error:
            log.warning("the open questions cannot be shown: %s", error)
            return
        for one in found:
            self._pending.setdefault(one.session_id, {})[one.shown] = one

    async def _pause(self, seconds: float) -> None:
        if self._changed or seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        clock = loop.call_later(seconds, self._wake)
        try:
            await self._waiter
        finally:
            clock.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _tell_of(self, session_id: str, how: str) -> None:
        """Its line, if it is another one than before; and what has been asked and answered."""
        try:
            view = await self._sessions.info(session_id)
        except UnknownSession:
            self._forget(session_id)
            return
        except AgentError as error:
            log.warning("session %s cannot be shown: %s", session_id, error)
            return
        before, line = self._lines.get(session_id), _plain(view)
        self._lines[session_id] = line
        if line != before:
            self._channel.publish([event_bytes("session", SessionChanged(how, view))])
        if view.waiting or self._pending.get(session_id):
            await self._tell_questions(session_id)

    def _forget(self, session_id: str) -> None:
        """It was deleted, or was never ours to see."""
        self._pending.pop(session_id, None)
        if self._lines.pop(session_id, None) is not None:
            gone = SessionChanged("deleted", SessionInfo(id=session_id))
            self._channel.publish([event_bytes("session", gone)])

    async def _tell_questions(self, session_id: str) -> None:
        try:
            found = (await self._sessions.detail(session_id)).pending
        except AgentError as error:
            log.warning("the questions of session %s cannot be shown: %s", session_id, error)
            return
        before, now = self._pending.get(session_id, {}), {one.shown: one for one in found}
        self._pending[session_id] = now
        for shown in now.keys() - before.keys():
            self._channel.publish([event_bytes("approval_required", now[shown])])
        for shown in before.keys() - now.keys():
            settled = await self._settled(before[shown])
            self._channel.publish([event_bytes("approval_answered", settled)])

    async def _settled(self, asked: ApprovalRequest) -> ApprovalSettled:
        catalog = self._sessions.catalog
        answered = await in_thread(lambda: _answer(catalog, asked))
        return ApprovalSettled(asked.session_id, asked.call_id, asked.shown, answered)


def _plain(view: SessionInfo) -> SessionInfo:
    """The line without what every word of a reply changes."""
    return replace(view, seq=0, updated_at="")


def _answer(catalog: SessionCatalog, asked: ApprovalRequest) -> dict[str, Any]:
    """In a thread: what was said to a question, as the log has it; nothing, if nothing was."""
    try:
        for record in catalog.read(asked.session_id, asked.seq):
            event = record.event
            if isinstance(event, ApprovalAnswered) and event.shown == asked.shown:
                return event_data(event)
    except AgentError as error:
        log.debug("session %s: %s", asked.session_id, error)
    return {}
