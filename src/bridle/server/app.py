"""The application: routes behind limits, limits behind the guard, the seal around all of it.

This module and the routes import Litestar; nothing else of the server does.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

try:
    from litestar.di import Provide
    from litestar.enums import ParamType
    from litestar.exceptions import MethodNotAllowedException
    from litestar.handlers import HTTPRouteHandler
    from litestar.params import ParameterKwarg
    from litestar.types import ASGIApp
except ModuleNotFoundError:
    from bridle.server import check_installed

    check_installed()  # says what to install
    raise

from bridle.protocols.session_values import Role
from bridle.server.agui import agui_routes
from bridle.server.asgi import App, Receive, Scope, Send
from bridle.server.caller import Caller, may
from bridle.server.guard import Guard, Names, who
from bridle.server.lean import Lean, free_paths, methods_of
from bridle.server.limits import Bounded
from bridle.server.problems import Refused, refused
from bridle.server.room import Room
from bridle.server.routes import about, entrance, reading, reins, sessions, talking
from bridle.server.routes.body import Body
from bridle.server.routes.declared import HANDED, declared
from bridle.server.routes.faults import told
from bridle.server.sealing import Sealed

ROUTES: tuple[HTTPRouteHandler, ...] = (
    *entrance.ROUTES,
    *sessions.ROUTES,
    *talking.ROUTES,
    *reading.ROUTES,
    *reins.ROUTES,
    *about.ROUTES,
)


class Application:
    """The whole server as an ASGI application; `routed` is what is inside the guard."""

    def __init__(self, room: Room, names: Names, more: Sequence[HTTPRouteHandler] = ()) -> None:
        self.room = room
        self.routed = Lean(
            route_handlers=[*ROUTES, *agui_routes(), *more],
            dependencies={"room": Provide(lambda: room, sync_to_thread=False)},
            dto=Body,
            return_dto=None,
            exception_handlers={Exception: told},
            middleware=[_roled],
            logging_config=None,
            openapi_config=None,
            request_max_body_size=None,
            debug=False,
            pdb_on_exception=False,
        )
        free = free_paths(self.routed)
        bounded = Bounded(self.routed, room.limits)
        self._app: App = Sealed(Guard(bounded, names, room.door, free), room.count)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        await self._app(scope, receive, send)


def _roled(app: ASGIApp) -> ASGIApp:
    """Before each route: may they? The guard has seen who they are; here it counts what for.

    A middleware and no guard of Litestar's: it copies the route for each guard and request.
    """

    async def check(scope: Any, receive: Any, send: Any) -> None:
        handler = scope["route_handler"]
        if "OPTIONS" in handler.http_methods:
            raise MethodNotAllowedException(headers={"allow": methods_of(scope)})
        _check(scope.get("user"), declared(handler).role)
        if scope.get("user") is not None and declared(handler).role is not None:
            _check_query(handler, scope["query_string"])
        await app(scope, receive, send)

    return check


@cache
def _query(handler: HTTPRouteHandler) -> frozenset[str]:
    """The names of the query parameters that a route has."""
    found = handler.parsed_fn_signature.parameters.values()
    kinds = [(one.name, one.kwarg_definition) for one in found]
    return frozenset(
        kind.name or name
        for name, kind in kinds
        if name not in HANDED
        and isinstance(kind, ParameterKwarg)
        and kind.param_type is ParamType.QUERY
    )


def _check_query(handler: HTTPRouteHandler, query: bytes) -> None:
    """Refuse parameters that the route does not have, as unknown fields of a body are."""
    if not query:
        return
    known = _query(handler)
    for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known:
            hint = f"It has these: {', '.join(sorted(known))}." if known else "It has none."
            raise refused("invalid_request", f"There is no query parameter {name[:60]!r}.", hint)


def _check(caller: Caller | None, role: Role | None) -> None:
    if role is None:
        return
    if caller is None:
        raise Refused(who())
    if not may(caller, role):
        raise refused(
            "forbidden_role",
            f"This needs the role {role}; {caller.name} has {caller.role}.",
            "Ask whoever runs the server for a token with that role.",
        )
