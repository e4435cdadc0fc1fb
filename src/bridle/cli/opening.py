"""How a server comes to an engine: a folder's settings and rules, as `bridle run` reads them.

A question waits for whoever answers it first. What click would say to a person at the command line
becomes an error that a server can pass on.
"""

from typing import TYPE_CHECKING, Any

import click

from bridle.cli.setup import Setup
from bridle.errors import ConfigError

if TYPE_CHECKING:
    from bridle.engine.engine import Engine
    from bridle.service.engine_pool import EngineFactory, EngineSpec

FACE = "server"


def opening(flags: dict[str, Any], face: str = FACE) -> "EngineFactory":
    """Engines as these flags say, for whatever folder, model and agent is wanted."""

    def opened(wanted: "EngineSpec", session_id: str) -> "Engine":
        try:
            effort = flags.get("effort") or wanted.effort or None
            setup = Setup({**flags, **_chosen(wanted, session_id), "effort": effort})
            named = wanted.provider or wanted.model
            provider = setup.provider() if named else setup.provider_or_refusal()
            return setup.engine(provider, None, face, on_ask="wait")
        except click.ClickException as error:
            message, _, hint = error.format_message().partition("\n")
            raise ConfigError(message, error, hint=hint) from error

    return opened


def _chosen(wanted: "EngineSpec", session_id: str) -> dict[str, Any]:
    """Another provider or model than the flags' puts away what the flags say of the other."""
    given: dict[str, Any] = {"workspace": wanted.workspace, "resume": session_id or None}
    given |= {"as_before": False}  # sessions share an engine: what each had is in what is wanted
    if wanted.provider or wanted.model:
        given |= {"provider": wanted.provider or None, "model": wanted.model or None}
    if wanted.agent:
        given |= {"agent": wanted.agent}
    return given
