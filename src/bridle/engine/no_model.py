"""Stands in for a model where there is none: another agent brings its own, or none was found."""

from collections.abc import AsyncGenerator

from bridle.errors import ConfigError
from bridle.events import ModelEvent
from bridle.promises.provider import ProviderInfo, Request


class NoModel:
    """Stands in for a provider; the log names the agent in its place.

    Every request raises `error`: by default, that the agent runs the turns without a model.
    """

    def __init__(self, agent: object = "", error: ConfigError | None = None) -> None:
        if error is not None:
            self.info, self._error = ProviderInfo(""), error
            return
        name = agent if isinstance(agent, str) else getattr(agent, "name", "")
        self.info = ProviderInfo(name if isinstance(name, str) and name else type(agent).__name__)
        self._error = ConfigError(
            f"{self.info.name} runs the turns, and no model is set up beside it",
            hint="Name a model as well, for example with --model.",
        )

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """There is nobody to ask."""
        for event in self._refusal():
            yield event

    def _refusal(self) -> tuple[ModelEvent, ...]:
        raise self._error

    async def close(self) -> None:
        """There is nothing to let go of."""
