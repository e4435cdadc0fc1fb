"""Stop sessions wherever they run: through their server, or by an inbox message."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from typing import NamedTuple

from bridle.cli.background_server import (
    BackgroundServer,
    background_server_of,
    background_servers,
    background_sessions,
    forget_session,
)
from bridle.cli.commands.background import has_work, running_sessions
from bridle.cli.find import find_session, session_folder
from bridle.cli.session_edit import edit_session
from bridle.cli.user_input import user_name
from bridle.engine.recovery import end_parked
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionError
from bridle.protocols.store import InboxMessage, SessionSummary
from bridle.runtime.inbox_sender import new_message_id, send_message
from bridle.stores.locks import describe_owner

_TURNS = 100  # queued prompts that are stopped one after the other
_PATIENCE = 15.0  # seconds that a supervisor has to end in
_EVERY = 0.05


class Stopped(NamedTuple):
    """A session that was to stop, and the process that has it open and was asked to stop it."""

    id: str
    holder: str = ""
    was_running: bool = True

    @property
    def message(self) -> tuple[str, str]:
        """What happened, and what can be done next."""
        if not self.holder:
            again = f'bridle run --resume {self.id} "…"   continues it'
            return f"stopped {self.id}", again
        look = f"bridle sessions show {self.id}"
        if self.was_running:
            return f"asked {self.holder} to stop; it still has {self.id} open", look
        return f"{self.id} was not running; {self.holder} still has it open", look


def stop_one(start: str) -> Stopped:
    """Stop a session; it is no longer a background session."""
    found = find_session(session_folder(), start)
    server = background_server_of(found.id)
    if server is not None and server.pid:
        asyncio.run(_interrupt(server, found.id))
        stopped = Stopped(found.id)
    else:
        stopped = _stop_alone(found, known=server is not None)
    forget_session(found.id)
    return stopped


def stop_all() -> list[Stopped]:
    """Stop all background sessions and the processes that run them."""
    active = [one.id for one in running_sessions() if one.background and one.is_active]
    stopped = [stop_one(session_id) for session_id in active]
    for session_id in background_sessions():
        forget_session(session_id)
    _dismiss([one for one in background_servers() if one.pid])
    return stopped


async def _interrupt(server: BackgroundServer, session_id: str) -> None:
    """Interrupt the turn, and those that are queued behind it."""
    async with server.client() as client:
        session = await client.open(session_id)
        for _ in range(_TURNS):
            await session.interrupt()
            if not (session.is_busy or session.is_parked):
                return
    raise SessionError(f"session {session_id} is still running", hint="Try again in a moment.")


def _stop_alone(found: SessionSummary, *, known: bool) -> Stopped:
    """Stop a session without a supervisor: another process may have it open, or none."""
    folder = session_folder()
    if holder := describe_owner(folder.path(found.id)):
        busy = has_work(found.id)
        # even if it seems idle, because a turn may have started just now
        send_message(folder, found.id, InboxMessage(new_message_id(), "interrupt", user_name()))
        return Stopped(found.id, holder, busy)

    async def end(session: Session) -> bool:
        if session.is_parked:
            for event in end_parked(session.history, user_name()):
                await session.record(event)
            return True
        return False

    if not edit_session(found, end) and not known:
        raise SessionError(
            f"session {found.id} is not running, so there is nothing to stop",
            hint=f"`bridle sessions show {found.id}` shows how it ended.",
        )
    return Stopped(found.id)


def _dismiss(running: list[BackgroundServer]) -> None:
    """Ask them to end, and wait until they have."""
    for one in running:
        with suppress(ProcessLookupError, PermissionError):
            if (pid := one.pid) > 1:
                os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if not any(one.pid for one in running):
            return
        time.sleep(_EVERY)
    raise AgentError(
        "agent",
        "a process that runs background sessions does not end",
        hint="Its sessions are stopped. Find the process with the system's `ps`.",
    )
