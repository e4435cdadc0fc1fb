"""`bridle approvals`: pending approvals, and what was allowed; each command has its own module."""

import click

from bridle.cli.command_group import LazyGroup

TABLE = {
    "list": ("list:command", "List pending approvals, in all sessions."),
    "answer": ("answer:command", "Allow or deny pending approvals."),
    "grants": ("grants:grants", "List what was allowed for a whole session."),
    "revoke": ("grants:revoke", "Revoke what was allowed for a session."),
}


@click.group(name="approvals", cls=LazyGroup, table=TABLE, package=__name__)
def command() -> None:
    """List pending approvals and answer them, from any terminal."""
