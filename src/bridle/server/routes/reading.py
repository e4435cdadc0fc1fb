"""Reading: records, the conversation, a copy to keep, words anywhere, files to mention."""

from typing import Annotated, Literal

from litestar import get, post
from litestar.params import JSONBody, QueryParameter
from litestar.types import ASGIApp

from bridle.protocols.session_values import (
    FilePaths,
    RecordPage,
    RulePreview,
    RuleRequest,
    SearchHits,
    Transcript,
)
from bridle.server.flowing import Flow
from bridle.server.routes.declared import Asking, Count, Here, Id, Seq, Words, lasting, needs

Form = Literal["jsonl", "markdown"]
_FORMS = {
    "jsonl": (b"application/x-ndjson", "jsonl"),
    "markdown": (b"text/markdown; charset=utf-8", "md"),
}


@get("/api/sessions/{session_id:str}/records", opt=needs("watch"))
async def records(
    session_id: Id, room: Here, after: Seq = 0, before: Seq = 0, limit: Count = 500
) -> RecordPage:
    """Records as the log has them: those after a number, or the last ones before one."""
    return await room.sessions.records(session_id, after, before, limit)


@get("/api/sessions/{session_id:str}/history", opt=needs("watch"))
async def history(session_id: Id, room: Here) -> Transcript:
    """The conversation as it stands."""
    return await room.sessions.history(session_id)


@get(
    "/api/sessions/{session_id:str}/export",
    opt=needs("watch", media="application/x-ndjson, text/markdown", shape="file"),
)
async def export(
    session_id: Id,
    request: Asking,
    room: Here,
    form: Annotated[Form, QueryParameter(name="format")] = "jsonl",
) -> ASGIApp:
    """The session as a file to keep."""
    media, ending = _FORMS[form]
    pieces = room.sessions.export(session_id, form)
    name = "".join(one for one in session_id if one.isascii() and (one.isalnum() or one in "-_"))
    kept = b'attachment; filename="%b.%b"' % (name[:100].encode(), ending.encode())
    head = [(b"content-type", media), (b"content-disposition", kept)]
    return await Flow.begun(pieces, head, room.limits.stalled_seconds, lasting(request, room))


@get("/api/sessions/{session_id:str}/files", opt=needs("watch"))
async def files(
    session_id: Id,
    room: Here,
    words: Annotated[str, QueryParameter(name="query", max_length=1_000)] = "",
    limit: Count = 50,
) -> FilePaths:
    """Files of the workspace that match, the best first."""
    return await room.sessions.files(session_id, words, limit)


@post(
    "/api/sessions/{session_id:str}/preview-rule",
    status_code=200,
    opt=needs("answer"),
)
async def preview_rule(session_id: Id, data: JSONBody[RuleRequest], room: Here) -> RulePreview:
    """Past calls of the session that a rule would have covered."""
    return await room.sessions.preview_rule(session_id, data.rule)


@get("/api/search", opt=needs("watch"))
async def search(
    room: Here,
    words: Annotated[str, QueryParameter(name="q", max_length=1_000, pattern=r"\S")],
    limit: Count = 50,
) -> SearchHits:
    """Where words stand, over all sessions."""
    return await room.sessions.search(words, limit)


@get("/api/workspaces/files", opt=needs("watch", "unknown_workspace"))
async def workspace_files(
    room: Here,
    workspace: Words = "",
    words: Annotated[str, QueryParameter(name="query", max_length=1_000)] = "",
    limit: Count = 50,
) -> FilePaths:
    """Files of a folder that the server works in, before there is a session in it."""
    return await room.sessions.workspace_files(workspace, words, limit)


ROUTES = (records, history, export, files, workspace_files, preview_rule, search)
