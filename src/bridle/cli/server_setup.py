"""What a server is given by this machine: engines, and the models and agents to choose from.

An engine is built from the settings and rules of a folder, like that of `bridle run`.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bridle.cli.checkup import report_lines
from bridle.cli.setup import Setup
from bridle.config.settings import KEY_VARIABLES, Settings
from bridle.engine.engine import Engine
from bridle.protocols.session_values import Choice, Choices, Report
from bridle.providers.catalogue import models
from bridle.runtime.agents import CLAUDE, LOOP, AgentStatus, agent_statuses, check_agent
from bridle.runtime.providers import LOCAL, find_key, find_provider, local_servers
from bridle.service.choices import AllowedChoices
from bridle.service.engine_pool import EngineFactory, EngineSpec

FACE = "server"
_OFFLINE = "offline/offline"  # the name in sessions, so that a list has it once
_KEYLESS = "offline"  # a vendor that everyone may use


def engine_factory(flags: dict[str, Any], face: str = FACE) -> EngineFactory:
    """Return a function that builds engines with these flags, for any folder, model and agent."""

    def build(spec: EngineSpec, session_id: str) -> Engine:
        effort = flags.get("effort") or spec.effort or None
        setup = Setup({**flags, **_flags_of(spec, session_id), "effort": effort})
        is_named = spec.provider or spec.model
        provider = setup.provider() if is_named else setup.provider_or_refusal()
        return setup.engine(provider, None, face, on_ask="wait")

    return build


def _flags_of(spec: EngineSpec, session_id: str) -> dict[str, Any]:
    """Return flags for a spec; a provider or model in it replaces both of those in the flags."""
    # sessions share an engine: what each of them last used is in its spec
    flags: dict[str, Any] = {"workspace": spec.workspace, "resume": session_id or None}
    flags |= {"as_before": False}
    if spec.provider or spec.model:
        flags |= {"provider": spec.provider or None, "model": spec.model or None}
    if spec.agent:
        flags |= {"agent": spec.agent}
    return flags


def allowed_choices(setup: Setup, agents: Iterable[str], face: str) -> AllowedChoices:
    """Return what holders of a token may choose: models, and these agents besides our own.

    A vendor's models are allowed if it has its own key or needs none. If one key or one address
    is used for everything, only the server's own vendor is allowed: no other host gets the key.
    """
    settings = setup.settings
    claude = [one.name for one in agent_statuses() if one.name == CLAUDE and one.good]
    named = (check_agent(agent, str(Path.cwd())) for agent in agents)
    names = dict.fromkeys((setup.agent, LOOP, *claude, *named))
    vendors = frozenset(_vendors(settings, os.environ))
    return AllowedChoices(False, tuple(names), vendors, settings.name, settings.mode, face)


def _vendors(settings: Settings, environ: Mapping[str, str]) -> Iterable[str]:
    own = settings.vendor
    yield from (name for name in (own, _KEYLESS) if name and name != "scripted")
    is_shared = settings.api_key or settings.base_url or environ.get("BRIDLE_API_KEY")
    if not is_shared:
        yield from (name for name, key in KEY_VARIABLES.items() if environ.get(key, "").strip())
        yield from LOCAL


class ChoiceList:
    """The models and agents of this machine; the default is what the server was started with."""

    def __init__(self, settings: Settings, allowed: AllowedChoices) -> None:
        self._settings = settings
        self._allowed = allowed

    async def models(self) -> Choices:
        """Return the default, the models of local servers, and those of the catalogue."""
        return Choices(await asyncio.to_thread(lambda: tuple(self._models())))

    async def agents(self) -> Choices:
        """Return our own loop and other agents, and what is missing for those not usable."""
        return Choices(await asyncio.to_thread(lambda: tuple(self._agents())))

    async def doctor(self) -> Report:
        """Return the findings of `bridle doctor`, one per line."""
        return Report(await asyncio.to_thread(report_lines, self._settings))

    def _models(self) -> Iterator[Choice]:
        default = find_provider(self._settings).name
        default = _OFFLINE if default == "offline" else default
        if default:
            yield Choice(default, default=True)
        for name, _, model in local_servers():
            if (label := f"{name}/{model}") != default and self._is_allowed(name):
                yield Choice(label, label="on this machine")
        for info in models():
            if info.label != default and self._is_allowed(info.name):
                yield Choice(info.label, why_not=self._missing(info.name))

    def _is_allowed(self, vendor: str) -> bool:
        return self._allowed.free or vendor in self._allowed.vendors

    def _agents(self) -> Iterator[Choice]:
        statuses = {status.name: status for status in agent_statuses()}
        if not self._allowed.free:
            statuses = {
                name: statuses.get(name) or AgentStatus(name, "as named", True)
                for name in self._allowed.agents
            }
        for status in statuses.values():
            why_not = "" if status.good else f"{status.found}. {status.lacks}".strip()
            is_default = status.name == self._default_agent
            yield Choice(status.name, status.found, is_default, why_not)

    @property
    def _default_agent(self) -> str:
        agent = self._settings.agent or "loop"
        is_allowed = self._allowed.free or agent in self._allowed.agents
        return agent if is_allowed else self._allowed.agents[0]

    def _missing(self, vendor: str) -> str:
        """Return why a vendor's models cannot be used; empty if nothing is missing."""
        variable = KEY_VARIABLES.get(vendor, "")
        if not variable or find_key(vendor, os.environ)[0] or self._settings.api_key:
            return ""
        return f"The API key is missing: set {variable}."
