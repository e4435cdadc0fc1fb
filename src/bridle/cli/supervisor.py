"""The process behind background sessions: our own server on a private socket, gone when idle.

Started as `python -m bridle.cli.supervisor FOLDER`. It works in any folder, because the socket is
this user's own. It stays while something runs, is queued or is watched, an hour where only
questions wait (they are on disk, and need no process), and a minute otherwise.
"""

import asyncio
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bridle.cli.exit_codes import report
from bridle.cli.options import to_settings
from bridle.cli.server_log import logged
from bridle.cli.server_run import room_of, stopped
from bridle.cli.server_setup import FACE
from bridle.cli.signals import run_async
from bridle.cli.supervising import Supervisor, identity
from bridle.config.loader import load_settings

if TYPE_CHECKING:
    from bridle.server.context import Room
    from bridle.server.streams import Streams

VARIABLE = "BRIDLE_BACKGROUND_IDLE"  # seconds, for those who want it to go sooner or later
_IDLE = 60.0
_WAITING = 3600.0
_EVERY = 0.5


def main(folder: str) -> int:
    """Serve until there is nothing left to do."""
    os.umask(0o077)
    supervisor = Supervisor(Path(folder))
    try:
        with _locked(supervisor) as free:
            return run_async(_serve(supervisor)) if free else 0
    except Exception as error:  # the end of the program: whatever it is, it goes into the log
        return report(error)


async def _serve(supervisor: Supervisor) -> int:
    from bridle.server.app import Application
    from bridle.server.auth import Names
    from bridle.server.http import Serving, affordable, bound_unix
    from bridle.server.login import Door
    from bridle.server.middleware import Limits
    from bridle.server.tokens import Tokens
    from bridle.service.choices import AllowedChoices

    flags: dict[str, Any] = {**supervisor.flags(), "workspaces": None}
    door = Door(Tokens(supervisor.folder))
    who = identity(supervisor.flags(), os.environ)  # its own, whoever has started it
    offer = AllowedChoices(face=f"{FACE}:{who}")  # the caller is the user
    settings = load_settings(to_settings(flags)).settings
    room = room_of(flags, settings, door, affordable(Limits()), offer)
    path = supervisor.socket
    with bound_unix(path) as listening, logged(supervisor.folder / "log"):
        serving = Serving(Application(room, Names(None)), listening)
        await serving.start()
        idle = asyncio.Event()
        looking = asyncio.ensure_future(_look(room, idle))
        try:
            return await stopped(serving, room, idle)
        finally:
            looking.cancel()
            path.unlink(missing_ok=True)


async def _look(room: "Room", idle: asyncio.Event) -> None:
    """Say so when there was nothing to do for a while."""
    loop = asyncio.get_running_loop()
    patience = float(os.environ.get(VARIABLE) or _IDLE)
    streams = cast("Streams", room.streams)
    since = loop.time()
    while True:
        await asyncio.sleep(min(_EVERY, patience / 4))
        sessions = [one for engine in room.sessions.engines.open() for one in engine.sessions()]
        waiting = [one for one in sessions if one.is_busy and one.history.pending]
        running = [one for one in sessions if one.is_busy and one not in waiting]
        if len(streams) or running or not room.sessions.ready:
            since = loop.time()
        elif loop.time() - since > (_WAITING if waiting else patience):
            idle.set()
            return


@contextmanager
def _locked(supervisor: Supervisor) -> Iterator[bool]:
    """Hold the lock, with our process id in it; False where another has it."""
    handle = os.open(supervisor.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        file.truncate()
        file.write(b"%d" % os.getpid())
        file.flush()
        yield True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
