"""`bridle chat-server`: the multi-user chat over HTTP, with a web page."""

from typing import Any

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.options import MODEL

PORT = 8421
A_MINUTE = 60  # messages of one user
DATABASE = "BRIDLE_CHAT_DATABASE"
TABLE = {
    "token": ("chat_server_token:command", "Create a token with which a user signs in."),
    "migrate": ("chat_server_token:migrate", "Update the database to the current version."),
}
_FILE = click.Path(dir_okay=False)


def database_option(function: Any) -> Any:
    """Add `--database`."""
    return click.option(
        "--database",
        metavar="URL",
        help=f"SQLite file or PostgreSQL URL. Default: ${DATABASE}, or a file in the state folder.",
    )(function)


def secret_options(function: Any) -> Any:
    """Add the options about what signs tokens."""
    audience = click.option(
        "--audience",
        metavar="NAME",
        default="bridle-chat",
        show_default=True,
        help="Audience that tokens must be for; empty: any.",
    )
    secret = click.option(
        "--secret-file",
        metavar="FILE",
        type=_FILE,
        help="File with the secret that signs tokens (HS256). Default: one in the state folder.",
    )
    return secret(audience(function))


@click.group(
    name="chat-server",
    cls=LazyGroup,
    table=TABLE,
    package="bridle.cli.commands",
    invoke_without_command=True,
    advice="To try it: bridle chat-server --demo",
)
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0 means any free port.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of processes that serve requests.",
)
@secret_options
@click.option(
    "--jwks",
    metavar="FILE",
    type=_FILE,
    help="File with the public keys of your identity provider, instead of a secret.",
)
@click.option("--issuer", metavar="URL", default="", help="Issuer that tokens must come from.")
@click.option("-m", "--model", metavar="NAME", default="", type=MODEL, help="Model to use.")
@click.option(
    "--app",
    metavar="MODULE:NAME",
    default="",
    help="Serve a chat of your own instead of the task assistant.",
)
@click.option(
    "--messages-a-minute",
    "a_minute",
    type=click.IntRange(0),
    default=A_MINUTE,
    show_default=True,
    help="Limit of messages per user and minute; 0 means no limit.",
)
@click.option(
    "--dollars-a-day",
    "a_day",
    type=click.FloatRange(0),
    default=0.0,
    metavar="DOLLARS",
    help="Cost limit per user and day; the price of the model must be known. Default: no limit.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    help="Another host name of this server, such as that of a proxy; can be repeated.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Two users with example tasks; needs no API key, and stores nothing.",
)
def command(**flags: Any) -> int:
    """Serve the task chat to many users over HTTP, with a web page.

    Each user signs in with a personal token, and sees only their own tasks and conversations.
    Ctrl-C stops the server; everything is stored in the database.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    from bridle.cli.chat_server_run import serve

    return serve(flags)
