"""openai-agents: an agent with a function tool, its events streamed; tracing off, no uploads."""

from typing import Any

import stopwatch

agents: Any
openai: Any


def load() -> None:
    """Import the library."""
    global agents, openai
    import openai

    import agents

    agents.set_tracing_disabled(True)


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One agent for all runs."""
    client = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1")
    model = agents.OpenAIResponsesModel(model="bench-model", openai_client=client)
    agent = agents.Agent(name="bench", model=model, tools=[agents.function_tool(tool)])

    async def run(prompt: str) -> str:
        result = agents.Runner.run_streamed(agent, prompt, max_turns=1000)
        shown = 0
        async for event in result.stream_events():
            if (
                event.type == "raw_response_event"
                and event.data.type == "response.output_text.delta"
            ):
                shown += len(event.data.delta)
        return str(result.final_output)

    return run, client.close


stopwatch.main(load, open_client)
