"""The chat as an ASGI application: its routes behind limits, behind its guard, and sealed.

It stands alone (`ChatServer`), or beside the sessions under one address (`Beside`). Whose path it
is decides: a user's path has to be the one that the token names.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from bridle.chat.app import ChatApp, load_app
from bridle.chat.values import ServiceLimits
from bridle.server.auth import LEASE, AccessLease, AllowedHosts, Caller, HostCheck, bearer_token
from bridle.server.chat.context import ChatContext
from bridle.server.chat.jwt import (
    AUDIENCE,
    RESERVED,
    InvalidToken,
    JwksFile,
    JwtVerifier,
    KeySource,
    SharedSecret,
)
from bridle.server.chat.problems import problem, problem_and_headers, problem_error
from bridle.server.chat.routes import routes, stand_alone_routes
from bridle.server.http import HttpServer
from bridle.server.middleware import (
    App,
    Pairs,
    RateLimit,
    Receive,
    RequestMiddleware,
    Scope,
    Send,
    header_values,
    send_problem,
)
from bridle.server.problems import Problem
from bridle.server.routing import Api, ApiRoute, api_application, free_paths


class ChatServer:
    """The whole chat as an ASGI application.

    It stands alone, or `app`, which is what is behind the checks that all applications share, is
    mounted beside the sessions. `routes` are what is behind the guard.
    """

    def __init__(self, room: ChatContext, names: AllowedHosts, *, alone: bool = True) -> None:
        self.room = room
        self.routes = (*routes, *(stand_alone_routes if alone else ()))
        routed = api_application(
            self.routes, Api(room, room.limits, _authorize, problem_and_headers)
        )
        limited = RateLimit(routed, room.limits)
        self.app: App = ChatGuard(limited, room.bearing, free_paths(self.routes))
        self._whole = RequestMiddleware(HostCheck(self.app, names), hides_path=lambda path: True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        await self._whole(scope, receive, send)

    def has(self, path: str) -> bool:
        """Is that an address of the chat?"""
        return is_chat(path)


def is_chat(path: str) -> bool:
    """Is that an address of the chat? What is named by the server's own words is not."""
    _, first, *rest = path.split("/") if path.startswith("/") else ("", "")
    if first == "chat":
        return True
    if first != "api" or not rest:
        return False
    return rest[0] == "chat" or (len(rest) > 1 and rest[0].casefold() not in RESERVED)


def _authorize(route: ApiRoute, scope: Scope) -> None:
    """Raise `Refused` unless the path's user is the one whom the token names."""
    caller: Caller | None = scope.get("user")
    if route.declaration.role is not None and caller is None:  # the guard has seen to it
        raise problem_error("no_token", "Who is asking? There is no token.", "Sign in again.")
    user = scope["path_params"].get("user_id")
    if user is not None and (caller is None or user != caller.name):
        raise problem_error(
            "other_user",
            "That belongs to somebody else.",
            "Your token is for your own conversations: use your own name in the address.",
        )


_CHALLENGE = ((b"www-authenticate", b'Bearer realm="bridle chat"'),)
_AGAIN = "Sign in again, or send `Authorization: Bearer TOKEN` with a token of your own."


class ChatGuard:
    """Middleware: refuse a caller whose token names no user (401)."""

    def __init__(self, app: App, bearing: JwtVerifier, free: Callable[[str], bool]) -> None:
        self._app, self._bearing, self._free = app, bearing, free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "http" and (refusal := self._unknown(scope)) is not None:
            await send_problem(send, refusal, _CHALLENGE if refusal.status == 401 else ())
            return
        await self._app(scope, receive, send)

    def _unknown(self, scope: Scope) -> Problem | None:
        """Put into the scope who asks; a problem where that is not known and has to be."""
        if self._free(scope["path"]):
            return None
        return self._named(scope, scope["headers"])

    def _named(self, scope: Scope, headers: Pairs) -> Problem | None:
        token = bearer_token(headers)
        try:
            user = self._bearing.user(token)
        except InvalidToken as error:
            if error.expired:
                return problem("no_token", "Your sign-in has expired.", _AGAIN)
            wrong = bool(header_values(headers, b"authorization"))
            said = "That token is not valid here." if wrong else "Who is asking? There is no token."
            return problem("no_token", said, _AGAIN)
        scope["user"] = Caller(user, "watch")
        scope[LEASE] = AccessLease(lambda: self._is_still(token, user))
        return None

    def _is_still(self, token: str, user: str) -> bool:
        try:
            return self._bearing.user(token) == user
        except InvalidToken:
            return False


class ChatSettings(Struct, frozen=True, kw_only=True):
    """How a chat is served. `secret` or `jwks`; `app` is MODULE:NAME of an application.

    `model` empty: the one whose key is there, or else the assistant's own rules. `database` empty:
    the application's own.
    """

    database: str
    secret: str = ""
    jwks: str = ""
    audience: str = AUDIENCE
    issuer: str = ""
    model: str = ""
    app: str = ""
    a_minute: int = 60
    a_day: float = 0.0
    host: str = "127.0.0.1"
    port: int = 0
    allowed: tuple[str, ...] = ()
    log: str = ""

    def __repr__(self) -> str:
        """For logs: neither the secret nor the password of the database."""
        return f"ChatSettings(app={self.app!r}, host={self.host!r}, port={self.port})"


def create_chat_server(setup: ChatSettings, *, alone: bool = True) -> ChatServer:
    """The chat that the settings describe. Raise `ConfigError`."""
    names = AllowedHosts(setup.port, setup.host, setup.allowed)
    return ChatServer(ChatContext(chat_app(setup), jwt_verifier(setup)), names, alone=alone)


def jwt_verifier(setup: ChatSettings) -> JwtVerifier:
    """Who is believed."""
    keys: KeySource = JwksFile(Path(setup.jwks)) if setup.jwks else SharedSecret(setup.secret)
    return JwtVerifier(keys, setup.audience, setup.issuer)


def chat_app(setup: ChatSettings) -> ChatApp:
    """The task assistant, or the application that was named. Raise `ConfigError`."""
    if setup.app:
        return load_app(setup.app, setup.database, setup.model)
    limits = ServiceLimits(messages_a_minute=setup.a_minute, dollars_a_day=setup.a_day)
    return ChatApp(database=setup.database, provider=setup.model or None, service_limits=limits)


_SHARE = 0.7  # of the time to stop, for requests that are being answered


class ChatLifecycle:
    """The chat on a socket, from `start` to `stop`."""

    def __init__(
        self, server: ChatServer, listening: socket.socket, *, is_guarded: bool | None = None
    ) -> None:
        self._room = server.room
        limits = server.room.limits
        self._host = HttpServer(server, listening, limits=limits, is_guarded=is_guarded)

    async def start(self) -> None:
        """Load everything that the first message would wait for, then take requests."""
        await self._room.app.start()
        await self._host.start()

    async def ended(self) -> None:
        """Wait until it has ended, by whatever."""
        await self._host.ended()

    async def stop(self, seconds: float = 10.0) -> None:
        """Let what is being answered end, let go of the rest; another process can go on with it."""
        self._room.stop()
        try:
            await self._host.stop(seconds * _SHARE)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(1.0, seconds * (1 - _SHARE))):
                    await self._room.app.close()
