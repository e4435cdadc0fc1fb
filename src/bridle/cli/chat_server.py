"""`bridle chat-server`: the multi-user chat over HTTP, with its page. The options and the group.

What serves is imported once there is something to serve.
"""

from typing import Any

import click

from bridle.cli.command_group import LazyGroup

PORT = 8421
A_MINUTE = 60  # messages of one user
DATABASE = "BRIDLE_CHAT_DATABASE"
TABLE = {
    "token": ("chat_server_token:command", "Make a token with which a user signs in."),
    "migrate": ("chat_server_token:migrate", "Bring the database up to date, and serve nothing."),
}
_FILE = click.Path(dir_okay=False)


def database_option(function: Any) -> Any:
    """Which database."""
    return click.option(
        "--database",
        metavar="URL",
        help=f"SQLite file or PostgreSQL URL. Default: ${DATABASE}, or a file of your own.",
    )(function)


def secret_options(function: Any) -> Any:
    """What signs tokens."""
    audience = click.option(
        "--audience",
        metavar="NAME",
        default="bridle-chat",
        show_default=True,
        help="For whom a token has to be made; empty: that does not matter.",
    )
    secret = click.option(
        "--secret-file",
        metavar="FILE",
        type=_FILE,
        help="The secret that signs tokens (HS256). Default: one in the state folder.",
    )
    return secret(audience(function))


@click.group(
    name="chat-server",
    cls=LazyGroup,
    table=TABLE,
    invoke_without_command=True,
    advice="To see it at work: bridle chat-server --demo",
)
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="The port; 0 is any that is free.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="How many processes answer on that port.",
)
@secret_options
@click.option(
    "--jwks",
    metavar="FILE",
    type=_FILE,
    help="Public keys of whoever signs tokens, in place of a secret.",
)
@click.option("--issuer", metavar="URL", default="", help="Who has to have made a token.")
@click.option("-m", "--model", metavar="NAME", default="", help="The model that answers.")
@click.option(
    "--app",
    metavar="MODULE:NAME",
    default="",
    help="A chat of your own, in place of the task assistant.",
)
@click.option(
    "--messages-a-minute",
    "a_minute",
    type=click.IntRange(0),
    default=A_MINUTE,
    show_default=True,
    help="How many messages one user may send; 0 is any number.",
)
@click.option(
    "--dollars-a-day",
    "a_day",
    type=click.FloatRange(0),
    default=0.0,
    metavar="DOLLARS",
    help="What the model may cost for one user; the price has to be known. Default: no limit.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    help="Another name under which it is reached, such as a proxy's; may be given again.",
)
@click.option("--demo", is_flag=True, help="Two users with tasks, no key, nothing kept.")
def command(**flags: Any) -> int:
    """Serve the task chat to many users over HTTP, with a page for the browser.

    Everyone signs in with a token that names them, and sees their own tasks and conversations
    alone. Ctrl-C stops the server; everything is kept in the database.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    from bridle.cli.chat_server_life import serve

    return serve(flags)
