"""The connection to one server, over TCP or a Unix socket: requests, and streams of events.

The only module here that imports aiohttp. Failures are raised as our own errors.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
from msgspec import Struct, json

from bridle.client.problems import broken, read, refusal, unreachable
from bridle.client.sse import Block, Blocks
from bridle.errors import BadStream, ConfigError

_PATIENCE = 60.0  # seconds for a whole request
_CONNECT = 10.0
_SILENCE = 45.0  # seconds: an idle stream sends a comment every 5, of older servers every 15
_LARGEST = 64 * 1024 * 1024  # bytes of an answer
_ERROR = 64 * 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_AGAIN = "What was accepted is kept; `bridle attach ID` starts it again."  # it is our own process
_STAY: Any = {"allow_redirects": False}  # what is sent to one server goes to no other
_GONE = (aiohttp.ClientError, OSError, TimeoutError)


class _SignedIn(Struct, frozen=True):
    """The half of a sign-in that is not in the cookie."""

    key: str


class Connection:
    """One server. `url` is http://…, https://… or unix:///path/of/a/socket; `name`, for people."""

    def __init__(self, url: str, token: str = "", name: str = "") -> None:
        self.url, self._base, self._socket = _parse_url(url)
        self.where = name or f"the server at {self.url}"
        self._advice = _AGAIN if self._socket else ""
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._session: aiohttp.ClientSession | None = None

    async def login(self, code: str) -> None:
        """Sign in with a one-time code instead of a token."""
        self._headers["Origin"] = self._base  # a cookie alone proves nothing
        found = read(await self.ask("POST", "/api/login", {"code": code}), _SignedIn)
        self._headers["X-Bridle-Key"] = found.key

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send a request; return the body of its answer. Raise what it is refused with."""
        sent = json.encode(body) if body is not None else None
        about = {**self._headers, **(headers or {})}
        if sent is not None:
            about["Content-Type"] = "application/json"
        try:
            async with self._open().request(
                method,
                self._base + path,
                data=sent,
                params=_parameters(query),
                headers=about,
                **_STAY,
            ) as answer:
                data = await _whole(answer)
                if answer.status >= 300:
                    raise refusal(answer.status, data, answer.headers.get("Retry-After", ""))
                return data
        except _GONE as problem:
            raise unreachable(self.where, problem, self._advice) from problem

    async def stream(
        self, path: str, query: Mapping[str, Any], last: str = ""
    ) -> AsyncGenerator[Block, None]:
        """Yield the blocks of a stream until it ends, after an empty one once it is open.

        Raise what it is refused with, or `Unreachable`.
        """
        about = {**self._headers, "Accept": "text/event-stream", "Cache-Control": "no-store"}
        if last:
            about["Last-Event-ID"] = last
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_SILENCE)
        try:
            async with self._open().get(
                self._base + path,
                params=_parameters(query),
                headers=about,
                timeout=timeout,
                **_STAY,
            ) as answer:
                if answer.status != 200:
                    data = await answer.content.read(_ERROR)
                    raise refusal(answer.status, data, answer.headers.get("Retry-After", ""))
                if answer.content_type != "text/event-stream":
                    raise BadStream(f"{self.where} sends no events there")
                yield Block()
                blocks = Blocks()
                async for chunk in answer.content.iter_any():
                    for block in blocks.feed(chunk):
                        yield block
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError) as problem:
            raise broken(self.where, problem) from problem
        except _GONE as problem:
            raise unreachable(self.where, problem, self._advice) from problem

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            if self._socket:
                connector: aiohttp.BaseConnector = aiohttp.UnixConnector(self._socket, limit=0)
            else:
                connector = aiohttp.TCPConnector(limit=0)
            host = urlsplit(self._base).hostname or ""
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.CookieJar(unsafe=True),  # addresses have cookies, too
                trust_env=not self._socket and host not in _LOOPBACK,
                timeout=aiohttp.ClientTimeout(total=_PATIENCE, sock_connect=_CONNECT),
                read_bufsize=256 * 1024,
            )
        return self._session


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        if (size := size + len(piece)) > _LARGEST:
            raise BadStream(f"the server answered with more than {_LARGEST:,} bytes")
    return b"".join(pieces)


def _parameters(query: Mapping[str, Any] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (query or {}).items() if value not in (None, "")}


def _parse_url(url: str) -> tuple[str, str, str]:
    """The address as it is told, the beginning of every address, and the socket's path."""
    parts = urlsplit(url)
    if parts.scheme == "unix" and (path := parts.path):
        return path, "http://localhost", path
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{url!r} is not the address of a server",
            hint="It looks like http://127.0.0.1:8420, or unix:///path/of/a/socket.",
        )
    base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return base, base, ""


def quoted(part: str) -> str:
    """Return a part of a path, quoted."""
    return quote(part, safe="")
