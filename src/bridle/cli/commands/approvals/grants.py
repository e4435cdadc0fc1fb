"""`bridle approvals grants` and `revoke`: what a person has allowed for a whole session.

Grants are read from the logs. The process that owns a session revokes its grants when it gets an
inbox message; in a session that no process owns it is done here, without a model.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bridle.cli.commands.approvals.list import rough_duration, seconds_until
from bridle.cli.find import find_session, handle_of, last_part, session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import print_json, print_result
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.cli.user_input import user_name
from bridle.engine.grants import has_ended, with_end
from bridle.engine.history import fold
from bridle.errors import AgentError, SessionLocked, UnknownApproval
from bridle.events import Grant
from bridle.protocols.store import SessionSummary
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder

if TYPE_CHECKING:
    from bridle.engine.session import Session

_SECONDS = 28_800.0  # the duration of a grant from before grants had an end
_ID_LENGTH = 8  # characters of a grant's id that are shown
_BLOCK = 1 << 20
_MARK = b'"type":"approval_answered"'


class SessionGrant(NamedTuple):
    """A grant, and its session."""

    session: SessionSummary
    grant: Grant

    @property
    def handle(self) -> str:
        """The name that a person types."""
        return handle_of(self.session.id, self.grant.id[:_ID_LENGTH])


@click.command("grants")
@click.argument("session_id", metavar="[ID]", type=SESSION, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def grants(session_id: str | None, as_json: bool) -> None:
    """List what was allowed for a whole session: what, since when, until when, and by whom.

    With ID, list the grants of one session. Rules are not listed; they are in your policy.yaml.
    """
    folder = session_folder()
    sessions = [find_session(folder, session_id)] if session_id else folder.sessions()
    found = list(current_grants(folder, sessions))
    if as_json:
        print_json([_to_json(one) for one in found])
        return
    if not found:
        click.echo("Nothing is allowed for a whole session.")
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for one in found:
        for line in _grant_lines(one, paint, width):
            click.echo(line)


def current_grants(
    folder: SessionFolder, sessions: Sequence[SessionSummary]
) -> Iterator[SessionGrant]:
    """Yield the grants that have not ended."""
    for session in sessions:
        try:
            if not _has_answers(folder, session.id):
                continue
            found = fold(folder.read(session.id)).grants.values()
        except (AgentError, OSError):  # `bridle sessions verify` says what is wrong with it
            continue
        for grant in found:
            if not has_ended(grant, _SECONDS):
                yield SessionGrant(session, with_end(grant, _SECONDS))


def _has_answers(folder: SessionFolder, session_id: str) -> bool:
    """Return whether the log has an answered approval: most have none, and need no closer look."""
    with folder.path(session_id).open("rb") as file:
        before = b""
        while block := file.read(_BLOCK):
            if _MARK in before + block:
                return True
            before = block[-len(_MARK) :]
    return False


def _to_json(one: SessionGrant) -> dict[str, Any]:
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


def _grant_lines(one: SessionGrant, paint: Paint, width: int) -> Iterator[str]:
    grant = one.grant
    room = max(20, width - len(one.handle) - 2)
    yield f"{paint.cyan(plain(one.handle))}  {cut(plain(grant.what or 'a call'), room)}"
    since, until = seconds_until(grant.since), seconds_until(grant.until)
    facts = [f"by {plain(grant.by)}"]
    facts += [f"{rough_duration(-since)} ago"] if since is not None else []
    facts += [f"ends in {rough_duration(until)}"] if until is not None else []
    facts += [f"in {plain(grant.cwd)}"] if grant.cwd and grant.cwd not in grant.what else []
    yield f"  {paint.dim(cut(' · '.join(facts), width - 2))}"


@click.command("revoke")
@click.argument("name", metavar="[GRANT-OR-ID]", type=SESSION, required=False)
@click.option("--all", "every", is_flag=True, help="Revoke all grants of all sessions.")
@click.option("--by", metavar="NAME", help="Who revokes it. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of what was revoked.")
def revoke(name: str | None, every: bool, by: str | None, as_json: bool) -> None:
    """Revoke a grant, or all grants of the session ID: such calls need approval again.

    Rules in your policy.yaml stay there.
    """
    if bool(name) == every:
        raise click.UsageError("name a grant or a session, or use --all")
    folder = session_folder()
    found = list(current_grants(folder, folder.sessions()))
    if name:
        found = _matching(found, name)
    for session in {one.session.id: one.session for one in found}.values():
        ids = [one.grant.id for one in found if one.session.id == session.id]
        _revoke(folder, session, ids, by or user_name())
    if as_json:
        print_json([_to_json(one) for one in found])
        return
    for one in found:
        print_result(f"revoked: {one.grant.what or one.handle}")
    if any(one.grant.rule for one in found):
        print_result("a rule that was added stays in your policy.yaml", "bridle config path")
    if not found:
        click.echo("Nothing is allowed for a whole session.")


def _matching(every: Sequence[SessionGrant], name: str) -> list[SessionGrant]:
    """Return the grants of that name, or of that session. Raise `UnknownApproval`."""
    start, _, grant = name.rpartition("/")

    def is_session(one: SessionGrant, start: str) -> bool:
        session_id = one.session.id
        return session_id.startswith(start) or last_part(session_id).startswith(start)

    found = [one for one in every if one.grant.id.startswith(grant) and len(grant) >= 4]
    if start:
        found = [one for one in found if is_session(one, start)]
    found = found or [one for one in every if not start and is_session(one, name)]
    if not found:
        raise UnknownApproval(
            f"there is no grant {name!r}",
            hint="`bridle approvals grants` lists them; it may have ended already.",
        )
    return found


def _revoke(folder: SessionFolder, session: SessionSummary, grants: Sequence[str], by: str) -> None:
    """Revoke grants of a session, here or in the process that owns it."""
    from bridle.cli.session_edit import edit_session, send_to_inbox

    async def revoke_all(opened: "Session") -> None:
        for grant in grants:
            await opened.revoke(grant, by=by)

    if not describe_owner(folder.path(session.id)):
        try:
            edit_session(session, revoke_all)
            return
        except SessionLocked:
            pass  # another process has opened it just now
    for grant in grants:
        send_to_inbox(folder, session.id, "revoke", by, content=grant)
