"""`bridle chat-server token` and `migrate`."""

import sys

import click

from bridle.cli.commands.chat_server import database_option, secret_options
from bridle.cli.output import print_result
from bridle.cli.style import paint_for, plain
from bridle.workspace.text import quantity


@click.command("token")
@click.argument("user", metavar="USER")
@secret_options
@click.option(
    "--hours",
    type=click.FloatRange(0, 24 * 3660, min_open=True),
    default=24.0,
    show_default=True,
    help="How long the token is valid.",
)
def command(user: str, secret_file: str | None, audience: str, hours: float) -> None:
    """Create a token with which USER signs in.

    Anyone who has the token can act as USER until it expires.
    """
    from bridle.cli.chat_server_setup import check_installed, secret_of

    check_installed()
    from bridle.server.chat.jwt import SharedSecret

    click.echo(SharedSecret(secret_of(secret_file)).mint(user, hours * 3600, audience))
    said = f"  {plain(user)} · valid for {quantity(hours, 'hour')}"
    click.echo(paint_for(sys.stderr).dim(said), err=True)


@click.command("migrate")
@database_option
def migrate(database: str | None) -> None:
    """Update the database to the current version. This is safe even while it is used."""
    from bridle.cli.chat_server_setup import check_installed, database_url

    check_installed()
    from bridle.chat.db import Database

    found = Database(database_url(database))
    try:
        found.migrate()
        found.check()
        print_result(
            f"the database is up to date: {found.url.render_as_string(hide_password=True)}"
        )
    finally:
        found.close()
