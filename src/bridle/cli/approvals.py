"""`bridle approvals`: the questions that wait for a person, over all sessions.

Reads logs and inboxes, and changes nothing; answers and grants have modules of their own.
"""

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.cli.told import tell_json
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bridle.protocols.session_catalog import PendingApproval
    from bridle.protocols.store import InboxMessage
    from bridle.stores.reader import SessionFolder

TABLE = {
    "list": ("approvals:list_", "The questions that wait, in all sessions."),
    "answer": ("answering:answer", "Say yes or no to one of them, or to several."),
    "grants": ("granted:grants", "What was allowed for longer than once, and until when."),
    "revoke": ("granted:revoke", "Take such a yes back."),
}


@click.group(name="approvals", cls=LazyGroup, table=TABLE)
def command() -> None:
    """The questions that wait for an answer, and what was allowed, from any terminal."""


class Open(NamedTuple):
    """A question, the title of its session, and an answer that is on its way, if one is."""

    pending: "PendingApproval"
    title: str
    sent: "InboxMessage | None"

    @property
    def handle(self) -> str:
        """What a person types to name it."""
        from bridle.cli.find import handle_of

        return handle_of(self.pending.session_id, self.pending.asked.call.id)

    @property
    def seconds_left(self) -> float | None:
        """Until it counts as a no; None where it never does."""
        return seconds_until(self.pending.asked.expires)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def list_(as_json: bool) -> None:
    """The questions that wait: what would run, why it asks, until when."""
    from bridle.cli.find import session_folder

    found = waiting(session_folder())
    if as_json:
        tell_json([_named(one) for one in found])
        return
    if not found:
        click.echo("No question waits for an answer.")
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for number, kin in enumerate(clusters(found)):
        lines = ["", *_cluster(kin, paint, width)]
        click.echo("\n".join(lines[number == 0 :]))


def clusters(every: "Sequence[Open]") -> "list[list[Open]]":
    """The questions, those that belong together in one list."""
    found: dict[tuple[str, str], list[Open]] = {}
    for one in every:
        asked = one.pending.asked
        found.setdefault((one.pending.session_id, asked.group or asked.shown), []).append(one)
    return list(found.values())


def _cluster(kin: "Sequence[Open]", paint: Paint, width: int) -> "Iterator[str]":
    """One question, or several that belong together, and what can be done about them."""
    waiting = [one for one in kin if one.sent is None and not one.pending.expired]
    for one in kin:
        yield from _lines(one, paint, width)
        if one not in waiting or len(waiting) < 2:
            yield f"  {_state(one, paint)}"
    if len(waiting) > 1:
        said = f"({len(waiting)} that belong together; without --all, one of them)"
        handle = plain(waiting[0].handle)
        yield f"  → bridle approvals answer {handle} yes --all"
        yield f"    {paint.dim(said)}"


def waiting(folder: "SessionFolder") -> list[Open]:
    """Every open question, with what is known of its answer."""
    from bridle.stores.inbox_files import read_messages
    from bridle.stores.pending_approvals import pending_approvals

    titles = {one.id: one.title for one in folder.sessions()}
    found = []
    for one in pending_approvals(folder):
        sent = read_messages(folder.path(one.session_id).parent)
        mine = [letter for letter in sent if letter.shown and letter.shown == one.asked.shown]
        found.append(Open(one, titles.get(one.session_id, ""), mine[0] if mine else None))
    return found


def _lines(one: Open, paint: Paint, width: int) -> list[str]:
    from bridle.cli.event_lines import call_line
    from bridle.workspace.text import flat

    asked = one.pending.asked
    title = cut(plain(one.title), max(10, width - len(one.handle) - 2))
    lines = [
        f"{paint.cyan(plain(one.handle))}  {title}",
        f"  {call_line(asked.call, paint, width - 2)}",
    ]
    why = f"why: {flat(asked.reason or 'it always asks')}"
    lines.append(f"  {paint.dim(cut(why, width - 2))}")
    if asked.cwd:
        lines.append(f"  {paint.dim(cut('in:  ' + flat(asked.cwd), width - 2))}")
    return lines


def _state(one: Open, paint: Paint) -> str:
    """Where the question stands, and what to do about it."""
    if one.sent is not None:
        said = "yes" if one.sent.allowed else "no"
        by = plain(one.sent.by)
        from bridle.cli.answering import goes_on

        again = goes_on(one.pending.session_id).partition("   ")[0]
        return f"→ {again}  {paint.dim(f'(answered {said} by {by})')}"
    left = one.seconds_left
    if one.pending.expired:
        return paint.red("expired: that counts as a no when the session is taken up again")
    until = f"  {paint.dim(f'(expires in {span(left)})')}" if left else ""
    from bridle.cli.approval_text import ASK_USER

    words = " --word 'YOUR ANSWER'" if one.pending.asked.call.name == ASK_USER else ""
    return f"→ bridle approvals answer {plain(one.handle)} yes{words}{until}"


def span(seconds: float) -> str:
    """A length of time, to one figure."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return quantity(int(seconds // size), unit)
    return "less than a minute"


def seconds_until(stamp: str) -> float | None:
    """How long until a time of the log; None where it is no time."""
    from datetime import UTC, datetime

    try:
        return (datetime.fromisoformat(stamp) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None


def _named(one: Open) -> dict[str, Any]:
    import msgspec

    asked: dict[str, Any] = msgspec.to_builtins(one.pending.asked, enc_hook=str)
    asked.pop("type", None)
    return {
        "id": one.handle,
        "session": one.pending.session_id,
        "title": one.title,
        "seq": one.pending.seq,
        **asked,
        "expired": one.pending.expired,
        "answered": None if one.sent is None else one.sent.allowed,
    }
