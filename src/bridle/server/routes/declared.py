"""What a route says of itself: whose role it needs, what it may refuse, what its answer is.

The guard, the description of the API and the tests read it; a route without it does not start.
"""

from typing import Annotated, Any

from litestar import Litestar, Request
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.params import FromPath, QueryParameter
from litestar.routes import HTTPRoute
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.protocols.session_values import ApprovalAnswer, Role
from bridle.server.authorization import check_answer, is_weighty
from bridle.server.caller import Caller, Stay, may
from bridle.server.guard import STAY
from bridle.server.problems import refused
from bridle.server.room import Room

KEY = "bridle"
HANDED = ("data", "request", "room")  # what a route is handed that is not a parameter
LARGEST = 2**53 - 1  # what every client's numbers can hold

Id = FromPath[str]
Here = NamedDependency[Room]
Asking = Request[Caller, Any, Any]
Seq = Annotated[int, QueryParameter(ge=0, le=LARGEST)]
Count = Annotated[int, QueryParameter(ge=1, le=1_000)]
Words = Annotated[str, QueryParameter(max_length=1_000)]


class Declared(Struct, frozen=True, kw_only=True):
    """What a route says of itself.

    `role` None: anybody. `refuses` are codes beside those that every such route can answer.
    `media` and `shape` describe an answer that is no value of `views`; `streams` is the event of
    one that comes as a stream, too, for those who ask for that.
    """

    role: Role | None
    refuses: tuple[str, ...] = ()
    media: str = "application/json"
    shape: str = ""
    streams: str = ""


def needs(role: Role | None, *refuses: str, media: str = "", shape: str = "") -> dict[str, Any]:
    """The declaration, as a route takes it: `opt=needs("drive", "session_busy")`."""
    media = media or "application/json"
    return {KEY: Declared(role=role, refuses=refuses, media=media, shape=shape)}


def check_role(request: Asking, role: Role, what: str) -> None:
    """Raise `Refused` where they may not do that."""
    if not may(request.user, role):
        raise refused(
            "forbidden_role",
            f"{what} needs the role {role}; {request.user.name} has {request.user.role}.",
            "Ask whoever runs the server for a token with that role.",
        )


async def check_reach(
    room: Room, caller: Caller, place: tuple[str, str], answer: ApprovalAnswer
) -> None:
    """Raise `Refused` where an answer, there, reaches further than they may."""
    offer = room.sessions.offer
    if is_weighty(offer, answer):
        check_answer(offer, caller, answer, await room.sessions.question(*place, answer.shown))


def lasting(request: Asking, room: Room) -> Stay:
    """How long they may be answered: a token may be revoked, somebody may sign out."""
    found: Stay = request.scope[STAY]  # type: ignore[literal-required] # the guard's own
    return found


def declared(handler: BaseRouteHandler) -> Declared:
    """What a route says of itself. Raise `ConfigError` where it says nothing."""
    found = handler.opt.get(KEY)
    if not isinstance(found, Declared):
        raise ConfigError(
            f"the route {handler.handler_name} does not say whom it answers",
            hint="Declare it: opt=needs(ROLE).",
        )
    return found


def handlers(app: Litestar) -> list[tuple[str, str, HTTPRouteHandler]]:
    """Every route: path, method, and what answers there. Those that Litestar adds are left out."""
    return [
        (route.path, method, handler)
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in sorted(handler.http_methods)
        if method != "OPTIONS"
    ]
