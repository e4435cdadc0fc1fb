"""`bridle mcp serve`: bridle as an MCP server, over its standard input and output or over HTTP.

Options and the way from them to a server; what the tools do is `bridle.server.mcp`.
"""

import os
import stat
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import turn_options

if TYPE_CHECKING:
    from bridle.cli.setup import Setup
    from bridle.engine.engine import Engine
    from bridle.engine.engine_config import OnAsk
    from bridle.policy import Mode
    from bridle.server.mcp.tasks import Caps, Tasks

_UNFIT = ("go_on", "resume", "thinking", "yes", "worktree")  # a task names its own session
_SHORTEST = 16  # characters of a token


@click.command("serve")
@turn_options
@click.option("--http", is_flag=True, help="Streamable HTTP on 127.0.0.1 instead of stdio.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="The port for --http. Default: one that is free.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Read the token for --http from FILE; written where there is none. "
    "Default: a new one, shown once on stderr.",
)
@click.option(
    "--allow-answers",
    is_flag=True,
    help="Offer answer_approval, so that the client's agent can answer questions. "
    "Without it a person answers: `bridle approvals`.",
)
def serve(**flags: Any) -> int:
    """Let another agent hand tasks to bridle, as an MCP server.

    Tasks run in the workspace, with the rules, the limits and at most the mode given here. What
    they may not do by themselves waits for a person (`bridle approvals`).
    """
    from bridle.cli.setup import Setup
    from bridle.cli.signals import run_async

    setup = Setup(flags)
    if setup.settings.mode == "auto":
        raise click.UsageError(
            "with the mode auto another agent's tasks would be asked about nothing\n"
            "Choose --mode edits, and allow more by rules."
        )
    if (flags["port"] or flags["token_file"]) and not flags["http"]:
        raise click.UsageError("--port and --token-file go with --http")
    return run_async(_serve(setup, flags))


serve.params = [one for one in serve.params if one.name not in _UNFIT]


async def _serve(setup: "Setup", flags: dict[str, Any]) -> int:
    import asyncio
    import signal

    from bridle.cli.signals import END_SIGNALS, on_signals

    tasks, server = _assembled(setup, answers=flags["allow_answers"])
    way = _over_http(server, tasks, flags) if flags["http"] else _over_pipes(server, tasks)
    serving = asyncio.ensure_future(way)

    def leave() -> None:
        tasks.closing = True
        serving.cancel()

    try:
        with on_signals(leave, signal.SIGINT, *END_SIGNALS):
            await asyncio.wait([serving])
            await tasks.close()
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
    return 0


def _assembled(setup: "Setup", *, answers: bool) -> "tuple[Tasks, Any]":
    """The tasks, and a server that offers them. Raise `MissingExtra`."""
    from bridle.distribution import install_hint
    from bridle.errors import MissingExtra
    from bridle.runtime.inbox_sender import send_message
    from bridle.server.mcp.session_views import FACE, Views
    from bridle.server.mcp.tasks import Tasks
    from bridle.server.mcp.tools import Verbs

    try:
        from bridle.server.mcp.server import serving
    except ImportError as problem:
        raise MissingExtra(
            "the official SDK of MCP is not installed",
            problem,
            hint=install_hint("mcp"),
        ) from problem

    def opening(mode: "Mode", on_ask: "OnAsk", caps: "Caps") -> "Engine":
        mine = narrowed(setup, mode, caps)
        return mine.engine(mine.provider(), None, FACE, on_ask=on_ask)

    tasks = Tasks(opening, setup.settings.mode)
    seen = Views(setup.folder, setup.workspace)
    verbs = Verbs(tasks, seen, lambda session, letter: send_message(setup.folder, session, letter))
    return tasks, serving(verbs.offers(answers=answers), _instructions(setup))


def narrowed(setup: "Setup", mode: "Mode", caps: "Caps") -> "Setup":
    """The same, with this mode, and with limits of which each is the smaller one."""
    from msgspec.structs import replace

    from bridle.engine.budget import Limits

    def least(one: Any, other: Any) -> Any:
        return min((value for value in (one, other) if value is not None), default=None)

    has = setup.settings.limits
    limits = replace(
        has,
        max_steps=least(has.max_steps or Limits().max_steps, caps.max_steps),
        max_seconds=least(has.max_seconds, caps.max_seconds),
        max_turn_tokens=least(has.max_turn_tokens, caps.max_turn_tokens),
        max_cost=least(has.max_cost, caps.max_cost),
    )
    mine = copy(setup)
    mine.settings = replace(setup.settings, mode=mode, limits=limits)
    return mine


def _instructions(setup: "Setup") -> str:
    from bridle.workspace.text import one_line

    return (
        f"bridle carries out tasks in {one_line(str(setup.workspace), 200)}. It asks a person "
        "before what it may not do by itself; a task that waits for such an answer comes back as "
        "parked, and goes on when run_task is called again with its session."
    )


async def _over_pipes(server: Any, tasks: "Tasks") -> None:
    from bridle.server.mcp.stdio import Pipes, take_pipes

    def ended() -> None:
        tasks.closing = True

    await Pipes(*take_pipes(), ended).serve(server)


async def _over_http(server: Any, tasks: "Tasks", flags: dict[str, Any]) -> None:
    from bridle.server.mcp.http import PATH, Web, application, bound

    token, shown = token_of(flags["token_file"])
    with bound(flags["port"]) as listening:
        port = listening.getsockname()[1]
        click.echo(f"listening on http://127.0.0.1:{port}{PATH}", err=True)
        click.echo(f"token: {shown}", err=True)
        await Web(application(server, port, token), listening).serve()


def token_of(path: str | None) -> tuple[str, str]:
    """The token, and what is said about it. Raise `ConfigError`."""
    import secrets

    if path is None:
        token = secrets.token_urlsafe(32)
        return token, f"{token}  (shown this once)"
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
    return _read_token(Path(path)), f"in {path}"


def _read_token(path: Path) -> str:
    from bridle.errors import ConfigError

    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigError(
            f"others can read {path}, and the token is in it", hint=f"Run: chmod 600 {path}"
        )
    token = path.read_text("utf-8", errors="replace").strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"there is no token in {path}",
            hint=f"Put one line of at least {_SHORTEST} letters there, or remove the file.",
        )
    return token
