"""What can be chosen on a server: the models that are known, and the agents that are there."""

import asyncio
import os
from collections.abc import Iterator

from bridle.config.settings import KEY_VARIABLES, Settings
from bridle.protocols.session_values import Choice, Choices, Report
from bridle.providers.catalogue import models
from bridle.runtime.agents import AgentStatus, agent_statuses
from bridle.runtime.providers import find_key, find_provider, local_servers
from bridle.service.choices import AllowedChoices

_OFFLINE = "offline/offline"  # as sessions name it, so that it stands in a list once


class Menu:
    """Models and agents of this machine; the default is what the server was started with."""

    def __init__(self, settings: Settings, offer: AllowedChoices) -> None:
        self._settings = settings
        self._offer = offer

    async def models(self) -> Choices:
        """The default, those of local servers, and the catalogue's."""
        return Choices(await asyncio.to_thread(lambda: tuple(self._known())))

    async def agents(self) -> Choices:
        """Our own loop, and other agents; one that lacks something says what."""
        return Choices(await asyncio.to_thread(lambda: tuple(self._carriers())))

    async def doctor(self) -> Report:
        """What was found on this machine, a line each."""
        from bridle.cli.checkup import report_lines

        return Report(await asyncio.to_thread(report_lines, self._settings))

    def _known(self) -> Iterator[Choice]:
        usual = find_provider(self._settings).name
        usual = _OFFLINE if usual == "offline" else usual
        if usual:
            yield Choice(usual, default=True)
        for name, _, model in local_servers():
            if (label := f"{name}/{model}") != usual and self._may(name):
                yield Choice(label, label="on this machine")
        for info in models():
            if info.label != usual and self._may(info.name):
                yield Choice(info.label, why_not=self._lacks(info.name))

    def _may(self, vendor: str) -> bool:
        return self._offer.free or vendor in self._offer.vendors

    def _carriers(self) -> Iterator[Choice]:
        known = {one.name: one for one in agent_statuses()}
        if not self._offer.free:  # those that were named by who started the server, and no others
            offered = self._offer.agents
            known = {
                name: known.get(name) or AgentStatus(name, "as named", True) for name in offered
            }
        for one in known.values():
            why = "" if one.good else f"{one.found}. {one.lacks}".strip()
            yield Choice(one.name, one.found, one.name == self._usual_agent, why)

    @property
    def _usual_agent(self) -> str:
        usual = self._settings.agent or "loop"
        return usual if self._offer.free or usual in self._offer.agents else self._offer.agents[0]

    def _lacks(self, vendor: str) -> str:
        """Why a vendor's models cannot be used; empty where nothing is known to be missing."""
        variable = KEY_VARIABLES.get(vendor, "")
        if not variable or find_key(vendor, os.environ)[0] or self._settings.api_key:
            return ""
        return f"There is no key: set {variable}."
