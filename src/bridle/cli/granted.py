"""`bridle approvals grants` and `revoke`: what a person has allowed for longer than once.

Grants are read from the logs. One is taken back by whoever holds its session, through a letter; in
a session that nobody holds it is done here, and no model is asked.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bridle.cli.options import SESSION
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.cli.told import tell, tell_json

if TYPE_CHECKING:
    from bridle.events import Grant
    from bridle.protocols.store import SessionSummary
    from bridle.stores.reader import SessionFolder

_SECONDS = 28_800.0  # how long a grant lasts that was recorded before they had an end
_SHORT = 8  # characters of a grant's id that a person types
_BLOCK = 1 << 20
_MARK = b'"type":"approval_answered"'


class Given(NamedTuple):
    """A grant, and the session that it holds in."""

    session: "SessionSummary"
    grant: "Grant"

    @property
    def handle(self) -> str:
        """What a person types to name it."""
        from bridle.cli.find import handle_of

        return handle_of(self.session.id, self.grant.id[:_SHORT])


@click.command("grants")
@click.argument("session_id", metavar="[ID]", type=SESSION, required=False)
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def grants(session_id: str | None, as_json: bool) -> None:
    """What was allowed for a session: what, since when, until when, by whom.

    Of the session ID, or of all. A yes that became a rule is in your policy.yaml as well.
    """
    from bridle.cli.find import find_session, session_folder

    folder = session_folder()
    sessions = [find_session(folder, session_id)] if session_id else folder.sessions()
    found = list(standing(folder, sessions))
    if as_json:
        tell_json([_named(one) for one in found])
        return
    if not found:
        click.echo("Nothing is allowed for longer than once.")
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for one in found:
        for line in _lines(one, paint, width):
            click.echo(line)


def standing(folder: "SessionFolder", sessions: "Sequence[SessionSummary]") -> Iterator[Given]:
    """The grants that hold now."""
    from bridle.engine.grants import has_ended, with_end
    from bridle.engine.history import fold
    from bridle.errors import AgentError

    for session in sessions:
        try:
            if not _is_answered(folder, session.id):
                continue
            found = fold(folder.read(session.id)).grants.values()
        except (AgentError, OSError):  # `bridle sessions verify` says what is wrong with it
            continue
        yield from (
            Given(session, with_end(one, _SECONDS)) for one in found if not has_ended(one, _SECONDS)
        )


def _is_answered(folder: "SessionFolder", session_id: str) -> bool:
    """Was anything ever answered there? Most logs say no, and are not read any closer."""
    with folder.path(session_id).open("rb") as file:
        before = b""
        while block := file.read(_BLOCK):
            if _MARK in before + block:
                return True
            before = block[-len(_MARK) :]
    return False


def _named(one: Given) -> dict[str, Any]:
    grant = one.grant
    return {
        "id": one.handle,
        "session": one.session.id,
        "grant": grant.id,
        "what": grant.what,
        "since": grant.since,
        "until": grant.until,
        "by": grant.by,
        "cwd": grant.cwd,
        "rule": grant.rule,
    }


def _lines(one: Given, paint: Paint, width: int) -> Iterator[str]:
    from bridle.cli.approvals import seconds_until, span

    grant = one.grant
    room = max(20, width - len(one.handle) - 2)
    yield f"{paint.cyan(plain(one.handle))}  {cut(plain(grant.what or 'a call'), room)}"
    since, until = seconds_until(grant.since), seconds_until(grant.until)
    said = [f"by {plain(grant.by)}"]
    said += [f"{span(-since)} ago"] if since is not None else []
    said += [f"ends in {span(until)}"] if until is not None else []
    said += [f"in {plain(grant.cwd)}"] if grant.cwd and grant.cwd not in grant.what else []
    yield f"  {paint.dim(cut(' · '.join(said), width - 2))}"


@click.command("revoke")
@click.argument("name", metavar="[GRANT-OR-ID]", type=SESSION, required=False)
@click.option("--all", "every", is_flag=True, help="Every one, in all sessions.")
@click.option("--by", metavar="NAME", help="Who takes it back. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array of what was revoked.")
def revoke(name: str | None, every: bool, by: str | None, as_json: bool) -> None:
    """Take back what was allowed: one grant, or all that the session ID has.

    From then on it is asked again. A rule that was written into your policy.yaml stays there.
    """
    if bool(name) == every:
        raise click.UsageError("name a grant or a session, or say --all")
    from bridle.cli.find import session_folder
    from bridle.cli.user_input import user_name

    folder = session_folder()
    found = list(standing(folder, folder.sessions()))
    if name:
        found = _matching(found, name)
    for session in {one.session.id: one.session for one in found}.values():
        mine = [one.grant.id for one in found if one.session.id == session.id]
        _take_back(folder, session, mine, by or user_name())
    if as_json:
        tell_json([_named(one) for one in found])
        return
    for one in found:
        tell(f"revoked: {one.grant.what or one.handle}")
    rules = [one.grant.rule for one in found if one.grant.rule]
    if rules:
        tell("what was written as a rule stays in your policy.yaml", "bridle config path")
    if not found:
        click.echo("Nothing is allowed for longer than once.")


def _matching(every: Sequence[Given], name: str) -> list[Given]:
    """The grants of that name, or of the session of that name. Raise `UnknownApproval`."""
    from bridle.cli.find import last_part
    from bridle.errors import UnknownApproval

    start, _, grant = name.rpartition("/")

    def begins(one: Given, words: str) -> bool:
        session_id = one.session.id
        return session_id.startswith(words) or last_part(session_id).startswith(words)

    found = [one for one in every if one.grant.id.startswith(grant) and len(grant) >= 4]
    if start:
        found = [one for one in found if begins(one, start)]
    found = found or [one for one in every if not start and begins(one, name)]
    if not found:
        raise UnknownApproval(
            f"nothing is allowed under {name!r}",
            hint="`bridle approvals grants` shows what is; it may have ended already.",
        )
    return found


def _take_back(
    folder: "SessionFolder", session: "SessionSummary", grants: Sequence[str], by: str
) -> None:
    """In one session, by whoever holds it."""
    from bridle.cli.commands.sessions.edit import take
    from bridle.errors import SessionLocked
    from bridle.stores.locks import describe_owner

    if not describe_owner(folder.path(session.id)):
        try:
            take(session, lambda held: _revoked(held, grants, by))
            return
        except SessionLocked:
            pass  # somebody was faster, and takes letters
    from bridle.protocols.store import InboxMessage
    from bridle.runtime.inbox_sender import new_message_id, send_message

    for one in grants:
        send_message(folder, session.id, InboxMessage(new_message_id(), "revoke", by, one))


async def _revoked(session: Any, grants: Sequence[str], by: str) -> None:
    for one in grants:
        await session.revoke(one, by=by)
