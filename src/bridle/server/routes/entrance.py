"""Coming in: is the server there, signing in and out, who am I."""

import asyncio

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.params import JSONBody
from msgspec import Struct

from bridle.protocols.session_values import CallerInfo
from bridle.server.guard import COOKIE, cookie_of
from bridle.server.problems import Refused, refused
from bridle.server.routes.declared import Asking, Here, needs
from bridle.server.signing_in import SIGNED_IN_SECONDS

_WRONG_SECONDS = 0.2  # that a wrong code or token waits for its answer


class Status(Struct, frozen=True):
    """How the server is."""

    status: str


class SigningIn(Struct, frozen=True, forbid_unknown_fields=True):
    """The code from the address that the server printed, or else a token.

    `only` is for those who are signed in already: a code of somebody else is not used then.
    """

    code: str = ""
    token: str = ""
    only: str = ""


class SignedIn(Struct, frozen=True):
    """The half of the sign-in that the page keeps and sends as `X-Bridle-Key`; told this once."""

    key: str


@get("/api/health", opt=needs(None))
async def health() -> Status:
    """The server is there."""
    return Status("ok")


@get("/api/ready", opt=needs(None, "unavailable", "server_stopping"))
async def ready(room: Here) -> Status:
    """The server takes work."""
    if room.sessions.stopping:
        raise refused("server_stopping", "The server is being stopped.", "Try again later.")
    if not room.sessions.ready:
        raise refused("unavailable", "The server is looking at what was cut off.", "Wait a little.")
    return Status("ready")


@post("/api/login", status_code=200, opt=needs(None, "no_token", "other_name"))
async def login(data: JSONBody[SigningIn], request: Asking, room: Here) -> Response[SignedIn]:
    """Sign in with a code that is good once, or with a token.

    A cookie and the key in the answer stand for it then, both together.
    """
    if bool(data.code) == bool(data.token):
        raise refused("invalid_request", "Either a code or a token is needed.", "Send one of them.")
    try:
        if data.token:
            halves = room.door.sign_in_by_token(data.token)
        else:
            halves = room.door.sign_in(data.code, data.only)
    except Refused:
        await asyncio.sleep(_WRONG_SECONDS)
        raise
    cookie = _cookie(request, halves.cookie, SIGNED_IN_SECONDS)
    return Response(SignedIn(halves.key), status_code=200, cookies=[cookie])


@post("/api/logout", status_code=204, opt=needs("watch"))
async def logout(request: Asking, room: Here) -> Response[None]:
    """Sign out: the cookie and the key name nobody any more, and open streams end."""
    room.door.sign_out(cookie_of(request.scope["headers"], _name(request)))
    return Response(None, status_code=204, cookies=[_cookie(request, "", 0)])


@get("/api/me", opt=needs("watch"))
async def me(request: Asking, room: Here) -> CallerInfo:
    """Who is asking, and what they may."""
    caller = request.user
    return CallerInfo(caller.name, caller.role, room.version, room.sessions.workspaces or ())


def _cookie(request: Asking, value: str, seconds: int) -> Cookie:
    return Cookie(
        key=_name(request),
        value=value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.headers.get("origin", "").startswith("https://"),
    )


def _name(request: Asking) -> str:
    """How our cookie is called."""
    return str(request.scope[COOKIE])  # type: ignore[literal-required] # the guard's own


ROUTES = (health, ready, login, logout, me)
