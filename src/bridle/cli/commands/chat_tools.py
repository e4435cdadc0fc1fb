"""`bridle chat-tools`: the tools of the task chat as an MCP server, over stdio or HTTP."""

from typing import Any

import click

from bridle.distribution import install_hint
from bridle.errors import MissingExtra

SECRET = "BRIDLE_CHAT_SECRET"
DATABASE = "BRIDLE_CHAT_DATABASE"


@click.command("chat-tools")
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Use Streamable HTTP on this port of 127.0.0.1 instead of stdio; 0 means any free port.",
)
@click.option(
    "--database",
    metavar="URL",
    help=f"SQLite file or PostgreSQL URL. Default: ${DATABASE}, or a file in the state folder.",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help=f"Read the secret that signs calls from FILE. Default: ${SECRET}.",
)
@click.option(
    "--user",
    metavar="NAME",
    default="",
    help="Serve only this user; calls need no signature.",
)
@click.option("--timezone", metavar="ZONE", default="UTC", help="Time zone of --user.")
@click.option(
    "--tools",
    metavar="MODULE:NAME",
    default="",
    help="Serve a toolbox of your own. Default: the task tools.",
)
def command(**flags: Any) -> int:
    """Serve the tools of the task chat over MCP, on standard input and output or over HTTP.

    The client signs each call with a shared secret, and names the user in it. With --user, no
    signature is needed: any MCP client can use the server, for the tasks of that user only.
    """
    try:
        from bridle.cli.chat_tools_run import serve_tools
    except ModuleNotFoundError as problem:
        if problem.name and problem.name.partition(".")[0] in ("mcp", "sqlmodel", "sqlalchemy"):
            raise MissingExtra(
                "the chat's packages are not installed", problem, hint=install_hint("chat")
            ) from problem
        raise
    return serve_tools(flags)
