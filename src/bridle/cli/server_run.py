"""A server's life at the command line: put together, announced, stopped by a signal.

What is served is `bridle.server`; here it gets its settings, its socket and its log.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridle import __version__
from bridle.cli.background_server import settings_digest
from bridle.cli.browser import redirect_file
from bridle.cli.commands.serve import server_folder
from bridle.cli.exit_codes import INTERRUPTED, complain
from bridle.cli.server_log import logged
from bridle.cli.server_setup import FACE, ChoiceList, allowed_choices, engine_factory
from bridle.cli.setup import Setup
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.cli.style import paint_for
from bridle.cli.whereabouts import recorded
from bridle.config.paths import state_folder
from bridle.config.settings import Settings
from bridle.errors import ConfigError, MissingKey, MissingModel, UsageError
from bridle.runtime import find_provider
from bridle.server import check_installed
from bridle.workspace.text import flat

if TYPE_CHECKING:
    from bridle.server.context import ServerContext
    from bridle.server.http import ServerLifecycle
    from bridle.server.login import Authenticator
    from bridle.server.middleware import Limits
    from bridle.service.choices import AllowedChoices

_DEADLINE = 10.0  # seconds that an orderly stop may take
_SHORTEST = 16  # characters of a token
LOG = "log"
_REACH = (  # who comes in, and where; what turns do is the same
    *("host", "port", "allowed", "token", "token_file", "show_token", "open_browser"),
    *("workspace", "workspaces", "offered", "chat", "chat_database", "chat_secret_file"),
)


def serve(flags: dict[str, Any]) -> int:
    """Until somebody stops it."""
    check_installed()
    flags["workspaces"] = flags["workspaces"] or (str(Path.cwd().resolve()),)
    flags["workspace"] = flags["workspaces"][0]
    setup = Setup(flags)
    if setup.settings.mode == "auto":
        raise UsageError(
            "the mode auto is not allowed: everyone with a token could run anything",
            hint="Use --mode edits and rules. An admin can set auto for one session.",
        )
    return run_async(_serve(flags, setup, _model(setup)))


def _model(setup: Setup) -> str:
    """What answers, for the line that a person reads. Without a key prompts are refused."""
    if setup.agent != "loop":
        return setup.agent
    try:
        return find_provider(setup.settings).provider().info.label
    except (MissingKey, MissingModel) as error:
        complain(f"{error.message}; prompts that do not name a model will be refused", error.hint)
        return "none"


def show_token(flags: dict[str, Any]) -> int:
    """The person's own token, alone on standard output."""
    click.echo(door_of(flags).tokens.own)
    return 0


async def _serve(flags: dict[str, Any], setup: Setup, model: str) -> int:
    from bridle.cli.chat_server_beside import chat_beside
    from bridle.server.app import Application
    from bridle.server.auth import AllowedHosts
    from bridle.server.http import ServerLifecycle, bind, check_listen_address, process_limits

    host = flags["host"]
    check_listen_address(host, explicit=bool(flags["token"] or flags["token_file"]))
    door = door_of(flags)
    from bridle.server.middleware import Limits

    offer = allowed_choices(setup, flags["offered"], _face(flags))
    room = room_of(flags, setup.settings, door, process_limits(Limits()), offer)
    async with AsyncExitStack() as whole:
        listening = whole.enter_context(bind(host, flags["port"]))
        whole.enter_context(logged(server_folder() / LOG))
        address, port = listening.getsockname()[:2]
        names = AllowedHosts(port, host, flags["allowed"])
        chat = await whole.enter_async_context(chat_beside(flags, port))
        serving = ServerLifecycle(Application(room, names, mounted=chat), listening)
        await serving.start()
        base = f"http://{_shown(host)}:{port}"

        @contextmanager
        def running() -> Iterator[None]:
            folder = server_folder()
            with recorded(folder, address, port), redirect_file(folder, port) as show:
                announce(setup, base, f"{base}/#code={door.code()}", model, flags)
                if flags["open_browser"]:
                    entrance = f"{base}/#code={door.code()}"
                    asyncio.get_running_loop().run_in_executor(None, show, entrance)
                try:
                    yield
                finally:
                    if chat is not None:
                        chat.room.stop()

        return await stopped(serving, room, running=running)


async def stopped(
    serving: "ServerLifecycle",
    room: "ServerContext",
    idle: "asyncio.Event | None" = None,
    running: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> int:
    """Until a signal comes (or nothing is left to do), and everything is settled.

    `running` is entered once signals are heard, so that whoever is told that it runs can stop it,
    and left while it still listens.
    """
    asked = idle or asyncio.Event()
    again = False

    def pulled() -> None:
        nonlocal again
        if again:
            os._exit(INTERRUPTED)  # what was acknowledged is on disk; the rest is cut off
        again = True
        asked.set()

    with on_signals(pulled, signal.SIGINT, *END_SIGNALS):
        ended = asyncio.ensure_future(serving.ended())
        waiting = asyncio.ensure_future(asked.wait())
        try:
            with running():
                await asyncio.wait([ended, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if again and sys.stderr.isatty():
                click.echo("\nstopping; press Ctrl-C again to stop at once", err=True)
            waiting.cancel()
            await serving.stop(_DEADLINE)
            await room.sessions.engines.close()
            await asyncio.wait([ended, waiting])
    return 0


def door_of(flags: dict[str, Any]) -> "Authenticator":
    """Who may come in. Raise `ConfigError`, `MissingExtra`."""
    from bridle.server.login import Authenticator
    from bridle.server.tokens import Tokens

    own = flags["token"] or ""
    if own and (len(own) < _SHORTEST or not own.isascii() or not own.isprintable()):
        raise ConfigError(
            f"the token is too short: it needs at least {_SHORTEST} characters",
            hint="Leave out --token: a good one is created and stored for you.",
        )
    named = flags["token_file"]
    if named is not None and not Path(named).exists():
        raise ConfigError(
            f"there is no file {named}",
            hint="Create tokens with `bridle serve token add NAME`, and leave out --token-file.",
        )
    return Authenticator(Tokens(server_folder(), own, Path(named) if named else None))


def _face(flags: dict[str, Any]) -> str:
    """The name in which this server carries sessions: one with other rules has another."""
    deciding = {name: value for name, value in flags.items() if name not in _REACH}
    return f"{FACE}:{settings_digest(deciding, os.environ)}"


def room_of(
    flags: dict[str, Any],
    settings: Settings,
    door: "Authenticator",
    limits: "Limits",
    offer: "AllowedChoices",
) -> "ServerContext":
    """Sessions and streams for the folders that the flags name; None names all of them."""
    from bridle.server.context import ServerContext
    from bridle.server.streams import Streams
    from bridle.service.engine_pool import EnginePool
    from bridle.service.local_service import LocalService

    folders = flags["workspaces"]
    known = None if folders is None else tuple(os.path.realpath(one) for one in folders)
    engines = EnginePool(engine_factory(flags, offer.face))
    sessions = LocalService(state_folder(os.environ), engines, known, choices=offer)
    streams = Streams(sessions, most=limits.streams)
    return ServerContext(sessions, streams, door, limits, ChoiceList(settings, offer))


def _shown(host: str) -> str:
    """The host as it stands in an address; one that stands for all of them is this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host


def announce(setup: Setup, base: str, link: str, model: str, flags: dict[str, Any]) -> None:
    """What a person needs to know, and nothing else."""
    folders = flags["workspaces"]
    chat = [
        ("chat", f"{base}/chat"),
        ("", "to create a user's token: bridle chat-server token NAME"),
    ]
    paint = paint_for(sys.stdout)
    rows = [
        ("open", paint.cyan(link)),
        *(("", paint.cyan(link.replace(base, f"https://{name}", 1))) for name in flags["allowed"]),
        ("", paint.dim("signs you in once, within 15 minutes; `--show-token` prints your token")),
        ("folders", flat(folders[0])),
        *(("", flat(folder)) for folder in folders[1:]),
        *(chat if flags["chat"] else ()),
        ("model", flat(model)),
        ("mode", f"{setup.settings.mode} · sandbox {_sandbox(setup)}"),
        ("log", flat(str(server_folder() / LOG))),
        ("stop", "Ctrl-C; sessions are kept"),
    ]
    click.echo(f"{paint.bold('bridle')} {__version__} serves {base}\n")
    for name, said in rows:
        click.echo(f"  {paint.dim(name.ljust(9))} {said}")
    click.echo("")
    sys.stdout.flush()


def _sandbox(setup: Setup) -> str:
    from bridle.workspace.sandbox import probe

    try:
        return probe(setup.settings.sandbox).level
    except ConfigError as error:
        return flat(error.message)
