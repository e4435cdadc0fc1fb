"""pydantic-ai: an agent with a plain tool, its events streamed."""

from typing import Any

import stopwatch

Agent: Any
AnthropicModel: Any
AnthropicProvider: Any
UsageLimits: Any


def load() -> None:
    """Import the library."""
    global Agent, AnthropicModel, AnthropicProvider, UsageLimits
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One agent for all runs."""
    provider = AnthropicProvider(api_key="k", base_url=url)
    agent = Agent(AnthropicModel("bench-model", provider=provider), tools=[tool])
    limits = UsageLimits(request_limit=None)

    async def run(prompt: str) -> str:
        text = ""
        async with agent.run_stream_events(prompt, usage_limits=limits) as events:
            async for event in events:
                if event.event_kind == "agent_run_result":
                    text = event.result.output
        return text

    return run, provider.client.close


stopwatch.main(load, open_client)
