"""The verbs and the streams: say something, answer a question, stop it, watch."""

from typing import Annotated

from litestar import delete, get, post
from litestar.params import FromPath, HeaderParameter, JSONBody
from litestar.types import ASGIApp
from msgspec import Struct

from bridle.protocols.session_values import (
    ApprovalAnswer,
    ApprovalOutcome,
    PendingApprovals,
    PromptAccepted,
    PromptRequest,
)
from bridle.server.flowing import EVENTS, Flow
from bridle.server.routes.declared import (
    Asking,
    Here,
    Id,
    Seq,
    check_reach,
    check_role,
    lasting,
    needs,
)

STREAM = "text/event-stream"
_NUMBER = "^[0-9]*$"
_VERB = ("session_busy", "session_locked", "unavailable")


class Interrupted(Struct, frozen=True, rename="camel"):
    """The turn was told to end."""

    session_id: str


@post(
    "/api/sessions/{session_id:str}/chat",
    status_code=202,
    opt=needs("drive", *_VERB, "idempotency_conflict", "queue_full"),
)
async def chat(
    session_id: Id,
    data: JSONBody[PromptRequest],
    request: Asking,
    room: Here,
    key: Annotated[str, HeaderParameter(name="Idempotency-Key", max_length=200)] = "",
) -> PromptAccepted:
    """Send a prompt: accepted once it is on disk, with the number of its turn.

    The same Idempotency-Key with the same prompt again is the same turn, whatever happened
    between.
    """
    return await room.sessions.send(session_id, data, request.user.name, key)


@post("/api/sessions/{session_id:str}/interrupt", status_code=202, opt=needs("drive", *_VERB))
async def interrupt(session_id: Id, request: Asking, room: Here) -> Interrupted:
    """End the turn that runs; of the prompts that wait, the next begins right after."""
    await room.sessions.interrupt(session_id, request.user.name)
    return Interrupted(session_id)


@delete(
    "/api/sessions/{session_id:str}/queue/{prompt:int}",
    opt=needs("drive", "not_found", "prompt_begun", "session_locked", "unavailable"),
)
async def withdrawn(session_id: Id, prompt: FromPath[int], request: Asking, room: Here) -> None:
    """Take back a prompt that waits, by the number of its record (`queued` of the session)."""
    await room.sessions.withdraw(session_id, prompt, request.user.name)


@post(
    "/api/sessions/{session_id:str}/approvals/{call_id:str}",
    status_code=200,
    opt=needs(
        "answer",
        "unknown_approval",
        "approval_answered",
        "approval_changed",
        "approval_expired",
        "session_locked",
        "unavailable",
    ),
)
async def answered(
    session_id: Id, call_id: Id, data: JSONBody[ApprovalAnswer], request: Asking, room: Here
) -> ApprovalOutcome:
    """Answer a question; the first answer wins, and this says whose that was."""
    if data.scope == "rule":
        check_role(request, "drive", "An answer that becomes a rule")
    await check_reach(room, request.user, (session_id, call_id), data)
    return await room.sessions.answer(session_id, call_id, data, request.user.name)


@get("/api/approvals", opt=needs("watch"))
async def pending(room: Here) -> PendingApprovals:
    """The open questions of all sessions."""
    return await room.sessions.pending()


@get(
    "/api/sessions/{session_id:str}/stream",
    opt=needs("watch", "too_many_streams", "unavailable", media=STREAM, shape="RecordEvent"),
)
async def stream(
    session_id: Id,
    request: Asking,
    room: Here,
    after: Seq = 0,
    last: Annotated[
        str, HeaderParameter(name="Last-Event-ID", max_length=16, pattern=_NUMBER)
    ] = "",
) -> ASGIApp:
    """A session's records as server-sent events: those after a number, then live."""
    pieces = room.streams.session(session_id, int(last or after), request.user.name)
    return await Flow.begun(pieces, EVENTS, room.limits.stalled_seconds, lasting(request, room))


@get(
    "/api/events",
    opt=needs("watch", "too_many_streams", "unavailable", media=STREAM, shape="ServerEvent"),
)
async def events(request: Asking, room: Here) -> ASGIApp:
    """What changes in all sessions, as server-sent events: their lines, and open questions."""
    pieces = room.streams.events(request.user.name)
    return await Flow.begun(pieces, EVENTS, room.limits.stalled_seconds, lasting(request, room))


ROUTES = (chat, interrupt, withdrawn, answered, pending, stream, events)
