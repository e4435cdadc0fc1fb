"""`bridle ps` and `bridle stop`: the sessions that run, in the background and elsewhere.

What a session does is read from its log and from the system's table of locks, so that it is known
also where the process that carried it was killed. No server is needed for it, and none is started.
"""

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bridle.cli.options import SESSION
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.cli.told import tell, tell_json
from bridle.usage import format_cost

if TYPE_CHECKING:
    from bridle.engine.history import History
    from bridle.stores.session_index import SessionEntry

_NEWEST = 200  # sessions that are looked at, beside those in the background


class Seen(NamedTuple):
    """One session: what it does, for whom it waits, what it cost."""

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
        """Is there something to stop?"""
        return self.state not in ("done", "failed", "idle")

    @property
    def told(self) -> dict[str, Any]:
        """With the keys of the API."""
        names = {"since": "updatedAt"}
        return {names.get(key, key): value for key, value in self._asdict().items()}


@click.command("ps")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
@click.option("--all", "every", is_flag=True, help="Also background sessions that are done.")
def ps(as_json: bool, every: bool) -> None:
    """The sessions that run, wait for an answer, or were cut off.

    Those of `bridle run --detach`, and those that other processes have open. A session whose
    process was killed is `cut off`: `bridle attach ID` takes it up where it was.
    """
    found = [one for one in seen_sessions() if every or one.state not in ("done", "failed")]
    if as_json:
        tell_json([one.told for one in found])
        return
    if not found:
        tell("Nothing runs.", 'bridle run --detach "…"   starts something in the background')
        return
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    head = f"{'session'.ljust(len(found[0].id))}  {'state':8}  changed  {'cost':>7}  prompt"
    click.echo(paint.dim(head))
    for one in found:
        click.echo(_line(one, paint, width))
    if cut_off := [one for one in found if one.state == "cut off"]:
        several = "they were" if len(cut_off) > 1 else "it was"
        tell(
            f"the process that carried {plain(cut_off[0].id)} has ended while {several} at work",
            f"bridle attach {cut_off[0].id}   takes it up",
        )


def _line(one: Seen, paint: Paint, width: int) -> str:
    colours = {"running": paint.green, "waiting": paint.yellow, "cut off": paint.red}
    state = f"asks {one.waiting}" if one.waiting else one.state
    queued = f"+{one.queued} " if one.queued else ""
    cost = format_cost(one.cost) if one.cost else "–"
    where = "" if one.background else f" ({one.holder})" if one.holder else ""
    fixed = f"{one.id}  {state:8}  {age(one.since):>7}  {cost:>7}  "
    title = cut(plain(queued + (one.title or "(no prompt)")), max(10, width - len(fixed)))
    coloured = colours.get(one.state, paint.dim)(f"{state:8}")
    rest = f"{age(one.since):>7}  {cost:>7}"
    return f"{paint.cyan(plain(one.id))}  {coloured}  {paint.dim(rest)}  {title}{paint.dim(where)}"


def age(stamp: str) -> str:
    """How long ago, in a few letters."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError):
        return ""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def seen_sessions() -> list[Seen]:
    """Background sessions, and those that somebody has open or that wait; the newest first."""
    from bridle.cli.session_state import doing
    from bridle.cli.supervising import noted_sessions
    from bridle.config.paths import state_folder
    from bridle.stores.session_index import get_session, list_sessions

    noted, state = noted_sessions(), state_folder(os.environ)
    newest = list_sessions(state, _NEWEST)
    older = sorted(noted - {one.id for one in newest}, reverse=True)
    newest += [found[1] for one in older if (found := get_session(state, one)) is not None]
    does = doing(newest)
    wanted = [
        one for one in newest if one.id in noted or does[one.id].holder or does[one.id].parked
    ]
    return [_seen(one, does[one.id].holder, background=one.id in noted) for one in wanted]


def _seen(one: "SessionEntry", holder: str, *, background: bool) -> Seen:
    history, reason = _told_by_log(one.id)
    waiting = _unanswered(one.id, history)
    state = _state(history, holder, reason)
    return Seen(
        one.id,
        "answered" if state == "waiting" and not waiting else state,
        background,
        holder,
        waiting,
        len(history.waiting),
        history.metrics.cost,
        one.updated_at,
        one.title,
        one.workspace,
    )


def _unanswered(session_id: str, history: "History") -> int:
    """How many questions wait. An answer may lie in the inbox until the session is taken up."""
    if not history.pending:
        return 0
    from bridle.cli.find import session_folder
    from bridle.stores.inbox_files import read_messages

    sent = {one.shown for one in read_messages(session_folder().path(session_id).parent)}
    return sum(one.shown not in sent for one in history.pending.values())


def at_work(session_id: str) -> bool:
    """Does its log tell of a turn that is not over, or of a prompt that waits?"""
    history, _ = _told_by_log(session_id)
    return bool(history.pending or history.running or history.waiting)


def _told_by_log(session_id: str) -> "tuple[History, str]":
    """What the session adds up to, and how its newest turn ended."""
    from bridle.cli.find import session_folder
    from bridle.engine.history import History
    from bridle.events import TurnEnded
    from bridle.protocols.store import Record
    from bridle.stores.reader import replay

    history, reason = History(), ""

    def apply(record: Record) -> None:
        nonlocal reason
        history.apply(record)
        if isinstance(record.event, TurnEnded):
            reason = record.event.reason

    replay(session_folder(), session_id, apply)
    return history, reason


def _state(history: "History", holder: str, reason: str) -> str:
    if history.pending:
        return "waiting"
    if history.running or history.waiting:
        return "running" if holder else "parked" if history.parked else "cut off"
    if not reason:
        return "idle"
    return "done" if reason == "done" else "failed"


@click.command("stop")
@click.argument("session_id", metavar="[ID]", type=SESSION, required=False)
@click.option("--all", "every", is_flag=True, help="All in the background, and what carries them.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def stop(session_id: str | None, every: bool, as_json: bool) -> None:
    """Stop a session's turn, and let the session go. It is kept, and can be taken up again."""
    if (session_id is None) == (not every):
        raise click.UsageError("say which session: bridle stop ID, or --all")
    from bridle.cli.stopping import stop_all, stop_one

    stopped = stop_all() if session_id is None else [stop_one(session_id)]
    if as_json:
        tell_json([one.id for one in stopped])
    elif not stopped:
        tell("No background session was running.")
    for one in () if as_json else stopped:
        tell(*one.words)
