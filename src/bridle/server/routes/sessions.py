"""Sessions as a whole: listed, begun, taken up, changed, forked, rewound, deleted."""

from typing import Annotated, Literal

from litestar import delete, get, patch, post
from litestar.params import JSONBody, QueryParameter

from bridle.protocols.session_values import (
    ForkRequest,
    NewSession,
    ResumeOptions,
    RewindRequest,
    SessionDetail,
    SessionInfo,
    SessionPage,
    SessionUpdate,
    State,
)
from bridle.server.authorization import check_choice, check_mode
from bridle.server.problems import refused
from bridle.server.room import Room
from bridle.server.routes.declared import Asking, Count, Here, Id, Words, needs
from bridle.workspace.text import quantity

_AS_EVER, _AS_IT_WAS, _AT_THE_END = NewSession(), ResumeOptions(), ForkRequest()


@get("/api/sessions", opt=needs("watch", "unknown_workspace"))
async def listed(
    room: Here,
    words: Annotated[str, QueryParameter(name="query", max_length=1_000)] = "",
    limit: Count = 50,
    cursor: Words = "",
    workspace: Annotated[str, QueryParameter(max_length=1_000)] = "",
    wanted: Annotated[State | Literal[""], QueryParameter(name="state")] = "",
) -> SessionPage:
    """A page of sessions, the newest first."""
    return await room.sessions.list(words, limit, cursor, workspace, wanted)


@post("/api/sessions", opt=needs("drive", "unknown_workspace", "forbidden_choice", "unavailable"))
async def create(request: Asking, room: Here, data: JSONBody[NewSession] = _AS_EVER) -> SessionInfo:
    """Begin a session; its first record is on disk when this answers."""
    _room_for_one(room)
    check_choice(room.sessions.offer, request.user, data)
    return await room.sessions.create(data, request.user.name)


@get("/api/sessions/{session_id:str}", opt=needs("watch"))
async def shown(session_id: Id, room: Here) -> SessionDetail:
    """A session with all that stands beside its conversation."""
    return await room.sessions.detail(session_id)


@patch(
    "/api/sessions/{session_id:str}",
    opt=needs("drive", "forbidden_choice", "session_busy", "session_locked", "unavailable"),
)
async def changed(
    session_id: Id, data: JSONBody[SessionUpdate], request: Asking, room: Here
) -> SessionDetail:
    """Another title, tags, mode, model or agent; a mode wider than the server's needs an admin."""
    check_choice(room.sessions.offer, request.user, data)
    return await room.sessions.change(session_id, data, request.user.name)


@delete(
    "/api/sessions/{session_id:str}",
    opt=needs("admin", "session_busy", "session_locked", "unavailable"),
)
async def removed(session_id: Id, request: Asking, room: Here) -> None:
    """Delete a session and what was kept to undo it."""
    await room.sessions.delete(session_id, request.user.name)


@post(
    "/api/sessions/{session_id:str}/resume",
    status_code=200,
    opt=needs(
        "drive",
        "unknown_workspace",
        "other_workspace",
        "forbidden_choice",
        "session_busy",
        "session_locked",
        "unavailable",
    ),
)
async def resumed(
    session_id: Id,
    request: Asking,
    room: Here,
    data: JSONBody[ResumeOptions] = _AS_IT_WAS,
) -> SessionInfo:
    """Take a session up; what was left behind goes on."""
    _room_for_one(room)
    check_choice(room.sessions.offer, request.user, data)
    return await room.sessions.resume(session_id, data, request.user.name)


@post("/api/sessions/{session_id:str}/fork", opt=needs("drive", "not_found", "unavailable"))
async def forked(
    session_id: Id,
    request: Asking,
    room: Here,
    data: JSONBody[ForkRequest] = _AT_THE_END,
) -> SessionInfo:
    """A new session with the conversation up to a record."""
    _room_for_one(room)
    if data.at is not None:  # it may have been in a mode then that it has no longer
        then = await room.sessions.mode_at(session_id, data.at)
        if then != (await room.sessions.view(session_id)).mode:
            check_mode(room.sessions.offer, request.user, then)
    return await room.sessions.fork(session_id, data, request.user.name)


@post(
    "/api/sessions/{session_id:str}/rewind",
    status_code=200,
    opt=needs("drive", "not_found", "session_busy", "session_locked", "unavailable"),
)
async def rewound(
    session_id: Id, data: JSONBody[RewindRequest], request: Asking, room: Here
) -> SessionDetail:
    """Make the conversation again what it was at a record."""
    return await room.sessions.rewind(session_id, data, request.user.name)


@post(
    "/api/sessions/{session_id:str}/compact",
    status_code=200,
    opt=needs("drive", "session_busy", "session_locked", "unavailable"),
)
async def compacted(session_id: Id, request: Asking, room: Here) -> SessionDetail:
    """Shorten the conversation now."""
    return await room.sessions.compact(session_id, request.user.name)


def _room_for_one(room: Room) -> None:
    count = len(room.sessions.open())
    if count >= room.limits.sessions:
        raise refused(
            "unavailable",
            f"There may be no more than {quantity(room.limits.sessions, 'open session')}.",
            "Wait until some of them rest.",
            ((b"retry-after", b"30"),),
        )


ROUTES = (
    listed,
    create,
    shown,
    changed,
    removed,
    resumed,
    forked,
    rewound,
    compacted,
)
