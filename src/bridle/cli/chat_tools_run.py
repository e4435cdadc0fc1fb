"""Serve the tools of the task chat as an MCP server; what they do is `bridle.chat`.

Calls must be signed with the secret that the chat server has, too. With `--user`, all calls are for
that user.
"""

import asyncio
import os
import secrets
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from bridle.chat.db import Database
from bridle.chat.tasks.tools import TASKS
from bridle.chat.tools.identity import Binding, Signer
from bridle.chat.tools.mcp_server import ToolServer
from bridle.chat.tools.toolbox import Toolbox
from bridle.cli.commands.chat_tools import DATABASE, SECRET
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.config.paths import state_folder
from bridle.errors import ConfigError, UsageError
from bridle.server.mcp.http import PATH, HttpTransport, bind, with_token_check
from bridle.server.mcp.stdio import StdioTransport, take_pipes

_MIN_SECRET = 16  # characters


def serve_tools(flags: dict[str, Any]) -> int:
    """Serve until the client or a signal ends it, and return the exit code."""
    return run_async(_serve(flags))


async def _serve(flags: dict[str, Any]) -> int:
    signer, binding = _identity(flags)
    tools, close = await asyncio.to_thread(_open_tools, flags)
    server = tools.sdk_server(signer=None if binding else signer, binding=binding)
    if flags["port"] is None:
        work = _over_pipes(server)
    else:
        work = _over_http(server, flags["port"], signer.token, show_token=binding is not None)
    serving = asyncio.ensure_future(work)
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


def _identity(flags: dict[str, Any]) -> tuple[Signer, Binding | None]:
    """Return what checks signatures, and the user if there is only one. Raise `ConfigError`."""
    binding = None
    secret = _secret(flags["secret_file"])
    if flags["user"]:
        binding = Binding(flags["user"], timezone=_zone(flags["timezone"]))
        secret = secret or secrets.token_hex(32)
    if not secret:
        raise ConfigError(
            "there is no secret to check calls with",
            hint=f"Set {SECRET}, or use --secret-file, or --user to serve one user.",
        )
    if len(secret) < _MIN_SECRET:
        raise ConfigError(
            f"the secret has fewer than {_MIN_SECRET} characters", hint="Use a longer one."
        )
    return Signer(secret), binding


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f"there is no time zone {name!r}", hint="Use a name such as Europe/Lisbon."
        ) from None


def _secret(path: str | None) -> str:
    if path is None:
        return os.environ.get(SECRET, "").strip()
    try:
        if stat.S_IMODE(Path(path).stat().st_mode) & 0o077:
            raise ConfigError(
                f"{path} contains the secret, but others can read it", hint=f"Run: chmod 600 {path}"
            )
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the secret in {path} cannot be read: {error}", error) from error


def _open_tools(flags: dict[str, Any]) -> tuple[ToolServer, Callable[[], None]]:
    """Return the tools, and what closes their database, which is created if needed."""
    toolbox = _toolbox(flags["tools"])
    url = flags["database"] or os.environ.get(DATABASE)
    database = Database(url or str(state_folder(os.environ) / "chat.db"))
    database.migrate()
    return ToolServer(toolbox, database.session_factory), database.close


def _toolbox(name: str) -> Toolbox:
    """Return the toolbox of that name, or the task tools. Raise `ConfigError`."""
    if not name:
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
    await StdioTransport(*take_pipes(), lambda: None).serve(server)


async def _over_http(server: Any, port: int, token: str, *, show_token: bool) -> None:
    with bind(port) as listening:
        port = listening.getsockname()[1]
        app = server.streamable_http_app(
            streamable_http_path=PATH, stateless_http=True, json_response=True
        )
        click.echo(f"listening on http://127.0.0.1:{port}{PATH}", err=True)
        if show_token:  # for the clients of one user; the chat server derives it from the secret
            click.echo(f"token: {token}", err=True)
        await HttpTransport(with_token_check(app, port, token), listening).serve()
