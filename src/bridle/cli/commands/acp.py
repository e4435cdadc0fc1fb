"""`bridle acp`: bridle as the agent of an editor, over standard input and output.

Options and the way from them to engines; what an editor can ask for is `bridle.server.acp`.
"""

import re
import sys
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import turn_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridle.cli.setup import Setup
    from bridle.config.mcp import ServerSettings
    from bridle.engine.engine import Engine
    from bridle.policy import Mode
    from bridle.protocols.provider import Provider
    from bridle.server.acp.host import EditorsServer, Place
    from bridle.stores.reader import SessionFolder

_UNFIT = ("go_on", "resume", "thinking", "workspace", "worktree")  # the editor names those


@click.command("acp")
@turn_options
@click.option(
    "--allow-auto",
    is_flag=True,
    help="Let the editor choose the mode auto, in which nothing is asked.",
)
def command(**flags: Any) -> int:
    """Be an editor's agent: the Agent Client Protocol over standard input and output.

    The editor starts this, and names the folders to work on. Sessions are kept as always:
    `bridle sessions` lists them, and another terminal can answer what is asked.
    """
    from bridle.cli.exit_codes import complain
    from bridle.cli.setup import Setup
    from bridle.cli.signals import run_async

    if sys.stdin is not None and sys.stdin.isatty():
        complain("this is for an editor to start, and waits for one to speak", "Ctrl-D ends it.")
    return run_async(_serve(EditorsHost(flags, Setup(flags))))


command.params = [one for one in command.params if one.name not in _UNFIT]


async def _serve(host: "EditorsHost") -> int:
    import asyncio
    import signal

    from bridle.cli.signals import END_SIGNALS, on_signals
    from bridle.distribution import install_hint
    from bridle.errors import MissingExtra
    from bridle.server.pipes import take_pipes

    try:
        from bridle.server.acp.agent import EditorsAgent
        from bridle.server.acp.jsonrpc import Lines
    except ImportError as problem:
        raise MissingExtra(
            "the library of the Agent Client Protocol is not installed",
            problem,
            hint=install_hint("acp"),
        ) from problem
    agent = EditorsAgent(Lines(*take_pipes()), host)
    serving = asyncio.ensure_future(agent.serve())
    try:
        with on_signals(serving.cancel, signal.SIGINT, *END_SIGNALS):
            await asyncio.wait([serving])
            await agent.close()
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
    return 0


class EditorsHost:
    """What the flags and the settings come to, for every folder that the editor names."""

    def __init__(self, flags: dict[str, Any], setup: "Setup") -> None:
        self._flags = flags
        self._setup = setup

    @property
    def folder(self) -> "SessionFolder":
        """Where the sessions are kept."""
        return self._setup.folder

    @property
    def person(self) -> str:
        """In whose name prompts and answers are recorded."""
        from bridle.cli.user_input import user_name

        return user_name()

    @property
    def modes(self) -> "tuple[Mode, ...]":
        """All of them; auto only where the person has said so."""
        from bridle.policy import MODES

        auto = self._flags["allow_auto"] or self._setup.settings.mode == "auto"
        return MODES if auto else tuple(one for one in MODES if one != "auto")

    def engine(self, place: "Place") -> "Engine":
        """A new engine for that place. Raise `ConfigError`."""
        from bridle.server.acp.host import FACE

        setup = self._at(place.workspace, place.also, agent=place.agent)
        self.models()  # here, in a thread: to find them may take a look at the network
        servers = _settings(place.servers)
        provider = setup.provider_or_refusal()
        return setup.engine(provider, None, FACE, on_ask="wait", servers=servers)

    def carrier(self, session_id: str) -> str:
        """The agent that carried a session; empty where it is the usual one."""
        found = self._at("", resume=session_id).agent
        return "" if found == self._setup.agent else found

    @cached_property
    def _models(self) -> "Sequence[str]":
        from bridle.providers.catalogue import models
        from bridle.runtime import find_provider

        if self._setup.agent != "loop":
            return ()
        vendor = find_provider(self._setup.settings).name.partition("/")[0]
        return tuple(one.label for one in models() if one.name == vendor)

    def models(self) -> "Sequence[str]":
        """Those of the vendor whose key is there."""
        return self._models

    def provider(self, model: str) -> "Provider":
        """The side of that model. Raise `ConfigError`."""
        return self._setup.other(model)

    def _at(self, workspace: str, also: "tuple[str, ...]" = (), **more: str) -> "Setup":
        """The settings as they are for that folder. Raise `ConfigError`."""
        from bridle.cli.setup import Setup
        from bridle.errors import ConfigError

        given = {name: value for name, value in more.items() if value}
        folders = (*self._flags["add_dir"], *also)
        try:
            return Setup(
                {**self._flags, "workspace": workspace or None, "add_dir": folders, **given}
            )
        except click.ClickException as error:
            said, _, hint = error.format_message().partition("\n")
            raise ConfigError(said, error, hint=hint) from error


def _settings(servers: "tuple[EditorsServer, ...]") -> "tuple[ServerSettings, ...]":
    """The editor's MCP servers as settings, each with a name that one can have."""
    from bridle.config.mcp import ServerSettings

    found = {}
    for one in servers:
        name = re.sub("[^A-Za-z0-9]+", "-", one.name).strip("-")[:32] or "editor"
        env, headers = dict(one.env), dict(one.headers)
        found[name] = ServerSettings(
            name, one.command, env, "", one.url, headers, origin="the editor"
        )
    return tuple(found.values())
