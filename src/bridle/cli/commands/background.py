"""`bridle ps` and `bridle stop`: running sessions, in the background and elsewhere.

Their state is read from their logs and from the system's table of locks, so it is known even if the
process that ran a session was killed. No server is started.
"""

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bridle.cli.find import session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import print_json, print_result
from bridle.cli.session_state import session_states
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.config.paths import state_folder
from bridle.events import TurnEnded
from bridle.protocols.store import Record
from bridle.stores.inbox_files import read_messages
from bridle.stores.reader import replay
from bridle.stores.session_index import SessionEntry, get_session, list_sessions
from bridle.usage import format_cost

if TYPE_CHECKING:
    from bridle.engine.history import History

_NEWEST = 200  # sessions that are looked at, besides those in the background


class RunningSession(NamedTuple):
    """A session in the background, or one that is open or needs approval."""

    id: str
    state: str
    background: bool
    holder: str
    waiting: int
    queued: int
    cost: float | None
    since: str
    title: str
    workspace: str

    @property
    def is_active(self) -> bool:
        """Whether there is something to stop."""
        return self.state not in ("done", "failed", "idle")

    def to_json(self) -> dict[str, Any]:
        """Return it with the keys of the API."""
        names = {"since": "updatedAt"}
        return {names.get(key, key): value for key, value in self._asdict().items()}


@click.command("ps")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("--all", "every", is_flag=True, help="Include background sessions that have ended.")
def ps(as_json: bool, every: bool) -> None:
    """List sessions that run, need approval, or were cut off.

    These are the sessions of `bridle run --detach`, and those that other processes have open. If
    the process of a session was killed, its state is `cut off`: `bridle attach ID` continues it.
    """
    sessions = [one for one in running_sessions() if every or one.state not in ("done", "failed")]
    if as_json:
        print_json([session.to_json() for session in sessions])
        return
    if not sessions:
        print_result(
            "No session is running.",
            'bridle run --detach "…"   starts one in the background',
        )
        return
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    states = max(len("state"), *(len(_state_label(session)) for session in sessions))
    head = (
        f"{'session'.ljust(len(sessions[0].id))}  {'state':{states}}  changed  {'cost':>7}  title"
    )
    click.echo(paint.dim(head))
    for session in sessions:
        click.echo(_line(session, states, paint, width))
    if cut_off := [session for session in sessions if session.state == "cut off"]:
        print_result(
            f"the process of {plain(cut_off[0].id)} ended before the turn did",
            f"bridle attach {cut_off[0].id}   continues it",
        )


def _state_label(session: RunningSession) -> str:
    if not session.waiting:
        return session.state
    return f"needs {session.waiting} approvals" if session.waiting > 1 else "needs approval"


def _line(session: RunningSession, states: int, paint: Paint, width: int) -> str:
    colours = {"running": paint.green, "waiting": paint.yellow, "cut off": paint.red}
    queued = f"+{session.queued} " if session.queued else ""
    cost = format_cost(session.cost) if session.cost else "–"
    owner = f" ({session.holder})" if session.holder and not session.background else ""
    state = f"{_state_label(session):{states}}"
    figures = f"{age(session.since):>7}  {cost:>7}"
    room = max(10, width - len(f"{session.id}  {state}  {figures}  "))
    title = cut(plain(queued + (session.title or "(no prompt)")), room)
    state = colours.get(session.state, paint.dim)(state)
    name = paint.cyan(plain(session.id))
    return f"{name}  {state}  {paint.dim(figures)}  {title}{paint.dim(owner)}"


def age(stamp: str) -> str:
    """Return how long ago that was, in a few letters."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError):
        return ""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def running_sessions() -> list[RunningSession]:
    """Return background sessions, and those that are open or parked; the newest first."""
    from bridle.cli.background_server import background_sessions

    noted, state = background_sessions(), state_folder(os.environ)
    entries = list_sessions(state, _NEWEST)
    older = sorted(noted - {entry.id for entry in entries}, reverse=True)
    entries += [found[1] for name in older if (found := get_session(state, name)) is not None]
    states = session_states(entries)
    return [
        _running_session(entry, states[entry.id].owner, background=entry.id in noted)
        for entry in entries
        if entry.id in noted or states[entry.id].owner or states[entry.id].is_parked
    ]


def _running_session(entry: SessionEntry, owner: str, *, background: bool) -> RunningSession:
    history, reason = _read_log(entry.id)
    pending = _unanswered(entry.id, history)
    state = _state(history, owner, reason)
    return RunningSession(
        entry.id,
        "answered" if state == "waiting" and not pending else state,
        background,
        owner,
        pending,
        len(history.waiting),
        history.metrics.cost,
        entry.updated_at,
        entry.title,
        entry.workspace,
    )


def _unanswered(session_id: str, history: "History") -> int:
    """Return how many approvals are pending, without those whose answer is in the inbox."""
    if not history.pending:
        return 0
    messages = read_messages(session_folder().path(session_id).parent)
    answered = {message.shown for message in messages}
    return sum(request.shown not in answered for request in history.pending.values())


def has_work(session_id: str) -> bool:
    """Return whether a turn has not ended, or a prompt waits, as the log tells."""
    history, _ = _read_log(session_id)
    return bool(history.pending or history.running or history.waiting)


def _read_log(session_id: str) -> "tuple[History, str]":
    """Return the state of a session, and how its newest turn ended."""
    from bridle.engine.history import History

    history, reason = History(), ""

    def apply(record: Record) -> None:
        nonlocal reason
        history.apply(record)
        if isinstance(record.event, TurnEnded):
            reason = record.event.reason

    replay(session_folder(), session_id, apply)
    return history, reason


def _state(history: "History", owner: str, reason: str) -> str:
    if history.pending:
        return "waiting"
    if history.running or history.waiting:
        return "running" if owner else "parked" if history.parked else "cut off"
    if not reason:
        return "idle"
    return "done" if reason == "done" else "failed"


@click.command("stop")
@click.argument("session_id", metavar="[ID]", type=SESSION, required=False)
@click.option("--all", "every", is_flag=True, help="Stop all background sessions.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def stop(session_id: str | None, every: bool, as_json: bool) -> None:
    """Stop a session's turn, and close the session. It is kept and can be resumed."""
    from bridle.cli.session_stop import stop_all, stop_one

    if (session_id is None) == (not every):
        raise click.UsageError("name a session, or use --all")
    stopped = stop_all() if session_id is None else [stop_one(session_id)]
    if as_json:
        print_json([session.id for session in stopped])
        return
    if not stopped:
        print_result("No background session was running.")
    for session in stopped:
        print_result(*session.message)
