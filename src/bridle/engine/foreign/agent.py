"""An agent's name, and how it is shut down."""

import asyncio
import logging
from typing import TYPE_CHECKING

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
