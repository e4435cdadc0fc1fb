"""Which other sessions are active in a workspace now, for an interface that starts there.

A session is active if a process owns it. One that a server only keeps open between two turns does
not count; one at a terminal does, because somebody may continue it at any time.
"""

import os
from pathlib import Path
from typing import NamedTuple

from bridle.errors import AgentError
from bridle.events import SessionStarted
from bridle.stores.last_run import last_run
from bridle.stores.locks import describe_process, has_lock_table, is_locked, lock_owners
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import LogEntry, is_running, log_entries
from bridle.workspace.fs import open_file

_END_SIZE = 1 << 16  # bytes of a log that are read


class ActiveSession(NamedTuple):
    """A session that a process owns, and that process in words."""

    session_id: str
    owner: str


def active_sessions(
    folder: SessionFolder, workspace: str, except_id: str = ""
) -> list[ActiveSession]:
    """The active sessions of this workspace, the newest first, without `except_id`."""
    try:
        logs = [log for log in log_entries(folder.folder) if log.id != except_id and not log.wrong]
    except OSError:
        return []
    workspaces = workspace, os.path.realpath(workspace)
    if has_lock_table():  # then no log is opened unless it is locked
        pids = {inode: pid for (_, inode), pid in lock_owners().items()}
        owners = [(log, describe_process(pids[log.inode])) for log in logs if log.inode in pids]
    else:
        owners = [(log, "another process") for log in logs if _is_locked(log)]
    return [
        ActiveSession(log.id, owner)
        for log, owner in owners
        if not _is_resting(log) and _workspace(folder, log.id) in workspaces
    ]


def _is_locked(log: LogEntry) -> bool:
    try:
        handle = open_file(f"{log.path}/log.jsonl")
    except OSError:
        return False
    try:
        return is_locked(handle)
    finally:
        os.close(handle)


def _is_resting(log: LogEntry) -> bool:
    """Whether a server or the background has the session open and no turn is running."""
    path = Path(log.path, "log.jsonl")
    if not last_run(path).face.startswith("server"):
        return False
    try:
        handle = open_file(path)
    except OSError:
        return False
    try:
        size = os.fstat(handle).st_size
        end = os.pread(handle, _END_SIZE, max(0, size - _END_SIZE))
        return not is_running(end, size)
    except OSError:
        return False
    finally:
        os.close(handle)


def _workspace(folder: SessionFolder, session_id: str) -> str:
    """Where the session began, as its log says."""
    try:
        with folder.reader(session_id) as reader:
            records = reader.read_new()
    except AgentError:
        return ""
    event = records[0].event if records else None
    return event.workspace if isinstance(event, SessionStarted) else ""
