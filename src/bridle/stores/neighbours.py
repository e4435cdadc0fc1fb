"""Which other sessions are at work in a folder now: those whose log somebody holds.

One that a server only keeps open after its turn is none of them; at a terminal somebody may go on.

Looks at the system's list of locks first; where nobody holds anything, no log is opened. For a face
that begins, not for every session of a server.
"""

import os
from collections.abc import Iterator
from fcntl import LOCK_NB, LOCK_SH, flock
from pathlib import Path
from typing import NamedTuple

from bridle.errors import AgentError
from bridle.events import SessionStarted
from bridle.stores.carrier import carried
from bridle.stores.glance import Place, is_running, places
from bridle.stores.holder import named
from bridle.stores.placing import opened
from bridle.stores.reading import SessionFolder

_LOCKS = Path("/proc/locks")
_END = 1 << 16  # bytes of a log that are looked at


class Neighbour(NamedTuple):
    """A session that is held, and by whom, in words."""

    session_id: str
    holder: str


def neighbours(folder: SessionFolder, workspace: str, besides: str = "") -> list[Neighbour]:
    """The sessions of this workspace that are at work, but for one; the newest first."""
    try:
        every = places(folder.folder)
    except OSError:
        return []
    root = os.path.realpath(workspace)
    found = []
    for place, holder in _held([one for one in every if one.id != besides and not one.wrong]):
        if not _rests(place) and _workspace(folder, place.id) in (workspace, root):
            found.append(Neighbour(place.id, holder or _tried(place)))
    return [one for one in found if one.holder]


def _held(every: list[Place]) -> Iterator[tuple[Place, str]]:
    """Those that the system says are held, and by whom; where it says nothing, all of them."""
    try:
        found = [line.split() for line in _LOCKS.read_text().splitlines() if " FLOCK " in line]
        holders = {one[5].rpartition(":")[2]: int(one[4]) for one in found if len(one) > 5}
    except (OSError, ValueError):
        yield from ((place, "") for place in every)
        return
    for place in every:
        if (pid := holders.get(str(place.inode))) is not None:
            yield place, named(pid)


def _tried(place: Place) -> str:
    """Does somebody hold it? Asked of the lock itself, which is let go at once."""
    try:
        handle = opened(f"{place.path}/log.jsonl")
    except OSError:
        return ""
    try:
        flock(handle, LOCK_SH | LOCK_NB)
    except OSError:
        return "another process"
    finally:
        os.close(handle)
    return ""


def _rests(place: Place) -> bool:
    """Is it a session that a server, or the background, has open, and in which no turn runs?"""
    log = Path(place.path, "log.jsonl")
    if not carried(log).face.startswith("server"):
        return False
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _END))
            return not is_running(file.read(_END), size)
    except OSError:
        return False


def _workspace(folder: SessionFolder, session_id: str) -> str:
    """Where the session began, as its log says."""
    try:
        with folder.reader(session_id) as reader:
            records = reader.more()
    except AgentError:
        return ""
    event = records[0].event if records else None
    return event.workspace if isinstance(event, SessionStarted) else ""
