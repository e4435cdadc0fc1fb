"""About the server: what can be chosen, its figures, its description, and the page."""

from functools import lru_cache

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from bridle.protocols.session_values import Choice, Choices, FilePaths, Report
from bridle.server.context import Room
from bridle.server.metrics import MEDIA
from bridle.server.openapi import description
from bridle.server.page_files import INDEX, Leaf
from bridle.server.problems import refused
from bridle.server.routing import JSON, Count, Words, get


@get("/api/models", role="watch", refuses=("unavailable",))
async def list_models(context: Room) -> Choices:
    """Models that a session can have."""
    return await context.catalogue.models()


@get("/api/agents", role="watch", refuses=("unavailable",))
async def list_agents(context: Room) -> Choices:
    """Agents that can carry a turn."""
    return await context.catalogue.agents()


@get("/api/doctor", role="admin", refuses=("unavailable",))
async def get_diagnostics(context: Room) -> Report:
    """What was found on the server's machine, a line each; no keys."""
    return await context.catalogue.doctor()


@get("/api/workspaces", role="watch")
async def list_workspaces(context: Room) -> Choices:
    """Folders that the server works in."""
    found = context.sessions.workspaces or ()
    return Choices(tuple(Choice(one, default=one == found[0]) for one in found))


@get("/api/workspaces/files", role="watch", refuses=("unknown_workspace",))
async def list_workspace_files(
    context: Room, workspace: Words = "", query: Words = "", limit: Count = 50
) -> FilePaths:
    """Files of a folder that the server works in, before there is a session in it."""
    return await context.sessions.workspace_files(workspace, query, limit)


@get("/api/metrics", role="watch", media="text/plain", shape="text")
async def get_metrics(context: Room) -> Response:
    """Figures, as Prometheus reads them."""
    return Response(context.metrics(), media_type=MEDIA)


@lru_cache(4)
def _described(app: Starlette) -> bytes:
    """The description of an application's routes, made once."""
    return description(app.routes)


@get("/api/openapi.json", role="watch", shape="any")
async def get_openapi(request: Request) -> Response:
    """This description."""
    return Response(_described(request.app), media_type=JSON)


def page_response(leaf: Leaf, request: Request) -> Response:
    """A file of the page as a response: compressed if the browser takes that, 304 if it has it."""
    headers = {"etag": leaf.tag, "cache-control": leaf.cache, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == leaf.tag:
        return Response(None, 304, headers)
    packed = leaf.packed and "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(leaf.packed if packed else leaf.plain, 200, headers, leaf.media)


async def get_page(context: Room, request: Request) -> Response:
    """The page, and its files."""
    leaf = context.page.leaf(request.scope["path"])
    if leaf is None:
        built = context.page.leaf(INDEX) is not None
        why = "There is no such file." if built else "This copy of bridle was made without a page."
        raise refused("not_found", why, "Use the API under /api, or install a release.")
    return page_response(leaf, request)


PAGE = tuple(
    get(path, role=None, media="text/html", shape="page", hidden=True)(get_page)
    for path in ("/", "/favicon.svg", "/assets/{name:path}")
)
ROUTES = (
    list_models,
    list_agents,
    get_diagnostics,
    list_workspaces,
    list_workspace_files,
    get_metrics,
    get_openapi,
    *PAGE,
)
