"""`bridle mcp add`, `remove` and `test`: one server, tried before it is relied on."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.exit_codes import FAILED, complain
from bridle.cli.style import Paint, paint_for, plain
from bridle.cli.told import tell
from bridle.errors import AgentError, ConfigError
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.config.mcp import ServerSettings
    from bridle.tools.mcp.server import Server
    from bridle.tools.mcp.tool import ToolDefinition

_SHOWN = 60


@click.command("add", context_settings={"ignore_unknown_options": False})
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="URL | -- COMMAND…")
@click.option("--env", "-e", multiple=True, metavar="NAME=VALUE", help="For a command; repeatable.")
@click.option("--header", "-H", multiple=True, metavar="'NAME: VALUE'", help="For a URL.")
@click.option("--oauth", is_flag=True, help="For a URL: sign in there with a browser.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(file_okay=False),
    default="",
    help="Where a command runs.",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="How long its start may take.")
@click.option("--no-test", is_flag=True, help="Write it down without trying it.")
def add(
    name: str, words: tuple[str, ...], timeout: float | None, no_test: bool, **rest: Any
) -> int:
    """Set up the server NAME: a command, or an address.

    Values may name variables, '${GITHUB_TOKEN}': then your settings hold the name and not the
    secret. The server is started once, and its tools are shown; what it says of them is remembered,
    and where that changes you are asked again.
    """
    from bridle.config.mcp import add_server, check_name
    from bridle.config.paths import config_file

    check_name(name)
    settings = _settings(name, words, timeout, rest)
    if not no_test:
        code = _try(settings)
        if code:
            complain(f"{name} was not set up", "Fix it, or save it anyway with --no-test.")
            return code
    path = config_file(os.environ)
    add_server(path, settings)
    tell(f"{name} is set up, in {path}", f"Allow a tool for good: allow: mcp__{name}__TOOL")
    return 0


def _settings(
    name: str, words: tuple[str, ...], timeout: float | None, rest: dict[str, Any]
) -> "ServerSettings":
    """What was said on the command line, read as the file would be. Raise `ConfigError`."""
    import json

    from bridle.config.mcp import parse_own_servers

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
        raise click.UsageError(f"--{other} is not for this kind of server")
    if timeout is not None:
        said["timeout"] = timeout
    text = json.dumps({"mcp": {"servers": {name: said}}}, ensure_ascii=False)
    (found,) = parse_own_servers(text, Path("the command line"))
    return found


def _pairs(given: "str | tuple[str, ...]", mark: str, how: str) -> dict[str, str]:
    found = {}
    for one in given:
        key, there, value = one.partition(mark)
        if not there:
            raise click.UsageError(f"write {how}")
        found[key.strip()] = value.strip()
    return found


@click.command("remove")
@click.argument("name")
def remove(name: str) -> int:
    """Take the server NAME out of your settings, and forget what was known of it."""
    from bridle.config.mcp import own_servers, remove_server
    from bridle.config.paths import config_file, state_folder
    from bridle.runtime.mcp import PINS, make_spec, tokens_path
    from bridle.tools.mcp.pins import Pins

    path = config_file(os.environ)
    known = {one.name: one for one in own_servers(path)}
    if not remove_server(path, name):
        raise _unknown(name, list(known))
    spec, state = make_spec(known[name], Path.cwd(), os.environ), state_folder(os.environ)
    Pins(str(state / PINS), name, spec.identity).remove()
    Path(tokens_path(spec, state)).unlink(missing_ok=True)
    tell(f"{name} is taken out of {path}")
    return 0


def _unknown(name: str, known: list[str]) -> ConfigError:
    hint = f"There are {', '.join(known)}." if known else "None is set up: bridle mcp add."
    return ConfigError(f"there is no MCP server {plain(name)!r} in your settings", hint=hint)


@click.command("test")
@click.argument("name")
@click.option("--accept", is_flag=True, help="Take its tools as they are now for what they are.")
def test(name: str, accept: bool) -> int:
    """Connect to the server NAME: its tools, how long it took, and what is wrong with it."""
    from bridle.cli.mcp import found_servers

    servers, off = found_servers()
    found = next((one for one in servers if one.name == name), None)
    if found is None and name in dict(off):
        raise ConfigError(f"{name} is switched off", hint="Take `enabled: false` out.")
    if found is None:
        raise _unknown(name, [one.name for one in servers])
    return asyncio.run(examined(found, accept=accept))


def _try(settings: "ServerSettings") -> int:
    from bridle.config.paths import state_folder
    from bridle.runtime.mcp import make_server

    server = make_server(settings, Path.cwd(), state_folder(os.environ), os.environ)
    if settings.auth:
        from bridle.cli.mcp_login import sign_in

        return asyncio.run(sign_in(server))
    return asyncio.run(examined(server, accept=True))


async def connect_all(servers: "list[Server]") -> None:
    """Connect them side by side; what went wrong is in their `trouble`."""

    async def connect(server: "Server") -> None:
        try:
            await server.connect()
        except AgentError as error:
            server.problem = server.problem or error.message
        finally:
            await server.close()

    await asyncio.gather(*map(connect, servers))


async def examined(server: "Server", *, accept: bool) -> int:
    """Connect, and show what there is to see."""
    paint, began = paint_for(sys.stdout), time.monotonic()
    is_new = not server.is_known
    try:
        if accept:
            server.accept_files()  # before it is started: it is not, where they are others
        await server.connect()
        took = time.monotonic() - began
        usable = [one for one in server.definitions.values() if not one.problem]
        count = quantity(len(usable), "tool")
        click.echo(f"{paint.bold(server.name)}  {count}  {took:.1f} s")
        _show(server, paint)
        if accept:
            _accept(server, {} if is_new else dict(server.pinned))
    except AgentError as error:
        look = "Check its command or address, and what it needs to start."
        complain(error.message, error.hint or look)
        return FAILED
    finally:
        await server.close()
    return 0


def _accept(server: "Server", before: "dict[str, ToolDefinition]") -> None:
    """Take its tools for what they are, and say what is accepted that was not before."""
    from bridle.workspace.text import one_line

    live = server.definitions
    new = [name for name in live if name not in before]
    other = [name for name, one in live.items() if before.get(name, one) != one]
    gone = [name for name in before if name not in live]
    server.accept()
    kinds = (("new", new), ("changed", other), ("gone", gone))
    said = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds if names)
    if said:
        tell(f"accepted the tools of {server.name}: {one_line(plain(said), 400)}")
    else:
        tell(f"the tools of {server.name} are those that were accepted before")


def _show(server: "Server", paint: Paint) -> None:
    from bridle.tools.mcp.servers import Servers
    from bridle.workspace.text import one_line

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
