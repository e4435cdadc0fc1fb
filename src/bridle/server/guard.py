"""Who gets in over HTTP: by one of our own names, from one of our own pages, with a token.

ASGI wrappers around the whole application, before anything is routed: what is refused here never
reaches a route, and an address that leads nowhere is refused in the same way. A foreign page in a
browser cannot pass: it comes with its own Origin or by another Host, and does not know the token.
"""

import hmac
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Protocol

from bridle.server.asgi import App, Pairs, Receive, Scope, Send, only, say, values
from bridle.server.caller import Caller, Stay
from bridle.server.problems import Problem, problem

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COOKIE = "bridle.cookie"  # in the scope: how our cookie is called
STAY = "bridle.stay"  # in the scope: how long whoever asked may be answered
KEY = b"x-bridle-key"  # the half of a sign-in that a page has; browsers send cookies anywhere
SAFE = ("GET", "HEAD", "OPTIONS")
_CHALLENGE = ((b"www-authenticate", b'Bearer realm="bridle"'),)


class Names:
    """The names under which a server answers, and so the origins of its own pages.

    `port` None is a Unix socket. What was allowed by hand stands for any port where it names none,
    and may be reached by TLS, because somebody else then ends it in front of us.
    """

    def __init__(self, port: int | None, bound: str = "", allowed: Iterable[str] = ()) -> None:
        own = {*LOOPBACK, _bracketed(bound)} - {"", "0.0.0.0", "[::]"}
        self._hosts = {f"{name}:{port}".encode() for name in own} if port else {b"localhost"}
        if port == 80:
            self._hosts |= {name.encode() for name in own}
        self._allowed = {name.lower().encode() for name in allowed}
        self.cookie = f"bridle_{port}" if port else "bridle"  # ports of a host share their cookies

    def host(self, headers: Pairs) -> bool:
        """Does it come under one of our names, and one alone?"""
        found = only(headers, b"host")
        return found is not None and self._ours(found.lower())

    def origin(self, headers: Pairs) -> bool:
        """Does it come from no page at all, or from our own?"""
        return all(self._page(found.lower()) for found in values(headers, b"origin"))

    def _ours(self, host: bytes) -> bool:
        bare = host.rpartition(b":")[0] if _has_port(host) else host
        return host in self._hosts or host in self._allowed or bare in self._allowed

    def _page(self, origin: bytes) -> bool:
        scheme, _, host = origin.partition(b"://")
        if scheme == b"http":
            return self._ours(host)
        return scheme == b"https" and host not in self._hosts and self._ours(host)


class Knows(Protocol):
    """Who knows the tokens and the sign-ins."""

    def caller(self, token: str) -> Caller | None: ...
    def signed_in(self, cookie: str, key: str) -> Caller | None: ...
    def leavers(self, cookie: str) -> set[Callable[[], object]]: ...


class Guard:
    """Refuses a wrong Host (421), a wrong Origin (403), and who is not known (401).

    `free` says which paths need no token. Who asks is put into the scope as its `user`, and for how
    long they may be answered as `STAY`.
    """

    def __init__(self, app: App, names: Names, tokens: Knows, free: Callable[[str], bool]) -> None:
        self._app = app
        self._names = names
        self._tokens = tokens
        self._free = free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "websocket":  # nothing here speaks it
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            scope[COOKIE] = self._names.cookie
            headers = scope["headers"]
            refusal = elsewhere(self._names, headers) or self._unknown(scope, headers)
            if refusal is not None:
                await say(send, refusal, _CHALLENGE if refusal.status == 401 else ())
                return
        await self._app(scope, receive, send)

    def _unknown(self, scope: Scope, headers: Pairs) -> Problem | None:
        """Put into the scope who asks; a problem where that is not known and has to be."""
        if values(headers, b"authorization"):
            return self._by_token(scope, bearer(headers))
        return self._by_cookie(scope, headers)

    def _by_token(self, scope: Scope, token: str) -> Problem | None:
        caller = self._tokens.caller(token) if token else None
        if caller is None:
            return None if self._free(scope["path"]) else who()
        scope["user"] = caller
        scope[STAY] = Stay(lambda: self._tokens.caller(token) == caller)
        return None

    def _by_cookie(self, scope: Scope, headers: Pairs) -> Problem | None:
        cookie = cookie_of(headers, self._names.cookie)
        key = (only(headers, KEY) or b"").decode("latin-1")
        caller = self._tokens.signed_in(cookie, key) if cookie and key else None
        if caller is None:
            return None if self._free(scope["path"]) else who()
        if scope["method"] not in SAFE and not values(headers, b"origin"):
            return problem(
                "wrong_origin",
                "A browser that is signed in has to say which page it asks from.",
                "Send the Origin header, or a token instead of the cookie.",
            )
        scope["user"] = caller
        scope[STAY] = Stay(
            lambda: self._tokens.signed_in(cookie, key) == caller, self._tokens.leavers(cookie)
        )
        return None


def elsewhere(names: Names, headers: Pairs) -> Problem | None:
    """The problem with where a request comes from, if there is one."""
    if not names.host(headers):
        return problem(
            "wrong_host",
            "This server answers under its own names alone.",
            "Use the address that it printed, or start it with --allow-host NAME.",
        )
    if not names.origin(headers):
        return problem(
            "wrong_origin",
            "Pages from elsewhere have no business here.",
            "Open the page that this server shows itself.",
        )
    return None


def bearer(headers: Pairs) -> str:
    """The token of the one Authorization header; empty where there is none that can be one."""
    kind, _, token = (only(headers, b"authorization") or b"").partition(b" ")
    return token.strip().decode("latin-1") if kind.lower() == b"bearer" else ""


def cookie_of(headers: Pairs, name: str) -> str:
    """What our cookie says; empty where it is not there, or there twice."""
    found = [_cookies(value) for value in values(headers, b"cookie")]
    ours = [cookies[name].value for cookies in found if name in cookies]
    return ours[0] if len(ours) == 1 else ""


def same(given: str, known: str) -> bool:
    """Are they the same? How long that takes says nothing about where they differ."""
    return hmac.compare_digest(given.encode(), known.encode())


def _cookies(value: bytes) -> "SimpleCookie":
    try:
        return SimpleCookie(value.decode("latin-1"))
    except CookieError:
        return SimpleCookie()


def who() -> Problem:
    """Nobody knows who is asking."""
    return problem(
        "no_token",
        "The token is missing or wrong.",
        "Send `Authorization: Bearer TOKEN`, or sign in with the address that the server printed.",
    )


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name.lower()


def _has_port(host: bytes) -> bool:
    return host.rpartition(b":")[2].isdigit() and not host.endswith(b"]")
