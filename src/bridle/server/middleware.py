"""How much the server takes, from whom and how fast; a request beyond a limit gets a clear answer.

`RateLimit` stands between the guard and the routes. Routes read bodies with `read_json`, which
counts the bytes as they come, whatever was announced.
"""

import logging
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridle.server.problems import (
    REQUEST_ID,
    Problem,
    ProblemError,
    problem_error,
    problem_messages,
    unexpected_problem,
)

if TYPE_CHECKING:
    from bridle.server.auth import Caller

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
Pairs = Iterable[tuple[bytes, bytes]]


def header_values(headers: Pairs, name: bytes) -> list[bytes]:
    """All values that a header has."""
    return [value for key, value in headers if key.lower() == name]


def single_header(headers: Pairs, name: bytes) -> bytes | None:
    """The value of a header that is there exactly once, or None."""
    found = header_values(headers, name)
    return found[0] if len(found) == 1 else None


async def send_problem(send: Send, problem: Problem, headers: Pairs = ()) -> None:
    """Answer with a problem."""
    start, body = problem_messages(problem, headers)
    await send(start)
    await send({"type": "http.response.body", "body": body})


VERSION = "/api/v1/"
_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_log = logging.getLogger("bridle.access")
_BODIES = ("POST", "PUT", "PATCH", "DELETE")
_JSON = b"application/json"


class Limits(Struct, frozen=True, kw_only=True):
    """What is let in. Bytes, seconds, or how many; 0 is no limit for `rate` alone.

    `chat_bytes` is for prompts, which may have pictures; `body_bytes` for all else. `rate` is
    requests a second for each name, `burst` how many may come at once. `sessions` is how many may
    be open. `stalled_seconds` is how long a stream waits for a client that does not read.
    """

    chat_bytes: int = 10_000_000
    body_bytes: int = 262_144
    head_bytes: int = 65_536
    path_bytes: int = 4_096
    depth: int = 64
    rate: float = 200.0
    burst: int = 400
    streams: int = 2_000
    connections: int = 4_000
    sessions: int = 1_000
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    stalled_seconds: float = 60.0


class TokenBucket:
    """How many requests each name has left: a bucket that fills at the rate."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._left: dict[str, tuple[float, float]] = {}  # name: what was left, and when

    def wait(self, name: str, take: int = 1) -> float:
        """Take one; seconds to wait where there is none. With `take` 0, only look."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, since = self._left.get(name, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1:
            self._left[name] = left, now
            return (1 - left) / self._rate
        if len(self._left) > 10_000:  # names are few; addresses may not be
            self._left.clear()
        self._left[name] = left - take, now
        return 0.0


class RateLimit:
    """Middleware: so many requests a second for each name, and no endless addresses."""

    def __init__(self, app: App, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._meter = TokenBucket(limits.rate, limits.burst, time.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, if it keeps within the limits."""
        if scope["type"] == "http":
            try:
                self._check(scope)
            except ProblemError as no:
                await send_problem(send, no.problem, no.headers)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        caller: Caller | None = scope.get("user")
        client = scope.get("client")
        name = f"name {caller.name}" if caller else f"at {client[0] if client else ''}"
        if seconds := self._meter.wait(name):
            raise problem_error(
                "rate_limited",
                f"You sent more than {self._limits.rate:g} requests per second.",
                f"Try again in {_whole(seconds)}.",
                ((b"retry-after", b"%d" % math.ceil(seconds)),),
            )
        size = len(scope.get("raw_path") or b"")  # the query is bounded by the head's size
        if size > self._limits.path_bytes:
            raise _too_large("The address", size, self._limits.path_bytes)


class BufferedBody:
    """Hands a request on once its body is there: a client that leaves before asks for nothing.

    For an application that would answer such a client with a traceback.
    """

    def __init__(self, app: App, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, at most so many bytes, and pass the request on."""
        if scope["type"] == "http" and scope["method"] in _BODIES:
            try:
                body = await read_body(receive, self._limit)
            except ProblemError as no:
                await send_problem(send, no.problem, no.headers)
                return
            if body is None:
                return
            receive = _handing(body, receive)
        await self._app(scope, receive, send)


async def read_json(scope: Scope, receive: Receive, limit: int, depth: int) -> bytes | None:
    """A request's body: JSON of at most so many bytes, nested at most so deep.

    None if the client has gone. Raise `ProblemError`.
    """
    headers = scope["headers"]
    announced = single_header(headers, b"content-length") or b"0"
    if announced.isdigit() and int(announced[:20]) > limit:
        raise _too_large("The body", int(announced[:20]), limit)
    body = await read_body(receive, limit)
    if body:
        _check(header_values(headers, b"content-type"), body, depth)
    return body


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """A body of at most so many bytes, None where its sender has gone. Raise `ProblemError`."""
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise _too_large("The body", size, limit)
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _whole(seconds: float) -> str:
    """A wait in whole seconds, at least one."""
    count = math.ceil(seconds)
    return "a second" if count == 1 else f"{count} seconds"


def _too_large(what: str, size: int, limit: int) -> ProblemError:
    return problem_error(
        "too_large",
        f"{what} has {size:,} bytes or more; {limit:,} are allowed.",
        "Send less at once.",
    )


def _check(kinds: list[bytes], body: bytes, depth: int) -> None:
    kind = kinds[0].partition(b";")[0].strip().lower() if len(kinds) == 1 else b""
    if kind != _JSON:
        raise problem_error(
            "unsupported_media",
            "The Content-Type is not JSON.",
            "Send it as `Content-Type: application/json`.",
        )
    if is_too_deep(body, depth):
        raise problem_error(
            "invalid_json",
            f"The body is nested more than {depth} levels deep.",
            "Send something with fewer levels.",
        )


# A string that never ends goes to the end of the body: trying again from each quote would be slow.
_NESTING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


def is_too_deep(body: bytes, depth: int) -> bool:
    """Is there JSON nested deeper than that? What stands in strings does not count."""
    if body.count(b"[") + body.count(b"{") <= depth:
        return False
    level = 0
    for found in _NESTING.finditer(body):
        mark = body[found.start()]
        if mark in b"[{":
            level += 1
            if level > depth:
                return True
        elif mark in b"]}":
            level -= 1
    return False


def _handing(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out a body that was read already, and then what comes after."""
    waiting = [body]

    async def hand() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        message: Message = await receive()
        while message["type"] != "http.disconnect":  # there is nothing more to come
            message = await receive()
        return message

    return hand


_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    )
)

SECURITY_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_NO_STORE = (b"cache-control", b"no-store")


class RequestMiddleware:
    """Give each request an ID, answer with security headers, log it, and turn a crash into a 500.

    A client may send its own `X-Request-ID`. `/api/v1/…` is the same address as `/api/…`. The log
    has paths as they came, or, where `hides_path` says so, as their route spells them: a path may
    name a person. `count` is told the status of each response.
    """

    def __init__(
        self,
        app: App,
        count: Callable[[int], None] = lambda status: None,
        hides_path: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._app = app
        self._count = count
        self._hides_path = hides_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and see to its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(VERSION):
            scope["path"] = "/api/" + scope["path"].removeprefix(VERSION)
        request_id = _request_id(scope["headers"])
        token = REQUEST_ID.set(request_id)
        began, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._count(status)
                headers = with_security_headers(message.get("headers", ()))
                headers.append((b"x-request-id", request_id.encode()))
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:  # whatever breaks, a client gets an answer and no traceback
            if status:
                raise
            await send_problem(send_with_headers, unexpected_problem(error))
        finally:
            REQUEST_ID.reset(token)
            if _log.isEnabledFor(logging.INFO):
                self._write_log(scope, status, request_id, time.perf_counter() - began)

    def _write_log(self, scope: Scope, status: int, request_id: str, seconds: float) -> None:
        path, caller, client = scope["path"], scope.get("user"), scope.get("client")
        name = "nobody" if caller is None else caller.name
        if self._hides_path(path):
            path, name = getattr(scope.get("route"), "path", "(no route)"), "a user"
        _log.info(
            "%s %s %s %.1f ms, %s at %s, request %s",
            scope["method"],
            path.encode("unicode_escape").decode(),  # a path may have line breaks
            status or "no response",
            seconds * 1000,
            name,
            client[0] if client else "socket",
            request_id,
        )


def _request_id(headers: Pairs) -> str:
    """The client's own ID of the request, if it sends a usable one, or a new one."""
    given = (single_header(headers, b"x-request-id") or b"").decode("latin-1")
    return given if _ID.fullmatch(given) else secrets.token_hex(8)


def with_security_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """These headers, and those that every response has."""
    rests = () if any(name.lower() == b"cache-control" for name, _ in headers) else (_NO_STORE,)
    return [*headers, *rests, *SECURITY_HEADERS]
