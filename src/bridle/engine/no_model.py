"""A provider without a model: another agent brings its own model, or none was found."""

from collections.abc import AsyncGenerator

from bridle.engine.foreign.agent import agent_name
from bridle.errors import ConfigError
from bridle.events import ModelEvent
from bridle.protocols.provider import ProviderInfo, Request


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
