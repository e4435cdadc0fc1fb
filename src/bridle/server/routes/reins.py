"""The reins: what a session has and may use, what was allowed in it, what it changed, undo."""

from litestar import delete, get, post, put
from litestar.params import JSONBody

from bridle.protocols.session_values import (
    Budget,
    Choices,
    Grants,
    SessionLimits,
    UndoPreview,
    UndoRequest,
    UndoResult,
)
from bridle.server.routes.declared import Asking, Here, Id, Seq, needs

_VERB = ("session_busy", "session_locked", "unavailable")
_NEWEST = UndoRequest()


@get("/api/sessions/{session_id:str}/budget", opt=needs("watch"))
async def budget(session_id: Id, room: Here) -> Budget:
    """What the session may use, and what it has used."""
    return await room.sessions.budget(session_id)


@put("/api/sessions/{session_id:str}/budget", opt=needs("drive", *_VERB))
async def set_budget(
    session_id: Id, data: JSONBody[SessionLimits], request: Asking, room: Here
) -> Budget:
    """Narrower limits, from the next turn on."""
    return await room.sessions.set_budget(session_id, data, request.user.name)


@get("/api/sessions/{session_id:str}/grants", opt=needs("watch"))
async def grants(session_id: Id, room: Here) -> Grants:
    """What was allowed for the session and still holds."""
    return await room.sessions.grants(session_id)


@delete("/api/sessions/{session_id:str}/grants", opt=needs("drive", *_VERB))
async def revoke_all(session_id: Id, request: Asking, room: Here) -> None:
    """Take back everything that was allowed for the session."""
    await room.sessions.revoke(session_id, "", request.user.name)


@delete(
    "/api/sessions/{session_id:str}/grants/{grant:str}", opt=needs("drive", "not_found", *_VERB)
)
async def revoke(session_id: Id, grant: Id, request: Asking, room: Here) -> None:
    """Take one grant back."""
    await room.sessions.revoke(session_id, grant, request.user.name)


@get("/api/sessions/{session_id:str}/undo", opt=needs("watch", "not_found", "unavailable"))
async def undo_preview(session_id: Id, room: Here, turn: Seq = 0) -> UndoPreview:
    """What an undo of a turn would do."""
    return await room.sessions.undo_preview(session_id, turn)


@post(
    "/api/sessions/{session_id:str}/undo",
    status_code=200,
    opt=needs("drive", "not_found", "approval_changed", "undo_clash", *_VERB),
)
async def undo(
    session_id: Id,
    request: Asking,
    room: Here,
    data: JSONBody[UndoRequest] = _NEWEST,
) -> UndoResult:
    """Undo what a turn changed, as it was previewed."""
    return await room.sessions.undo(session_id, data, request.user.name)


@get("/api/sessions/{session_id:str}/tools", opt=needs("watch", "unavailable"))
async def tools(session_id: Id, room: Here) -> Choices:
    """The tools that the session's model has."""
    return await room.sessions.inventory.tools(session_id)


@get("/api/sessions/{session_id:str}/mcp", opt=needs("drive", "unavailable"))
async def servers(session_id: Id, room: Here) -> Choices:
    """The MCP servers of the session's folder; of one that is not used, why."""
    return await room.sessions.inventory.servers(session_id)


@get("/api/sessions/{session_id:str}/rules", opt=needs("drive", "unavailable"))
async def rules(session_id: Id, room: Here) -> Choices:
    """The mode, what was allowed for the session, and the rules that hold."""
    return await room.sessions.inventory.rules(session_id)


ROUTES = (
    budget,
    set_budget,
    grants,
    revoke_all,
    revoke,
    undo_preview,
    undo,
    tools,
    servers,
    rules,
)
