"""langchain: its agent (a langgraph graph) with a tool, message chunks streamed."""

from typing import Any

import stopwatch

create_agent: Any
ChatAnthropic: Any
as_tool: Any


def load() -> None:
    """Import the library."""
    global create_agent, ChatAnthropic, as_tool
    from langchain.agents import create_agent
    from langchain.tools import tool as as_tool
    from langchain_anthropic import ChatAnthropic


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One agent for all runs."""
    model = ChatAnthropic(model="bench-model", api_key="k", base_url=url, max_tokens=8192)
    agent = create_agent(model, tools=[as_tool(tool)])

    async def run(prompt: str) -> str:
        asked = {"messages": [{"role": "user", "content": prompt}]}
        pieces: list[str] = []
        last = None
        async for chunk, _ in agent.astream(
            asked, stream_mode="messages", config={"recursion_limit": 100_000}
        ):
            if chunk.type != "AIMessageChunk":
                continue
            if chunk.id != last:
                last, pieces = chunk.id, []
            pieces.append(chunk.text)
        return "".join(pieces)

    return run, nothing


async def nothing() -> None:
    """The model keeps its HTTP client to itself."""


stopwatch.main(load, open_client)
