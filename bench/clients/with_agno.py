"""agno: an agent with a function as its tool, events streamed; telemetry off, no uploads."""

from typing import Any
from uuid import uuid4

import stopwatch

Agent: Any
Claude: Any


def load() -> None:
    """Import the library."""
    global Agent, Claude
    from agno.agent import Agent
    from agno.models.anthropic import Claude


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One agent for all runs."""
    model = Claude(id="bench-model", api_key="k", client_params={"base_url": url})
    agent = Agent(model=model, tools=[tool], telemetry=False)

    async def run(prompt: str) -> str:
        pieces: list[str] = []
        async for event in agent.arun(
            prompt, stream=True, stream_events=True, session_id=uuid4().hex
        ):
            if event.event == "RunContent":
                pieces.append(event.content or "")
            elif event.event == "RunError":
                raise RuntimeError(str(event.content))
        return "".join(pieces)

    return run, nothing


async def nothing() -> None:
    """The model keeps its HTTP client to itself."""


stopwatch.main(load, open_client)
