"""What happened in a session: records, the conversation, a copy to keep, search, undo."""

from typing import Annotated, Literal

from msgspec import Meta
from starlette.requests import Request

from bridle.protocols.session_values import (
    RecordPage,
    SearchHits,
    Transcript,
    UndoPreview,
    UndoRequest,
    UndoResult,
)
from bridle.server.auth import Caller, access_lease
from bridle.server.context import ServerContext
from bridle.server.routing import Count, Routes, Sequence
from bridle.server.sse import StreamResponse

routes = Routes("History")

_FORMS = {
    "jsonl": (b"application/x-ndjson", "jsonl"),
    "markdown": (b"text/markdown; charset=utf-8", "md"),
}
_BUSY = ("session_busy", "session_locked", "unavailable")
_NEWEST = UndoRequest()


@routes.get("/api/sessions/{session_id}/records", role="watch")
async def list_records(
    context: ServerContext,
    session_id: str,
    after: Sequence = 0,
    before: Sequence = 0,
    limit: Count = 500,
) -> RecordPage:
    """List records as they are in the log.

    Those after a number, or the last ones before one.
    """
    return await context.sessions.records(session_id, after, before, limit)


@routes.get("/api/sessions/{session_id}/history", role="watch")
async def get_conversation(context: ServerContext, session_id: str) -> Transcript:
    """Get the conversation as it is now."""
    return await context.sessions.history(session_id)


@routes.get(
    "/api/sessions/{session_id}/export",
    role="watch",
    media="application/x-ndjson, text/markdown",
    shape="file",
)
async def export_session(
    context: ServerContext,
    request: Request,
    session_id: str,
    format_: Literal["jsonl", "markdown"] = "jsonl",
) -> StreamResponse:
    """Export a session as a file."""
    media, ending = _FORMS[format_]
    pieces = context.sessions.export(session_id, format_)
    name = "".join(one for one in session_id if one.isascii() and (one.isalnum() or one in "-_"))
    kept = b'attachment; filename="%b.%b"' % (name[:100].encode(), ending.encode())
    head = [(b"content-type", media), (b"content-disposition", kept)]
    return await StreamResponse.start(
        pieces, head, context.limits.stalled_seconds, access_lease(request)
    )


@routes.get("/api/search", role="watch")
async def search_sessions(
    context: ServerContext,
    q: Annotated[str, Meta(max_length=1_000, pattern=r"\S")],
    limit: Count = 50,
) -> SearchHits:
    """Search all sessions."""
    return await context.sessions.search(q, limit)


@routes.get("/api/sessions/{session_id}/undo", role="watch", refuses=("not_found", "unavailable"))
async def preview_undo(context: ServerContext, session_id: str, turn: Sequence = 0) -> UndoPreview:
    """Preview the undo of a turn."""
    return await context.sessions.undo_preview(session_id, turn)


@routes.post(
    "/api/sessions/{session_id}/undo",
    role="drive",
    refuses=("not_found", "approval_changed", "undo_clash", *_BUSY),
)
async def undo_turn(
    context: ServerContext, caller: Caller, session_id: str, body: UndoRequest = _NEWEST
) -> UndoResult:
    """Undo the changes of a turn, as previewed."""
    return await context.sessions.undo(session_id, body, caller.name)
