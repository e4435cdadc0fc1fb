"""The chat as an ASGI application: its routes behind limits, behind its guard, and sealed.

It stands alone (`ChatServer`), or beside the sessions under one address (`Beside`). Whose path it
is decides: a user's path has to be the one that the token names.
"""

from typing import Any

from litestar.di import Provide
from litestar.exceptions import MethodNotAllowedException
from litestar.types import ASGIApp

from bridle.server.app import Application
from bridle.server.asgi import App, Receive, Scope, Send
from bridle.server.chatting import about, routes
from bridle.server.chatting.faults import refused, told
from bridle.server.chatting.guard import ChatGuard
from bridle.server.chatting.names import RESERVED
from bridle.server.chatting.room import ChatRoom
from bridle.server.guard import Names
from bridle.server.lean import Lean, free_paths, methods_of
from bridle.server.limits import Bounded
from bridle.server.routes.body import Body
from bridle.server.routes.declared import declared
from bridle.server.sealing import Sealed


class ChatServer:
    """The whole chat as an ASGI application; `routed` is what is inside the guard."""

    def __init__(self, room: ChatRoom, names: Names, *, alone: bool = True) -> None:
        self.room = room
        self.routed = Lean(
            route_handlers=[*routes.ROUTES, *about.ROUTES, *(about.ALONE if alone else ())],
            dependencies={"room": Provide(lambda: room, sync_to_thread=False)},
            dto=Body,
            return_dto=None,
            exception_handlers={Exception: told},
            middleware=[_owned],
            logging_config=None,
            openapi_config=None,
            request_max_body_size=None,
            debug=False,
            pdb_on_exception=False,
        )
        free = free_paths(self.routed)
        bounded = Bounded(self.routed, room.limits)
        self._app: App = Sealed(ChatGuard(bounded, names, room.bearing, free))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        await self._app(scope, receive, send)


class Beside:
    """The sessions and the chat under one address, each behind its own guard."""

    def __init__(self, sessions: Application, chat: ChatServer) -> None:
        self.room = sessions.room
        self._sessions, self._chat = sessions, chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        ours = scope["type"] == "http" and is_chat(scope["path"])
        await (self._chat if ours else self._sessions)(scope, receive, send)


def is_chat(path: str) -> bool:
    """Is that an address of the chat? What is named by the server's own words is not."""
    _, first, *rest = path.split("/") if path.startswith("/") else ("", "")
    if first == "chat":
        return True
    if first != "api" or not rest:
        return False
    return rest[0] == "chat" or (len(rest) > 1 and rest[0].casefold() not in RESERVED)


def _owned(app: ASGIApp) -> ASGIApp:
    """Before each route: is the path's user the one whom the token names?"""

    async def check(scope: Any, receive: Any, send: Any) -> None:
        handler = scope["route_handler"]
        if "OPTIONS" in handler.http_methods:
            raise MethodNotAllowedException(headers={"allow": methods_of(scope)})
        caller = scope.get("user")
        if declared(handler).role is not None and caller is None:  # the guard has seen to it
            raise refused("no_token", "Who is asking? There is no token.", "Sign in again.")
        user = scope["path_params"].get("user_id")
        if user is not None and user != caller.name:
            raise refused(
                "other_user",
                "That belongs to somebody else.",
                "Your token is for your own conversations: use your own name in the address.",
            )
        await app(scope, receive, send)

    return check
