"""`bridle approvals list`: pending approvals, in all sessions. Reads logs and inboxes only."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import click
import msgspec

from bridle.cli.find import handle_of, session_folder
from bridle.cli.output import print_json
from bridle.cli.render import call_line
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.presentation.approvals import ASK_USER
from bridle.protocols.session_catalog import PendingApproval
from bridle.protocols.store import InboxMessage
from bridle.stores.inbox_files import read_messages
from bridle.stores.pending_approvals import pending_approvals
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import last_run
from bridle.workspace.text import flat, quantity


class PendingRequest(NamedTuple):
    """A pending approval, the title of its session, and an answer that is already in the inbox."""

    pending: PendingApproval
    title: str
    sent: InboxMessage | None

    @property
    def handle(self) -> str:
        """The name that a person types."""
        return handle_of(self.pending.session_id, self.pending.asked.call.id)

    @property
    def seconds_left(self) -> float | None:
        """The time until the request is denied automatically; None if it never is."""
        return seconds_until(self.pending.asked.expires)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def command(as_json: bool) -> None:
    """List pending approvals: what would run, why it needs approval, and until when."""
    requests = pending_requests(session_folder())
    if as_json:
        print_json([_to_json(request) for request in requests])
        return
    if not requests:
        click.echo("No approvals are pending.")
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for number, group in enumerate(groups_of(requests)):
        lines = ["", *_group_lines(group, paint, width)]
        click.echo("\n".join(lines[number == 0 :]))


def pending_requests(folder: SessionFolder) -> list[PendingRequest]:
    """Return every pending approval, with the answer that was sent to it."""
    titles = {session.id: session.title for session in folder.sessions()}
    requests = []
    for pending in pending_approvals(folder):
        messages = read_messages(folder.path(pending.session_id).parent)
        answers = [one for one in messages if one.shown and one.shown == pending.asked.shown]
        title = titles.get(pending.session_id, "")
        requests.append(PendingRequest(pending, title, answers[0] if answers else None))
    return requests


def groups_of(requests: Sequence[PendingRequest]) -> list[list[PendingRequest]]:
    """Return the requests, those that belong together in one list."""
    groups: dict[tuple[str, str], list[PendingRequest]] = {}
    for request in requests:
        asked = request.pending.asked
        key = (request.pending.session_id, asked.group or asked.shown)
        groups.setdefault(key, []).append(request)
    return list(groups.values())


def _group_lines(group: Sequence[PendingRequest], paint: Paint, width: int) -> Iterator[str]:
    open_ones = [one for one in group if one.sent is None and not one.pending.expired]
    for request in group:
        yield from _request_lines(request, paint, width)
        if request not in open_ones or len(open_ones) < 2:
            yield f"  {_next_step(request, paint)}"
    if len(open_ones) > 1:
        handle = plain(open_ones[0].handle)
        note = f"(all {len(open_ones)} of this group; without --all, only one)"
        yield f"  → bridle approvals answer {handle} yes --all"
        yield f"    {paint.dim(note)}"


def _request_lines(request: PendingRequest, paint: Paint, width: int) -> list[str]:
    asked = request.pending.asked
    title = cut(plain(request.title), max(10, width - len(request.handle) - 2))
    lines = [
        f"{paint.cyan(plain(request.handle))}  {title}",
        f"  {call_line(asked.call, paint, width - 2)}",
    ]
    why = f"why: {flat(asked.reason or 'it always needs approval')}"
    lines.append(f"  {paint.dim(cut(why, width - 2))}")
    if asked.cwd:
        lines.append(f"  {paint.dim(cut('in:  ' + flat(asked.cwd), width - 2))}")
    return lines


def _next_step(request: PendingRequest, paint: Paint) -> str:
    """Return what happened to a request, or what can be done about it."""
    if request.sent is not None:
        answer = "allowed" if request.sent.allowed else "denied"
        again = how_to_continue(request.pending.session_id).partition("   ")[0]
        return f"→ {again}  {paint.dim(f'({answer} by {plain(request.sent.by)})')}"
    if request.pending.expired:
        return paint.red("expired: it will be denied when the session is opened again")
    left = request.seconds_left
    until = f"  {paint.dim(f'(expires in {rough_duration(left)})')}" if left else ""
    is_question = request.pending.asked.call.name == ASK_USER
    words = " --word 'YOUR ANSWER'" if is_question else ""
    return f"→ bridle approvals answer {plain(request.handle)} yes{words}{until}"


def how_to_continue(session_id: str) -> str:
    """Say how the turn of a session is continued."""
    if last_run(session_folder().path(session_id)).interface == "library":
        return (  # its own tools exist only there
            "only the program that started the session can continue it: "
            f"engine.session({session_id!r}), then session.resume()"
        )
    return f"`bridle run --resume {session_id}` continues the turn"


def rough_duration(seconds: float) -> str:
    """Return a duration in its largest unit."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return quantity(int(seconds // size), unit)
    return "less than a minute"


def seconds_until(stamp: str) -> float | None:
    """Return how long it is until a time of the log; None if it is not a time."""
    try:
        return (datetime.fromisoformat(stamp) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None


def _to_json(request: PendingRequest) -> dict[str, Any]:
    asked: dict[str, Any] = msgspec.to_builtins(request.pending.asked, enc_hook=str)
    asked.pop("type", None)
    return {
        "id": request.handle,
        "session": request.pending.session_id,
        "title": request.title,
        "seq": request.pending.seq,
        **asked,
        "expired": request.pending.expired,
        "answered": None if request.sent is None else request.sent.allowed,
    }
