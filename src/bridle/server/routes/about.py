"""About the server: what can be chosen, its figures, its description, and the page."""

from functools import lru_cache

from litestar import Litestar, Response, get

from bridle.protocols.session_values import Choice, Choices, Report
from bridle.server.metrics import MEDIA
from bridle.server.openapi import description
from bridle.server.pages import INDEX
from bridle.server.problems import refused
from bridle.server.routes.declared import Asking, Here, declared, handlers, needs


@get("/api/models", opt=needs("watch", "unavailable"))
async def models(room: Here) -> Choices:
    """Models that a session can have."""
    return await room.catalogue.models()


@get("/api/agents", opt=needs("watch", "unavailable"))
async def agents(room: Here) -> Choices:
    """Agents that can carry a turn."""
    return await room.catalogue.agents()


@get("/api/doctor", opt=needs("admin", "unavailable"))
async def doctor(room: Here) -> Report:
    """What was found on the server's machine, a line each; no keys."""
    return await room.catalogue.doctor()


@get("/api/workspaces", opt=needs("watch"))
async def workspaces(room: Here) -> Choices:
    """Folders that the server works in."""
    found = room.sessions.workspaces or ()
    return Choices(tuple(Choice(one, default=one == found[0]) for one in found))


@get("/api/metrics", opt=needs("watch", media="text/plain", shape="text"))
async def metrics(room: Here) -> Response[bytes]:
    """Figures, as Prometheus reads them."""
    return Response(room.metrics(), media_type=MEDIA)


@lru_cache(4)
def described(app: Litestar) -> bytes:
    """The description of an application's routes, made once."""
    return description(
        (path, method, handler, declared(handler)) for path, method, handler in handlers(app)
    )


@get("/api/openapi.json", opt=needs("watch", media="application/json", shape="any"))
async def openapi(request: Asking) -> Response[bytes]:
    """This description."""
    return Response(described(request.app), media_type="application/json")


@get(
    ["/", "/favicon.svg", "/assets/{name:path}"],
    opt=needs(None, media="text/html", shape="page"),
    include_in_schema=False,
)
async def page(request: Asking, room: Here) -> Response[bytes | None]:
    """The page, and its files."""
    leaf = room.page.leaf(request.scope["path"])
    if leaf is None:
        built = room.page.leaf(INDEX) is not None
        why = "There is no such file." if built else "This copy of bridle was made without a page."
        raise refused("not_found", why, "Use the API under /api, or install a release.")
    headers = {"etag": leaf.tag, "cache-control": leaf.cache, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == leaf.tag:
        return Response(None, status_code=304, headers=headers)
    packed = leaf.packed and "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(leaf.packed if packed else leaf.plain, media_type=leaf.media, headers=headers)


ROUTES = (models, agents, doctor, workspaces, metrics, openapi, page)
