"""`bridle mcp serve`: bridle as an MCP server, over standard input and output or over HTTP."""

from typing import Any

import click

from bridle.cli.options import turn_options
from bridle.errors import UsageError

_CHOSEN_BY_CLIENT = ("go_on", "resume", "thinking", "yes", "worktree")


@click.command("serve")
@turn_options
@click.option("--http", is_flag=True, help="Use Streamable HTTP on 127.0.0.1 instead of stdio.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="Port for --http. Default: any free port.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Read the token for --http from FILE, which is created if needed. "
    "Default: a new token, printed once on stderr.",
)
@click.option(
    "--allow-answers",
    is_flag=True,
    help="Offer the tool answer_approval, so that the client's agent can allow calls. "
    "Without it, only people can: `bridle approvals`.",
)
def command(**flags: Any) -> int:
    """Run as an MCP server, so that another agent can give tasks to bridle.

    Tasks run in the workspace, with the rules and limits given here, and at most in the mode given
    here. Calls that are not allowed need approval by a person (`bridle approvals`).
    """
    if (flags["port"] or flags["token_file"]) and not flags["http"]:
        raise UsageError("--port and --token-file need --http", hint="Add --http.")
    from bridle.cli.mcp_server_run import serve_tasks

    return serve_tasks(flags)


command.params = [param for param in command.params if param.name not in _CHOSEN_BY_CLIENT]
