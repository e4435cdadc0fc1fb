"""The server as an ASGI application: middleware around a Starlette application with the routes."""

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

try:
    from starlette.routing import BaseRoute  # noqa: F401 - is the extra installed?
except ModuleNotFoundError:
    from bridle.server import check_installed

    check_installed()  # says what to install
    raise

from bridle.errors import SessionBusy
from bridle.server import problems
from bridle.server.agui import agui_routes
from bridle.server.auth import AllowedHosts, Caller, Guard, HostCheck, check_role, not_signed_in
from bridle.server.context import ServerContext
from bridle.server.middleware import App, RateLimit, Receive, RequestMiddleware, Scope, Send
from bridle.server.problems import Problem, ProblemError
from bridle.server.routes import approvals, history, info, login, prompts, sessions
from bridle.server.routing import Api, ApiRoute, api_application, free_paths

ROUTES: tuple[ApiRoute, ...] = (  # Starlette tries them in this order
    *prompts.routes,
    *sessions.routes,
    *history.routes,
    *approvals.routes,
    *login.routes,
    *info.routes,
)
_BUSY_CHAT = 'Wait for it, interrupt it, or send the prompt with "queue": true.'
_BUSY = "Wait for it, or interrupt it, and try again."


class MountedApp(Protocol):
    """Another application under the same address, with callers of its own."""

    app: App

    def has(self, path: str) -> bool: ...


class Application:
    """The whole server as an ASGI application; `routes` are what is behind the guard.

    `mounted` is asked for the paths that it says are its own.
    """

    def __init__(
        self,
        room: ServerContext,
        names: AllowedHosts,
        *,
        more: Sequence[ApiRoute] = (),
        mounted: MountedApp | None = None,
    ) -> None:
        self.room = room
        self.routes = (*ROUTES, *agui_routes(), *more)
        routed = api_application(self.routes, Api(room, room.limits, _authorize, _problem_of))
        limited = RateLimit(routed, room.limits)
        self._sessions: App = Guard(limited, room.door, free_paths(self.routes))
        self._mounted = mounted
        hides = mounted.has if mounted is not None else lambda path: False
        self._app: App = RequestMiddleware(HostCheck(self._dispatch, names), room.count, hides)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        await self._app(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        mounted = self._mounted
        if mounted is not None and scope["type"] == "http" and mounted.has(scope["path"]):
            await mounted.app(scope, receive, send)
        else:
            await self._sessions(scope, receive, send)


def _authorize(route: ApiRoute, scope: Scope) -> None:
    """Raise `ProblemError` if the caller's role is not enough for the route."""
    role = route.declaration.role
    if role is None:
        return
    caller: Caller | None = scope.get("user")
    if caller is None:
        raise ProblemError(not_signed_in())
    check_role(caller, role)


def _problem_of(error: Exception, scope: Scope) -> tuple[Problem, dict[str, str]]:
    """What a client is told of an error."""
    found = problems.problem_for(error)
    if isinstance(error, SessionBusy) and found.hint == SessionBusy.hint:
        found = replace(found, hint=_BUSY_CHAT if scope["path"].endswith("/chat") else _BUSY)
    return found, problems.headers_of(error, found)
