"""`bridle serve`: sessions over HTTP, live streams, and the page. The options and the group.

What serves is imported once there is something to serve; the tokens' commands are in
`serve_tokens.py`.
"""

import os
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.options import turn_options

if TYPE_CHECKING:
    from pathlib import Path

PORT = 8420
TABLE = {"token": ("serve_tokens:command", "Add, list and revoke the tokens of other people.")}
_UNFIT = (
    "go_on",
    "resume",
    "thinking",
    "yes",
    "worktree",
    "workspace",
)  # each request says its own


@click.group(
    name="serve",
    cls=LazyGroup,
    table=TABLE,
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
    help="A folder that may be worked on; may be given again. Default: the current one.",
)
@click.option(
    "--offer-agent",
    "offered",
    metavar="NAME",
    multiple=True,
    help='Another agent that may be chosen, such as acp:"gemini --acp"; may be given again.',
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="The port; 0 is any that is free.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    help="Another name under which it is reached, such as a proxy's; may be given again.",
)
@click.option("--token", metavar="TOKEN", help="Your own token. Default: one in the state folder.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The file with other people's tokens. Default: one in the state folder.",
)
@click.option("--chat", is_flag=True, help="The task chat beside the sessions, at /chat.")
@click.option("--chat-database", metavar="URL", help="The chat's database, as in chat-server.")
@click.option(
    "--chat-secret-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The secret that signs the tokens of the chat's users.",
)
@click.option("--show-token", is_flag=True, help="Print your own token, and serve nothing.")
@click.option("--open-browser", is_flag=True, help="Open the page, signed in.")
def command(**flags: Any) -> int:
    """Serve sessions over HTTP, with a page for the browser.

    Everyone needs a token; the address that is printed signs you in once. Sessions work in the
    folders given here and in no others, with the rules and limits that hold there, and ask before
    what they may not do by themselves. Ctrl-C stops the server; sessions are kept.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    from bridle.cli.serving import serve, show_token

    if flags["show_token"]:
        return show_token(flags)
    return serve(flags)


command.params = [one for one in command.params if one.name not in _UNFIT]


def server_folder() -> "Path":
    """Where the server keeps its tokens, its sign-ins and its log."""
    from bridle.config.paths import state_folder

    return state_folder(os.environ) / "server"
