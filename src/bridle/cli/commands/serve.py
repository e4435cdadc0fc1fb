"""`bridle serve`: sessions over HTTP, and the web page. The commands for tokens are in
`serve_tokens.py`."""

import os
from pathlib import Path
from typing import Any

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.options import turn_options
from bridle.config.paths import state_folder

PORT = 8420
TABLE = {"token": ("serve_tokens:command", "Add, list and revoke tokens of other people.")}
_UNFIT = (
    "go_on",
    "resume",
    "thinking",
    "yes",
    "worktree",
    "workspace",
)  # each request has its own


@click.group(
    name="serve",
    cls=LazyGroup,
    table=TABLE,
    package="bridle.cli.commands",
    invoke_without_command=True,
    advice="To serve a folder: bridle serve --workspace DIR",
)
@turn_options
@click.option(
    "--workspace",
    "-w",
    "workspaces",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Folder in which sessions may work; can be repeated. Default: the current folder.",
)
@click.option(
    "--offer-agent",
    "offered",
    metavar="NAME",
    multiple=True,
    help='Agent that clients may choose, such as acp:"gemini --acp"; can be repeated.',
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0 means any free port.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    help="Another host name of this server, such as that of a proxy; can be repeated.",
)
@click.option(
    "--token", metavar="TOKEN", help="Your own token. Default: the one in the state folder."
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="File with other people's tokens. Default: the one in the state folder.",
)
@click.option("--chat", is_flag=True, help="Also serve the task chat, at /chat.")
@click.option("--chat-database", metavar="URL", help="Database of the chat, as in chat-server.")
@click.option(
    "--chat-secret-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="File with the secret that signs the tokens of the chat's users.",
)
@click.option("--show-token", is_flag=True, help="Print your own token and exit.")
@click.option("--open-browser", is_flag=True, help="Open the web page, signed in.")
def command(**flags: Any) -> int:
    """Serve sessions over HTTP, with a web page.

    Everyone needs a token; the address that is printed signs you in once. Sessions work only in the
    folders that are given here, with the rules and limits of those folders. What is not allowed
    there needs approval. Ctrl-C stops the server; sessions are kept.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    from bridle.cli.server_run import serve, show_token

    return show_token(flags) if flags["show_token"] else serve(flags)


command.params = [one for one in command.params if one.name not in _UNFIT]


def server_folder() -> Path:
    """Return the folder with the server's tokens, sign-ins and log."""
    return state_folder(os.environ) / "server"
