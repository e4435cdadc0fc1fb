"""One server and what can be asked of it. The sessions that are opened here are closed here."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit, urlunsplit

from bridle.client.faults import read
from bridle.client.feed import WAITS, Feed, Tell
from bridle.client.link import Link, spelled
from bridle.client.session import RemoteSession, answer_body
from bridle.errors import BadStream, RateLimited, Unreachable
from bridle.messages import Message
from bridle.policy import Mode
from bridle.protocols.session import Answer
from bridle.protocols.session_values import (
    ApprovalRequest,
    CallerInfo,
    Choice,
    Choices,
    FilePaths,
    PendingApprovals,
    Report,
    RulePreview,
    SearchHit,
    SearchHits,
    SessionDetail,
    SessionInfo,
    SessionPage,
    Transcript,
)

_T = TypeVar("_T")
_CAUGHT_UP = 60.0  # seconds that the records of a session may take to come


class Client:
    """A server's sessions: `async with Client("http://127.0.0.1:8420", token=…) as client:`.

    `url` may be `unix:///path/of/a/socket`, or the one that `bridle serve` prints, with its
    one-time code. `tell` is called with a sentence when a stream breaks and when it is back; `name`
    is what the server is called there.
    """

    def __init__(
        self, url: str, token: str = "", *, tell: Tell | None = None, name: str = ""
    ) -> None:
        plain, self._code = _without_code(url)
        self._link = Link(plain, token, name)
        self.where = name or self._link.url
        self._tell = tell
        self._sessions: list[RemoteSession] = []

    async def __aenter__(self) -> "Client":
        try:
            if self._code:
                await self._link.login(self._code)
        except BaseException:
            await self._link.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self._sessions:
            await session.close()
        await self._link.close()

    async def session(
        self,
        id: str | None = None,  # noqa: A002 - it reads best where it is called
        *,
        workspace: str = "",
        provider: str = "",
        model: str = "",
        agent: str = "",
        mode: Mode | None = None,
    ) -> RemoteSession:
        """A new session, or one that is taken up again, with all of its records read."""
        wanted: dict[str, Any] = {"workspacePath": workspace, "provider": provider, "model": model}
        if id is None:
            wanted |= {"agent": agent, "mode": mode}
            line = await self._ask("POST", "sessions", _given(wanted), of=SessionInfo)
            return await self._opened(line)
        path = f"sessions/{spelled(id)}"
        line = await self._ask("POST", f"{path}/resume", _given(wanted), of=SessionInfo)
        session = await self._opened(line)
        if agent:
            await session.configure(agent=agent)
        if mode is not None and mode != session.mode:
            await session.set_mode(mode)
        return session

    async def watch(self, session_id: str) -> RemoteSession:
        """A session to look at: nobody takes it up because of that."""
        path = f"sessions/{spelled(session_id)}"
        return await self._opened(await self._ask("GET", path, of=SessionDetail))

    async def _opened(self, line: SessionInfo) -> RemoteSession:
        feed = Feed(self._link, line.id, self._tell)
        session = RemoteSession(self._link, line, feed)
        self._sessions.append(session)
        feed.start()
        try:
            await feed.until(lambda: feed.seq >= line.seq, _CAUGHT_UP)
        except BaseException:
            await session.close()
            raise
        return session

    async def sessions(
        self, *, query: str = "", limit: int = 50, cursor: str = "", state: str = ""
    ) -> SessionPage:
        """Sessions, the newest first."""
        asked = {"query": query, "limit": limit, "cursor": cursor, "state": state}
        return await self._ask("GET", "sessions", query=asked, of=SessionPage)

    async def look(self, session_id: str) -> SessionDetail:
        """One session with what stands beside its conversation."""
        return await self._ask("GET", f"sessions/{spelled(session_id)}", of=SessionDetail)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good."""
        await self._link.ask("DELETE", f"/api/sessions/{spelled(session_id)}")

    async def pending(self) -> tuple[ApprovalRequest, ...]:
        """The questions of all sessions that wait for an answer."""
        return (await self._ask("GET", "approvals", of=PendingApprovals)).approvals

    async def search(self, words: str, *, limit: int = 20) -> tuple[SearchHit, ...]:
        """Where that was said, in all sessions."""
        asked = {"q": words, "limit": limit}
        return (await self._ask("GET", "search", query=asked, of=SearchHits)).hits

    async def models(self) -> tuple[Choice, ...]:
        """The models that can be chosen."""
        return (await self._ask("GET", "models", of=Choices)).choices

    async def agents(self) -> tuple[Choice, ...]:
        """The agents that can be chosen."""
        return (await self._ask("GET", "agents", of=Choices)).choices

    async def workspaces(self) -> tuple[Choice, ...]:
        """The folders that the server works in."""
        return (await self._ask("GET", "workspaces", of=Choices)).choices

    async def choices(self, session_id: str, what: str) -> tuple[Choice, ...]:
        """The `tools`, `mcp` servers or `rules` of a session."""
        path = f"sessions/{spelled(session_id)}/{what}"
        return (await self._ask("GET", path, of=Choices)).choices

    async def doctor(self) -> tuple[str, ...]:
        """What was found on the server's machine, a line each."""
        return (await self._ask("GET", "doctor", of=Report)).lines

    async def files(self, session_id: str, query: str, *, limit: int = 50) -> tuple[str, ...]:
        """Files of a session's workspace that fit, the best first."""
        path, asked = f"sessions/{spelled(session_id)}/files", {"query": query, "limit": limit}
        return (await self._ask("GET", path, query=asked, of=FilePaths)).paths

    async def messages(self, session_id: str) -> tuple[Message, ...]:
        """A session's conversation as it stands."""
        path = f"sessions/{spelled(session_id)}/history"
        return (await self._ask("GET", path, of=Transcript)).messages

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title."""
        body = {"title": title}
        await self._link.ask("PATCH", f"/api/sessions/{spelled(session_id)}", body)

    async def answer(self, session_id: str, call_id: str, answer: Answer, *, shown: str) -> None:
        """Settle a question of any session; the first answer wins."""
        path = f"/api/sessions/{spelled(session_id)}/approvals/{spelled(call_id)}"
        await self._link.ask("POST", path, answer_body(answer, shown))

    async def preview(self, session_id: str, rule: str) -> tuple[str, ...]:
        """The calls of a session that a rule would have covered, in words."""
        path = f"sessions/{spelled(session_id)}/preview-rule"
        return (await self._ask("POST", path, {"rule": rule}, of=RulePreview)).calls

    async def news(self) -> AsyncGenerator[None, None]:
        """Something about the sessions changed, or may have while nobody was told. Never ends.

        Raise what the server refuses it with; a connection that breaks is taken up again.
        """
        failures = 0
        while True:
            try:
                async with aclosing(self._link.stream("/api/events", {})) as blocks:
                    async for block in blocks:
                        failures = 0
                        if block.data is not None:
                            yield
            except (Unreachable, RateLimited, BadStream):
                failures += 1
            await asyncio.sleep(WAITS[min(failures, len(WAITS) - 1)])

    async def me(self) -> CallerInfo:
        """Who we are to the server, and what we may."""
        return await self._ask("GET", "me", of=CallerInfo)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        of: type[_T],
    ) -> _T:
        return read(await self._link.ask(method, f"/api/{path}", body, query=query), of)


def _given(wanted: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in wanted.items() if value}


def _without_code(url: str) -> tuple[str, str]:
    """The address without what stands behind `#`, and the one-time code in there."""
    parts = urlsplit(url)
    code = parse_qs(parts.fragment).get("code", [""])[0]
    return urlunsplit(parts._replace(fragment="")), code
