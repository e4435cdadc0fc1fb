"""The bare Anthropic SDK with the tool loop that its documentation shows."""

import asyncio
from typing import Any

import stopwatch

TOOLS = [
    {
        "name": "lookup",
        "description": "Look up an item by its key.",
        "input_schema": {
            "type": "object",
            "properties": {"key": {"type": "string"}},
            "required": ["key"],
        },
    }
]
anthropic: Any


def load() -> None:
    """Import the SDK."""
    global anthropic
    import anthropic


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One client for all runs."""
    client = anthropic.AsyncAnthropic(api_key="k", base_url=url)

    async def run(prompt: str) -> str:
        messages: list[Any] = [{"role": "user", "content": prompt}]
        while True:
            message = await stream(client, messages)
            messages.append({"role": "assistant", "content": message.content})
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return "".join(b.text for b in message.content if b.type == "text")
            results = await asyncio.gather(*(answer(tool, call) for call in calls))
            messages.append({"role": "user", "content": results})

    return run, client.close


async def stream(client: Any, messages: list[Any]) -> Any:
    """One reply, with every piece of text looked at."""
    shown = 0
    async with client.messages.stream(
        model="bench-model", max_tokens=8192, tools=TOOLS, messages=messages
    ) as reply:
        async for event in reply:
            if event.type == "text":
                shown += len(event.text)
        return await reply.get_final_message()


async def answer(tool: stopwatch.Tool, call: Any) -> dict[str, Any]:
    """Run one call."""
    result = tool(**call.input)
    text = await result if asyncio.iscoroutine(result) else result
    return {"type": "tool_result", "tool_use_id": call.id, "content": text}


stopwatch.main(load, open_client)
