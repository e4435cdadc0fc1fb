"""`bridle mcp list`: the servers that are set up."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from bridle.cli.exit_codes import complain
from bridle.cli.output import print_json
from bridle.cli.style import paint_for, plain
from bridle.config.folder import load_servers
from bridle.config.paths import state_folder
from bridle.runtime.mcp import make_server
from bridle.tools.mcp.server import Server
from bridle.workspace.text import quantity


@click.command("list")
@click.option("--check", is_flag=True, help="Connect to each server, and report problems.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def command(check: bool, as_json: bool) -> int:
    """List the MCP servers that are set up, and what is known about them.

    Servers are started only with --check.

    Exit codes: 0 no problems, 1 a server cannot be used (with --check).
    """
    servers, off = found_servers()
    if check and servers:
        from bridle.cli.commands.mcp.manage import connect_all

        asyncio.run(connect_all(servers))
    rows = [_row(server) for server in servers] + [
        {"name": name, "place": "", "state": "disabled", "from": origin} for name, origin in off
    ]
    if as_json:
        print_json(rows)
    else:
        _show(rows)
    return 1 if check and any(server.problem for server in servers) else 0


def found_servers() -> tuple[list[Server], list[tuple[str, str]]]:
    """Return the servers of the current folder, and the names and origins of disabled ones."""
    root = Path.cwd()
    config = load_servers(root)
    for note in config.notes:
        complain(*note)
    state = state_folder(os.environ)
    enabled = [one for one in config.items if one.enabled]
    servers = [make_server(one, root, state, os.environ) for one in enabled]
    return servers, [(one.name, one.origin) for one in config.items if not one.enabled]


def _row(server: Server) -> dict[str, Any]:
    usable = [tool for tool in server.definitions.values() if not tool.problem]
    row: dict[str, Any] = {"name": server.name, "place": server.spec.place}
    if server.problem:
        row["state"] = f"cannot be used: {server.problem}"
    elif server.is_known:
        row |= {"state": quantity(len(usable), "tool"), "tools": [tool.name for tool in usable]}
    else:
        row["state"] = "never connected"
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
