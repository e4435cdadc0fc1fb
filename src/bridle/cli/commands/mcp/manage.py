"""`bridle mcp add`, `remove` and `test`: set up a server, and connect to it."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from bridle.cli.commands.mcp.list import found_servers
from bridle.cli.exit_codes import FAILED, complain
from bridle.cli.output import print_result
from bridle.cli.style import Paint, paint_for, plain
from bridle.config.mcp import (
    ServerSettings,
    add_server,
    check_name,
    own_servers,
    parse_own_servers,
    remove_server,
)
from bridle.config.paths import config_file, state_folder
from bridle.errors import AgentError, ConfigError
from bridle.runtime.mcp import PINS, make_server, make_spec, tokens_path
from bridle.tools.mcp.pins import Pins
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.servers import Servers
from bridle.tools.mcp.tool import ToolDefinition
from bridle.workspace.text import one_line, quantity

_SHOWN = 60


@click.command("add", context_settings={"ignore_unknown_options": False})
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="URL | -- COMMAND…")
@click.option(
    "--env",
    "-e",
    multiple=True,
    metavar="NAME=VALUE",
    help="Environment variable for a command; can be repeated.",
)
@click.option(
    "--header",
    "-H",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="HTTP header for a URL; can be repeated.",
)
@click.option("--oauth", is_flag=True, help="Sign in to a URL with a browser.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(file_okay=False),
    default="",
    help="Folder in which a command runs.",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="How long starting may take.")
@click.option("--no-test", is_flag=True, help="Save it without connecting to it.")
def add(
    name: str, words: tuple[str, ...], timeout: float | None, no_test: bool, **rest: Any
) -> int:
    """Set up the MCP server NAME: a command, or a URL.

    Values may refer to environment variables, such as '${GITHUB_TOKEN}', so that your settings do
    not contain the secret. bridle connects to the server once and shows its tools. You accept them
    as they are now; if their descriptions change later, they need to be accepted again.
    """
    check_name(name)
    settings = _settings(name, words, timeout, rest)
    if not no_test:
        code = _try(settings)
        if code:
            complain(f"{name} was not set up", "Fix the problem, or save it anyway with --no-test.")
            return code
    path = config_file(os.environ)
    add_server(path, settings)
    print_result(
        f"set up {name}, in {path}", f"to always allow a tool, add a rule: allow: mcp__{name}__TOOL"
    )
    return 0


def _settings(
    name: str, words: tuple[str, ...], timeout: float | None, rest: dict[str, Any]
) -> ServerSettings:
    """Return the server that the command line describes. Raise `ConfigError`."""
    said: dict[str, object] = {}
    if len(words) == 1 and words[0].startswith(("http://", "https://")):
        said["url"] = words[0]
        said |= {"headers": _pairs(rest["header"], ":", "--header 'NAME: VALUE'")}
        said |= {"auth": "oauth"} if rest["oauth"] else {}
    else:
        said["command"] = list(words)
        said |= {"env": _pairs(rest["env"], "=", "--env NAME=VALUE")}
        said |= {"cwd": str(Path(rest["cwd"]).absolute())} if rest["cwd"] else {}
    other = "env" if "url" in said else "header"
    if rest[other] or (rest["oauth"] and "url" not in said):
        other = other if rest[other] else "oauth"
        kind = "a command" if "url" in said else "a URL"
        raise click.UsageError(f"--{other} is only for {kind}")
    if timeout is not None:
        said["timeout"] = timeout
    text = json.dumps({"mcp": {"servers": {name: said}}}, ensure_ascii=False)
    (found,) = parse_own_servers(text, Path("the command line"))
    return found


def _pairs(given: str | tuple[str, ...], mark: str, how: str) -> dict[str, str]:
    found = {}
    for one in given:
        key, there, value = one.partition(mark)
        if not there:
            raise click.UsageError(f"the value is not complete: write {how}")
        found[key.strip()] = value.strip()
    return found


@click.command("remove")
@click.argument("name")
def remove(name: str) -> int:
    """Remove the server NAME from your settings, and what is stored about it."""

    path = config_file(os.environ)
    known = {one.name: one for one in own_servers(path)}
    if not remove_server(path, name):
        raise _unknown(name, list(known))
    spec, state = make_spec(known[name], Path.cwd(), os.environ), state_folder(os.environ)
    Pins(str(state / PINS), name, spec.identity).remove()
    Path(tokens_path(spec, state)).unlink(missing_ok=True)
    print_result(f"removed {name} from {path}")
    return 0


def _unknown(name: str, known: list[str]) -> ConfigError:
    hint = f"There are {', '.join(known)}." if known else "To set one up: bridle mcp add."
    return ConfigError(f"there is no MCP server {plain(name)!r} in your settings", hint=hint)


@click.command("test")
@click.argument("name")
@click.option("--accept", is_flag=True, help="Accept its tools as they are now.")
def test(name: str, accept: bool) -> int:
    """Connect to the server NAME, and show its tools and problems."""
    servers, off = found_servers()
    found = next((one for one in servers if one.name == name), None)
    if found is None and name in dict(off):
        raise ConfigError(f"{name} is disabled", hint="Remove `enabled: false` from its settings.")
    if found is None:
        raise _unknown(name, [one.name for one in servers])
    return asyncio.run(show_server(found, accept=accept))


def _try(settings: ServerSettings) -> int:

    server = make_server(settings, Path.cwd(), state_folder(os.environ), os.environ)
    if settings.auth:
        from bridle.cli.commands.mcp.login import sign_in

        return asyncio.run(sign_in(server))
    return asyncio.run(show_server(server, accept=True))


async def connect_all(servers: list[Server]) -> None:
    """Connect to all of them at once; errors are in their `problem`."""

    async def connect(server: Server) -> None:
        try:
            await server.connect()
        except AgentError as error:
            server.problem = server.problem or error.message
        finally:
            await server.close()

    await asyncio.gather(*map(connect, servers))


async def show_server(server: Server, *, accept: bool) -> int:
    """Connect to a server, and show its tools."""
    paint, began = paint_for(sys.stdout), time.monotonic()
    is_new = not server.is_known
    try:
        if accept:
            server.accept_files()  # before it is started, because changed files would prevent that
        await server.connect()
        took = time.monotonic() - began
        usable = [one for one in server.definitions.values() if not one.problem]
        count = quantity(len(usable), "tool")
        click.echo(f"{paint.bold(server.name)}  {count}  {took:.1f} s")
        _show(server, paint)
        if accept:
            _accept(server, {} if is_new else dict(server.pinned))
    except AgentError as error:
        hint = "Check its command or URL, and what it needs to start."
        complain(error.message, error.hint or hint)
        return FAILED
    finally:
        await server.close()
    return 0


def _accept(server: Server, before: dict[str, ToolDefinition]) -> None:
    """Accept its tools as they are now, and print what is new."""
    live = server.definitions
    new = [name for name in live if name not in before]
    other = [name for name, one in live.items() if before.get(name, one) != one]
    gone = [name for name in before if name not in live]
    server.accept()
    kinds = (("new", new), ("changed", other), ("removed", gone))
    said = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds if names)
    if said:
        print_result(f"accepted the tools of {server.name}: {one_line(plain(said), 400)}")
    else:
        print_result(f"the tools of {server.name} have not changed since they were accepted")


def _show(server: Server, paint: Paint) -> None:

    for tool in Servers([server]).usable_tools(server)[:_SHOWN]:
        said = paint.yellow(f"  {plain(tool.warning)}") if tool.warning else ""
        about = paint.dim(one_line(tool.description, 80))
        click.echo(f"  {paint.cyan(tool.name)}  {about}{said}")
    if len(server.definitions) > _SHOWN:
        click.echo(f"  … and {len(server.definitions) - _SHOWN} more")
    for one in server.definitions.values():
        if one.problem:
            said = f"  {one_line(one.name, 60)} is not offered: {one.problem}"
            click.echo(paint.yellow(plain(said)))
