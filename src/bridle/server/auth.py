"""Who may send requests, and what each caller may do.

The middleware here runs before routing, so an address that does not exist is refused like any
other. A page of another site cannot pass: it has another Origin or Host and does not know the
token.
"""

import hmac
import html
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from bridle.events import ApprovalAsked
from bridle.policy import MODES, Mode
from bridle.protocols.session_values import (
    ROLES,
    ApprovalAnswer,
    NewSession,
    ResumeOptions,
    Role,
    SessionUpdate,
)
from bridle.server.middleware import (
    App,
    Pairs,
    Receive,
    Scope,
    Send,
    header_values,
    send_problem,
    single_header,
)
from bridle.server.problems import Problem, problem, problem_error

if TYPE_CHECKING:
    from starlette.requests import Request

    from bridle.service.choices import AllowedChoices
    from bridle.service.local_service import LocalService

OWNER = "me"  # whose machine it is: the name of the server's own token


class Caller(Struct, frozen=True):
    """Who a token or a sign-in belongs to. The name is recorded with every prompt and answer."""

    name: str
    role: Role


class AccessLease:
    """Whether a long response may go on: a token may be revoked, a person may sign out.

    `still` is asked now and then. What is in `leavers` is called when a sign-in ends.
    """

    def __init__(
        self,
        still: Callable[[], bool] = lambda: True,
        leavers: set[Callable[[], object]] | None = None,
    ) -> None:
        self.still = still
        self.leavers: set[Callable[[], object]] = set() if leavers is None else leavers


def has_role(caller: Caller, role: Role) -> bool:
    """May they do what needs that role? Each role includes the ones before it."""
    return ROLES.index(caller.role) >= ROLES.index(role)


LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
PROBES = (
    "/api/health",
    "/api/ready",
    "/api/chat/health",
    "/api/chat/ready",
)  # asked by load balancers, under whatever name
COOKIE = "bridle.cookie"  # in the scope: how our cookie is called
LEASE = "bridle.stay"  # in the scope: how long whoever asked may be answered
KEY = b"x-bridle-key"  # the half of a sign-in that a page has; browsers send cookies anywhere
SAFE = ("GET", "HEAD", "OPTIONS")
_CHALLENGE = ((b"www-authenticate", b'Bearer realm="bridle"'),)


class AllowedHosts:
    """The names under which a server answers, and so the origins of its own pages.

    `port` None is a Unix socket. What was allowed by hand stands for any port if it names none,
    and may be reached by TLS, because somebody else then ends it in front of us. A loopback name
    stands for any port, too: a tunnel or a container may forward another one to ours.
    """

    def __init__(self, port: int | None, bound: str = "", allowed: Iterable[str] = ()) -> None:
        own = {*LOOPBACK, _bracketed(bound)} - {"", "0.0.0.0", "[::]"}
        self._hosts = {f"{name}:{port}".encode() for name in own} if port else {b"localhost"}
        if port == 80:
            self._hosts |= {name.encode() for name in own}
        self._allowed = {name.lower().encode() for name in allowed}
        self._loopback = {name.encode() for name in LOOPBACK} if port else set()
        self.cookie = f"bridle_{port}" if port else "bridle"  # ports of a host share their cookies

    def host(self, headers: Pairs) -> bool:
        """Does it come under one of our names, and one alone?"""
        found = single_header(headers, b"host")
        return found is not None and self._ours(found.lower())

    def origin(self, headers: Pairs) -> bool:
        """Does it come from no page at all, or from our own?"""
        host = (single_header(headers, b"host") or b"").lower()
        return all(self._page(found.lower(), host) for found in header_values(headers, b"origin"))

    def _ours(self, host: bytes) -> bool:
        return host in self._hosts or self._allows(host) or _bare(host) in self._loopback

    def _allows(self, host: bytes) -> bool:
        return host in self._allowed or _bare(host) in self._allowed

    def _page(self, origin: bytes, asked: bytes) -> bool:
        """Is that a page of ours? `asked` is the host that was asked.

        Another port of a loopback name may be another program's: its page is ours only if the
        request went to that very port, through a tunnel.
        """
        scheme, _, host = origin.partition(b"://")
        if host in self._hosts:
            return scheme == b"http"
        is_asked = host == asked and _bare(host) in self._loopback
        return scheme in (b"http", b"https") and (is_asked or self._allows(host))


class CallerDirectory(Protocol):
    """Who knows the tokens and the sign-ins."""

    def caller(self, token: str) -> Caller | None: ...
    def signed_in(self, cookie: str, key: str) -> Caller | None: ...
    def leavers(self, cookie: str) -> set[Callable[[], object]]: ...


class HostCheck:
    """Middleware: refuse requests for another host (421) or from another site's pages (403)."""

    def __init__(self, app: App, names: AllowedHosts) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "websocket":  # nothing here speaks it
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            scope[COOKIE] = self._names.cookie
            if (refusal := host_problem(self._names, scope)) is not None:
                await send_refusal(scope, send, refusal)
                return
        await self._app(scope, receive, send)


class Guard:
    """Middleware: refuse a caller without a valid token or sign-in (401).

    `free` says which paths need no token. The caller is put into the scope as its `user`, and for
    how long they may be answered as `LEASE`.
    """

    def __init__(self, app: App, tokens: CallerDirectory, free: Callable[[str], bool]) -> None:
        self._app = app
        self._tokens = tokens
        self._free = free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or say why not."""
        if scope["type"] == "http":
            refusal = self._unknown(scope, scope["headers"])
            if refusal is not None:
                await send_problem(send, refusal, _CHALLENGE if refusal.status == 401 else ())
                return
        await self._app(scope, receive, send)

    def _unknown(self, scope: Scope, headers: Pairs) -> Problem | None:
        """Put into the scope who asks; a problem where that is not known and has to be."""
        if header_values(headers, b"authorization"):
            return self._by_token(scope, bearer_token(headers))
        return self._by_cookie(scope, headers)

    def _by_token(self, scope: Scope, token: str) -> Problem | None:
        caller = self._tokens.caller(token) if token else None
        if caller is None:
            return None if self._free(scope["path"]) else not_signed_in()
        scope["user"] = caller
        scope[LEASE] = AccessLease(lambda: self._tokens.caller(token) == caller)
        return None

    def _by_cookie(self, scope: Scope, headers: Pairs) -> Problem | None:
        cookie = read_cookie(headers, scope[COOKIE])
        key = (single_header(headers, KEY) or b"").decode("latin-1")
        caller = self._tokens.signed_in(cookie, key) if cookie and key else None
        if caller is None:
            return None if self._free(scope["path"]) else not_signed_in()
        if scope["method"] not in SAFE and not header_values(headers, b"origin"):
            return problem(
                "wrong_origin",
                "A signed-in browser has to send the Origin header.",
                "Send it, or use a token instead of the cookie.",
            )
        scope["user"] = caller
        scope[LEASE] = AccessLease(
            lambda: self._tokens.signed_in(cookie, key) == caller, self._tokens.leavers(cookie)
        )
        return None


def access_lease(request: "Request") -> AccessLease:
    """How long the caller may be answered: a token may be revoked, somebody may sign out."""
    found: AccessLease = request.scope[LEASE]
    return found


def host_problem(names: AllowedHosts, scope: Scope) -> Problem | None:
    """The problem with where a request comes from, if there is one."""
    headers = scope["headers"]
    if scope["path"] not in PROBES and not names.host(headers):
        return problem(
            "wrong_host",
            "This server does not answer to that host name.",
            "Use the address that the server printed, or start it with --allow-host NAME.",
        )
    if not names.origin(headers):
        return problem(
            "wrong_origin",
            "Requests from other origins are not allowed.",
            "Open the page that this server serves.",
        )
    return None


async def send_refusal(scope: Scope, send: Send, refusal: Problem) -> None:
    """Answer with a problem; a browser that opened a page under a wrong host name gets a page."""
    accepts = (single_header(scope["headers"], b"accept") or b"").lower()
    if refusal.code != "wrong_host" or scope["method"] != "GET" or b"text/html" not in accepts:
        await send_problem(send, refusal)
        return
    host = (single_header(scope["headers"], b"host") or b"").decode("latin-1")
    name = html.escape(host.rpartition(":")[0] if _has_port(host.encode("latin-1")) else host)
    body = _WRONG_HOST.format(name=name or "NAME").encode("latin-1", "replace")
    kind = (b"content-type", b"text/html; charset=iso-8859-1")
    length = (b"content-length", b"%d" % len(body))
    start = {"type": "http.response.start", "status": refusal.status}
    await send(start | {"headers": [kind, length]})
    await send({"type": "http.response.body", "body": body})


_WRONG_HOST = """<!doctype html>
<html lang="en"><meta name="viewport" content="width=device-width"><title>bridle: host name</title>
<h1>bridle does not answer to this host name</h1>
<p>This keeps other sites from reaching it through a host name that they control.</p>
<p>Open the address that <code>bridle serve</code> printed. If this name is yours, such as the name
of a proxy, start the server with <code>--allow-host {name}</code>.</p>
</html>
"""


def bearer_token(headers: Pairs) -> str:
    """The token of the one Authorization header; empty where there is none that can be one."""
    kind, _, token = (single_header(headers, b"authorization") or b"").partition(b" ")
    return token.strip().decode("latin-1") if kind.lower() == b"bearer" else ""


def read_cookie(headers: Pairs, name: str) -> str:
    """What our cookie says; empty where it is not there, or there twice."""
    found = [_cookies(value) for value in header_values(headers, b"cookie")]
    ours = [cookies[name].value for cookies in found if name in cookies]
    return ours[0] if len(ours) == 1 else ""


def is_same_secret(given: str, known: str) -> bool:
    """Are they the same? How long that takes says nothing about where they differ."""
    return hmac.compare_digest(given.encode(), known.encode())


def _cookies(value: bytes) -> "SimpleCookie":
    try:
        return SimpleCookie(value.decode("latin-1"))
    except CookieError:
        return SimpleCookie()


def not_signed_in() -> Problem:
    """The problem of a caller without a valid token."""
    return problem(
        "no_token",
        "The token is missing or wrong.",
        "Send `Authorization: Bearer TOKEN`, or sign in with the address that the server printed.",
    )


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name.lower()


def _bare(host: bytes) -> bytes:
    """A host without its port."""
    return host.rpartition(b":")[0] if _has_port(host) else host


def _has_port(host: bytes) -> bool:
    return host.rpartition(b":")[2].isdigit() and not host.endswith(b"]")


PLAN = "exit_plan_mode"


def check_role(caller: Caller, role: Role, what: str = "This") -> None:
    """Raise `Refused` if they may not do that."""
    if not has_role(caller, role):
        raise problem_error(
            "forbidden_role",
            f"{what} needs the role {role}; {caller.name} has {caller.role}.",
            "Ask whoever runs the server for a token with that role.",
        )


async def check_reach(
    sessions: "LocalService", caller: Caller, session_id: str, call_id: str, answer: ApprovalAnswer
) -> None:
    """Raise `Refused` if an answer reaches further than they may."""
    offer = sessions.choices
    if is_weighty(offer, answer):
        asked = await sessions.approval(session_id, call_id, answer.shown)
        check_answer(offer, caller, answer, asked)


def check_choice(
    offer: "AllowedChoices", caller: Caller, wanted: NewSession | ResumeOptions | SessionUpdate
) -> None:
    """Raise an error if the caller may not have that agent, model or mode."""
    agent = getattr(wanted, "agent", "") or ""
    offer.check_agent(agent)
    offer.check_model(wanted.provider or "", wanted.model or "", agent)
    check_mode(offer, caller, getattr(wanted, "mode", None))


def check_mode(offer: "AllowedChoices", caller: Caller, mode: Mode | None) -> None:
    """Raise `Refused` for a wider mode than the server's own, unless an admin wants it."""
    if mode is None or has_role(caller, "admin") or MODES.index(mode) <= MODES.index(offer.mode):
        return
    raise problem_error(
        "forbidden_role",
        f"The mode {mode} is wider than this server's own, and needs the role admin; "
        f"{caller.name} has {caller.role}.",
        f"Choose {offer.mode} or a narrower one, or ask whoever runs the server.",
    )


def is_weighty(offer: "AllowedChoices", answer: ApprovalAnswer) -> bool:
    """Could it be more than a yes to one call, so that the question has to be looked at?"""
    return answer.allowed and (answer.scope == "rule" or offer.mode == "plan")


def check_answer(
    offer: "AllowedChoices", caller: Caller, answer: ApprovalAnswer, asked: ApprovalAsked | None
) -> None:
    """Raise `Refused` for a yes that reaches further than they may: a rule, a wider mode."""
    if asked is not None and asked.call.name == PLAN and answer.allowed:
        check_mode(offer, caller, "ask")  # a plan that is agreed to ends the mode plan
    if answer.scope == "rule" and answer.allowed:
        _check_rule(caller, answer.rule, asked.proposal if asked is not None else "")


def _check_rule(caller: Caller, rule: str, proposal: str) -> None:
    if rule and rule != proposal and not has_role(caller, "admin"):
        raise problem_error(
            "forbidden_role",
            "A rule other than the one that is proposed needs the role admin; "
            f"{caller.name} has {caller.role}.",
            f"Take the rule that is proposed: {proposal}" if proposal else "Allow it once.",
        )
