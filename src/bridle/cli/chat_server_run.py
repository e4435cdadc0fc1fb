"""The life of a chat's server at the command line: put together, announced, stopped by a signal."""

import asyncio
import os
import secrets
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from bridle import __version__
from bridle.cli.chat_server_setup import (
    check_installed,
    check_model,
    database_url,
    log_file,
    named_database,
    secret_of,
)
from bridle.cli.commands.chat_server import A_MINUTE
from bridle.cli.exit_codes import INTERRUPTED
from bridle.cli.server_log import logged
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.cli.style import paint_for
from bridle.errors import ConfigError, UsageError
from bridle.workspace.text import flat

if TYPE_CHECKING:
    from bridle.server.chat.app import ChatLifecycle, ChatServer, ChatSettings

_DEADLINE = 10.0  # seconds that an orderly stop may take
_DEMO_HOURS = 12


def serve(flags: dict[str, Any]) -> int:
    """Until somebody stops it."""
    check_installed()
    if flags["jwks"] and flags["secret_file"]:
        raise UsageError(
            "--jwks and --secret-file cannot be combined", hint="Leave out one of them."
        )
    if flags["app"] and (flags["a_day"] or flags["a_minute"] != A_MINUTE):
        raise UsageError(
            "--messages-a-minute and --dollars-a-day cannot be combined with --app",
            hint="The app sets its own limits: ChatApp(…, service_limits=…).",
        )
    _check_reach(flags)
    with _database(flags) as url:
        setup = setup_of(flags, url)
        if not (flags["demo"] or flags["app"]):
            check_model(flags["model"])
        if flags["workers"] > 1:
            return _serve_workers(flags, setup)
        return run_async(_serve(flags, setup))


def _database(flags: dict[str, Any]) -> AbstractContextManager[str]:
    if not flags["demo"]:
        url = "" if flags["app"] and not named_database(flags) else database_url(flags["database"])
        return nullcontext(url)
    if flags["jwks"]:
        raise UsageError("--demo has its own users", hint="Leave out --jwks.")
    from bridle.cli.chat_server_demo import demo_database

    return demo_database(flags["database"], tasks=not flags["app"])


def setup_of(flags: dict[str, Any], url: str) -> "ChatSettings":
    """The settings of a chat. A demo that is named no secret has one of its own."""
    from bridle.server.chat.app import ChatSettings

    demo = flags["demo"]
    if flags["jwks"]:
        secret = ""
    elif demo and not flags["secret_file"]:
        secret = secrets.token_hex(32)
    else:
        secret = secret_of(flags["secret_file"])
    return ChatSettings(
        database=url,
        secret=secret,
        jwks=flags["jwks"] or "",
        audience=flags["audience"],
        issuer=flags["issuer"],
        model=flags["model"] or ("offline" if demo else ""),
        app=flags["app"],
        a_minute=flags["a_minute"],
        a_day=flags["a_day"],
        host=flags["host"],
        allowed=tuple(flags["allowed"]),
        log=str(log_file()),
    )


def _check_reach(flags: dict[str, Any]) -> None:
    """Beyond this machine only with a key that somebody chose."""
    from bridle.server.http import check_listen_address

    try:
        check_listen_address(flags["host"], explicit=bool(flags["secret_file"] or flags["jwks"]))
    except ConfigError as error:
        raise ConfigError(
            error.message,
            hint="Choose a secret (--secret-file, or --jwks), or use 127.0.0.1.",
        ) from error


def _serve_workers(flags: dict[str, Any], setup: "ChatSettings") -> int:
    """Serve with several processes. What would keep them from starting is an error here."""
    from bridle.cli.chat_workers import run_workers
    from bridle.server.chat.app import create_chat_server
    from bridle.server.http import bind

    with bind(setup.host, flags["port"]) as listening, logged(log_file()):
        setup = replace(setup, port=listening.getsockname()[1])
        asyncio.run(_try(create_chat_server(setup)))
        announce(setup, flags)
        if not run_workers(setup, listening, flags["workers"]):
            raise ConfigError("no worker process of the chat started", hint=f"See {log_file()}.")
    return 0


async def _try(server: "ChatServer") -> None:
    """Start a chat and stop it. Raise what would be wrong with it."""
    try:
        await server.room.app.start()
    finally:
        await server.room.app.close()


async def _serve(flags: dict[str, Any], setup: "ChatSettings") -> int:
    from bridle.server.chat.app import ChatLifecycle, create_chat_server
    from bridle.server.http import bind

    with bind(setup.host, flags["port"]) as listening, logged(log_file()):
        setup = replace(setup, port=listening.getsockname()[1])
        serving = ChatLifecycle(create_chat_server(setup), listening)
        return await _lived(serving, setup, flags)


async def _lived(serving: "ChatLifecycle", setup: "ChatSettings", flags: dict[str, Any]) -> int:
    """Start it, say so, and wait for a signal; whatever comes, it is stopped in the end."""
    asked = asyncio.Event()

    def pulled() -> None:
        if asked.is_set():
            os._exit(INTERRUPTED)  # what was accepted is in the database
        asked.set()

    with on_signals(pulled, signal.SIGINT, *END_SIGNALS):
        waiting = asyncio.ensure_future(asked.wait())
        try:
            if await _first(asyncio.ensure_future(serving.start()), waiting):
                announce(setup, flags)
                await _first(asyncio.ensure_future(serving.ended()), waiting)
        finally:
            if asked.is_set() and sys.stderr.isatty():
                click.echo("\nstopping; press Ctrl-C again to stop at once", err=True)
            waiting.cancel()
            await serving.stop(_DEADLINE)
    return 0


async def _first(work: "asyncio.Future[None]", waiting: "asyncio.Future[Any]") -> bool:
    """Wait for either; was it the work that ended? One that is not done is given up."""
    await asyncio.wait([work, waiting], return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
        return True
    work.cancel()
    await asyncio.wait([work])
    return False


def announce(setup: "ChatSettings", flags: dict[str, Any]) -> None:
    """What a person needs to know, and nothing else."""
    paint = paint_for(sys.stdout)
    host = f"[{setup.host}]" if ":" in setup.host else setup.host
    base = f"http://{host}:{setup.port}"
    rows = _demo_links(setup, base) if flags["demo"] else _entrance(setup, base)
    rows += [
        ("database", "temporary, for this demo" if _is_passing(flags) else _shown(setup)),
        ("model", flat(_model(setup))),
        ("workers", str(flags["workers"])),
        ("log", flat(setup.log)),
        ("stop", "Ctrl-C" if _is_passing(flags) else "Ctrl-C; everything is stored"),
    ]
    click.echo(f"{paint.bold('bridle')} {__version__} serves a chat on {base}\n")
    for name, said in rows:
        shown = paint.cyan(said) if said.startswith("http") else said
        click.echo(f"  {paint.dim(name.ljust(9))} {shown}")
    click.echo("")
    sys.stdout.flush()


def _is_passing(flags: dict[str, Any]) -> bool:
    return bool(flags["demo"] and not flags["database"])


def _entrance(setup: "ChatSettings", base: str) -> list[tuple[str, str]]:
    if setup.jwks:
        return [
            ("open", f"{base}/chat"),
            ("", "users sign in with tokens of your identity provider"),
        ]
    return [
        ("open", f"{base}/chat"),
        ("", "to create a user's token: bridle chat-server token NAME"),
    ]


def _demo_links(setup: "ChatSettings", base: str) -> list[tuple[str, str]]:
    """An address for each of them; what stands behind the # is sent to no server."""
    from bridle.cli.chat_server_demo import USERS
    from bridle.server.chat.jwt import SharedSecret

    mint = SharedSecret(setup.secret).mint
    seconds = _DEMO_HOURS * 3600
    return [(user, f"{base}/chat#token={mint(user, seconds, setup.audience)}") for user in USERS]


def _shown(setup: "ChatSettings") -> str:
    from bridle.chat.db.engine import parse_url

    if not setup.database:
        return f"chosen by {setup.app}"
    return flat(parse_url(setup.database).render_as_string(hide_password=True))


def _model(setup: "ChatSettings") -> str:
    if setup.app:
        return f"chosen by {setup.app}"
    from bridle.chat.engine import choose_provider
    from bridle.chat.tasks.profile import task_profile

    label = choose_provider(setup.model or None, task_profile()).info.label
    return "rules, no language model" if label.startswith("responder/") else label
