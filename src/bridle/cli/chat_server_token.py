"""`bridle chat-server token` and `migrate`: what is done beside a chat that is being served."""

import sys

import click

from bridle.cli.chat_server import database_option, secret_options
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
    help="How long it is good.",
)
def command(user: str, secret_file: str | None, audience: str, hours: float) -> None:
    """Make a token with which USER signs in. Whoever has it is that user, until it expires."""
    from bridle.cli.chat_server_secret import check_installed, secret_of

    check_installed()
    from bridle.server.chat.jwt import Secret

    click.echo(Secret(secret_of(secret_file)).mint(user, hours * 3600, audience))
    said = f"  {plain(user)} · good for {quantity(hours, 'hour')}"
    click.echo(paint_for(sys.stderr).dim(said), err=True)


@click.command("migrate")
@database_option
def migrate(database: str | None) -> None:
    """Bring the database up to date; safe to do at any time, and while it is being served."""
    from bridle.cli.chat_server_secret import check_installed, database_url
    from bridle.cli.told import tell

    check_installed()
    from bridle.chat.db import Database

    found = Database(database_url(database))
    try:
        found.migrate()
        found.check()
        tell(f"The database is up to date: {found.url.render_as_string(hide_password=True)}")
    finally:
        found.close()
