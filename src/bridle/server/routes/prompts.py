"""Prompts and live streams: send one, wait for its turn, interrupt it, watch."""

import asyncio
from contextlib import aclosing
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request

from bridle.events import ApprovalAsked, ResponseCompleted, TurnEnded, TurnParked
from bridle.protocols.session_values import ApprovalRequest, PromptAccepted, PromptRequest
from bridle.server.auth import Caller, access_lease
from bridle.server.context import ServerContext
from bridle.server.routing import Header, IdempotencyKey, Reply, Routes, Sequence
from bridle.server.sse import EVENT_STREAM_HEADERS, StreamResponse

routes = Routes("Prompts")

STREAM = "text/event-stream"
_BUSY = ("session_busy", "session_locked", "unavailable")
LastEventId = Annotated[str, Meta(max_length=16, pattern="^[0-9]*$"), Header("Last-Event-ID")]


class Interrupted(Struct, frozen=True, rename="camel"):
    """The turn was told to end."""

    session_id: str


class PromptResult(Struct, frozen=True, rename="camel", kw_only=True):
    """The result of a prompt's turn.

    `reason` says how the turn ended: `done`, `failed`, `interrupted`, `timeout`, `budget`, `stuck`,
    or `parked` if it waits for a person; then `approvals` are the requests that it waits for.
    `text` is the last reply of the model. `detail` and `hint` explain why a turn was not done.
    """

    session_id: str
    turn: int
    reason: str
    text: str = ""
    detail: str = ""
    hint: str = ""
    approvals: tuple[ApprovalRequest, ...] = ()


@routes.post(
    "/api/sessions/{session_id}/chat",
    role="drive",
    status=202,
    answers=PromptAccepted,
    also={200: PromptResult},
    is_prompt=True,
    refuses=(*_BUSY, "idempotency_conflict", "queue_full"),
)
async def send_prompt(
    context: ServerContext,
    caller: Caller,
    request: Request,
    session_id: str,
    body: PromptRequest,
    wait: bool = False,
    idempotency_key: IdempotencyKey = "",
) -> PromptAccepted | Reply | None:
    """Send a prompt.

    It is accepted once it is on disk; the answer is the number of its turn. With `wait=true` the
    answer comes when the turn has ended, or waits for a person's approval, and is the turn's
    result. The same Idempotency-Key with the same prompt again is the same turn.
    """
    before = (await context.sessions.info(session_id)) if wait else None
    accepted = await context.sessions.send(session_id, body, caller.name, idempotency_key)
    if before is None:
        return accepted
    is_new = accepted.turn > before.turn
    after = before.seq if is_new else 0  # a turn of before may have ended long ago
    waiting = asyncio.ensure_future(_result(context, session_id, accepted.turn, after))
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
        return Reply(waiting.result()) if waiting.done() else None  # the turn goes on all the same
    finally:
        for task in (waiting, leaving):
            task.cancel()
        await asyncio.wait((waiting, leaving))


async def _result(context: ServerContext, session_id: str, turn: int, after: int) -> PromptResult:
    """The result of a turn, once it has ended or waits for a person."""
    text = ""
    async with aclosing(context.sessions.subscribe(session_id, after)) as records:
        async for record in records:
            match record.event:
                case ResponseCompleted(message=message) if message is not None and message.content:
                    text = message.content
                case TurnEnded(turn=ended, reason=reason, detail=detail, hint=hint) if (
                    ended == turn
                ):
                    return PromptResult(
                        session_id=session_id,
                        turn=turn,
                        reason=reason,
                        text=text,
                        detail=detail,
                        hint=hint,
                    )
                case ApprovalAsked() | TurnParked():
                    session = await context.sessions.detail(session_id)
                    if session.turn == turn and session.pending:
                        return PromptResult(
                            session_id=session_id,
                            turn=turn,
                            reason="parked",
                            text=text,
                            approvals=session.pending,
                        )
    raise AssertionError("a subscription ends only with an error")


async def _left(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@routes.post("/api/sessions/{session_id}/interrupt", role="drive", status=202, refuses=_BUSY)
async def interrupt_turn(context: ServerContext, caller: Caller, session_id: str) -> Interrupted:
    """Interrupt the running turn. The next queued prompt starts right after it."""
    await context.sessions.interrupt(session_id, caller.name)
    return Interrupted(session_id)


@routes.delete(
    "/api/sessions/{session_id}/queue/{prompt:int}",
    role="drive",
    status=204,
    refuses=("not_found", "prompt_begun", "session_locked", "unavailable"),
)
async def withdraw_prompt(
    context: ServerContext, caller: Caller, session_id: str, prompt: int
) -> None:
    """Take back a queued prompt."""
    await context.sessions.withdraw(session_id, prompt, caller.name)


@routes.get(
    "/api/sessions/{session_id}/stream",
    role="watch",
    media=STREAM,
    shape="RecordEvent",
    refuses=("too_many_streams", "unavailable"),
)
async def stream_session(
    context: ServerContext,
    caller: Caller,
    request: Request,
    session_id: str,
    after: Sequence = 0,
    last_event_id: LastEventId = "",
) -> StreamResponse:
    """Watch a session.

    Its records come as server-sent events: first those after a number, then live ones.
    """
    pieces = context.streams.session(session_id, int(last_event_id or after), caller.name)
    return await StreamResponse.start(
        pieces, EVENT_STREAM_HEADERS, context.limits.stalled_seconds, access_lease(request)
    )


@routes.get(
    "/api/events",
    role="watch",
    media=STREAM,
    shape="ServerEvent",
    refuses=("too_many_streams", "unavailable"),
)
async def stream_events(context: ServerContext, caller: Caller, request: Request) -> StreamResponse:
    """Watch all sessions.

    The list of sessions, each change to it, and all approval requests, as server-sent events.
    """
    pieces = context.streams.events(caller.name)
    return await StreamResponse.start(
        pieces, EVENT_STREAM_HEADERS, context.limits.stalled_seconds, access_lease(request)
    )
