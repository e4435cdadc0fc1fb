"""Find a session by the beginning of its id, or the newest one of a folder."""

import os

from bridle.config.paths import state_folder
from bridle.errors import UnknownSession, UsageError
from bridle.protocols.store import SessionSummary
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import find_sessions


def session_folder() -> SessionFolder:
    """Return the folder of this user's sessions."""
    return SessionFolder(state_folder(os.environ))


def find_session(folder: SessionFolder, start: str) -> SessionSummary:
    """Return the session whose id or title, or last part of the id, starts so.

    Raise `UnknownSession`, or `UsageError` if several do.
    """
    sessions = [SessionSummary(*entry[:8]) for entry in find_sessions(folder.folder, start)]
    if not sessions:
        raise UnknownSession(f"there is no session {start!r}")
    if len(sessions) > 1:
        some = ", ".join(session.id for session in sessions[:4])
        raise UsageError(
            f"{len(sessions)} sessions match {start!r}", hint=f"Write more of the ID: {some}."
        )
    return sessions[0]


def last_part(session_id: str) -> str:
    """Return the part of an id that differs from session to session."""
    return session_id.rpartition("-")[2]


def handle_of(session_id: str, call_id: str) -> str:
    """Return the name that a person types for one request of a session."""
    return f"{last_part(session_id)}/{call_id}"


def newest_in(folder: SessionFolder, workspace: str | os.PathLike[str]) -> SessionSummary:
    """Return the newest session of a workspace. Raise `UnknownSession`."""
    here = os.path.realpath(workspace)
    for session in folder.sessions():
        if session.workspace and os.path.realpath(session.workspace) == here:
            return session
    raise UnknownSession(
        f"there is no session to continue in {here}", hint="Start one without --continue."
    )
