"""A session by the beginning of its id, or the newest of a folder. Reads; starts nothing."""

import os

import click

from bridle.config.paths import state_folder
from bridle.errors import UnknownSession
from bridle.protocols.store import SessionSummary
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import find_sessions


def session_folder() -> SessionFolder:
    """Where this user's sessions are."""
    return SessionFolder(state_folder(os.environ))


def find_session(folder: SessionFolder, start: str) -> SessionSummary:
    """The session whose id begins so, or its last part, or its title. Raise `UnknownSession`."""
    sessions = [SessionSummary(*entry[:8]) for entry in find_sessions(folder.folder, start)]
    if not sessions:
        raise UnknownSession(f"there is no session {start!r}")
    if len(sessions) > 1:
        some = ", ".join(session.id for session in sessions[:4])
        raise click.UsageError(
            f"{len(sessions)} sessions begin with {start!r}\nFor example {some}."
        )
    return sessions[0]


def last_part(session_id: str) -> str:
    """What tells one session from another at a glance."""
    return session_id.rpartition("-")[2]


def handle_of(session_id: str, call_id: str) -> str:
    """What a person types to name one question of a session."""
    return f"{last_part(session_id)}/{call_id}"


def newest_in(folder: SessionFolder, workspace: str | os.PathLike[str]) -> SessionSummary:
    """The newest session of a workspace. Raise `UnknownSession`."""
    here = os.path.realpath(workspace)
    for session in folder.sessions():
        if session.workspace and os.path.realpath(session.workspace) == here:
            return session
    raise UnknownSession(
        f"there is no session to continue in {here}", hint="Start one without --continue."
    )
