"""`bridle mcp`: the group, and a list of the servers that starts none of them."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.style import paint_for, plain
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.tools.mcp.server import Server

TABLE = {
    "list": ("mcp:list_servers", "The servers that are set up, and what is known of each."),
    "add": ("mcp_changing:add", "Set up a server: try it, show its tools, remember them."),
    "remove": ("mcp_changing:remove", "Take a server out of your settings."),
    "login": ("mcp_login:login", "Sign in at a server, in a browser."),
    "test": ("mcp_changing:test", "Connect to a server, and show its tools and its troubles."),
    "serve": ("mcp_serve:serve", "Be an MCP server: let another agent hand bridle a task."),
}


@click.group(name="mcp", cls=LazyGroup, table=TABLE)
def command() -> None:
    """Set up MCP servers, whose tools the model can use; or be one."""


@click.command("list")
@click.option("--check", is_flag=True, help="Connect to each of them, and say how that went.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def list_servers(check: bool, as_json: bool) -> int:
    """The servers that are set up, and what is known of each. Starts none without --check."""
    servers, off = found_servers()
    if check and servers:
        import asyncio

        from bridle.cli.mcp_changing import connect_all

        asyncio.run(connect_all(servers))
    rows = [_row(server) for server in servers] + [
        {"name": name, "place": "", "state": "switched off", "from": origin} for name, origin in off
    ]
    if as_json:
        from bridle.cli.told import tell_json

        tell_json(rows)
    else:
        _show(rows)
    return 1 if check and any(server.problem for server in servers) else 0


def found_servers() -> "tuple[list[Server], list[tuple[str, str]]]":
    """The servers that count in the current folder; those that are switched off, with origins."""
    from bridle.cli.exit_codes import complain
    from bridle.config.folder import load_servers
    from bridle.config.paths import state_folder
    from bridle.runtime.mcp import make_server

    root = Path.cwd()
    config = load_servers(root)
    for note in config.notes:
        complain(*note)
    state = state_folder(os.environ)
    enabled = [one for one in config.items if one.enabled]
    servers = [make_server(one, root, state, os.environ) for one in enabled]
    return servers, [(one.name, one.origin) for one in config.items if not one.enabled]


def _row(server: "Server") -> dict[str, Any]:
    usable = [one for one in server.definitions.values() if not one.problem]
    row: dict[str, Any] = {"name": server.name, "place": server.spec.place}
    if server.problem:
        row["state"] = f"cannot be used: {server.problem}"
    elif server.is_known:
        row |= {"state": quantity(len(usable), "tool"), "tools": [one.name for one in usable]}
    else:
        row["state"] = "not looked into yet"
    return {**row, "from": server.spec.origin}


def _show(rows: list[dict[str, Any]]) -> None:
    paint = paint_for(sys.stdout)
    if not rows:
        click.echo("No MCP server is set up.")
        click.echo(paint.dim("  → bridle mcp add NAME -- COMMAND …, or bridle mcp add NAME URL"))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        bad = row["state"].startswith("cannot")
        state = plain(row["state"])
        said = paint.red(state) if bad else state
        place = paint.dim(plain(row["place"]))
        click.echo(f"{paint.bold(row['name'].ljust(width))}  {said}  {place}")
