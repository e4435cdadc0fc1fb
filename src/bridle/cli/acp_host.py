"""Serve an editor over the Agent Client Protocol; the protocol itself is `bridle.server.acp`."""

import asyncio
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bridle.cli.setup import Setup
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.cli.user_input import user_name
from bridle.config.mcp import ServerSettings
from bridle.distribution import install_hint
from bridle.engine.engine import Engine
from bridle.errors import MissingExtra
from bridle.policy import MODES, Mode
from bridle.protocols.provider import Provider
from bridle.providers.catalogue import models
from bridle.runtime import find_provider
from bridle.server.acp.host import FACE
from bridle.server.pipes import take_pipes
from bridle.stores.reader import SessionFolder

if TYPE_CHECKING:
    from bridle.server.acp.host import EditorMcpServer, EngineKey


def serve_editor(flags: dict[str, Any]) -> int:
    """Serve the editor until it closes its pipe, and return the exit code."""
    return run_async(_serve(EditorHost(flags, Setup(flags))))


async def _serve(host: "EditorHost") -> int:
    try:
        from bridle.server.acp.agent import EditorAgent
        from bridle.server.acp.jsonrpc import JsonLines
    except ImportError as problem:
        raise MissingExtra(
            "the library of the Agent Client Protocol is not installed",
            problem,
            hint=install_hint("acp"),
        ) from problem
    agent = EditorAgent(JsonLines(*take_pipes()), host)
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


class EditorHost:
    """Engines, models and modes for an editor, as the flags and the settings say."""

    def __init__(self, flags: dict[str, Any], setup: Setup) -> None:
        self._flags = flags
        self._setup = setup

    @property
    def folder(self) -> SessionFolder:
        """Where the sessions are stored."""
        return self._setup.folder

    @property
    def person(self) -> str:
        """The name under which prompts and answers are recorded."""
        return user_name()

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes to choose from; auto only if the person has allowed it."""
        auto = self._flags["allow_auto"] or self._setup.settings.mode == "auto"
        return MODES if auto else tuple(mode for mode in MODES if mode != "auto")

    def engine(self, place: "EngineKey") -> Engine:
        """Build an engine for a folder. Raise `ConfigError`."""
        setup = self._setup_for(place.workspace, place.also, agent=place.agent)
        self.models()  # now, because this runs in a thread: it may use the network
        provider = setup.provider_or_refusal()
        servers = _server_settings(place.servers)
        return setup.engine(provider, None, FACE, on_ask="wait", servers=servers)

    def carrier(self, session_id: str) -> str:
        """Return the agent that ran a session; empty if it is the default one."""
        agent = self._setup_for("", resume=session_id).agent
        return "" if agent == self._setup.agent else agent

    @cached_property
    def _models(self) -> Sequence[str]:
        if self._setup.agent != "loop":
            return ()
        vendor = find_provider(self._setup.settings).name.partition("/")[0]
        return tuple(info.label for info in models() if info.name == vendor)

    def models(self) -> Sequence[str]:
        """Return the models of the vendor that is used."""
        return self._models

    def provider(self, model: str) -> Provider:
        """Return the provider of that model. Raise `ConfigError`."""
        return self._setup.other(model)

    def _setup_for(self, workspace: str, also: tuple[str, ...] = (), **flags: str) -> Setup:
        """Return the setup for a folder. Raise `ConfigError`."""
        given = {name: value for name, value in flags.items() if value}
        folders = (*self._flags["add_dir"], *also)
        return Setup({**self._flags, "workspace": workspace or None, "add_dir": folders, **given})


def _server_settings(servers: "tuple[EditorMcpServer, ...]") -> tuple[ServerSettings, ...]:
    """Return the editor's MCP servers as settings, each with a valid name."""
    settings = {}
    for server in servers:
        name = re.sub("[^A-Za-z0-9]+", "-", server.name).strip("-")[:32] or "editor"
        env, headers = dict(server.env), dict(server.headers)
        settings[name] = ServerSettings(
            name, server.command, env, "", server.url, headers, origin="the editor"
        )
    return tuple(settings.values())
