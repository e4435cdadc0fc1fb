"""Run bridle as an MCP server; what its tools do is `bridle.server.mcp`."""

import asyncio
import os
import secrets
import signal
import stat
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from bridle.cli.setup import Setup
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.distribution import install_hint
from bridle.engine.budget import Limits
from bridle.engine.engine import Engine
from bridle.engine.engine_config import OnAsk
from bridle.errors import ConfigError, MissingExtra, UsageError
from bridle.policy import Mode
from bridle.runtime.inbox_sender import send_message
from bridle.server.mcp.session_views import FACE, SessionViews
from bridle.server.mcp.tasks import TaskLimits, Tasks
from bridle.server.mcp.tools import TaskTools
from bridle.workspace.text import one_line

_MIN_TOKEN = 16  # characters


def serve_tasks(flags: dict[str, Any]) -> int:
    """Serve until the client or a signal ends it, and return the exit code."""
    setup = Setup(flags)
    if setup.settings.mode == "auto":
        raise UsageError(
            "the mode auto is not allowed: the tasks of another agent would need no approval",
            hint="Use --mode edits, and allow more with rules.",
        )
    return run_async(_serve(setup, flags))


async def _serve(setup: Setup, flags: dict[str, Any]) -> int:
    tasks, server = _make_server(setup, answers=flags["allow_answers"])
    work = _over_http(server, flags) if flags["http"] else _over_pipes(server, tasks)
    serving = asyncio.ensure_future(work)

    def stop() -> None:
        tasks.closing = True
        serving.cancel()

    try:
        with on_signals(stop, signal.SIGINT, *END_SIGNALS):
            await asyncio.wait([serving])
            await tasks.close()
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
    return 0


def _make_server(setup: Setup, *, answers: bool) -> tuple[Tasks, Any]:
    """Return the tasks, and a server that offers them. Raise `MissingExtra`."""
    try:
        from bridle.server.mcp.server import create_server
    except ImportError as problem:
        raise MissingExtra(
            "the official SDK of MCP is not installed", problem, hint=install_hint("mcp")
        ) from problem

    def open_engine(mode: Mode, on_ask: OnAsk, caps: TaskLimits) -> Engine:
        narrow = narrowed_setup(setup, mode, caps)
        return narrow.engine(narrow.provider(), None, FACE, on_ask=on_ask)

    tasks = Tasks(open_engine, setup.settings.mode)
    views = SessionViews(setup.folder, setup.workspace)
    verbs = TaskTools(tasks, views, lambda session, one: send_message(setup.folder, session, one))
    return tasks, create_server(verbs.offers(answers=answers), _instructions(setup))


def narrowed_setup(setup: Setup, mode: Mode, caps: TaskLimits) -> Setup:
    """Return a copy with this mode, and with the smaller one of each pair of limits."""

    def least(one: Any, other: Any) -> Any:
        return min((value for value in (one, other) if value is not None), default=None)

    own = setup.settings.limits
    limits = replace(
        own,
        max_steps=least(own.max_steps or Limits().max_steps, caps.max_steps),
        max_seconds=least(own.max_seconds, caps.max_seconds),
        max_turn_tokens=least(own.max_turn_tokens, caps.max_turn_tokens),
        max_cost=least(own.max_cost, caps.max_cost),
    )
    narrow = copy(setup)
    narrow.settings = replace(setup.settings, mode=mode, limits=limits)
    return narrow


def _instructions(setup: Setup) -> str:
    return (
        f"bridle runs tasks in {one_line(str(setup.workspace), 200)}. What it may not do by itself "
        "needs approval by a person. A task that needs approval is returned as parked; call "
        "run_task again with its session to continue it."
    )


async def _over_pipes(server: Any, tasks: Tasks) -> None:
    from bridle.server.mcp.stdio import StdioTransport, take_pipes

    def on_end() -> None:
        tasks.closing = True

    await StdioTransport(*take_pipes(), on_end).serve(server)


async def _over_http(server: Any, flags: dict[str, Any]) -> None:
    from bridle.server.mcp.http import PATH, HttpTransport, application, bind

    token, note = read_or_make_token(flags["token_file"])
    with bind(flags["port"]) as listening:
        port = listening.getsockname()[1]
        click.echo(f"listening on http://127.0.0.1:{port}{PATH}", err=True)
        click.echo(f"token: {note}", err=True)
        await HttpTransport(application(server, port, token), listening).serve()


def read_or_make_token(path: str | None) -> tuple[str, str]:
    """Return the token, and what to print about it. Raise `ConfigError`."""
    if path is None:
        token = secrets.token_urlsafe(32)
        return token, f"{token}  (shown only this once)"
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
    return _read_token(Path(path)), f"in {path}"


def _read_token(path: Path) -> str:
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigError(
            f"{path} contains the token, but others can read it", hint=f"Run: chmod 600 {path}"
        )
    token = path.read_text("utf-8", errors="replace").strip()
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"{path} does not contain a token",
            hint=f"Write one line of at least {_MIN_TOKEN} characters there, or delete the file.",
        )
    return token
