"""The sessions that an editor can choose from: those of its folder, the newest first, in pages."""

import os

from acp import RequestError, schema

from bridle.stores.reader import SessionFolder
from bridle.workspace.text import one_line

_PAGE = 50


def listed(folder: SessionFolder, cwd: str, cursor: str) -> schema.ListSessionsResponse:
    """One page of them. Raise `RequestError` for a cursor that was never handed out."""
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise RequestError(-32602, f"{one_line(cursor, 40)!r} is no cursor of a list")
    wanted = os.path.realpath(cwd) if cwd else ""
    found = [
        one
        for one in folder.sessions()
        if one.workspace and wanted in ("", os.path.realpath(one.workspace))
    ]
    start = int(cursor or 0)
    page = [
        schema.SessionInfo(
            session_id=one.id,
            cwd=one.workspace,
            title=one_line(one.title) or None,
            updated_at=one.updated_at or None,
        )
        for one in found[start : start + _PAGE]
    ]
    more = str(start + _PAGE) if len(found) > start + _PAGE else None
    return schema.ListSessionsResponse(sessions=page, next_cursor=more)
