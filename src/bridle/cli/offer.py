"""What a server offers to those who have a token: what the person who starts it has chosen.

A model's vendor is offered where there is a key of its own, or none is needed. Where one key or
one address is for everything, it is the server's own vendor's: no other host gets to see it.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bridle.cli.setup import Setup
from bridle.config.settings import KEY_VARIABLES, Settings
from bridle.runtime.agents import CLAUDE, LOOP, agent_statuses, check_agent
from bridle.runtime.providers import LOCAL

if TYPE_CHECKING:
    from bridle.service.choices import AllowedChoices

_NONE = "offline"  # it needs nobody


def offer_of(setup: Setup, agents: Iterable[str], face: str) -> "AllowedChoices":
    """The server's own agent and model, our loop, Claude Code where it is, and what was named."""
    from bridle.service.choices import AllowedChoices

    settings = setup.settings
    there = [one.name for one in agent_statuses() if one.name == CLAUDE and one.good]
    named = dict.fromkeys(
        (setup.agent, LOOP, *there, *(check_agent(one, str(Path.cwd())) for one in agents))
    )
    vendors = frozenset(_vendors(settings, os.environ))
    return AllowedChoices(False, tuple(named), vendors, settings.name, settings.mode, face)


def _vendors(settings: Settings, environ: Mapping[str, str]) -> Iterable[str]:
    own = settings.vendor
    yield from (name for name in (own, _NONE) if name and name != "scripted")
    general = settings.api_key or settings.base_url or environ.get("BRIDLE_API_KEY")
    if not general:
        yield from (name for name, key in KEY_VARIABLES.items() if environ.get(key, "").strip())
        yield from LOCAL
