"""Signing in and out, who the caller is, and whether the server is up."""

import asyncio

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bridle.protocols.session_values import CallerInfo
from bridle.server.auth import COOKIE, Caller, read_cookie
from bridle.server.context import ServerContext
from bridle.server.login import SIGNED_IN_SECONDS
from bridle.server.problems import ProblemError, encode, problem_error
from bridle.server.routing import JSON, Routes

routes = Routes("Sign-in")

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


@routes.get("/api/health", role=None)
async def get_health() -> Status:
    """Check whether the server is running."""
    return Status("ok")


@routes.get("/api/ready", role=None, refuses=("unavailable", "server_stopping"))
async def get_readiness(context: ServerContext) -> Status:
    """Check whether the server accepts work."""
    if context.sessions.stopping:
        raise problem_error("server_stopping", "The server is being stopped.", "Try again later.")
    if not context.sessions.ready:
        raise problem_error(
            "unavailable", "The server is looking at what was cut off.", "Wait a little."
        )
    return Status("ready")


@routes.post("/api/login", role=None, answers=SignedIn, refuses=("no_token", "other_name"))
async def sign_in(context: ServerContext, request: Request, body: SigningIn) -> Response:
    """Sign in with a one-time code or a token.

    The answer sets a cookie and returns a key. Both together stand for the sign-in.
    """
    if bool(body.code) == bool(body.token):
        raise problem_error(
            "invalid_request", "Either a code or a token is needed.", "Send one of them."
        )
    try:
        if body.token:
            halves = context.door.sign_in_by_token(body.token)
        else:
            halves = context.door.sign_in(body.code, body.only)
    except ProblemError:
        await asyncio.sleep(_WRONG_SECONDS)
        raise
    response = Response(encode(SignedIn(halves.key)), media_type=JSON)
    _set_cookie(response, request, halves.cookie, SIGNED_IN_SECONDS)
    return response


@routes.post("/api/logout", role="watch", status=204)
async def sign_out(context: ServerContext, request: Request) -> Response:
    """Sign out.

    The cookie and the key are no longer valid, and open streams end.
    """
    context.door.sign_out(read_cookie(request.scope["headers"], request.scope[COOKIE]))
    response = Response(status_code=204)
    _set_cookie(response, request, "", 0)
    return response


@routes.get("/api/me", role="watch")
async def get_current_user(context: ServerContext, caller: Caller) -> CallerInfo:
    """Get the name and the role of the caller."""
    return CallerInfo(caller.name, caller.role, context.version, context.sessions.workspaces or ())


def _set_cookie(response: Response, request: Request, value: str, seconds: int) -> None:
    response.set_cookie(
        request.scope[COOKIE],
        value,
        max_age=seconds,
        httponly=True,
        samesite="strict",
        secure=request.headers.get("origin", "").startswith("https://"),
    )
