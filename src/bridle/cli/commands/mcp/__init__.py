"""`bridle mcp`: the group; each command is in a module of its own."""

import click

from bridle.cli.command_group import LazyGroup

TABLE = {
    "list": ("list:command", "List the MCP servers that are set up."),
    "add": ("manage:add", "Set up a server: connect to it and accept its tools."),
    "remove": ("manage:remove", "Remove a server from your settings."),
    "login": ("login:command", "Sign in to a server, with a browser."),
    "test": ("manage:test", "Connect to a server, and show its tools and problems."),
    "serve": ("serve:command", "Run as an MCP server, so that other agents can use bridle."),
}


@click.group(name="mcp", cls=LazyGroup, table=TABLE, package=__name__)
def command() -> None:
    """Set up MCP servers, whose tools the model can use, or run as one."""
