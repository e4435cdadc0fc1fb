"""About the server: what can be chosen, its figures, its description, and the page."""

from functools import lru_cache

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from bridle.protocols.session_values import Choice, Choices, FilePaths, Report
from bridle.server.api_description import SESSIONS_API
from bridle.server.context import ServerContext
from bridle.server.metrics import MEDIA
from bridle.server.openapi import openapi_document
from bridle.server.page_files import INDEX, PageFile
from bridle.server.problems import problem_error
from bridle.server.routing import JSON, Count, Routes, Words

routes = Routes("Server")


@routes.get("/api/models", role="watch", refuses=("unavailable",))
async def list_models(context: ServerContext) -> Choices:
    """List the models that a session can have."""
    return await context.catalogue.models()


@routes.get("/api/agents", role="watch", refuses=("unavailable",))
async def list_agents(context: ServerContext) -> Choices:
    """List the agents that can run turns."""
    return await context.catalogue.agents()


@routes.get("/api/doctor", role="admin", refuses=("unavailable",))
async def get_diagnostics(context: ServerContext) -> Report:
    """Check the server's machine.

    The result is one line per finding, without keys.
    """
    return await context.catalogue.doctor()


@routes.get("/api/workspaces", role="watch")
async def list_workspaces(context: ServerContext) -> Choices:
    """List the folders that the server works in."""
    found = context.sessions.workspaces or ()
    return Choices(tuple(Choice(one, default=one == found[0]) for one in found))


@routes.get("/api/workspaces/files", role="watch", refuses=("unknown_workspace",))
async def list_workspace_files(
    context: ServerContext, workspace: Words = "", query: Words = "", limit: Count = 50
) -> FilePaths:
    """Find files in a folder that the server works in, before there is a session."""
    return await context.sessions.workspace_files(workspace, query, limit)


@routes.get("/api/metrics", role="watch", media="text/plain", shape="text")
async def get_metrics(context: ServerContext) -> Response:
    """Get metrics in the format of Prometheus."""
    return Response(context.metrics(), media_type=MEDIA)


@lru_cache(4)
def _document(app: Starlette) -> bytes:
    """The OpenAPI document of an application, made once."""
    return openapi_document(app.routes, SESSIONS_API)


@routes.get("/api/openapi.json", role="watch", shape="any")
async def get_openapi(request: Request) -> Response:
    """Get this document."""
    return Response(_document(request.app), media_type=JSON)


def page_response(leaf: PageFile, request: Request) -> Response:
    """A file of the page as a response: compressed if the browser takes that, 304 if it has it."""
    headers = {"etag": leaf.tag, "cache-control": leaf.cache, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == leaf.tag:
        return Response(None, 304, headers)
    packed = leaf.packed and "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(leaf.packed if packed else leaf.plain, 200, headers, leaf.media)


@routes.get("/", role=None, media="text/html", shape="page", hidden=True)
@routes.get("/favicon.svg", role=None, media="text/html", shape="page", hidden=True)
@routes.get("/assets/{name:path}", role=None, media="text/html", shape="page", hidden=True)
async def get_page(context: ServerContext, request: Request) -> Response:
    """The page, and its files."""
    leaf = context.page.leaf(request.scope["path"])
    if leaf is None:
        built = context.page.leaf(INDEX) is not None
        why = "There is no such file." if built else "This copy of bridle was made without a page."
        raise problem_error("not_found", why, "Use the API under /api, or install a release.")
    return page_response(leaf, request)
