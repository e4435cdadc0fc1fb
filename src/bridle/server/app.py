"""The application: routes behind limits, limits behind the guard, the seal around all of it.

This module and the routes import Litestar; nothing else of the server does.
"""

from collections.abc import Callable, Sequence
from typing import Any

from litestar import Litestar
from litestar.config.app import AppConfig
from litestar.di import Provide
from litestar.exceptions import MethodNotAllowedException
from litestar.handlers import HTTPRouteHandler
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import ASGIApp

from bridle.server.agui import agui_routes
from bridle.server.asgi import App, Receive, Scope, Send
from bridle.server.caller import Caller, may
from bridle.server.guard import Guard, Names, who
from bridle.server.limits import Bounded
from bridle.server.problems import Refused, refused
from bridle.server.room import Room
from bridle.server.routes import about, entrance, reading, reins, sessions, talking
from bridle.server.routes.body import Body
from bridle.server.routes.declared import declared, handlers
from bridle.server.routes.faults import told
from bridle.server.sealing import Sealed
from bridle.server.views import Role

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
        self.routed = _Lean(
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


def free_paths(app: Litestar) -> Callable[[str], bool]:
    """Which paths need no token: exactly those of routes that say so, or below a free folder."""
    paths = {path for path, _, handler in handlers(app) if declared(handler).role is None}
    folders = tuple(path.partition("{")[0] for path in paths if "{" in path)
    exact = frozenset(path for path in paths if "{" not in path)
    return lambda path: path in exact or path.startswith(folders)


def _roled(app: ASGIApp) -> ASGIApp:
    """Before each route: may they? The guard has seen who they are; here it counts what for.

    A middleware and no guard of Litestar's: it copies the route for each guard and request.
    """

    async def check(scope: Any, receive: Any, send: Any) -> None:
        handler = scope["route_handler"]
        if "OPTIONS" in handler.http_methods:
            raise MethodNotAllowedException(headers={"allow": _methods(scope)})
        _check(scope.get("user"), declared(handler).role)
        await app(scope, receive, send)

    return check


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


def _methods(scope: Any) -> str:
    """What can be done at this address, beside asking that."""
    known = handlers(scope["litestar_app"])
    found = {method for path, method, _ in known if path == scope["path_template"]}
    return ", ".join(sorted(found))


class _Lean(Litestar):
    """Litestar with nothing but msgspec: the other plugins cost a third of a second to import."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]

    @staticmethod
    def _patch_opentelemetry_middleware(config: AppConfig) -> AppConfig:
        return config
