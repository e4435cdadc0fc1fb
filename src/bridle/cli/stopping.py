"""Stopping sessions wherever they run: by the supervisor that carries them, or by a letter."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from typing import NamedTuple

from bridle.cli.background import at_work, seen_sessions
from bridle.cli.commands.sessions.edit import take
from bridle.cli.find import find_session, session_folder
from bridle.cli.supervising import (
    Supervisor,
    carrier_of,
    forget_session,
    noted_sessions,
    supervisors,
)
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
    """A session that was to stop. `holder`: who has it open and was asked; empty: it is done."""

    id: str
    holder: str = ""
    at_work: bool = True

    @property
    def words(self) -> tuple[str, str]:
        """What is true of it now, and what can be done next."""
        if not self.holder:
            again = f'bridle run --resume {self.id} "…"   resumes it'
            return f"{self.id} is stopped, and kept", again
        look = f"bridle sessions show {self.id}"
        if self.at_work:
            return f"asked {self.holder} to stop; it still has {self.id} open", look
        said = f"{self.id} was not at work, so nothing was stopped"
        return f"{said}; {self.holder} still has it open", look


def stop_one(start: str) -> Stopped:
    """End what the session does, and forget that it is in the background."""
    found = find_session(session_folder(), start)
    carrier = carrier_of(found.id)
    if carrier is not None and carrier.pid:
        asyncio.run(_interrupt(carrier, found.id))
        stopped = Stopped(found.id)
    else:
        stopped = _stop_alone(found, known=carrier is not None)
    forget_session(found.id)
    return stopped


def stop_all() -> list[Stopped]:
    """End all background sessions, and the processes that carry them."""
    active = [one.id for one in seen_sessions() if one.background and one.is_active]
    stopped = [stop_one(session_id) for session_id in active]
    for session_id in noted_sessions():
        forget_session(session_id)
    _dismiss([one for one in supervisors() if one.pid])
    return stopped


async def _interrupt(carrier: Supervisor, session_id: str) -> None:
    """End the turn, and those that wait behind it."""
    async with carrier.client() as client:
        session = await client.open(session_id)
        for _ in range(_TURNS):
            await session.interrupt()
            if not (session.is_busy or session.is_parked):
                return
    raise SessionError(f"session {session_id} is still at work", hint="Try again in a moment.")


def _stop_alone(found: SessionSummary, *, known: bool) -> Stopped:
    """No supervisor has it: another process may, or it was left behind."""
    folder = session_folder()
    if holder := describe_owner(folder.path(found.id)):
        busy = at_work(found.id)
        # also where its log says that it rests: a turn may have begun in this moment
        send_message(folder, found.id, InboxMessage(new_message_id(), "interrupt", user_name()))
        return Stopped(found.id, holder, busy)

    async def end(session: Session) -> bool:
        if session.is_parked:
            for event in end_parked(session.history, user_name()):
                await session.record(event)
            return True
        return False

    if not take(found, end) and not known:
        raise SessionError(
            f"nobody holds session {found.id}, so there is nothing to stop",
            hint=f"`bridle sessions show {found.id}` says how it ended.",
        )
    return Stopped(found.id)


def _dismiss(running: list[Supervisor]) -> None:
    """Have them end in order."""
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
        "a process for background sessions does not end",
        hint="Its sessions are stopped; look at it with ps.",
    )
