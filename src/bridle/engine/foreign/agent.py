"""An agent's name, and how it is shut down."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from bridle.errors import ConfigError
from bridle.events import ModelEvent
from bridle.protocols.provider import ProviderInfo, Request

if TYPE_CHECKING:
    from bridle.protocols.agent import BaseAgent

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 15.0


def agent_name(agent: object) -> str:
    """Return what the log calls an agent: its `name`, or else its class."""
    name = getattr(agent, "name", "")
    return name if isinstance(name, str) and name else type(agent).__name__


async def shut_down(agent: "BaseAgent") -> None:
    """Shut an agent down. It is somebody else's code: do not wait for ever, and log a failure."""
    shutdown = asyncio.ensure_future(_call_shutdown(agent))
    await asyncio.wait((shutdown,), timeout=SHUTDOWN_SECONDS)
    if not shutdown.done():
        shutdown.cancel()
        log.warning("the agent did not shut down within %g seconds", SHUTDOWN_SECONDS)
        await asyncio.wait((shutdown,), timeout=1.0)


async def _call_shutdown(agent: "BaseAgent") -> None:
    try:
        await agent.shutdown()
    except Exception:  # the engine, or the task, is closed all the same
        log.warning("the agent could not be shut down", exc_info=True)


# A provider without a model: another agent brings its own model, or none was found.


class NoModel:
    """A provider that has no model. The log names the agent instead of a model.

    Every request raises `error`: by default, that the agent runs the turns without a model.
    """

    def __init__(self, agent: object = "", error: ConfigError | None = None) -> None:
        if error is not None:
            self.info, self._error = ProviderInfo(""), error
            return
        is_name = isinstance(agent, str) and agent
        self.info = ProviderInfo(str(agent) if is_name else agent_name(agent))
        self._error = ConfigError(
            f"{self.info.name} runs the turns, and no model is set up beside it",
            hint="Name a model as well, for example with --model.",
        )

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Raise the error."""
        for event in self._refusal():
            yield event

    def _refusal(self) -> tuple[ModelEvent, ...]:
        raise self._error

    async def close(self) -> None:
        """Do nothing."""
