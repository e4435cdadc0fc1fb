"""`bridle chat-tools`: the tools of the chat as an MCP server, over stdio or streamable HTTP.

Options and the way from them to a server; what the tools do is `bridle.chat`. Calls have to be
signed with the secret that the chat server has, too; with --user everything is that one user's.
"""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.errors import ConfigError, MissingExtra, UsageError

if TYPE_CHECKING:
    from bridle.chat.tools.identity import Binding, Signer
    from bridle.chat.tools.mcp_server import ToolServer
    from bridle.chat.tools.toolbox import Toolbox

_SECRET = "BRIDLE_CHAT_SECRET"
_DATABASE = "BRIDLE_CHAT_DATABASE"


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
    help=f"SQLite file or PostgreSQL URL. Default: ${_DATABASE}, or a file in the state folder.",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help=f"Read the secret that signs calls from FILE. Default: ${_SECRET}.",
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
    from bridle.cli.signals import run_async

    return run_async(_serve(flags))


async def _serve(flags: dict[str, Any]) -> int:
    import asyncio
    import signal

    from bridle.cli.signals import END_SIGNALS, on_signals

    seal, bound = _vouched(flags)
    tools, close = await asyncio.to_thread(_tools, flags)
    server = tools.protocol(seal=None if bound else seal, bound=bound)
    if flags["port"] is None:
        way = _over_pipes(server)
    else:
        way = _over_http(server, flags["port"], seal.token, shown=bound is not None)
    serving = asyncio.ensure_future(way)
    try:
        with on_signals(serving.cancel, signal.SIGINT, *END_SIGNALS):
            await asyncio.wait([serving])
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        await tools.close()
        close()
    return 0


def _vouched(flags: dict[str, Any]) -> "tuple[Signer, Binding | None]":
    """What signs calls, and whose they all are where they are one user's. Raise `ConfigError`."""
    import secrets

    from bridle.chat.tools.identity import Binding, Signer

    bound = None
    secret = _secret(flags["secret_file"])
    if flags["user"]:
        bound = Binding(flags["user"], timezone=_zone(flags["timezone"]))
        secret = secret or secrets.token_hex(32)
    if not secret:
        raise ConfigError(
            "there is no secret to check calls with",
            hint=f"Set {_SECRET}, or use --secret-file, or --user to serve one user.",
        )
    if len(secret) < 16:
        raise ConfigError("the secret has fewer than 16 characters", hint="Use a longer one.")
    return Signer(secret), bound


def _zone(name: str) -> str:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f"there is no time zone {name!r}", hint="Use a name such as Europe/Lisbon."
        ) from None


def _secret(path: str | None) -> str:
    if path is None:
        return os.environ.get(_SECRET, "").strip()
    try:
        if stat.S_IMODE(Path(path).stat().st_mode) & 0o077:
            raise ConfigError(
                f"{path} contains the secret, but others can read it", hint=f"Run: chmod 600 {path}"
            )
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the secret in {path} cannot be read: {error}", error) from error


def _tools(flags: dict[str, Any]) -> "tuple[ToolServer, Any]":
    """The tools over the database, which is made where there is none. Raise `MissingExtra`."""
    from bridle.config.paths import state_folder
    from bridle.distribution import install_hint

    try:
        from bridle.chat.db import Database
        from bridle.chat.tools.mcp_server import ToolServer

        toolbox = _toolbox(flags["tools"])
    except ModuleNotFoundError as problem:
        if problem.name and problem.name.partition(".")[0] in ("mcp", "sqlmodel", "sqlalchemy"):
            raise MissingExtra(
                "the chat's packages are not installed",
                problem,
                hint=install_hint("chat"),
            ) from problem
        raise
    url = flags["database"] or os.environ.get(_DATABASE)
    database = Database(url or str(state_folder(os.environ) / "chat.db"))
    database.migrate()
    return ToolServer(toolbox, database.session_factory), database.close


def _toolbox(name: str) -> "Toolbox":
    """The toolbox of that name, or the tasks. Raise `ConfigError`."""
    from importlib import import_module

    from bridle.chat.tools.toolbox import Toolbox

    if not name:
        from bridle.chat.tasks.tools import TASKS

        return TASKS
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # a project is used from its own folder
    try:
        found = getattr(import_module(module), attribute or "toolbox", None)
    except (ModuleNotFoundError, ValueError) as error:
        raise ConfigError(f"there is no module {module}", error) from error
    if not isinstance(found, Toolbox):
        raise ConfigError(f"{name} is not a toolbox", hint="Write MODULE:NAME.")
    return found


async def _over_pipes(server: Any) -> None:
    from bridle.server.mcp.stdio import Pipes, take_pipes

    await Pipes(*take_pipes(), lambda: None).serve(server)


async def _over_http(server: Any, port: int, token: str, *, shown: bool) -> None:
    from bridle.server.mcp.http import PATH, Web, bound, guarded

    with bound(port) as listening:
        port = listening.getsockname()[1]
        app = server.streamable_http_app(
            streamable_http_path=PATH, stateless_http=True, json_response=True
        )
        click.echo(f"listening on http://127.0.0.1:{port}{PATH}", err=True)
        if shown:  # for any client of that one user; the chat server makes its own of the secret
            click.echo(f"token: {token}", err=True)
        await Web(guarded(app, port, token), listening).serve()
