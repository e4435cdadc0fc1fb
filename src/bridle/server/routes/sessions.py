"""Sessions: list, create, resume, change, fork, rewind, delete; their limits, tools and files."""

from typing import Literal

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
    State,
)
from bridle.server.auth import Caller, check_choice, check_mode
from bridle.server.context import Room
from bridle.server.problems import refused
from bridle.server.routing import Count, Words, delete, get, patch, post, put
from bridle.workspace.text import quantity

_AS_EVER, _AS_IT_WAS, _AT_THE_END = NewSession(), ResumeOptions(), ForkRequest()
_BUSY = ("session_busy", "session_locked", "unavailable")


@get("/api/sessions", role="watch", refuses=("unknown_workspace",))
async def list_sessions(
    context: Room,
    query: Words = "",
    limit: Count = 50,
    cursor: Words = "",
    workspace: Words = "",
    state: State | Literal[""] = "",
) -> SessionPage:
    """A page of sessions, the newest first."""
    return await context.sessions.list(query, limit, cursor, workspace, state)


@post(
    "/api/sessions",
    role="drive",
    status=201,
    refuses=("unknown_workspace", "forbidden_choice", "unavailable"),
)
async def create_session(context: Room, caller: Caller, body: NewSession = _AS_EVER) -> SessionInfo:
    """Begin a session; its first record is on disk when this answers."""
    _check_number(context)
    check_choice(context.sessions.choices, caller, body)
    return await context.sessions.create(body, caller.name)


@get("/api/sessions/{session_id}", role="watch")
async def get_session(context: Room, session_id: str) -> SessionDetail:
    """A session with all that stands beside its conversation."""
    return await context.sessions.detail(session_id)


@patch("/api/sessions/{session_id}", role="drive", refuses=("forbidden_choice", *_BUSY))
async def update_session(
    context: Room, caller: Caller, session_id: str, body: SessionUpdate
) -> SessionDetail:
    """Another title, tags, mode, model or agent; a mode wider than the server's needs an admin."""
    check_choice(context.sessions.choices, caller, body)
    return await context.sessions.change(session_id, body, caller.name)


@delete("/api/sessions/{session_id}", role="admin", status=204, refuses=_BUSY)
async def delete_session(context: Room, caller: Caller, session_id: str) -> None:
    """Delete a session and what was kept to undo it."""
    await context.sessions.delete(session_id, caller.name)


@post(
    "/api/sessions/{session_id}/resume",
    role="drive",
    refuses=("unknown_workspace", "other_workspace", "forbidden_choice", *_BUSY),
)
async def resume_session(
    context: Room, caller: Caller, session_id: str, body: ResumeOptions = _AS_IT_WAS
) -> SessionInfo:
    """Take a session up; what was left behind goes on."""
    _check_number(context)
    check_choice(context.sessions.choices, caller, body)
    return await context.sessions.resume(session_id, body, caller.name)


@post(
    "/api/sessions/{session_id}/fork",
    role="drive",
    status=201,
    refuses=("not_found", "unavailable"),
)
async def fork_session(
    context: Room, caller: Caller, session_id: str, body: ForkRequest = _AT_THE_END
) -> SessionInfo:
    """A new session with the conversation up to a record."""
    _check_number(context)
    if body.at is not None:  # it may have been in a mode then that it has no longer
        then = await context.sessions.mode_at(session_id, body.at)
        if then != (await context.sessions.info(session_id)).mode:
            check_mode(context.sessions.choices, caller, then)
    return await context.sessions.fork(session_id, body, caller.name)


@post("/api/sessions/{session_id}/rewind", role="drive", refuses=("not_found", *_BUSY))
async def rewind_session(
    context: Room, caller: Caller, session_id: str, body: RewindRequest
) -> SessionDetail:
    """Make the conversation again what it was at a record."""
    return await context.sessions.rewind(session_id, body, caller.name)


@post("/api/sessions/{session_id}/compact", role="drive", refuses=_BUSY)
async def compact_session(context: Room, caller: Caller, session_id: str) -> SessionDetail:
    """Shorten the conversation now."""
    return await context.sessions.compact(session_id, caller.name)


@get("/api/sessions/{session_id}/budget", role="watch")
async def get_budget(context: Room, session_id: str) -> Budget:
    """What the session may use, and what it has used."""
    return await context.sessions.budget(session_id)


@put("/api/sessions/{session_id}/budget", role="drive", refuses=_BUSY)
async def lower_budget(
    context: Room, caller: Caller, session_id: str, body: SessionLimits
) -> Budget:
    """Narrower limits, from the next turn on."""
    return await context.sessions.set_budget(session_id, body, caller.name)


@get("/api/sessions/{session_id}/tools", role="watch", refuses=("unavailable",))
async def list_tools(context: Room, session_id: str) -> Choices:
    """The tools that the session's model has."""
    return await context.sessions.tools(session_id)


@get("/api/sessions/{session_id}/mcp", role="drive", refuses=("unavailable",))
async def list_mcp_servers(context: Room, session_id: str) -> Choices:
    """The MCP servers of the session's folder; of one that is not used, why."""
    return await context.sessions.mcp_servers(session_id)


@get("/api/sessions/{session_id}/rules", role="drive", refuses=("unavailable",))
async def list_rules(context: Room, session_id: str) -> Choices:
    """The mode, what was allowed for the session, and the rules that hold."""
    return await context.sessions.rules(session_id)


@get("/api/sessions/{session_id}/files", role="watch")
async def list_session_files(
    context: Room, session_id: str, query: Words = "", limit: Count = 50
) -> FilePaths:
    """Files of the workspace that match, the best first."""
    return await context.sessions.files(session_id, query, limit)


def _check_number(context: Room) -> None:
    """Raise `Refused` if as many sessions are open as may be."""
    if len(context.sessions.open_sessions()) >= context.limits.sessions:
        raise refused(
            "unavailable",
            f"There may be no more than {quantity(context.limits.sessions, 'open session')}.",
            "Wait until some of them rest.",
            ((b"retry-after", b"30"),),
        )


ROUTES = (
    list_sessions,
    create_session,
    get_session,
    update_session,
    delete_session,
    resume_session,
    fork_session,
    rewind_session,
    compact_session,
    get_budget,
    lower_budget,
    list_tools,
    list_mcp_servers,
    list_rules,
    list_session_files,
)
