"""About the chat: is it there, whom does a token name, its description, and the page."""

from functools import lru_cache

from litestar import Litestar, Response, get
from sqlmodel import col, select

from bridle.chat.data import Conversation, OwnedSession
from bridle.server.chatting.described import CHAT
from bridle.server.chatting.faults import refused
from bridle.server.chatting.routes import Asking, Here
from bridle.server.chatting.views import About, Condition, Me
from bridle.server.openapi import description
from bridle.server.routes.declared import declared, handlers, needs

_PREFIX = "/chat"
_LOGO = "/favicon.svg"


@get("/api/chat/health", opt=needs(None))
async def health() -> Condition:
    """The server is there."""
    return Condition("ok")


@get("/api/chat/ready", opt=needs(None, "server_stopping"))
async def ready(room: Here) -> Condition:
    """The server takes messages: its database answers."""
    if room.stopping:
        raise refused("server_stopping", "The chat is being shut down.", "Try again in a moment.")
    await room.app.database.work("ready", _look, reads=True)
    return Condition("ready")


def _look(session: OwnedSession) -> None:
    session.exec(select(col(Conversation.id)).limit(1)).first()


@get("/api/chat/me", opt=needs("watch"))
async def me(request: Asking, room: Here) -> Me:
    """Whom your token names."""
    profile = room.app.runner.profile
    longest = room.app.service.limits.message
    return Me(request.user.name, profile.name, room.has_tasks, longest)


@get("/api/chat/about", opt=needs(None))
async def about(room: Here) -> About:
    """What the assistant calls itself, and how a conversation can begin."""
    profile = room.app.runner.profile
    return About(
        room.title,
        profile.opening,
        profile.about,
        profile.suggestions,
        room.has_tasks,
        room.app.runner.languages,
    )


@lru_cache(4)
def described(app: Litestar) -> bytes:
    """The description of an application's routes, made once."""
    found = ((path, method, one, declared(one)) for path, method, one in handlers(app))
    return description(found, CHAT)


@get("/api/chat/openapi.json", opt=needs("watch", media="application/json", shape="any"))
async def openapi(request: Asking) -> Response[bytes]:
    """This description."""
    return Response(described(request.app), media_type="application/json")


@get(
    ["/chat", "/chat/favicon.svg", "/chat/assets/{name:path}"],
    opt=needs(None, media="text/html", shape="page"),
    include_in_schema=False,
)
async def page(request: Asking, room: Here) -> Response[bytes | None]:
    """The page, and its files."""
    path = request.scope["path"].removeprefix(_PREFIX) or "/"
    leaf = room.logo if path == _LOGO else room.page.leaf(path)
    if leaf is None:
        raise refused("not_found", "There is no such file.", "Open /chat for the page.")
    headers = {"etag": leaf.tag, "cache-control": leaf.cache, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == leaf.tag:
        return Response(None, status_code=304, headers=headers)
    packed = leaf.packed and "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(leaf.packed if packed else leaf.plain, media_type=leaf.media, headers=headers)


@get("/", opt=needs(None, media="text/html", shape="page"), include_in_schema=False)
async def entrance() -> Response[bytes]:
    """Where the chat stands alone, its page is the first thing there."""
    return Response(b"", status_code=307, headers={"location": _PREFIX}, media_type="text/html")


ROUTES = (health, ready, me, about, openapi, page)
ALONE = (entrance,)
