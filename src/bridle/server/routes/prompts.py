"""Prompts and live streams: send one, interrupt its turn, take one back, watch."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request

from bridle.protocols.session_values import PromptAccepted, PromptRequest
from bridle.server.auth import Caller, stay_of
from bridle.server.context import Room
from bridle.server.routing import Header, Sequence, delete, get, post
from bridle.server.sse import EVENTS, Flow

STREAM = "text/event-stream"
_BUSY = ("session_busy", "session_locked", "unavailable")
IdempotencyKey = Annotated[str, Meta(max_length=200), Header("Idempotency-Key")]
LastEventId = Annotated[str, Meta(max_length=16, pattern="^[0-9]*$"), Header("Last-Event-ID")]


class Interrupted(Struct, frozen=True, rename="camel"):
    """The turn was told to end."""

    session_id: str


@post(
    "/api/sessions/{session_id}/chat",
    role="drive",
    status=202,
    is_prompt=True,
    refuses=(*_BUSY, "idempotency_conflict", "queue_full"),
)
async def send_prompt(
    context: Room,
    caller: Caller,
    session_id: str,
    body: PromptRequest,
    idempotency_key: IdempotencyKey = "",
) -> PromptAccepted:
    """Send a prompt: accepted once it is on disk, with the number of its turn.

    The same Idempotency-Key with the same prompt again is the same turn, whatever happened
    between.
    """
    return await context.sessions.send(session_id, body, caller.name, idempotency_key)


@post("/api/sessions/{session_id}/interrupt", role="drive", status=202, refuses=_BUSY)
async def interrupt_turn(context: Room, caller: Caller, session_id: str) -> Interrupted:
    """End the turn that runs; of the prompts that wait, the next begins right after."""
    await context.sessions.interrupt(session_id, caller.name)
    return Interrupted(session_id)


@delete(
    "/api/sessions/{session_id}/queue/{prompt:int}",
    role="drive",
    status=204,
    refuses=("not_found", "prompt_begun", "session_locked", "unavailable"),
)
async def withdraw_prompt(context: Room, caller: Caller, session_id: str, prompt: int) -> None:
    """Take back a prompt that waits, by the number of its record (`queued` of the session)."""
    await context.sessions.withdraw(session_id, prompt, caller.name)


@get(
    "/api/sessions/{session_id}/stream",
    role="watch",
    media=STREAM,
    shape="RecordEvent",
    refuses=("too_many_streams", "unavailable"),
)
async def stream_session(
    context: Room,
    caller: Caller,
    request: Request,
    session_id: str,
    after: Sequence = 0,
    last_event_id: LastEventId = "",
) -> Flow:
    """A session's records as server-sent events: those after a number, then live."""
    pieces = context.streams.session(session_id, int(last_event_id or after), caller.name)
    return await Flow.begun(pieces, EVENTS, context.limits.stalled_seconds, stay_of(request))


@get(
    "/api/events",
    role="watch",
    media=STREAM,
    shape="ServerEvent",
    refuses=("too_many_streams", "unavailable"),
)
async def stream_events(context: Room, caller: Caller, request: Request) -> Flow:
    """What changes in all sessions, as server-sent events: their lines, and open questions."""
    pieces = context.streams.events(caller.name)
    return await Flow.begun(pieces, EVENTS, context.limits.stalled_seconds, stay_of(request))


ROUTES = (send_prompt, stream_session, interrupt_turn, withdraw_prompt, stream_events)
