"""What can be chosen on a server: the models that are known, and the agents that are there."""

import asyncio
import os
from collections.abc import Iterator

from bridle.config import KEY_VARIABLES, Settings
from bridle.providers.catalogue import models
from bridle.runtime.adapters import find_key
from bridle.runtime.agents import usable_agents
from bridle.runtime.choosing import find_provider, local_servers
from bridle.server.views import Choices, Named


class Menu:
    """Models and agents of this machine; the default is what the server was started with."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def models(self) -> Choices:
        """The default, those of local servers, and the catalogue's."""
        return Choices(await asyncio.to_thread(lambda: tuple(self._known())))

    async def agents(self) -> Choices:
        """Our own loop, and other agents; one that lacks something says what."""
        return Choices(await asyncio.to_thread(lambda: tuple(self._carriers())))

    def _known(self) -> Iterator[Named]:
        usual = find_provider(self._settings).name
        yield Named(usual, default=True)
        for name, _, model in local_servers():
            if (label := f"{name}/{model}") != usual:
                yield Named(label, label="on this machine")
        for info in models():
            if info.label != usual:
                yield Named(info.label, why_not=self._lacks(info.name))

    def _carriers(self) -> Iterator[Named]:
        for one in usable_agents():
            why = "" if one.good else f"{one.found}. {one.lacks}".strip()
            yield Named(one.name, one.found, one.name == (self._settings.agent or "loop"), why)

    def _lacks(self, vendor: str) -> str:
        """Why a vendor's models cannot be used; empty where nothing is known to be missing."""
        variable = KEY_VARIABLES.get(vendor, "")
        if not variable or find_key(vendor, os.environ)[0] or self._settings.api_key:
            return ""
        return f"There is no key: set {variable}."
