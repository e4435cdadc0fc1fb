"""Sessions: list, create, resume, change, fork, rewind, delete; their limits, tools and files."""

from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from bridle.protocols.session_values import (
    Budget,
    Choices,
    FilePaths,
    ForkRequest,
    NewSession,
    ResumeOptions,
    RewindRequest,
    SessionDetail,
    SessionInfo,
    SessionLimits,
    SessionPage,
    SessionUpdate,
)
from bridle.server.auth import Caller, check_choice, check_mode
from bridle.server.context import ServerContext
from bridle.server.problems import problem_error
from bridle.server.routing import Count, IdempotencyKey, Reply, Routes, Words
from bridle.workspace.text import quantity

routes = Routes("Sessions")

_AS_EVER, _AS_IT_WAS, _AT_THE_END = NewSession(), ResumeOptions(), ForkRequest()
_BUSY = ("session_busy", "session_locked", "unavailable")


@routes.get("/api/sessions", role="watch", refuses=("unknown_workspace",))
async def list_sessions(
    context: ServerContext,
    query: Words = "",
    limit: Count = 50,
    cursor: Words = "",
    workspace: Words = "",
    state: Literal["idle", "running", "waiting", "done", "failed", ""] = "",
) -> SessionPage:
    """List sessions, the newest first."""
    return await context.sessions.list(query, limit, cursor, workspace, state)


@routes.post(
    "/api/sessions",
    role="drive",
    status=201,
    answers=SessionInfo,
    refuses=("unknown_workspace", "forbidden_choice", "idempotency_conflict", "unavailable"),
)
async def create_session(
    context: ServerContext,
    caller: Caller,
    body: NewSession = _AS_EVER,
    idempotency_key: IdempotencyKey = "",
) -> Reply:
    """Create a session. Its first record is on disk when this answers."""

    async def create() -> str:
        _check_number(context)
        check_choice(context.sessions.choices, caller, body)
        return (await context.sessions.create(body, caller.name)).id

    return await _created(context, caller, "create_session", idempotency_key, body, create)


@routes.get("/api/sessions/{session_id}", role="watch")
async def get_session(context: ServerContext, session_id: str) -> SessionDetail:
    """Get a session with everything that is shown beside its conversation."""
    return await context.sessions.detail(session_id)


@routes.patch("/api/sessions/{session_id}", role="drive", refuses=("forbidden_choice", *_BUSY))
async def update_session(
    context: ServerContext, caller: Caller, session_id: str, body: SessionUpdate
) -> SessionDetail:
    """Change the title, tags, mode, model or agent of a session.

    A mode wider than the server's own needs the role `admin`.
    """
    check_choice(context.sessions.choices, caller, body)
    return await context.sessions.change(session_id, body, caller.name)


@routes.delete("/api/sessions/{session_id}", role="admin", status=204, refuses=_BUSY)
async def delete_session(context: ServerContext, caller: Caller, session_id: str) -> None:
    """Delete a session and what was kept to undo its changes."""
    await context.sessions.delete(session_id, caller.name)


@routes.post(
    "/api/sessions/{session_id}/resume",
    role="drive",
    refuses=("unknown_workspace", "other_workspace", "forbidden_choice", *_BUSY),
)
async def resume_session(
    context: ServerContext, caller: Caller, session_id: str, body: ResumeOptions = _AS_IT_WAS
) -> SessionInfo:
    """Resume a session. What was left unfinished goes on."""
    _check_number(context)
    check_choice(context.sessions.choices, caller, body)
    return await context.sessions.resume(session_id, body, caller.name)


@routes.post(
    "/api/sessions/{session_id}/fork",
    role="drive",
    status=201,
    answers=SessionInfo,
    refuses=("not_found", "idempotency_conflict", "unavailable"),
)
async def fork_session(
    context: ServerContext,
    caller: Caller,
    session_id: str,
    body: ForkRequest = _AT_THE_END,
    idempotency_key: IdempotencyKey = "",
) -> Reply:
    """Create a session with the conversation of another one, up to a record."""

    async def create() -> str:
        _check_number(context)
        if body.at is not None:  # the session may have been in a mode then that it is not in now
            then = await context.sessions.mode_at(session_id, body.at)
            if then != (await context.sessions.info(session_id)).mode:
                check_mode(context.sessions.choices, caller, then)
        return (await context.sessions.fork(session_id, body, caller.name)).id

    operation = f"fork_session {session_id}"
    return await _created(context, caller, operation, idempotency_key, body, create)


@routes.post("/api/sessions/{session_id}/rewind", role="drive", refuses=("not_found", *_BUSY))
async def rewind_session(
    context: ServerContext, caller: Caller, session_id: str, body: RewindRequest
) -> SessionDetail:
    """Rewind the conversation to a record. Files stay as they are."""
    return await context.sessions.rewind(session_id, body, caller.name)


@routes.post("/api/sessions/{session_id}/compact", role="drive", refuses=_BUSY)
async def compact_session(context: ServerContext, caller: Caller, session_id: str) -> SessionDetail:
    """Compact the conversation now."""
    return await context.sessions.compact(session_id, caller.name)


@routes.get("/api/sessions/{session_id}/budget", role="watch")
async def get_budget(context: ServerContext, session_id: str) -> Budget:
    """Get the limits of a session and what it has used."""
    return await context.sessions.budget(session_id)


@routes.put("/api/sessions/{session_id}/budget", role="drive", refuses=_BUSY)
async def lower_budget(
    context: ServerContext, caller: Caller, session_id: str, body: SessionLimits
) -> Budget:
    """Lower the limits of a session, from the next turn on."""
    return await context.sessions.set_budget(session_id, body, caller.name)


@routes.get("/api/sessions/{session_id}/tools", role="watch", refuses=("unavailable",))
async def list_tools(context: ServerContext, session_id: str) -> Choices:
    """List the tools of the session's model."""
    return await context.sessions.tools(session_id)


@routes.get("/api/sessions/{session_id}/mcp", role="drive", refuses=("unavailable",))
async def list_mcp_servers(context: ServerContext, session_id: str) -> Choices:
    """List the MCP servers of the session's folder.

    If one is not used, `whyNot` says why.
    """
    return await context.sessions.mcp_servers(session_id)


@routes.get("/api/sessions/{session_id}/rules", role="drive", refuses=("unavailable",))
async def list_rules(context: ServerContext, session_id: str) -> Choices:
    """List the permission mode, the grants and the rules of a session."""
    return await context.sessions.rules(session_id)


@routes.get("/api/sessions/{session_id}/files", role="watch")
async def list_session_files(
    context: ServerContext, session_id: str, query: Words = "", limit: Count = 50
) -> FilePaths:
    """Find files in the session's workspace, the best match first."""
    return await context.sessions.files(session_id, query, limit)


async def _created(
    context: ServerContext,
    caller: Caller,
    operation: str,
    key: str,
    body: Struct,
    create: Callable[[], Awaitable[str]],
) -> Reply:
    """The session that a request creates, or that the same key has created before."""
    if not key:
        return Reply(await context.sessions.info(await create()), 201)
    keys = context.idempotency
    session_id, is_old = await keys.session(caller.name, operation, key, body, create)
    headers = {"idempotent-replayed": "true"} if is_old else {}
    return Reply(await context.sessions.info(session_id), 201, headers)


def _check_number(context: ServerContext) -> None:
    """Raise `Refused` if as many sessions are open as may be."""
    if len(context.sessions.open_sessions()) >= context.limits.sessions:
        raise problem_error(
            "unavailable",
            f"There may be no more than {quantity(context.limits.sessions, 'open session')}.",
            "Wait until some of them rest.",
            ((b"retry-after", b"30"),),
        )
