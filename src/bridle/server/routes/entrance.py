"""Coming in: is the server there, signing in and out, who am I."""

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.params import JSONBody
from msgspec import Struct

from bridle.server.guard import COOKIE, cookie_of
from bridle.server.problems import refused
from bridle.server.routes.declared import Asking, Here, needs
from bridle.server.signing_in import SIGNED_IN_SECONDS
from bridle.server.views import Me


class Status(Struct, frozen=True):
    """How the server is."""

    status: str


class SigningIn(Struct, frozen=True, forbid_unknown_fields=True):
    """The code from the address that the server printed, or a token."""

    code: str


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


@post("/api/login", status_code=204, opt=needs(None, "no_token"))
async def login(data: JSONBody[SigningIn], request: Asking, room: Here) -> Response[None]:
    """Sign in with a code that is good once, or with a token; a cookie then stands for it."""
    client = request.scope.get("client")
    cookie = room.door.sign_in(data.code, client[0] if client else "")
    return Response(None, status_code=204, cookies=[_cookie(request, cookie, SIGNED_IN_SECONDS)])


@post("/api/logout", status_code=204, opt=needs("watch"))
async def logout(request: Asking, room: Here) -> Response[None]:
    """Sign out: the cookie names nobody any more."""
    room.door.sign_out(cookie_of(request.scope["headers"]))
    return Response(None, status_code=204, cookies=[_cookie(request, "", 0)])


@get("/api/me", opt=needs("watch"))
async def me(request: Asking, room: Here) -> Me:
    """Who is asking, and what they may."""
    caller = request.user
    return Me(caller.name, caller.role, room.version, room.sessions.workspaces or ())


def _cookie(request: Asking, value: str, seconds: int) -> Cookie:
    return Cookie(
        key=COOKIE,
        value=value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.headers.get("origin", "").startswith("https://"),
    )


ROUTES = (health, ready, login, logout, me)
