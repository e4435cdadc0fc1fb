"""One server, as a `SessionService`. The conversations that are opened here are closed here."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import parse_qs, urlsplit, urlunsplit

from bridle.client.connection import Connection, quoted
from bridle.client.problems import read
from bridle.client.stream_feed import DELAYS, StreamFeed
from bridle.errors import BadStream, RateLimited, Unreachable
from bridle.policy import Mode
from bridle.protocols.session_values import (
    ApprovalAnswer,
    ApprovalOutcome,
    Budget,
    CallerInfo,
    Choices,
    FilePaths,
    ForkRequest,
    Grants,
    NewSession,
    PendingApprovals,
    PromptAccepted,
    PromptRequest,
    RecordPage,
    Report,
    ResumeOptions,
    RewindRequest,
    RulePreview,
    RuleRequest,
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
from bridle.runtime.followed_session import FollowedSession

_T = TypeVar("_T")
_CAUGHT_UP = 60.0  # seconds that the records of a session may take to arrive
_TRIES = 4  # to send a prompt, with the same key, so that it is sent once


class Client:
    """A server's sessions: `async with Client("http://127.0.0.1:8420", token=…) as client:`.

    `url` may be `unix:///path/of/a/socket`, or the one that `bridle serve` prints, with its
    one-time code. `tell` is called with a sentence when a stream breaks and when it is back. `name`
    is what the server is called there. The server knows from the token who does something.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        tell: Callable[[str], None] | None = None,
        name: str = "",
    ) -> None:
        plain, self._code = _without_code(url)
        self._connection = Connection(plain, token, name)
        self.where = name or self._connection.url
        self._tell = tell
        self._open: list[FollowedSession] = []

    async def __aenter__(self) -> Self:
        try:
            if self._code:
                await self._connection.login(self._code)
        except BaseException:
            await self._connection.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self._open:
            await session.close()
        await self._connection.close()

    async def session(
        self,
        id: str | None = None,  # noqa: A002 - it reads best where it is called
        *,
        workspace: str = "",
        provider: str = "",
        model: str = "",
        agent: str = "",
        mode: Mode | None = None,
    ) -> FollowedSession:
        """Return a new session, or one that is resumed, with all of its records read."""
        if id is None:
            wanted = NewSession(workspace, provider, model, agent, mode)
            return await self._followed(await self.create(wanted))
        options = ResumeOptions(workspace, provider, model)
        session = await self._followed(await self.resume(id, options))
        if agent:
            await session.configure(agent=agent)
        if mode is not None and mode != session.mode:
            await session.set_mode(mode)
        return session

    async def open(self, session_id: str) -> FollowedSession:
        """Return a session to watch and use. It is not resumed because of that."""
        return await self._followed(await self.detail(session_id))

    async def _followed(self, info: SessionInfo) -> FollowedSession:
        feed = StreamFeed(self._connection, info, self._tell)
        session = FollowedSession(self, feed)
        self._open.append(session)
        feed.start()
        try:
            await feed.until(lambda: feed.seq >= info.seq, _CAUGHT_UP)
        except BaseException:
            await session.close()
            raise
        return session

    # Reading

    async def list(
        self,
        query: str = "",
        limit: int = 50,
        cursor: str = "",
        workspace: str = "",
        state: str = "",
    ) -> SessionPage:
        """Return a page of sessions, the newest first."""
        asked = {
            "query": query,
            "limit": limit,
            "cursor": cursor,
            "workspace": workspace,
            "state": state,
        }
        return await self._ask("GET", "sessions", query=asked, of=SessionPage)

    async def info(self, session_id: str) -> SessionInfo:
        """Return one session."""
        return await self.detail(session_id)

    async def detail(self, session_id: str) -> SessionDetail:
        """Return one session with everything that is shown beside its conversation."""
        return await self._ask("GET", _path(session_id), of=SessionDetail)

    async def history(self, session_id: str) -> Transcript:
        """Return the conversation as it is now."""
        return await self._ask("GET", _path(session_id, "history"), of=Transcript)

    async def records(
        self, session_id: str, after: int = 0, before: int = 0, limit: int = 500
    ) -> RecordPage:
        """Return records after one, or (`before`) the last ones before one."""
        asked = {"after": after, "before": before or "", "limit": limit}
        return await self._ask("GET", _path(session_id, "records"), query=asked, of=RecordPage)

    async def export(self, session_id: str, form: str) -> AsyncIterator[bytes]:
        """Yield the session as a file: `jsonl` or `markdown`."""
        path = f"/api/{_path(session_id, 'export')}"
        yield await self._connection.ask("GET", path, query={"format": form})

    async def pending(self) -> PendingApprovals:
        """Return the pending approval requests of all sessions, the oldest first."""
        return await self._ask("GET", "approvals", of=PendingApprovals)

    async def search(self, words: str, limit: int = 50) -> SearchHits:
        """Return where the words occur, in all sessions."""
        return await self._ask("GET", "search", query={"q": words, "limit": limit}, of=SearchHits)

    async def files(self, session_id: str, query: str = "", limit: int = 50) -> FilePaths:
        """Return files of its workspace that match, the best first."""
        asked = {"query": query, "limit": limit}
        return await self._ask("GET", _path(session_id, "files"), query=asked, of=FilePaths)

    async def preview_rule(self, session_id: str, rule: str) -> RulePreview:
        """Return past calls that a rule would have covered."""
        body = RuleRequest(rule)
        return await self._ask("POST", _path(session_id, "preview-rule"), body, of=RulePreview)

    async def tools(self, session_id: str) -> Choices:
        """Return the tools that its model has."""
        return await self._ask("GET", _path(session_id, "tools"), of=Choices)

    async def mcp_servers(self, session_id: str) -> Choices:
        """Return the MCP servers of its folder."""
        return await self._ask("GET", _path(session_id, "mcp"), of=Choices)

    async def rules(self, session_id: str) -> Choices:
        """Return its mode, its grants and the rules that hold in it."""
        return await self._ask("GET", _path(session_id, "rules"), of=Choices)

    async def changes(self) -> AsyncGenerator[None, None]:
        """Yield each time something about the sessions has changed, or may have. Never ends.

        Raise what the server refuses it with. A connection that breaks is opened again.
        """
        failures = 0
        while True:
            try:
                async with aclosing(self._connection.stream("/api/events", {})) as blocks:
                    async for block in blocks:
                        failures = 0
                        if block.data is not None:
                            yield
            except (Unreachable, RateLimited, BadStream):
                failures += 1
            await asyncio.sleep(DELAYS[min(failures, len(DELAYS) - 1)])

    # What a server offers

    async def models(self) -> Choices:
        """Return the models that can be chosen."""
        return await self._ask("GET", "models", of=Choices)

    async def agents(self) -> Choices:
        """Return the agents that can be chosen."""
        return await self._ask("GET", "agents", of=Choices)

    async def workspaces(self) -> Choices:
        """Return the folders that the server works in."""
        return await self._ask("GET", "workspaces", of=Choices)

    async def doctor(self) -> Report:
        """Return what was found on the server's machine."""
        return await self._ask("GET", "doctor", of=Report)

    async def me(self) -> CallerInfo:
        """Return who we are to the server, and what we may do."""
        return await self._ask("GET", "me", of=CallerInfo)

    # Verbs

    async def create(self, wanted: NewSession, by: str = "me") -> SessionInfo:
        """Create a session."""
        return await self._ask("POST", "sessions", wanted, of=SessionInfo)

    async def resume(self, session_id: str, options: ResumeOptions, by: str = "me") -> SessionInfo:
        """Have the server resume a session, and continue what was left."""
        return await self._ask("POST", _path(session_id, "resume"), options, of=SessionInfo)

    async def change(self, session_id: str, change: SessionUpdate, by: str = "me") -> SessionDetail:
        """Change title, tags, mode, model or agent."""
        return await self._ask("PATCH", _path(session_id), change, of=SessionDetail)

    async def delete(self, session_id: str, by: str = "me") -> None:
        """Delete a session for good."""
        await self._do("DELETE", _path(session_id))

    async def send(
        self, session_id: str, request: PromptRequest, by: str = "me", key: str = ""
    ) -> PromptAccepted:
        """Return the turn of a prompt that is on disk. With a key, it is tried several times."""
        path, headers = f"/api/{_path(session_id, 'chat')}", {"Idempotency-Key": key} if key else {}
        for left in reversed(range(_TRIES if key else 1)):
            try:
                body = await self._connection.ask("POST", path, request, headers=headers)
                return read(body, PromptAccepted)
            except Unreachable as problem:
                if not left:
                    raise
                await asyncio.sleep(min(problem.retry_after or 0.3, 2.0))
        raise AssertionError("the last try returns or raises")

    async def withdraw(self, session_id: str, prompt: int, by: str = "me") -> None:
        """Withdraw a prompt that waits, by the number of its record."""
        await self._do("DELETE", _path(session_id, "queue", str(prompt)))

    async def answer(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str = "me"
    ) -> ApprovalOutcome:
        """Answer an approval request; the first answer wins."""
        path = _path(session_id, "approvals", call_id)
        return await self._ask("POST", path, answer, of=ApprovalOutcome)

    async def interrupt(self, session_id: str, by: str = "me") -> None:
        """End the turn that is running or parked."""
        await self._do("POST", _path(session_id, "interrupt"), {})

    async def fork(self, session_id: str, fork: ForkRequest, by: str = "me") -> SessionInfo:
        """Create a session with this one's conversation, up to a record."""
        return await self._ask("POST", _path(session_id, "fork"), fork, of=SessionInfo)

    async def rewind(self, session_id: str, rewind: RewindRequest, by: str = "me") -> SessionDetail:
        """Make the conversation again what it was at a record."""
        return await self._ask("POST", _path(session_id, "rewind"), rewind, of=SessionDetail)

    async def compact(self, session_id: str, by: str = "me") -> SessionDetail:
        """Shorten the conversation now."""
        return await self._ask("POST", _path(session_id, "compact"), {}, of=SessionDetail)

    async def budget(self, session_id: str) -> Budget:
        """Return its limits, and what it has used."""
        return await self._ask("GET", _path(session_id, "budget"), of=Budget)

    async def set_budget(self, session_id: str, limits: SessionLimits, by: str = "me") -> Budget:
        """Lower limits from the next turn on."""
        return await self._ask("PUT", _path(session_id, "budget"), limits, of=Budget)

    async def grants(self, session_id: str) -> Grants:
        """Return its grants that are still valid."""
        return await self._ask("GET", _path(session_id, "grants"), of=Grants)

    async def revoke(self, session_id: str, grant: str = "", by: str = "me") -> None:
        """Revoke a grant; "" revokes all."""
        await self._do("DELETE", _path(session_id, "grants", *filter(None, [grant])))

    async def undo_preview(self, session_id: str, turn: int = 0) -> UndoPreview:
        """Return what undoing a turn would do (0: the newest that changed something)."""
        path = _path(session_id, "undo")
        return await self._ask("GET", path, query={"turn": turn or ""}, of=UndoPreview)

    async def undo(self, session_id: str, undo: UndoRequest, by: str = "me") -> UndoResult:
        """Undo what a turn changed, as it was previewed."""
        return await self._ask("POST", _path(session_id, "undo"), undo, of=UndoResult)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        of: type[_T],
    ) -> _T:
        return read(await self._connection.ask(method, f"/api/{path}", body, query=query), of)

    async def _do(self, method: str, path: str, body: Any = None) -> None:
        await self._connection.ask(method, f"/api/{path}", body)


def _path(session_id: str, *parts: str) -> str:
    return "/".join(["sessions", quoted(session_id), *map(quoted, parts)])


def _without_code(url: str) -> tuple[str, str]:
    """Return the address without its fragment, and the one-time code in there."""
    parts = urlsplit(url)
    code = parse_qs(parts.fragment).get("code", [""])[0]
    return urlunsplit(parts._replace(fragment="")), code
